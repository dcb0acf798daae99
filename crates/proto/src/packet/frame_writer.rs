//! The payload of the packet that is being built.

use fulmar_base::Instant;
use fulmar_wire::{
    AckEncoder, AckWritten, Dialect, FecSid, Frame, SourceSymbol, StreamHeader, StreamId, VarInt, Writer,
};

use super::{Protection, Protections, SentFrame, SentFrames, SymbolId};
use crate::log::{ACK_DELAY_EXPONENT, ConnectionLog, LogEvent};

/// What goes before the data of a stream at most: the type, the stream, the offset, and the length of less than 16 KiB.
pub(crate) const STREAM_HEADER_MAX: u64 = 1 + 8 + 8 + 2;

/// Writes frames into the payload of one packet and records a token for each.
///
/// Components get `&mut FrameWriter` and stop when what they have no longer fits. Whatever is written here
/// will be sent: there is no way back.
pub(crate) struct FrameWriter<'a> {
    writer: Writer<'a>,
    dialect: Dialect,
    frames: SentFrames,
    ack_eliciting: bool,
    fills_datagram: bool,
    non_probing: bool,
    resends: u8,
    copies: bool,
    /// Bytes at the end of the payload that are kept for [`FrameWriter::write_tail`].
    tail: usize,
    /// Whether a STREAM frame that reaches the end of the packet says its length all the same. True as long as the packet is
    /// cut, or a symbol wants that.
    lengths: bool,
    /// The protection of the data that the packet may carry; `None`: whatever there is.
    only: Option<(Protections, Protection)>,
    symbol: Option<SymbolId>,
    /// Where the source symbol begins, if one is being written: in the payload, and among the tokens.
    open: Option<OpenSymbol>,
    log: Option<(Instant, &'a mut ConnectionLog)>,
}

/// What goes before the frames that are a source symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymbolHeader {
    /// FEC_SID: the rest of the packet is the symbol.
    Sid(FecSid),
    /// The beginning of SOURCE_SYMBOL, with the symbol's id: the symbol is within that frame.
    Framed(VarInt),
}

impl SymbolHeader {
    /// Its bytes.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Sid(_) => FecSid::LEN,
            Self::Framed(id) => SourceSymbol::begin_len(id),
        }
    }

    fn begin(self, writer: &mut Writer<'_>) {
        match self {
            Self::Sid(sid) => sid.encode(writer),
            Self::Framed(id) => SourceSymbol::begin(id, writer),
        }
    }

    /// The frame as it is logged.
    fn frame(self) -> Frame<'static> {
        match self {
            Self::Sid(sid) => Frame::FecSid(sid),
            Self::Framed(id) => Frame::SourceSymbol(SourceSymbol { id, frames: &[] }),
        }
    }
}

/// A source symbol that is being written.
#[derive(Clone, Copy)]
struct OpenSymbol {
    header: SymbolHeader,
    symbol: SymbolId,
    start: usize,
    tokens: usize,
}

/// What a [`FrameWriter`] wrote.
pub(crate) struct Payload {
    /// Bytes of the payload.
    pub(crate) len: usize,
    /// The tokens, in the order of the frames.
    pub(crate) frames: SentFrames,
    /// Whether one of the frames elicits an acknowledgement.
    pub(crate) ack_eliciting: bool,
    /// Whether one of the frames asks for a datagram of the size that every path carries.
    pub(crate) fills_datagram: bool,
    /// See [`SentPacket::resends`](super::SentPacket::resends).
    pub(crate) resends: u8,
    /// See [`SentPacket::copies`](super::SentPacket::copies).
    pub(crate) copies: bool,
    /// See [`SentPacket::symbol`](super::SentPacket::symbol).
    pub(crate) symbol: Option<SymbolId>,
}

impl<'a> FrameWriter<'a> {
    /// Writes into `payload`, which is as long as the payload may become.
    pub(crate) fn new(payload: &'a mut [u8], dialect: Dialect) -> Self {
        Self {
            writer: Writer::new(payload),
            dialect,
            frames: SentFrames::new(),
            ack_eliciting: false,
            fills_datagram: false,
            non_probing: false,
            resends: 0,
            copies: false,
            tail: 0,
            lengths: false,
            only: None,
            symbol: None,
            open: None,
            log: None,
        }
    }

    /// Logs the frames, too.
    pub(crate) fn logged_in(self, now: Instant, log: Option<&'a mut ConnectionLog>) -> Self {
        Self { log: log.map(|log| (now, log)), ..self }
    }

    /// Bytes that are left in this packet, those that are kept for its tail not included.
    pub(crate) fn space(&self) -> usize {
        self.writer.remaining().saturating_sub(self.tail)
    }

