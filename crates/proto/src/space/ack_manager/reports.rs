//! How often ranges were reported to the peer.

use std::ops::Range;

use fulmar_base::RangeSet;

/// A range that was written into so many ACKs is not written again: the chance that all of them were lost is
/// small, and the room is better used for news.
const MAX_REPORTS: u8 = 4;

/// Counts the reports of each range but the newest, which still grows.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// From the newest to the oldest. Ranges that have grown or merged since do not match and count anew.
    counts: Vec<(Range<u64>, u8)>,
    /// The memory of the list before, reused.
    previous: Vec<(Range<u64>, u8)>,
}

impl Reports {
    /// The newest `written` of `ranges` went into an ACK. Removes those that were reported often enough.
    pub(super) fn on_written(&mut self, ranges: &mut RangeSet, written: usize) {
        std::mem::swap(&mut self.counts, &mut self.previous);
        self.counts.clear();
        if ranges.len() < 2 {
            // The common case: nothing is missing.
            return;
        }
        let mut previous = self.previous.iter().peekable();
        for (index, range) in ranges.iter().rev().enumerate().skip(1) {
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
