//! The round-trip time without a queue, of a path that may become longer.
//!
//! The smallest round-trip time of all says that for good: after a change of the route, or a single sample that was shorter, each path
//! would have a queue without end. A minimum over a fixed time forgets too early where the queue is never empty: a window that grows for
//! minutes until something is lost. But losses in a full queue come where the delay is largest, and after the reaction to them it is
//! smaller. So the minimum goes over whole periods between reactions: what a flow loses in a queue of its own lies above it. Flows that share a
//! queue may keep it at nearly the same length; whether their losses are chance is told by [`super::loss_delay`].

use std::time::Duration;

use fulmar_base::Instant;

use super::delay::nanos;

/// A period lasts so long at least, and two are remembered: the times after which BBR measures the round-trip time anew, and forgets it
/// (BBR.ProbeRTTInterval, BBR.MinRTTFilterLen).
const PERIOD: Duration = Duration::from_secs(5);

/// On long paths it lasts so many round trips, as with BBR.
const PERIOD_ROUND_TRIPS: u32 = 20;

/// The smallest round-trip time of the present period and of the one before, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct BaseRtt {
    since: Instant,
    earlier: u64,
    present: u64,
    calm: Calm,
}

/// The smallest round-trip times of rounds in a row that hardly differ, in nanoseconds.
///
/// A queue varies with each reaction to its losses; a path that has become longer does not. So what the delay has risen to is believed the
/// sooner, the less it varies there.
#[derive(Debug, Clone, Copy)]
struct Calm {
    since: Instant,
    rounds: u32,
    min: u64,
    max: u64,
    /// When the present round is over, and its smallest round-trip time.
    round_end: Instant,
    round_min: u64,
}

impl Calm {
    fn new(now: Instant, min: Duration) -> Self {
        let (round_end, min) = (now + min, nanos(min));
        Self { since: now, rounds: 0, min, max: min, round_end, round_min: u64::MAX }
    }

    /// Takes a sample, where the smallest round-trip time lately is `base`. Delays that have fallen half-way begin anew.
    fn on_sample(&mut self, now: Instant, sample: Duration, base: u64) {
        self.round_min = self.round_min.min(nanos(sample));
        if now < self.round_end {
            return;
        }
        let round_min = std::mem::replace(&mut self.round_min, u64::MAX);
        self.round_end = now + sample;
        (self.min, self.max) = (self.min.min(round_min), self.max.max(round_min));
        self.rounds = self.rounds.saturating_add(1);
        if self.needed(base).is_none() {
            (self.since, self.rounds, self.min, self.max) = (now, 1, round_min, round_min);
        }
    }

    /// How long the delay must be as it is before it is that of the path, beside the round trips of a period: as long as it would take otherwise
    /// where it varies by half of the rise, and in proportion where it varies less.
    fn needed(&self, base: u64) -> Option<Duration> {
        let rise = self.min.checked_sub(base).filter(|&rise| rise > 0)?;
        let varies = 2 * (self.max - self.min);
        let time = u128::from(nanos(2 * PERIOD)) * u128::from(varies) / u128::from(rise);
        let time = Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX));
        (varies < rise).then_some(time)
    }

    /// What the path has become, if that is known.
    fn shown(&self, now: Instant, base: u64) -> Option<u64> {
        let is_long =
            |needed| now.saturating_since(self.since) >= needed && self.rounds >= PERIOD_ROUND_TRIPS;
        self.needed(base).filter(|&needed| is_long(needed)).map(|_| self.min)
    }
}

impl BaseRtt {
    /// The first period begins; so far `min` is the smallest.
    pub(super) fn new(now: Instant, min: Duration) -> Self {
        Self { since: now, earlier: nanos(min), present: nanos(min), calm: Calm::new(now, min) }
    }

    /// Takes a sample of the round-trip time.
    pub(super) fn on_sample(&mut self, now: Instant, sample: Duration) {
        self.present = self.present.min(nanos(sample));
        let base = nanos(self.get());
        self.calm.on_sample(now, sample, base);
    }

    /// There is a reaction to losses: the period is over if it was long enough, or the delay has been the same for as long.
    pub(super) fn on_reaction(&mut self, now: Instant) {
        if let Some(shown) = self.calm.shown(now, nanos(self.get())) {
            *self = Self { since: now, earlier: shown, present: shown, calm: self.calm };
            return;
        }
        let period = PERIOD.max(self.get() * PERIOD_ROUND_TRIPS);
        if now.saturating_since(self.since) >= period && self.present < u64::MAX {
            *self = Self { since: now, earlier: self.present, present: u64::MAX, calm: self.calm };
        }
    }

    /// The smallest round-trip time lately.
    pub(super) fn get(&self) -> Duration {
        Duration::from_nanos(self.earlier.min(self.present))
    }
}

#[cfg(test)]
mod tests;
