//! What became of source symbols and repair symbols, as acknowledgements, losses and reports of the peer tell it.

use fulmar_base::Instant;
use fulmar_fec::schedule::Feedback;
use fulmar_wire::{FecRecovered, FecWindow, SymbolAck};

use super::symbols::{Loss, Odds, State};
use super::{FecSender, Protected};
use crate::error::TransportError;
use crate::packet::SymbolId;

impl FecSender {
    /// The packet of a source symbol has arrived.
    pub(crate) fn on_acked(&mut self, symbol: SymbolId) {
        if self.sent.on_acked(symbol) {
            self.note(false);
        }
        self.sent.forget_resolved(self.repairs.oldest());
    }

    /// The packet of a source symbol is lost. It is held back while repair symbols that cover it may still be reported to
    /// have helped: whenever they left, they arrive before a retransmission would. Where there is nothing else to send, more of
    /// them make up for those that lack.
    pub(crate) fn on_lost(&mut self, now: Instant, symbol: SymbolId) -> Loss {
        let patience = self.patience();
        // In dialect M nobody would tell that it was recovered.
        let loss_rate = self.repairs.blocks().is_none().then(|| self.losses.loss_rate());
        let odds = loss_rate.map(|loss_rate| Odds { loss_rate, may_complete: self.may_complete() });
        let Some((loss, is_first)) = self.sent.on_lost(now, symbol, patience, odds) else {
            // It was handed back when it was forgotten, or its packet is older than the memory.
            return Loss { unprotected: 0, resend: true };
        };
        self.stats.symbols_lost += 1;
        if is_first {
            self.note(true);
        }
        self.sent.forget_resolved(self.repairs.oldest());
        loss
    }

    /// The packet of a source symbol that was taken for lost has arrived.
    pub(crate) fn on_spurious(&mut self, symbol: SymbolId) {
        if self.sent.on_spurious(symbol) {
            self.stats.symbols_lost = self.stats.symbols_lost.saturating_sub(1);
            self.losses.excuse();
            self.tell(Feedback::Late);
        }
    }

    /// A packet with a repair symbol was acknowledged or lost.
    pub(crate) fn on_repair_delivery(&mut self, first: u64, count: u16, acked: bool) {
        match acked {
            true => self.stats.repairs_acked += 1,
            false => self.stats.repairs_lost += 1,
        }
        if acked {
            self.note_use(first, count);
        }
        self.sent.uncover(first, count, acked);
    }

    /// A packet with a repair symbol that was taken for lost has arrived. It counts as in flight no more since then.
    pub(crate) fn on_repair_spurious(&mut self, first: u64, count: u16) {
        self.stats.repairs_lost = self.stats.repairs_lost.saturating_sub(1);
        self.stats.repairs_acked += 1;
        self.note_use(first, count);
    }

    /// The peer has recovered symbols. Returns the tokens of the frames that it has now.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION for symbols that were never sent.
    pub(crate) fn on_recovered(&mut self, report: &FecRecovered) -> Result<Vec<Protected>, TransportError> {
        let first = report.first.get();
        let last = first + u64::from(report.more);
        if last >= self.sent.end() {
            return Err(TransportError::protocol_violation("the recovery of a symbol that was not sent"));
        }
        let mut delivered = Vec::new();
        for (was, protected) in self.sent.deliver(first..=last) {
            self.stats.symbols_recovered += 1;
            // Its packet may have no verdict yet: it will be taken for lost, which is then nobody's concern.
            self.stats.retransmissions_spared += u64::from(was != State::Lost);
            if was == State::InFlight {
                self.note(true);
            }
            delivered.push(protected);
        }
        if !delivered.is_empty() {
            self.tell(Feedback::RepairsUsed(delivered.len() as u16));
        }
        Ok(delivered)
    }

    /// The peer says which symbols it has, in dialect M. Returns the tokens of their frames.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION for symbols that were never sent.
    pub(crate) fn on_symbol_ack(&mut self, ack: &SymbolAck<'_>) -> Result<Vec<Protected>, TransportError> {
        if ack.largest().get() >= self.sent.end() {
            return Err(TransportError::protocol_violation("the recovery of a symbol that was not sent"));
        }
        let mut delivered = Vec::new();
        for range in ack.ranges() {
            for (was, protected) in self.sent.deliver(range) {
                // A packet in flight may have arrived: the frame tells that as well.
                self.stats.symbols_recovered += u64::from(was != State::InFlight);
                delivered.push(protected);
            }
        }
        self.sent.forget_resolved(self.repairs.oldest());
        Ok(delivered)
    }

    /// The peer says how many symbols it keeps, in dialect M: where these are fewer than a block, repair symbols are of no use.
    pub(crate) fn on_window(&mut self, window: &FecWindow) {
        self.repairs.on_window(window);
    }

    /// A repair symbol has arrived: it was of no use if all that it covers has arrived, too.
    fn note_use(&mut self, first: u64, count: u16) {
        if !self.sent.lacks_any(first, count) {
            self.tell(Feedback::RepairsUnused(1));
        }
    }

    /// Notes what became of a symbol.
    fn note(&mut self, lost: bool) {
        self.losses.note(lost);
        self.tell(if lost { Feedback::Lost } else { Feedback::Delivered });
    }
}
