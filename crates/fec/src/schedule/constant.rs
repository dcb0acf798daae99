//! A fixed rate: what the first experiments with erasure correction in QUIC did.

use std::collections::VecDeque;

use fulmar_base::Instant;

use super::{Feedback, Order, Scheduler, Situation};
use crate::WINDOW_MAX;

/// After each block of `block` source symbols, `repairs` repair symbols over it, whatever becomes of them.
///
/// Blocks are counted over all source symbols; those that have none of its own get nothing. It does harm on links that lose
/// little: all that is sent takes longer. The last block gets none while it is not full.
#[derive(Debug, Clone)]
pub struct Constant {
    block: u16,
    repairs: u16,
    /// The blocks with symbols of its own that were not ordered yet, at most [`WINDOW_MAX`]: symbols of older ones are not kept.
    waiting: VecDeque<u64>,
}

impl Constant {
    /// `block` is 1 to [`WINDOW_MAX`], `repairs` at least 1; other values are brought into these ranges.
    pub fn new(block: u16, repairs: u16) -> Self {
        Self { block: block.clamp(1, WINDOW_MAX), repairs: repairs.max(1), waiting: VecDeque::new() }
    }
}

impl Scheduler for Constant {
    fn on_source(&mut self, id: u64, _: Instant, _: Option<Instant>) {
        let block = id / u64::from(self.block);
        if self.waiting.back() == Some(&block) {
            return;
        }
        if self.waiting.len() == usize::from(WINDOW_MAX) {
            self.waiting.pop_front();
        }
        self.waiting.push_back(block);
    }

    fn on_feedback(&mut self, _: Feedback) {}

    fn next_order(&mut self, situation: &Situation) -> Option<Order> {
        let block = u64::from(self.block);
        // Blocks whose symbols are not kept any more cannot be repaired.
        let oldest = situation.end.saturating_sub(WINDOW_MAX.into()).div_ceil(block);
        while self.waiting.front().is_some_and(|number| *number < oldest) {
            self.waiting.pop_front();
        }
        let first = self.waiting.front()? * block;
        if situation.end < first + block {
            return None;
        }
        self.waiting.pop_front();
        Some(Order { first, count: self.block, repairs: self.repairs })
    }

    fn first_needed(&self) -> Option<u64> {
        self.waiting.front().map(|number| number * u64::from(self.block))
    }
}
