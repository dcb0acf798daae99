//! How times are distributed, in little memory.

use std::time::Duration;

/// Each power of two of nanoseconds has so many classes, so that a quantile is right to some three percent.
const CLASSES: u64 = 32;

/// How often which times occurred. Its memory does not grow with their number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// By class; classes behind the largest time are not there.
    counts: Vec<u64>,
    total: u64,
}

impl Distribution {
    /// Counts a time.
    pub fn note(&mut self, time: Duration) {
        let class = class_of(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        if self.counts.len() <= class {
            self.counts.resize(class + 1, 0);
        }
        self.counts[class] += 1;
        self.total += 1;
    }

    /// Counts all times of another distribution, too.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    /// How many times were counted.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The time that this share of them (0 to 1) does not exceed, right to some three percent; `None` of nothing.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        let class = self.counts.iter().position(|count| {
            below += count;
            below >= wanted
        })?;
        Some(Duration::from_nanos(largest_of(class)))
    }
}

/// The class of a number of nanoseconds: small numbers have one each.
fn class_of(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(CLASSES.ilog2() + 1);
    (u64::from(shift) * CLASSES + (nanos >> shift)) as usize
}

/// The largest number of a class.
fn largest_of(class: usize) -> u64 {
    let class = class as u64;
    if class < 2 * CLASSES {
        return class;
    }
    let shift = class / CLASSES - 1;
    let first = class - shift * CLASSES;
    (first << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_three_percent() {
        let mut distribution = Distribution::default();
        for millis in 1..=1_000 {
            distribution.note(Duration::from_millis(millis));
        }
        for (share, expected) in [(0.001, 1.0), (0.5, 500.0), (0.99, 990.0), (1.0, 1_000.0)] {
            let told = distribution.quantile(share).unwrap().as_secs_f64() * 1e3;
            assert!((expected..=expected * 1.032).contains(&told), "{share}: {told}");
        }
        assert_eq!(distribution.total(), 1_000);
    }

    #[test]
    fn every_number_is_in_the_class_that_ends_at_or_behind_it() {
        let numbers = (0..200).chain((0..64).map(|bit| 1 << bit)).chain([u64::MAX, u64::MAX / 3]);
        for nanos in numbers {
            let largest = largest_of(class_of(nanos));
            assert!(largest >= nanos && largest - nanos <= nanos / CLASSES, "{nanos}: {largest}");
        }
    }

    #[test]
    fn two_distributions_are_one() {
        let (mut few, mut many) = (Distribution::default(), Distribution::default());
        assert_eq!(few.quantile(0.5), None);
        few.note(Duration::from_nanos(5));
        (0..9).for_each(|_| many.note(Duration::from_nanos(20)));
        few.merge(&many);
        assert_eq!(
            (few.total(), few.quantile(0.1), few.quantile(0.2)),
            (10, Some(Duration::from_nanos(5)), Some(Duration::from_nanos(20)))
        );
    }
}
