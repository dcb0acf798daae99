//! Which packets become source symbols: the writing of packets with protected data.

use fulmar_base::Instant;
use fulmar_wire::{FecSid, PathId, SourceSymbol, VarInt};

use super::FecSender;
use crate::packet::{FrameWriter, Protection, STREAM_HEADER_MAX, SymbolHeader, SymbolId};

/// A packet that is longer than the longest symbol by more than this is not cut for it, but where what comes next fits the symbol.
pub(super) const CUT_MAX: usize = 64;

/// What comes next in a packet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Upcoming {
    /// The protection that was chosen for it.
    pub(crate) chosen: Option<Protection>,
    /// The length of the DATAGRAM frame that comes next, which cannot be cut.
    pub(crate) datagram: Option<usize>,
    /// The bytes of streams that can follow without waiting for anybody but congestion control.
    pub(crate) backlog: u64,
    /// The payload of a full packet whose number is as long as can be (RFC 9000 §17.1).
    pub(crate) room: usize,
    /// The bytes that may leave before there is a verdict on it; all while the path's capacity is searched for.
    pub(crate) flight: u64,
}

impl FecSender {
    /// The bytes before the protected frames of a packet at most.
    pub(crate) fn header_len_max(&self) -> usize {
        match self.repairs.blocks() {
            None => FecSid::LEN,
            Some(_) => SourceSymbol::begin_len(VarInt::MAX),
        }
    }

    /// Lets a packet take data of the protection that was chosen for what comes next, and begins a source symbol if that is
    /// any, unless it would cut the next datagram, or bulk data far shorter than the packet. A repair symbol over it has to fit a packet,
    /// too.
    pub(crate) fn begin(&mut self, next: Upcoming, out: &mut FrameWriter<'_>) {
        self.open = self.protections.of(next.chosen);
        out.restrict(self.protections, self.open);
        if self.open == Protection::None || self.open == Protection::Tail && self.is_far_from_end(next, out) {
            return;
        }
        let id = self.sent.end();
        let header = match self.repairs.blocks() {
            None => SymbolHeader::Sid(FecSid { id: id as u16 }),
            Some(_) => SymbolHeader::Framed(VarInt::saturating(id)),
        };
        // A repair symbol has a full packet to itself, however short this one is.
        let kept = self.repairs.overhead() + fulmar_fec::LENGTH_BYTES;
        let (whole, here) = (next.room.checked_sub(kept), out.space().checked_sub(header.len()));
        let (Some(whole), Some(here)) = (whole, here) else { return };
        let room = whole.min(here);
        let limit = room.min(self.symbol_max);
        let fits = match next.datagram {
            Some(datagram) => datagram <= limit,
            // Bulk data would take more packets where these are long.
            None => room <= self.symbol_max + CUT_MAX || next.backlog + STREAM_HEADER_MAX <= limit as u64,
        };
        if fits {
            out.begin_symbol(header, SymbolId(id as u32), limit);
        }
    }

    /// Whether so much follows that no repair symbol at the end would cover this packet, whatever becomes of it: they cover the
    /// newest ones, as many as the window has. Nor do they cover what has its verdict by then, and this packet has it before more
    /// than a flight was sent after it; half of one more is for a window that grows meanwhile. While the capacity is searched for the
    /// flight may become as long as what there is to send: then a loss early in it would cost the transfer a round trip.
    fn is_far_from_end(&self, next: Upcoming, out: &FrameWriter<'_>) -> bool {
        let covered = u64::from(self.config.window) * out.space() as u64;
        let undecided = next.flight.saturating_add(next.flight / 2);
        next.datagram.is_none() && next.backlog >= covered.min(undecided)
    }

    /// Whether a packet that was begun for something else goes on with the protection that was chosen for what comes next. What has no
    /// protection may go before what has, but nothing of another protection joins a source symbol, nor follows it.
    #[inline]
    pub(crate) fn switches(&self, chosen: Option<Protection>, out: &FrameWriter<'_>) -> bool {
        let protection = self.protections.of(chosen);
        out.protection()
            .is_some_and(|open| open != protection && (open == Protection::None || out.is_symbol_empty()))
    }

    /// As [`FecSender::begin`], in a packet that was begun for something else and [switches](FecSender::switches).
    pub(crate) fn switch(&mut self, next: Upcoming, out: &mut FrameWriter<'_>) {
        out.end_symbol();
        self.begin(next, out);
    }

    /// Ends the source symbol of a packet, and keeps what was written.
    pub(crate) fn end_symbol(&mut self, now: Instant, path: PathId, out: &mut FrameWriter<'_>) {
        // A packet without data, such as one with a repair symbol, leaves as little to send as there was.
        self.idle &= !out.has_stream_data();
        let Some((bytes, tokens, unprotected)) = out.end_symbol() else { return };
        let (id, open) = (self.sent.end(), self.open);
        self.repairs.push(id, bytes);
        self.sent.push(now, path, tokens.iter().cloned().collect(), unprotected);
        let deadline = (open == Protection::Deadline).then(|| now + self.config.within());
        self.scheduler_of(open).on_source(id, now, deadline);
        self.stats.symbols_sent += 1;
    }
}
