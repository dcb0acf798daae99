//! Tells a rise of the delay, which is a queue, from jitter.
//!
//! HyStart++ (RFC 9406) compares the smallest samples of two rounds. This compares the smallest samples of short groups with
//! the smallest of the path, so that it tells within a round trip. The method is our own.

use std::time::Duration;

use fulmar_base::Instant;

use crate::packed::packed;

/// This many groups of samples must agree.
const GROUPS: usize = 8;

/// Where an early sign is wanted, the groups of the latest part of a round trip are enough, but this many at least.
const RISING_DIVISOR: u32 = 3;
const MIN_RISING_GROUPS: usize = 3;

/// Samples within this part of the round-trip time, in these bounds, are a group, and the smallest of
/// them counts: where acknowledgements come in bunches, the packets that waited for the others are delayed by
/// that and by no queue.
const GROUP_DIVISOR: u32 = 32;
const MIN_GROUP: Duration = Duration::from_millis(1);
const MAX_GROUP: Duration = Duration::from_millis(20);

/// A rise is at least so large: less is the granularity of timers and of acknowledgements.
const MIN_RISE: Duration = Duration::from_millis(4);

/// A rise is at least this part of the round-trip time, but on long paths [`MAX_RISE`] is enough.
const RTT_DIVISOR: u32 = 4;
const MAX_RISE: Duration = Duration::from_millis(50);

/// A queue that stands is at least this part of the round-trip time, and at least so large.
const QUEUE_DIVISOR: u32 = 16;
const MIN_QUEUE: Duration = Duration::from_millis(1);

/// A queue that stands exceeds the usual spread of the samples so many times. Of samples that vary as a bell does without a queue, the
/// smallest of all is about twice the spread below the smallest of the latest groups.
const SPREAD_FACTOR: u32 = 3;

/// A rise is at least this many times the usual difference of two groups in a row. A queue that fills changes
/// them little by little, a radio link throws them about.
const JITTER_FACTOR: u32 = 4;

/// The usual difference and the usual spread are means that forget with this weight.
const JITTER_WEIGHT: u64 = 8;

/// The latest samples of the round-trip time.
#[derive(Debug, Clone, Default)]
pub(super) struct DelayWatch {
    /// The smallest sample of each group, in nanoseconds; without the one that is open.
    groups: [u64; GROUPS],
    count: usize,
    open: Option<Group>,
    /// The usual difference of two groups in a row, in nanoseconds.
    jitter: u64,
    /// How far the smallest of the latest groups usually is below their median, which single late samples do not move; in nanoseconds.
    spread: u64,
}

packed!(DelayWatch { groups, count, open, jitter, spread });

/// A group of samples.
#[derive(Debug, Clone, Copy)]
struct Group {
    start: Instant,
    min: Duration,
}

packed!(Group { start, min });

impl DelayWatch {
    /// Takes a sample; `base` is the smallest round-trip time.
    pub(super) fn on_sample(&mut self, now: Instant, sample: Duration, base: Duration) {
        let length = group_length(base);
        match &mut self.open {
            Some(group) if now < group.start + length => group.min = group.min.min(sample),
            _ => {
                if let Some(group) = self.open.replace(Group { start: now, min: sample }) {
                    self.close(group.min);
                }
            }
        }
    }

    /// What was seen is over; how much samples differ stays known.
    pub(super) fn forget_samples(&mut self) {
        self.count = 0;
        self.open = None;
    }

    fn close(&mut self, min: Duration) {
        if self.count > 0 {
            let last = self.groups[(self.count - 1) % GROUPS];
            self.jitter = smoothed(self.jitter, last.abs_diff(nanos(min)));
        }
        self.groups[self.count % GROUPS] = nanos(min);
        self.count += 1;
        if self.count >= GROUPS {
            let mut sorted = self.groups;
            sorted.sort_unstable();
            self.spread = smoothed(self.spread, sorted[GROUPS / 2] - sorted[0]);
        }
    }

    /// The smallest of the latest samples, once there are enough.
    pub(super) fn recent_min(&self) -> Option<Duration> {
        self.groups.iter().min().copied().filter(|_| self.count >= GROUPS).map(Duration::from_nanos)
    }

    /// The mean of the latest samples, once there are enough.
    pub(super) fn recent_mean(&self) -> Option<Duration> {
        let sum: Duration = self.groups.map(Duration::from_nanos).iter().sum();
        (self.count >= GROUPS).then_some(sum / GROUPS as u32)
    }

    /// Whether the latest samples all exceed `base` so much that a queue has grown.
    pub(super) fn has_risen(&self, base: Duration) -> bool {
        self.recent_min().is_some_and(|recent| recent > base + self.rise(base))
    }

    /// Whether the latest samples all exceed `base` by more than jitter explains: a queue, though a small one, on long paths a
    /// smaller one than a rise is.
    pub(super) fn shows_queue(&self, base: Duration) -> bool {
        let queue = (base / QUEUE_DIVISOR).max(MIN_QUEUE) + Duration::from_nanos(self.spread) * SPREAD_FACTOR;
        self.recent_min().is_some_and(|recent| recent > base + queue)
    }

    /// Whether the samples of the latest third of a round trip exceed `base` as much: on short paths, where
    /// [`GROUPS`] take longer than that, an earlier sign, and a weaker one.
    pub(super) fn is_rising(&self, base: Duration) -> bool {
        let groups = (base / RISING_DIVISOR).as_nanos() / group_length(base).as_nanos();
        let groups = usize::try_from(groups).unwrap_or(GROUPS).clamp(MIN_RISING_GROUPS, GROUPS);
        let bound = nanos(base + self.rise(base));
        self.count >= GROUPS && (1..=groups).all(|back| self.groups[(self.count - back) % GROUPS] > bound)
    }

    /// The usual difference of two groups in a row.
    pub(super) fn jitter(&self) -> Duration {
        Duration::from_nanos(self.jitter)
    }

    /// What a rise exceeds.
    fn rise(&self, base: Duration) -> Duration {
        least_rise(base).max(self.jitter() * JITTER_FACTOR)
    }
}

/// What a rise exceeds on a path without jitter, where `base` is the smallest round-trip time.
pub(super) fn least_rise(base: Duration) -> Duration {
    (base / RTT_DIVISOR).clamp(MIN_RISE, MAX_RISE)
}

fn smoothed(mean: u64, sample: u64) -> u64 {
    (mean * (JITTER_WEIGHT - 1) + sample) / JITTER_WEIGHT
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn group_length(base: Duration) -> Duration {
    (base / GROUP_DIVISOR).clamp(MIN_GROUP, MAX_GROUP)
}

#[cfg(test)]
mod tests;
