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
use crate::packed::packed;

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
}

packed!(BaseRtt { since, earlier, present });

impl BaseRtt {
    /// The first period begins; so far `min` is the smallest.
    pub(super) fn new(now: Instant, min: Duration) -> Self {
        Self { since: now, earlier: nanos(min), present: nanos(min) }
    }

    /// Takes a sample of the round-trip time.
    pub(super) fn on_sample(&mut self, sample: Duration) {
        self.present = self.present.min(nanos(sample));
    }

    /// There is a reaction to losses: the period is over if it was long enough.
    pub(super) fn on_reaction(&mut self, now: Instant) {
        let period = PERIOD.max(self.get() * PERIOD_ROUND_TRIPS);
        if now.saturating_since(self.since) >= period && self.present < u64::MAX {
            *self = Self { since: now, earlier: self.present, present: u64::MAX };
        }
    }

    /// The smallest round-trip time lately.
    pub(super) fn get(&self) -> Duration {
        Duration::from_nanos(self.earlier.min(self.present))
    }
}

#[cfg(test)]
mod tests;
