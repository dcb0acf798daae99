//! Latencies, counted in buckets whose width grows with the value: a measurement may last for hours and its memory
//! stays the same.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::duration::Span;
use crate::report::micros;

/// Buckets per power of two, as a power of two. With 128 of them a value is known to better than 1 %.
const PRECISION_BITS: u32 = 7;
/// Values below this have a bucket each.
const EXACT: u64 = 1 << (PRECISION_BITS + 1);
/// One for each exact value, and 128 for each further power of two up to 2^64.
const BUCKETS: usize = EXACT as usize + ((64 - PRECISION_BITS as usize - 1) << PRECISION_BITS);

/// How often each latency occurred, in microseconds.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    max: u64,
}

/// Latencies in microseconds that 50, 90 and 99 of a hundred do not exceed, and the longest of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Percentiles {
    p50: u64,
    p90: u64,
    p99: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, max: 0 }
    }
}

impl Histogram {
    pub(super) fn record(&mut self, latency: Duration) {
        let value = micros(latency);
        self.buckets[bucket_of(value)] += 1;
        self.count += 1;
        self.max = self.max.max(value);
    }

    /// Adds what another one has counted.
    pub(super) fn merge(&mut self, other: &Self) {
        for (ours, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *ours += theirs;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn percentiles(&self) -> Percentiles {
        let at = |percent| self.value_at(percent);
        Percentiles { p50: at(50), p90: at(90), p99: at(99), max: self.max }
    }

    /// The smallest value that `percent` of a hundred do not exceed, rounded up to the end of its bucket.
    fn value_at(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank && seen > 0 {
                return upper_end(index).min(self.max);
            }
        }
        0
    }
}

impl fmt::Display for Percentiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = |micros| Span(Duration::from_micros(micros));
        let Self { p50, p90, p99, max } = *self;
        write!(f, "p50 {}, p90 {}, p99 {}, max {}", span(p50), span(p90), span(p99), span(max))
    }
}

/// The bucket of a value: the value itself if it is small, else its magnitude and its 7 bits after the first one.
fn bucket_of(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    let shift = value.ilog2() - PRECISION_BITS;
    let leading = (value >> shift) as usize;
    // The first of these has shift 1 and leading bits 128: it follows the last exact value.
    EXACT as usize + ((shift as usize - 1) << PRECISION_BITS) + leading - (1 << PRECISION_BITS)
}

/// The largest value in a bucket.
fn upper_end(bucket: usize) -> u64 {
    let Some(beyond) = bucket.checked_sub(EXACT as usize) else { return bucket as u64 };
    let shift = (beyond >> PRECISION_BITS) as u32 + 1;
    let leading = (beyond & ((1 << PRECISION_BITS) - 1)) as u64 + (1 << PRECISION_BITS);
    (leading << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests;
