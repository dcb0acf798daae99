//! Frames of draft-michel-quic-fec-01, alternative 1, as its implementation in a fork of quic-go (0xFEC) has them.
//!
//! | frame | fields |
//! |---|---|
//! | SOURCE_SYMBOL | the symbol's id (i), length (i), the protected frames |
//! | REPAIR | block (i), number of the repair symbol within it (i), length (i), repair symbol |
//! | SYMBOL_ACK | as ACK, without a delay: largest id (i), number of pairs (i), first range (i), pairs of gap (i) and length (i) |
//! | FEC_WINDOW | epoch (i), number of symbols (i) |
//!
//! The draft leaves the fields of REPAIR to the code; these are those of the fork. A symbol has its length behind it, and behind
//! the zeros that make it as long as the longest of its block.

use std::fmt;

use super::LENGTH_BYTES;
use crate::frame::ack::{AckRanges, check_ranges};
use crate::frame::{Malformed, prefixed_len, put_type, type_len};
use crate::{FrameType, Reader, VarInt, Writer};

/// Frames that are protected: a source symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceSymbol<'a> {
    /// The symbol's id. Ids count the source symbols of a sender from 0 on.
    pub id: VarInt,
    /// The protected frames, encoded.
    pub frames: &'a [u8],
}

impl<'a> SourceSymbol<'a> {
    /// The most bytes of the frame beside the protected frames.
    pub const OVERHEAD_MAX: usize = 8 + 8 + Self::WIDE_LENGTH;

    /// The bytes of a length that is not known when the frame is begun.
    const WIDE_LENGTH: usize = 2;

    /// The bytes that [`SourceSymbol::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        type_len(FrameType::SOURCE_SYMBOL) + self.id.size() + prefixed_len(self.frames)
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::SOURCE_SYMBOL, writer);
        writer.put_varint(self.id);
        writer.put_length_prefixed(self.frames);
    }

    /// The bytes that [`SourceSymbol::begin`] writes.
    pub fn begin_len(id: VarInt) -> usize {
        type_len(FrameType::SOURCE_SYMBOL) + id.size() + Self::WIDE_LENGTH
    }

    /// Begins a frame whose protected frames are written next, at most 2^14 - 1 bytes.
    pub fn begin(id: VarInt, writer: &mut Writer<'_>) {
        put_type(FrameType::SOURCE_SYMBOL, writer);
        writer.put_varint(id);
        writer.put_u16(0);
    }

    /// Ends the frame whose protected frames are what was written from `start` on. Returns where they begin then: if they are
    /// short, their length takes one byte less.
    pub fn end(start: usize, writer: &mut Writer<'_>) -> usize {
        let (len, at) = (writer.len() - start, start - Self::WIDE_LENGTH);
        debug_assert!(len < 1 << 14, "a packet is shorter");
        writer.replace_u16(at, len as u16 | 1 << 14);
        if len >= 1 << 6 {
            return start;
        }
        // The low byte is the length by itself.
        writer.remove(at, 1);
        start - 1
    }

    pub(in crate::frame) fn decode(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self { id: reader.varint()?, frames: reader.length_prefixed()? })
    }
}

/// A repair symbol over a block of source symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRepair<'a> {
    /// The block: with K source symbols in each, it has those from K times this number on.
    pub block: VarInt,
    /// Which one of the repair symbols of the block it is.
    pub parity: VarInt,
    /// The repair symbol: at least two bytes, the last two of which are those of the lengths.
    pub symbol: &'a [u8],
}

impl<'a> BlockRepair<'a> {
    /// The most bytes of the frame beside a repair symbol of less than 2^14 bytes, for blocks of less than 2^62 symbols and
    /// fewer than 64 repair symbols each.
    pub const OVERHEAD_MAX: usize = 4 + 8 + 1 + 2;

    /// The bytes that [`BlockRepair::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        type_len(FrameType::REPAIR) + self.block.size() + self.parity.size() + prefixed_len(self.symbol)
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::REPAIR, writer);
        writer.put_varint(self.block);
        writer.put_varint(self.parity);
        writer.put_length_prefixed(self.symbol);
    }

    pub(in crate::frame) fn decode(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (block, parity) = (reader.varint()?, reader.varint()?);
        let symbol = reader.length_prefixed()?;
        if symbol.len() < LENGTH_BYTES {
            return Err(Malformed::new("the repair symbol is too short"));
        }
        Ok(Self { block, parity, symbol })
    }
}

/// Tells which source symbols have arrived or were recovered.
///
/// The ranges stay encoded as they were received. They were checked when the frame was decoded.
#[derive(Clone, Copy)]
pub struct SymbolAck<'a> {
    largest: VarInt,
    first_range: VarInt,
    pair_count: VarInt,
    pairs: &'a [u8],
}

impl<'a> SymbolAck<'a> {
    /// The ids, largest range first.
    pub fn ranges(&self) -> AckRanges<'a> {
        AckRanges::new(self.largest, self.first_range, self.pairs)
    }

    /// The largest id.
    pub fn largest(&self) -> VarInt {
        self.largest
    }

    /// The bytes that [`SymbolAck::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        let fields = [self.largest, self.pair_count, self.first_range];
        let fields: usize = fields.into_iter().map(VarInt::size).sum();
        type_len(FrameType::SYMBOL_ACK) + fields + self.pairs.len()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::SYMBOL_ACK, writer);
        writer.put_varint(self.largest);
        writer.put_varint(self.pair_count);
        writer.put_varint(self.first_range);
        writer.put_bytes(self.pairs);
    }

    pub(in crate::frame) fn decode(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let largest = reader.varint()?;
        let pair_count = reader.varint()?;
        let first_range = reader.varint()?;
        let pairs = check_ranges(reader, largest.get(), first_range.get(), pair_count.get())?;
        Ok(Self { largest, first_range, pair_count, pairs })
    }
}

impl PartialEq for SymbolAck<'_> {
    /// Compares the ids. A varint that was encoded longer than necessary makes no difference.
    fn eq(&self, other: &Self) -> bool {
        self.ranges().eq(other.ranges())
    }
}

impl Eq for SymbolAck<'_> {}

impl fmt::Debug for SymbolAck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SymbolAck").field("ranges", &self.ranges()).finish()
    }
}

/// Tells how many symbols the sender of this keeps at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FecWindow {
    /// Counts these frames from 0 on: the size of a later one holds.
    pub epoch: VarInt,
    /// The number of symbols.
    pub size: VarInt,
}

impl FecWindow {
    /// The bytes that [`FecWindow::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        type_len(FrameType::FEC_WINDOW) + self.epoch.size() + self.size.size()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::FEC_WINDOW, writer);
        writer.put_varint(self.epoch);
        writer.put_varint(self.size);
    }

    pub(in crate::frame) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { epoch: reader.varint()?, size: reader.varint()? })
    }
}

#[cfg(test)]
mod tests;
