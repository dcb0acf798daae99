//! How times are distributed, in little memory.

use std::time::Duration;

/// Each power of two of nanoseconds has so many classes, so that a quantile is right to three percent at worst.
const CLASSES: u64 = 32;

/// How often which times occurred. Its memory does not grow with their number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// By class; classes behind the largest time are not there.
    counts: Vec<u64>,
    total: u64,
    /// The smallest time in nanoseconds, and the largest; 0 of nothing.
    smallest: u64,
    largest: u64,
}

impl Distribution {
    /// Counts a time.
    pub fn note(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let class = class_of(nanos);
        if self.counts.len() <= class {
            self.counts.resize(class + 1, 0);
        }
        self.counts[class] += 1;
        self.count(1, (nanos, nanos));
    }

    /// Counts times between these two, which occurred.
    fn count(&mut self, times: u64, (smallest, largest): (u64, u64)) {
        let is_first = self.total == 0;
        self.smallest = if is_first { smallest } else { self.smallest.min(smallest) };
        self.largest = self.largest.max(largest);
        self.total += times;
    }

    /// Counts all times of another distribution, too.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        if other.total > 0 {
            self.count(other.total, (other.smallest, other.largest));
        }
    }

    /// How many times were counted.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The time that this share of them (0 to 1) does not exceed; `None` of nothing. The first and the last are exact; what is
    /// between two classes is exact, too, and within a class, which is three percent wide at most, times count as evenly spread.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = ((self.total as f64 * share).ceil() as u64).clamp(1, self.total.max(1));
        let mut below = 0;
        let (class, count) = self.counts.iter().copied().enumerate().find(|(_, count)| {
            below += count;
            below >= wanted
        })?;
        let nanos = match wanted {
            1 => self.smallest,
            last if last == self.total => self.largest,
            _ => self.within(class, (wanted - (below - count)) as f64 / count as f64),
        };
        Some(Duration::from_nanos(nanos))
    }

    /// The time at this share (above 0, to 1) of those in a class.
    fn within(&self, class: usize, share: f64) -> u64 {
        let (first, last) = (smallest_of(class).max(self.smallest), largest_of(class).min(self.largest));
        first + ((last - first) as f64 * share) as u64
    }
}

/// The class of a number of nanoseconds: small numbers have one each.
fn class_of(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(CLASSES.ilog2() + 1);
    (u64::from(shift) * CLASSES + (nanos >> shift)) as usize
}

/// The largest number of a class.
fn largest_of(class: usize) -> u64 {
    smallest_of(class) + ((1 << shift_of(class)) - 1)
}

/// The smallest number of a class.
fn smallest_of(class: usize) -> u64 {
    let shift = shift_of(class);
    (class as u64 - shift * CLASSES) << shift
}

/// How many binary digits the numbers of a class differ in.
fn shift_of(class: usize) -> u64 {
    (class as u64 / CLASSES).saturating_sub(1)
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
            assert!((told / expected - 1.0).abs() < 0.01, "{share}: {told}");
        }
        assert_eq!(distribution.quantile(1.0), Some(Duration::from_secs(1)));
        assert_eq!(distribution.total(), 1_000);
    }

    #[test]
    fn one_time_that_occurs_again_and_again_is_every_quantile() {
        let time = Duration::from_nanos(20_000_001);
        let mut distribution = Distribution::default();
        (0..1_000).for_each(|_| distribution.note(time));
        for share in [0.0, 0.001, 0.5, 0.99, 1.0] {
            assert_eq!(distribution.quantile(share), Some(time), "{share}");
        }
    }

    #[test]
    fn no_quantile_is_beyond_what_occurred() {
        let mut distribution = Distribution::default();
        let times = [Duration::from_micros(20_100), Duration::from_micros(20_300)];
        let mut other = Distribution::default();
        (0..50).for_each(|_| distribution.note(times[0]));
        (0..50).for_each(|_| other.note(times[1]));
        distribution.merge(&other);
        for share in 0..=100 {
            let told = distribution.quantile(f64::from(share) / 100.0).unwrap();
            assert!((times[0]..=times[1]).contains(&told), "{share}: {told:?}");
        }
    }

    #[test]
    fn every_number_is_in_the_class_that_ends_at_or_behind_it() {
        let numbers = (0..200).chain((0..64).map(|bit| 1 << bit)).chain([u64::MAX, u64::MAX / 3]);
        for nanos in numbers {
            let largest = largest_of(class_of(nanos));
            assert!(largest >= nanos && largest - nanos <= nanos / CLASSES, "{nanos}: {largest}");
            assert!(smallest_of(class_of(nanos)) <= nanos, "{nanos}");
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
