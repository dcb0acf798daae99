//! The receiving half: the decoder, and reports of what it has recovered.

use std::collections::VecDeque;

use bytes::Bytes;
use fulmar_fec::{
    Code, DecodeError, Decoder, LENGTH_BYTES, Limits, Outcome, RepairId, SYMBOL_MAX, WINDOW_MAX,
    length_to_front,
};
use fulmar_wire::{
    BlockRepair, FecRecovered, FecRepair, FecSid, Frame, SourceSymbol, TransportErrorCode, VarInt,
};

use super::{BlockCode, FecCode, FecConfig, FecDialect, FecStats, restore_id};
use crate::error::TransportError;
use crate::log::{FecEvent, RepairOutcome};
use crate::memory::Reservation;
use crate::packet::{FrameWriter, SentFrame};

/// Reports that wait, and recovered symbols that are remembered to tell late packets. The oldest are forgotten: a symbol whose
/// report is lost is sent again, which does no harm.
const RECOVERED_MAX: usize = WINDOW_MAX as usize;

/// A report goes with so many further packets that answer the peer: one that is lost alone would leave the peer with the acknowledgement
/// of a repair symbol that seems not to have helped, and it would send again what is here.
const REPORT_COPIES: u8 = 2;

/// Recovers source symbols of the peer.
#[derive(Debug)]
pub(crate) struct FecReceiver {
    decoder: Decoder,
    /// What the decoder may take of the endpoint's memory.
    memory: Reservation,
    /// The most that it takes, in bytes.
    memory_max: u64,
    /// Repair symbols that came while there was no memory.
    without_memory: u64,
    /// What it decodes in dialect M; `None` in dialect X.
    blocks: Option<BlockCode>,
    /// The id after the newest one that was named.
    end: u64,
    /// The symbol that the rest of the packet that is being processed is.
    open: Option<u64>,
    /// What was recovered lately, in this order.
    recovered: VecDeque<u64>,
    /// What the peer is to be told.
    reports: VecDeque<Report>,
    /// What it was told, and is to be told again.
    told: VecDeque<Report>,
    received: u64,
    /// Whether somebody has asked since the decoder was switched off.
    off_told: bool,
}

/// What the peer is to be told.
#[derive(Debug, Clone, Copy)]
struct Report {
    frame: FecRecovered,
    /// How often it is to be told again.
    copies: u8,
}

impl FecReceiver {
    pub(super) fn new(config: &FecConfig, blocks: Option<BlockCode>, memory: Reservation) -> Self {
        let limits = Limits { window: config.window, symbol: SYMBOL_MAX, ..Limits::default() };
        Self {
            decoder: Decoder::new(limits),
            memory,
            memory_max: u64::from(config.window)
                * u64::from(SYMBOL_MAX + LENGTH_BYTES as u16 + config.window),
            without_memory: 0,
            blocks,
            end: 0,
            open: None,
            recovered: VecDeque::new(),
            reports: VecDeque::new(),
            told: VecDeque::new(),
            received: 0,
            off_told: false,
        }
    }

    pub(super) fn dialect(&self) -> FecDialect {
        FecDialect::of(self.blocks)
    }

    /// The frames of this frame are a source symbol, up to the call of [`FecReceiver::end_packet`].
    pub(crate) fn on_source_symbol(&mut self, symbol: &SourceSymbol<'_>) {
        self.open = Some(symbol.id.get());
    }

    /// Whether source symbols have an end of their own, so that padding cannot follow them.
    pub(crate) fn has_framed_symbols(&self) -> bool {
        self.blocks.is_some()
    }

    /// The rest of the packet is a source symbol.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if the packet has another one already.
    pub(crate) fn on_sid(&mut self, sid: &FecSid) -> Result<(), TransportError> {
        let id = restore_id(sid.id, self.end);
        match self.open.replace(id) {
            None => Ok(()),
            Some(_) => Err(TransportError::protocol_violation("two source symbols in a packet")),
        }
    }

