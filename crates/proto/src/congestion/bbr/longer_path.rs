//! Tells a path that has become longer from one that has become slower. In the window for the round-trip time of before both deliver
//! less, and later.
//!
//! A departure from the draft, which believes a longer round-trip time when the smaller one is forgotten, ten seconds later, and a smaller
//! bandwidth after two cycles: on a path that has become six times as long a flow would have a few hundredths of its rate by then.

use std::time::Duration;

use fulmar_base::Instant;

use super::super::units::volume;
use super::{Bbr, SLOWER_DIVISOR};
use crate::packed::packed;

/// What is asked of the path, and when it may be asked.
#[derive(Debug, Clone)]
pub(super) struct LongerPath {
    /// What PROBE_RTT shall find out, besides the smallest round-trip time.
    doubt: Option<Box<Doubt>>,
    /// When the path may be suspected again, after that was in vain.
    asks_after: Instant,
    /// The bandwidth when the delay last showed no queue, in bytes per second.
    bandwidth_at_rest: u64,
}

packed!(LongerPath { doubt, asks_after, bandwidth_at_rest });

/// What the path says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Slower,
    Longer,
}

/// A path seems to have become slower.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    /// The usual delay before PROBE_RTT.
    delay: Duration,
    /// The bandwidth before, in bytes per second.
    bandwidth: u64,
    /// The smallest round-trip time since the flight was small.
    min: Option<Duration>,
}

packed!(Doubt { delay, bandwidth, min });

impl LongerPath {
    /// Nothing is asked yet.
    pub(super) fn new() -> Self {
        Self { doubt: None, asks_after: Instant::ZERO, bandwidth_at_rest: 0 }
    }

    /// Whether PROBE_RTT is to tell whether the path has become longer.
    pub(super) fn is_asked(&self) -> bool {
        self.doubt.is_some()
    }

    /// The delay shows no queue.
    pub(super) fn rest(&mut self, bandwidth: u64) {
        self.bandwidth_at_rest = bandwidth;
    }

    /// PROBE_RTT begins.
    pub(super) fn begin(&mut self) {
        self.doubt = None;
    }

    /// Takes a sample of the round-trip time while the flight is small.
    pub(super) fn on_sample(&mut self, rtt: Option<Duration>) {
        if let Some(doubt) = &mut self.doubt {
            doubt.min = [doubt.min, rtt].into_iter().flatten().min();
        }
    }
}

impl Bbr {
    /// The delay has risen. Where a round brings much less at `best` than there was `before`, or before the delay rose, the flight is made
    /// small at once to see whether the delay falls. A path that has become slower gets the flight of before back after that, which fills its
    /// queue anew; so it is asked only where a slower one would be believed.
    pub(super) fn doubt_slower_path(&mut self, now: Instant, best: u64, before: u64) {
        let bandwidth = before.max(self.longer_path.bandwidth_at_rest);
        let is_early = now < self.longer_path.asks_after;
        if is_early || best * SLOWER_DIVISOR >= bandwidth {
            return;
        }
        let Some(delay) = self.delay.recent_mean() else { return };
        self.enter_probe_rtt();
        self.longer_path.doubt = Some(Box::new(Doubt { delay, bandwidth, min: None }));
    }

    /// A queue of the flow's own is gone by now. Where the delay has not fallen half-way at least, the path is longer: it never was
    /// slower, and what a bound left in flight beyond the old bandwidth-delay product has room beyond the new one.
    pub(super) fn answer_doubt(&mut self, now: Instant) -> Option<Answer> {
        let doubt = self.longer_path.doubt.take()?;
        let base = self.min_rtt.get().unwrap_or_default();
        let Some(min) = doubt.min.filter(|&min| min > (doubt.delay + base) / 2) else {
            // Where others share the path it becomes slower again and again: PROBE_RTT shall not cost more than it usually does.
            self.longer_path.asks_after = now + self.min_rtt.interval();
            self.longer_path.bandwidth_at_rest = self.max_bandwidth.get();
            return Some(Answer::Slower);
        };
        self.min_rtt.replace(now, min);
        self.max_bandwidth.replace(doubt.bandwidth.max(self.max_bandwidth.get()));
        self.longer_path.bandwidth_at_rest = doubt.bandwidth;
        let longer = volume(doubt.bandwidth, min.saturating_sub(base));
        self.losses.long_inflight = self.losses.long_inflight.map(|bound| bound.saturating_add(longer));
        Some(Answer::Longer)
    }
}
