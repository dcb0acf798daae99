//! The packet numbers of packets that are sent.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use fulmar_base::Rng;

use crate::packed::packed;

/// The numbers skipped last that are remembered. A peer that acknowledges ahead is caught by the newest
/// ones; an older one can do no harm any more.
const MAX_REMEMBERED_SKIPS: usize = 32;

/// The first skip is among the first `2 * FIRST_PERIOD` numbers or so.
const FIRST_PERIOD: u64 = 64;

/// The longest mean distance between two skips.
const MAX_PERIOD: u64 = 64 * 1024;

/// Gives out packet numbers and now and then skips one.
///
/// A peer that acknowledges packets before it has received them makes the sender go faster than the path
/// allows. It cannot know the skipped numbers, so it gives itself away (RFC 9000 §21.4). The mean distance
/// between skips doubles from one to the next: an attack shows early, and a long transfer loses nothing.
#[derive(Debug)]
pub(crate) struct TxNumbers {
    next: u64,
    skip_at: u64,
    period: u64,
    /// In increasing order.
    skipped: VecDeque<u64>,
}

packed!(TxNumbers { next, skip_at, period, skipped });

impl TxNumbers {
    /// Starts at number 0, which is never skipped.
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let mut numbers = Self { next: 0, skip_at: 0, period: FIRST_PERIOD, skipped: VecDeque::new() };
        numbers.plan_skip(rng);
        numbers
    }

    /// The number of the next packet.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Notes that a packet took the number [`TxNumbers::next`].
    pub(crate) fn advance(&mut self, rng: &mut Rng) {
        self.next += 1;
        if self.next >= self.skip_at {
            self.skip();
            self.plan_skip(rng);
        }
    }

    /// Skips the next number. A gap also makes the peer acknowledge at once, which a probe can use
    /// (RFC 9002 §6.2.4).
    pub(crate) fn skip(&mut self) {
        if self.skipped.len() == MAX_REMEMBERED_SKIPS {
            self.skipped.pop_front();
        }
        self.skipped.push_back(self.next);
        self.next += 1;
    }

    /// Whether `number` was skipped, as far as it is remembered.
    pub(crate) fn is_skipped(&self, number: u64) -> bool {
        self.skipped.binary_search(&number).is_ok()
    }

    /// Whether one of `numbers` was skipped, as far as it is remembered.
    pub(crate) fn any_skipped(&self, numbers: &RangeInclusive<u64>) -> bool {
        let index = self.skipped.partition_point(|skipped| skipped < numbers.start());
        self.skipped.get(index).is_some_and(|skipped| skipped <= numbers.end())
    }

    pub(crate) fn rest(&mut self) {
        self.skipped.shrink_to_fit();
    }

    fn plan_skip(&mut self, rng: &mut Rng) {
        // At least one number is used between two skips.
        self.skip_at = self.next + 1 + rng.below(2 * self.period);
        self.period = (self.period * 2).min(MAX_PERIOD);
    }
}

#[cfg(test)]
mod tests;