    /// Whether what is being processed is part of a source symbol.
    pub(crate) fn is_in_symbol(&self) -> bool {
        self.open.is_some()
    }

    /// Whether what is being processed was recovered before, and has only now arrived.
    pub(crate) fn is_known(&self) -> bool {
        self.open.is_some_and(|id| self.recovered.contains(&id))
    }

    /// The packet has ended, or the frame that a source symbol is in: these bytes are its source symbol, if it has one.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION for a symbol that is longer than was announced.
    pub(crate) fn end_packet(&mut self, symbol: &[u8]) -> Result<(), TransportError> {
        let Some(id) = self.open.take() else { return Ok(()) };
        let before = self.end;
        self.end = self.end.max(id + 1);
        if !self.has_memory(before) {
            return Ok(());
        }
        match self.decoder.on_source(id, symbol) {
            // Dialect M has no limit that could be announced: repair symbols over it are of no use, and that is all.
            Err(DecodeError::Length(_)) if self.blocks.is_none() => {
                Err(TransportError::protocol_violation("a source symbol that is too long"))
            }
            // Symbols that contradict one another switch the decoder off; that is all.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// A repair symbol arrived.
    ///
    /// # Errors
    /// FRAME_ENCODING_ERROR if there is no such repair symbol, or it is beyond what was announced.
    pub(crate) fn on_repair(&mut self, repair: &FecRepair<'_>) -> Result<FecEvent, TransportError> {
        let illegal = |reason| TransportError::new(TransportErrorCode::FRAME_ENCODING_ERROR, reason);
        let code = FecCode::of(repair.scheme).ok_or_else(|| illegal("an erasure code that is not known"))?;
        self.received += 1;
        let count = repair.count();
        let first = restore_id(repair.first, self.end.saturating_sub(count.into()));
        let id = RepairId { first, count, key: repair.key };
        self.decode(code.code(), &id, repair.symbol)
    }

    /// A repair symbol of dialect M arrived. One that is longer than what this end keeps is ignored: there is no way to
    /// announce that.
    ///
    /// # Errors
    /// FRAME_ENCODING_ERROR if the code has no such repair symbol.
    pub(crate) fn on_block_repair(&mut self, repair: &BlockRepair<'_>) -> Result<FecEvent, TransportError> {
        let blocks = self.blocks.map(|blocks| (blocks, blocks.repair_id(repair.block, repair.parity)));
        let Some((blocks, Some(id))) = blocks else { return Err(impossible_repair()) };
        self.received += 1;
        if repair.symbol.len() > LENGTH_BYTES + usize::from(SYMBOL_MAX) {
            let outcome = RepairOutcome::Dropped;
            return Ok(FecEvent::RepairReceived { first: id.first, count: id.count, outcome });
        }
        let mut symbol = repair.symbol.to_vec();
        length_to_front(&mut symbol);
        self.decode(blocks.code(), &id, &symbol)
    }

    fn decode(&mut self, code: &dyn Code, id: &RepairId, symbol: &[u8]) -> Result<FecEvent, TransportError> {
        let RepairId { first, count, .. } = *id;
        if !self.has_memory(self.end) {
            self.without_memory += 1;
            return Ok(FecEvent::RepairReceived { first, count, outcome: RepairOutcome::Dropped });
        }
        let outcome = match self.decoder.on_repair(code, id, symbol) {
            Ok(Outcome::Kept) => RepairOutcome::Kept,
            Ok(Outcome::Recovered(_)) => RepairOutcome::Used,
            Ok(Outcome::Redundant) => RepairOutcome::Redundant,
            Ok(Outcome::Stale | Outcome::OverBudget | Outcome::Off) | Err(DecodeError::Inconsistent) => {
                RepairOutcome::Dropped
            }
            Err(_) => return Err(impossible_repair()),
        };
        if matches!(outcome, RepairOutcome::Kept | RepairOutcome::Used) {
            self.end = self.end.max(first + u64::from(count));
        }
        Ok(FecEvent::RepairReceived { first, count, outcome })
    }

    /// Whether symbols that contradict one another have switched the decoder off since this was asked last.
    pub(crate) fn take_switched_off(&mut self) -> bool {
        self.decoder.is_off() && !std::mem::replace(&mut self.off_told, true)
    }

    /// The id and the frames of the next source symbol that was recovered. To be asked until there are no more.
    pub(crate) fn next_recovered(&mut self) -> Option<(u64, Bytes)> {
        let (id, frames) = self.decoder.next_recovered()?;
        let frames = Bytes::copy_from_slice(frames);
        if self.recovered.len() == RECOVERED_MAX {
            self.recovered.pop_front();
        }
        self.recovered.push_back(id);
        // Not all who speak dialect M know a report.
        if self.blocks.is_none() {
            self.report(id);
        }
        Some((id, frames))
    }

    /// A packet of the peer was processed that is to be acknowledged: what it was told before goes with that. Returns whether there
    /// is something.
    pub(crate) fn repeat_reports(&mut self) -> bool {
        for report in std::mem::take(&mut self.told) {
            self.push_report(report);
        }
        self.has_reports()
    }

    /// Whether there is something to tell the peer.
    pub(crate) fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    pub(super) fn write(&mut self, out: &mut FrameWriter<'_>) {
        while let Some(Report { frame, copies }) = self.reports.front().copied() {
            if !out.write(&Frame::FecRecovered(frame), SentFrame::FecRecovered(frame)) {
                return;
            }
            self.reports.pop_front();
            if let Some(copies) = copies.checked_sub(1) {
                self.told.push_back(Report { frame, copies });
            }
        }
    }

    pub(super) fn on_report_lost(&mut self, report: FecRecovered) {
        self.push_report(Report { frame: report, copies: 0 });
    }

    pub(super) fn add_stats(&self, stats: &mut FecStats) {
        let decoder = self.decoder.stats();
        stats.recovered = decoder.recovered;
        stats.repairs_received = self.received;
        stats.repairs_redundant = decoder.redundant_repairs;
        stats.repairs_dropped = decoder.dropped_repairs + self.without_memory;
        stats.decoding_work = decoder.work;
        stats.decoder_off = self.decoder.is_off();
    }

    /// Whether the decoder has its memory, or gets it now. One that is off needs none. What was named before this packet is before `end`.
    fn has_memory(&mut self, end: u64) -> bool {
        if self.decoder.is_off() {
            self.memory.set_held(0);
            return true;
        }
        if self.memory.held() == 0 && self.memory.left(self.memory_max) >= self.memory_max {
            self.memory.set_held(self.memory_max);
            // What arrived without memory was handed on and is not known to the decoder: recovered, it would come twice.
            self.decoder.start_at(end);
        }
        self.memory.held() > 0
    }

    /// Joins a recovered symbol to the last report, if it follows it.
    fn report(&mut self, id: u64) {
        if let Some(Report { frame: last, copies: REPORT_COPIES }) = self.reports.back_mut()
            && last.more < u8::MAX
            && last.first.get() + u64::from(last.more) + 1 == id
        {
            last.more += 1;
            return;
        }
        let frame = FecRecovered { first: VarInt::saturating(id), more: 0 };
        self.push_report(Report { frame, copies: REPORT_COPIES });
    }

    fn push_report(&mut self, report: Report) {
        if self.reports.len() == RECOVERED_MAX {
            self.reports.pop_front();
        }
        self.reports.push_back(report);
    }
}

fn impossible_repair() -> TransportError {
    TransportError::new(TransportErrorCode::FRAME_ENCODING_ERROR, "a repair symbol that there cannot be")
}

#[cfg(test)]
mod tests;
