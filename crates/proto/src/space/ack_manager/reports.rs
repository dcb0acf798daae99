//! How often ranges were reported to the peer.

use std::ops::Range;

use fulmar_base::RangeSet;

use crate::packed::packed;

/// A range that was written into so many ACKs is not written again: the chance that all of them were lost is
/// small, and the room is better used for news.
const MAX_REPORTS: u8 = 4;

/// The reports of so many of the newest ranges are repeated. Where there are more, each of the others is reported once: many
/// ranges are many late packets, and the next ACK has to take as many again.
pub(super) const REPEATED_RANGES: usize = 32;

/// Counts the reports of each range that is repeated but the newest, which still grows.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// From the newest to the oldest. Ranges that have grown or merged since do not match and count anew.
    counts: Vec<(Range<u64>, u8)>,
    /// The memory of the list before, reused.
    previous: Vec<(Range<u64>, u8)>,
}

packed!(Reports { counts, previous });

impl Reports {
    /// The newest `written` of `ranges` went into an ACK. Removes those that were reported often enough. What there was no
    /// room for stays.
    pub(super) fn on_written(&mut self, ranges: &mut RangeSet, written: usize) {
        std::mem::swap(&mut self.counts, &mut self.previous);
        self.counts.clear();
        if ranges.len() < 2 {
            // The common case: nothing is missing.
            return;
        }
        give_up_reported(ranges, written);
        let mut previous = self.previous.iter().peekable();
        for (index, range) in ranges.iter().rev().enumerate().take(REPEATED_RANGES).skip(1) {
            while previous.next_if(|(old, _)| old.start > range.start).is_some() {}
            let before = previous.next_if(|(old, _)| *old == range).map_or(0, |(_, count)| *count);
            self.counts.push((range, before + u8::from(index < written)));
        }
        for (range, count) in &self.counts {
            if *count >= MAX_REPORTS {
                ranges.remove(range.clone());
            }
        }
    }

    pub(super) fn rest(&mut self) {
        self.previous = Vec::new();
        self.counts.shrink_to_fit();
    }
}

/// Removes the ranges below those that are repeated, as far as they are among the newest `written`.
fn give_up_reported(ranges: &mut RangeSet, written: usize) {
    let start_of = |count: usize| ranges.iter().rev().nth(count - 1).map(|range| range.start);
    if written > REPEATED_RANGES
        && let (Some(oldest), Some(end)) = (start_of(written), start_of(REPEATED_RANGES))
    {
        ranges.remove(oldest..end);
    }
}
