//! A fixed rate: what the first experiments with erasure correction in QUIC did.

use fulmar_base::Instant;

use super::{Feedback, Order, Scheduler, Situation};
use crate::WINDOW_MAX;

/// After each block of `block` source symbols, `repairs` repair symbols over it, whatever becomes of them.
///
/// It does harm on links that lose little: all that is sent takes longer. The last block gets none while it is not full.
#[derive(Debug, Clone)]
pub struct Constant {
    block: u16,
    repairs: u16,
    /// The first block that was not ordered yet.
    next_block: u64,
    /// The number of blocks whose symbols have all left.
    complete: u64,
}

impl Constant {
    /// `block` is 1 to [`WINDOW_MAX`], `repairs` at least 1; other values are brought into these ranges.
    pub fn new(block: u16, repairs: u16) -> Self {
        Self { block: block.clamp(1, WINDOW_MAX), repairs: repairs.max(1), next_block: 0, complete: 0 }
    }
}

impl Scheduler for Constant {
    fn on_source(&mut self, id: u64, _: Instant, _: Option<Instant>) {
        self.complete = self.complete.max((id + 1) / u64::from(self.block));
    }

    fn on_feedback(&mut self, _: Feedback) {}

    fn next_order(&mut self, situation: &Situation) -> Option<Order> {
        let block = u64::from(self.block);
        // Blocks whose symbols are not kept any more cannot be repaired.
        let oldest = situation.end.saturating_sub(WINDOW_MAX.into()).div_ceil(block);
        self.next_block = self.next_block.max(oldest);
        if self.next_block >= self.complete {
            return None;
        }
        let first = self.next_block * block;
        self.next_block += 1;
        Some(Order { first, count: self.block, repairs: self.repairs })
    }
}