    /// Keeps `len` bytes at the end of the payload free, for a frame that is made when all others are written: a repair
    /// symbol, or the end of the connection. As much as is left, if that is less.
    pub(crate) fn keep_tail(&mut self, len: usize) {
        self.tail = len.min(self.writer.remaining());
    }

    /// Writes a frame into the bytes that were kept, and what is left beside them. Returns false, and writes nothing, if
    /// it does not fit.
    pub(crate) fn write_tail(&mut self, frame: &Frame<'_>) -> bool {
        self.tail = 0;
        self.write_untracked(frame)
    }

    /// From here on the packet takes data of this protection only.
    pub(crate) fn restrict(&mut self, all: Protections, only: Protection) {
        self.only = Some((all, only));
    }

    /// Whether the packet takes data for which this protection was chosen.
    #[inline]
    pub(crate) fn takes(&self, chosen: Option<Protection>) -> bool {
        self.only.is_none_or(|(all, only)| all.of(chosen) == only)
    }

    /// The protection of the data that the packet takes, if that is restricted.
    pub(crate) fn protection(&self) -> Option<Protection> {
        self.only.map(|(_, only)| only)
    }

    /// Whether nothing was written into the source symbol, or none was begun.
    pub(crate) fn is_symbol_empty(&self) -> bool {
        self.open.is_none_or(|open| open.start == self.writer.len())
    }

    /// What follows is protected by forward erasure correction, as this symbol of at most `len` bytes: its loss is held back
    /// until the symbol is made again or given up. Nothing but PING may follow it in the packet.
    ///
    /// STREAM frames within SOURCE_SYMBOL all have a length: who speaks that dialect joins the symbols that it recovers before it
    /// reads their frames. So have those of a symbol that must not fill the packet: padding may follow, which would else be
    /// taken for their data.
    pub(crate) fn begin_symbol(&mut self, header: SymbolHeader, symbol: SymbolId, len: usize) {
        debug_assert_eq!(self.tail, 0, "a symbol reaches to the end of the packet");
        if self.space() <= header.len() {
            return;
        }
        header.begin(&mut self.writer);
        let is_cut = len < self.writer.remaining();
        self.writer.limit(len);
        self.lengths |= is_cut || matches!(header, SymbolHeader::Framed(_));
        self.open = Some(OpenSymbol { header, symbol, start: self.writer.len(), tokens: self.frames.len() });
    }

    /// Ends the symbol. Returns its bytes, its tokens, and how many tokens came before them; `None` if no symbol was begun,
    /// or nothing was written into it, which is then as if it had not been begun, but that the packet stays cut.
    pub(crate) fn end_symbol(&mut self) -> Option<(&[u8], &[SentFrame], usize)> {
        let OpenSymbol { header, symbol, start, tokens } = self.open.take()?;
        if self.writer.len() == start {
            // Padding may follow what is written now as well.
            self.writer.rewind(start - header.len());
            return None;
        }
        self.lengths = false;
        let start = match header {
            SymbolHeader::Sid(_) => start,
            SymbolHeader::Framed(_) => SourceSymbol::end(start, &mut self.writer),
        };
        if let Some((now, log)) = &mut self.log {
            log.push_frame(*now, &header.frame(), ACK_DELAY_EXPONENT);
        }
        self.symbol = Some(symbol);
        Some((self.writer.written_from(start), &self.frames[tokens..], tokens))
    }

