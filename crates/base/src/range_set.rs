//! Sorted, disjoint, non-adjacent ranges of `u64`.

use std::collections::VecDeque;
use std::ops::Range;

/// A set of `u64`, kept as sorted half-open ranges that neither overlap nor touch.
///
/// Search is binary. Insertion moves the shorter side of the deque; most insertions in a transport are at
/// the back (new packet numbers) or merge with the front (acknowledged bytes), and cost nothing of the kind.
/// The set has no limit of its own: its owner watches [`RangeSet::len`] and trims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: VecDeque<Range<u64>>,
}

impl RangeSet {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of ranges, not of members.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The smallest member.
    pub fn min(&self) -> Option<u64> {
        self.ranges.front().map(|r| r.start)
    }

    /// The largest member.
    pub fn max(&self) -> Option<u64> {
        self.ranges.back().map(|r| r.end - 1)
    }

    /// The first range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.front().cloned()
    }

    /// Whether `value` is a member.
    pub fn contains(&self, value: u64) -> bool {
        if self.ranges.back().is_none_or(|last| last.end <= value) {
            // The common case: a number that is larger than all.
            return false;
        }
        let index = self.ranges.partition_point(|r| r.end <= value);
        self.ranges.get(index).is_some_and(|r| r.start <= value)
    }

    /// Whether every value of `range` is a member; true for an empty range.
    pub fn contains_range(&self, range: Range<u64>) -> bool {
        if range.is_empty() {
            return true;
        }
        let index = self.ranges.partition_point(|r| r.end <= range.start);
        self.ranges.get(index).is_some_and(|r| r.start <= range.start && range.end <= r.end)
    }

    /// Adds one value; returns false if it was a member.
    pub fn insert_one(&mut self, value: u64) -> bool {
        let before = self.ranges.back().map_or(0, |r| r.end);
        if value == before && !self.ranges.is_empty() {
            // The common case: the next packet number.
            if let Some(last) = self.ranges.back_mut() {
                last.end += 1;
            }
            return true;
        }
        if self.contains(value) {
            return false;
        }
        self.insert(value..value + 1);
        true
    }

    /// Adds all values of `range`; returns how many of them were no members.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        // All ranges in `from..to` overlap or touch the new one.
        let from = self.ranges.partition_point(|r| r.end < range.start);
        let to = self.ranges.partition_point(|r| r.start <= range.end);
        if from == to {
            let added = range.end - range.start;
            self.ranges.insert(from, range);
            return added;
        }
        let before: u64 = self.ranges.range(from..to).map(|r| r.end - r.start).sum();
        let start = range.start.min(self.ranges[from].start);
        let end = range.end.max(self.ranges[to - 1].end);
        self.ranges[from] = start..end;
        if to - from > 1 {
            self.ranges.drain(from + 1..to);
        }
        end - start - before
    }

    /// Removes all values of `range`; returns how many of them were members.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        let mut removed = 0;
        if range.is_empty() {
            return removed;
        }
        let mut index = self.ranges.partition_point(|r| r.end <= range.start);
        while let Some(found) = self.ranges.get_mut(index) {
            if found.start >= range.end {
                break;
            }
            let (start, end) = (found.start, found.end);
            removed += end.min(range.end) - start.max(range.start);
            if start < range.start && range.end < end {
                found.end = range.start;
                self.ranges.insert(index + 1, range.end..end);
                break;
            } else if start < range.start {
                found.end = range.start;
                index += 1;
            } else if range.end < end {
                found.start = range.end;
                break;
            } else {
                self.ranges.remove(index);
            }
        }
        removed
    }

    /// Removes and returns the range with the smallest members.
    pub fn pop_first(&mut self) -> Option<Range<u64>> {
        self.ranges.pop_front()
    }

    /// Removes all members below `bound`.
    pub fn remove_below(&mut self, bound: u64) {
        self.remove(0..bound);
    }

    /// The ranges in increasing order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator {
        self.ranges.iter().cloned()
    }

    /// The ranges that end behind `bound`, in increasing order. The first of them may begin before it. Those below are not
    /// looked at.
    pub fn iter_behind(&self, bound: u64) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator {
        let first = self.ranges.partition_point(|r| r.end <= bound);
        self.ranges.range(first..).cloned()
    }

    /// Removes all members.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Gives back the memory that no range takes.
    pub fn shrink(&mut self) {
        self.ranges.shrink_to_fit();
    }
}

impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::new();
        for range in ranges {
            set.insert(range);
        }
        set.shrink();
        set
    }
}

#[cfg(test)]
mod tests;
