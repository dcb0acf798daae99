//! Which packet numbers have been received.

use fulmar_base::{Instant, RangeSet};

use crate::packed::packed;

/// The ranges of received packet numbers that are remembered to recognise duplicates. A network that
/// loses packets makes one range for each gap; the oldest range is given up when there are more.
const MAX_RECEIVED_RANGES: usize = 256;

/// Recognises duplicates and knows the largest packet number.
///
/// When ranges are given up, everything below them counts as a duplicate from then on, so no packet is
/// ever processed twice (RFC 9000 §12.3), at the price of a very late packet now and then.
#[derive(Debug, Default)]
pub(crate) struct Received {
    ranges: RangeSet,
    /// Every number below counts as received.
    floor: u64,
    largest: Option<(u64, Instant)>,
}

packed!(Received { ranges, floor, largest });

impl Received {
    /// Whether a packet with this number was received already, or is too old to say.
    pub(crate) fn is_duplicate(&self, number: u64) -> bool {
        number < self.floor || self.ranges.contains(number)
    }

    /// Notes a packet that was opened. Returns false if it is a duplicate.
    #[inline]
    pub(crate) fn insert(&mut self, now: Instant, number: u64) -> bool {
        if number < self.floor || !self.ranges.insert_one(number) {
            return false;
        }
        if self.largest.is_none_or(|(largest, _)| number > largest) {
            self.largest = Some((number, now));
        }
        if self.ranges.len() > MAX_RECEIVED_RANGES
            && let Some(oldest) = self.ranges.pop_first()
        {
            self.floor = oldest.end;
        }
        true
    }

    /// The largest packet number received, from which the next ones are decoded (RFC 9000 §17.1).
    pub(crate) fn largest(&self) -> Option<u64> {
        self.largest.map(|(number, _)| number)
    }

    /// When the packet with the largest number came.
    pub(crate) fn largest_time(&self) -> Option<Instant> {
        self.largest.map(|(_, time)| time)
    }

    pub(crate) fn rest(&mut self) {
        self.ranges.shrink();
    }
}

#[cfg(test)]
mod tests;
