//! Frames of forward erasure correction, in two dialects. `michel` has those of draft-michel-quic-fec-01 (dialect M); here are
//! those of our own (dialect X): FEC_SID, FEC_REPAIR, FEC_RECOVERED.
//!
//! | frame | fields |
//! |---|---|
//! | FEC_SID | the symbol's id, its low 16 bits |
//! | FEC_REPAIR | scheme (i), low 16 bits of the first id (16), number of source symbols less one (8), key (i), length (i), repair symbol |
//! | FEC_RECOVERED | the first id (i), the number of ids less one (i) |
//!
//! Their types are ours, from the range that everybody may use, and take two bytes. Ids count the source symbols of a sender from 0 on.

mod michel;

pub use michel::{BlockRepair, FecWindow, SourceSymbol, SymbolAck};

use super::{Malformed, prefixed_len, put_type, type_len};
use crate::{FrameType, Reader, VarInt, Writer};

/// The length in front of a source symbol, which a repair symbol covers as well: no repair symbol is shorter.
const LENGTH_BYTES: usize = 2;

/// What a FEC_RECOVERED frame may report at most: more symbols are in no window.
const RECOVERED_MAX: u64 = 256;

/// The frames that follow it in the packet are a source symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FecSid {
    /// The low 16 bits of the symbol's id.
    pub id: u16,
}

impl FecSid {
    /// The bytes that [`FecSid::encode`] writes.
    pub const LEN: usize = 4;

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::FEC_SID, writer);
        writer.put_u16(self.id);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { id: reader.u16()? })
    }
}

/// A repair symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FecRepair<'a> {
    /// The number of the code, as in the bitmap of [`FecParameters`](crate::FecParameters).
    pub scheme: u8,
    /// The low 16 bits of the id of the first source symbol that it covers.
    pub first: u16,
    /// How many source symbols it covers besides the first.
    pub more: u8,
    /// Tells it from other repair symbols over the same source symbols.
    pub key: u16,
    /// The repair symbol: at least two bytes.
    pub symbol: &'a [u8],
}

impl<'a> FecRepair<'a> {
    /// The most bytes of the frame beside the repair symbol.
    pub const OVERHEAD_MAX: usize = 2 + 1 + 2 + 1 + 4 + 2;

    /// How many source symbols it covers: 1 to 256.
    pub fn count(&self) -> u16 {
        u16::from(self.more) + 1
    }

    /// The bytes that [`FecRepair::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        let (scheme, key) = (VarInt::from(self.scheme), VarInt::from_u32(self.key.into()));
        type_len(FrameType::FEC_REPAIR) + scheme.size() + 3 + key.size() + prefixed_len(self.symbol)
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::FEC_REPAIR, writer);
        writer.put_varint(VarInt::from(self.scheme));
        writer.put_u16(self.first);
        writer.put_u8(self.more);
        writer.put_varint(VarInt::from_u32(self.key.into()));
        writer.put_length_prefixed(self.symbol);
    }

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let scheme = u8::try_from(reader.varint()?.get());
        let (first, more) = (reader.u16()?, reader.u8()?);
        let key = u16::try_from(reader.varint()?.get());
        let symbol = reader.length_prefixed()?;
        if symbol.len() < LENGTH_BYTES {
            return Err(Malformed::new("the repair symbol is too short"));
        }
        Ok(Self {
            scheme: scheme.map_err(|_| Malformed::new("there is no such erasure code"))?,
            first,
            more,
            key: key.map_err(|_| Malformed::new("the key of a repair symbol is 2^16 or more"))?,
            symbol,
        })
    }
}

/// Source symbols with consecutive ids whose packets have not arrived, and that were recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FecRecovered {
    /// The id of the first one.
    pub first: VarInt,
    /// How many there are besides the first.
    pub more: u8,
}

impl FecRecovered {
    /// The bytes that [`FecRecovered::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        type_len(FrameType::FEC_RECOVERED) + self.first.size() + VarInt::from(self.more).size()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::FEC_RECOVERED, writer);
        writer.put_varint(self.first);
        writer.put_varint(VarInt::from(self.more));
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (first, more) = (reader.varint()?, reader.varint()?.get());
        if more >= RECOVERED_MAX || first.get() + more > VarInt::MAX.get() {
            return Err(Malformed::new("more symbols were recovered than there can be"));
        }
        Ok(Self { first, more: more as u8 })
    }
}

#[cfg(test)]
mod tests;