    /// Whether nothing was written yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.writer.len() == 0
    }

    /// Whether data of streams was written.
    pub(crate) fn has_stream_data(&self) -> bool {
        self.frames.iter().any(|frame| matches!(frame, SentFrame::Stream { .. }))
    }

    /// Whether one of the frames written elicits an acknowledgement.
    pub(crate) fn is_ack_eliciting(&self) -> bool {
        self.ack_eliciting
    }

    /// Whether one of the frames is more than a probe, so that the packet moves a path to the address it comes
    /// from (RFC 9000 §9.1).
    pub(crate) fn is_non_probing(&self) -> bool {
        self.non_probing
    }

    /// Notes that what was written last was lost before, and has no other copy in flight.
    pub(crate) fn mark_resent(&mut self) {
        self.resends = self.resends.max(1);
    }

    /// Notes that what was written last has another copy in flight. If it was lost before, this is copy number `resends`; otherwise
    /// that is zero.
    pub(crate) fn mark_copied(&mut self, resends: u8) {
        self.copies = true;
        self.resends = self.resends.max(resends);
    }

    /// Writes a frame whose fate nobody needs to hear of. Returns false, and writes nothing, if it does not fit.
    pub(crate) fn write_untracked(&mut self, frame: &Frame<'_>) -> bool {
        if frame.encoded_len(self.dialect) > self.space() {
            return false;
        }
        frame.encode(self.dialect, &mut self.writer);
        if let Some((now, log)) = &mut self.log {
            log.push_frame(*now, frame, ACK_DELAY_EXPONENT);
            if matches!(frame, Frame::Padding) {
                // Where it fills a datagram it is no frame that was written, and has no entry.
                log.push(*now, LogEvent::PADDING);
            }
        }
        self.ack_eliciting |= frame.is_ack_eliciting();
        self.non_probing |= !frame.is_probing();
        // RFC 9000 §8.2.1, §8.2.2: they prove that the path carries such datagrams.
        self.fills_datagram |= matches!(frame, Frame::PathChallenge(_) | Frame::PathResponse(_));
        true
    }

    /// Writes a frame and records its token. Returns false, and writes nothing, if it does not fit.
    pub(crate) fn write(&mut self, frame: &Frame<'_>, token: SentFrame) -> bool {
        let written = self.write_untracked(frame);
        if written {
            self.frames.push(token);
        }
        written
    }

    /// Writes an ACK with as many of the newest ranges as fit. Returns `None`, and writes nothing, if not even
    /// one does.
    pub(crate) fn write_ack(&mut self, ack: &AckEncoder<'_>) -> Option<AckWritten> {
        let written = ack.encode_within(self.dialect, self.tail, &mut self.writer)?;
        self.non_probing = true;
        self.frames.push(SentFrame::Ack { path: ack.path, largest: written.largest });
        if let Some((now, log)) = &mut self.log {
            log.push_ack(*now, ack, written.ranges);
        }
        Some(written)
    }

    /// Reserves a STREAM frame for up to `available` bytes at `offset` and returns how many fit; `fill` copies
    /// exactly that many into the packet. The frame ends the stream if `fin` and all of `available` fit.
    ///
    /// Returns `None`, and writes nothing, if not even one byte fits (or, where nothing is available, the bare
    /// end of the stream).
    pub(crate) fn write_stream(
        &mut self,
        id: StreamId,
        offset: u64,
        available: usize,
        fin: bool,
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<usize> {
        let header = |len: usize, fin: bool, explicit_len: bool| StreamHeader {
            id,
            offset: varint(offset),
            len,
            fin,
            explicit_len,
        };
        // A frame that reaches the end of the packet needs no length (RFC 9000 §19.8).
        let bare = header(0, false, false).encoded_len();
        let room = self.space().checked_sub(bare)?;
        // One that something follows needs it.
        let (len, explicit_len) = if available >= room && self.tail == 0 && !self.lengths {
            (room, false)
        } else {
            let with_length = header(available, fin, true).encoded_len();
            (available.min(self.space().checked_sub(with_length)?), true)
        };
        if len == 0 && !(fin && available == 0) {
            return None;
        }
        let fin = fin && len == available;
        header(len, fin, explicit_len).encode(&mut self.writer);
        fill(self.writer.reserve(len));
        self.ack_eliciting = true;
        self.non_probing = true;
        self.note(LogEvent::Stream { id, offset, len: len as u16, fin });
        self.frames.push(SentFrame::Stream { id, offset, len: len as u32, fin });
        Some(len)
    }

    /// Reserves a CRYPTO frame for up to `available` bytes at `offset`; otherwise like
    /// [`FrameWriter::write_stream`].
    pub(crate) fn write_crypto(
        &mut self,
        offset: u64,
        available: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<usize> {
        let header_len = |len: usize| 1 + varint(offset).size() + varint(len as u64).size();
        let room = self.space().checked_sub(header_len(available.min(self.space())))?;
        let len = available.min(room);
        if len == 0 {
            return None;
        }
        self.writer.put_u8(0x06);
        self.writer.put_varint(varint(offset));
        self.writer.put_varint(varint(len as u64));
        fill(self.writer.reserve(len));
        self.ack_eliciting = true;
        self.non_probing = true;
        self.note(LogEvent::Crypto { offset, len: len as u16 });
        self.frames.push(SentFrame::Crypto { offset, len: len as u32 });
        Some(len)
    }

    /// Adds what is not a frame to the log.
    pub(crate) fn note(&mut self, event: LogEvent) {
        if let Some((now, log)) = &mut self.log {
            log.push(*now, event);
        }
    }

    /// Ends the payload.
    pub(crate) fn finish(self) -> Payload {
        Payload {
            len: self.writer.len(),
            frames: self.frames,
            ack_eliciting: self.ack_eliciting,
            fills_datagram: self.fills_datagram,
            resends: self.resends,
            copies: self.copies,
            symbol: self.symbol,
        }
    }
}

/// An offset within a stream, which flow control keeps below 2^62.
fn varint(value: u64) -> VarInt {
    VarInt::try_from(value).unwrap_or(VarInt::MAX)
}

#[cfg(test)]
mod tests;
