//! The smallest round-trip time seen lately, and when it must be measured anew.

use std::num::NonZeroU64;
use std::time::Duration;

use fulmar_base::Instant;

use super::super::delay::nanos;
use crate::packed::packed;

/// The state PROBE_RTT is at least so far apart (BBR.ProbeRTTInterval).
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// On long paths it is this many round trips apart. A measurement costs two round trips at half of the rate: on
/// a path over a satellite that would be a tenth of the throughput, every 5 s, and on a path to another planet
/// a sender that obeyed the 5 s would do nothing else.
const PROBE_INTERVAL_ROUND_TRIPS: u32 = 20;

/// A minimum is forgotten after this many intervals (BBR.MinRTTFilterLen is 10 s).
const FILTER_INTERVALS: u32 = 2;

/// A sample that exceeds the minimum by no more than this part of it confirms it. The draft demands a smaller
/// sample, which a path without noise never gives: there it would be probed although the queue is empty. Nor is
/// the time of a full packet a queue: the smallest sample may be that of a small one.
const CONFIRMATION_DIVISOR: u32 = 64;

/// A silence of more round trips than this, in which packets were under way, shows that the path stood still, and so does a loss
/// that is found so much later than its packet was sent.
pub(super) const STOP_ROUND_TRIPS: u32 = 4;

/// Up to this round-trip time delay comes from the scheduling of threads, not from a queue.
const MEANINGLESS_RTT: Duration = Duration::from_micros(128);

/// The minimum round-trip time and the schedule of PROBE_RTT (draft-ietf-ccwg-bbr, "ProbeRTT Logic").
#[derive(Debug, Clone)]
pub(in crate::congestion) struct MinRtt {
    /// The minimum of the filter window in nanoseconds, and when it was seen.
    min: Option<NonZeroU64>,
    stamp: Instant,
    /// The minimum of the probing interval in nanoseconds, and when it was seen.
    probe_min: Option<NonZeroU64>,
    probe_stamp: Instant,
    /// When the latest sample came.
    latest: Instant,
    expired: bool,
}

packed!(MinRtt { min, stamp, probe_min, probe_stamp, latest, expired });

impl MinRtt {
    pub(in crate::congestion) fn new(now: Instant) -> Self {
        Self { min: None, stamp: now, probe_min: None, probe_stamp: now, latest: now, expired: false }
    }

    /// The minimum, once there was a sample.
    pub(in crate::congestion) fn get(&self) -> Option<Duration> {
        self.min.map(duration)
    }

    /// Whether the probing interval has passed without a sample as small as the minimum.
    pub(in crate::congestion) fn expired(&self) -> bool {
        self.expired
    }

    /// Whether delay says nothing about queues: the path is so short that it measures the scheduler.
    pub(in crate::congestion) fn is_meaningless(&self) -> bool {
        self.get().is_none_or(|min| min <= MEANINGLESS_RTT)
    }

    /// Takes a sample; the path takes `packet_time` for a full packet.
    pub(in crate::congestion) fn on_sample(
        &mut self,
        now: Instant,
        sample: Option<Duration>,
        packet_time: Duration,
    ) {
        let interval = self.interval();
        if self.min.is_none() {
            // Nothing is due to be measured anew before there was a measurement, however long that took.
            self.on_probed(now);
        }
        if let Some(sample) = sample {
            self.pass_over_stop(now, sample);
        }
        self.expired = now > self.probe_stamp + interval;
        let Some(sample) = sample else { return };
        let confirms = |min: Duration| sample <= min + packet_time.max(min / CONFIRMATION_DIVISOR);
        // A departure from the draft, which measures anew after a silence of this length: what comes first after it, as
        // quickly as ever, has measured.
        let probe_min = self.probe_min.map(duration);
        self.expired &= !probe_min.is_some_and(confirms);
        if self.expired || probe_min.is_none_or(confirms) {
            let smaller = probe_min.filter(|_| !self.expired).map_or(sample, |min| min.min(sample));
            self.probe_min = Some(stored(smaller));
            self.probe_stamp = now;
        }
        let forgotten = now > self.stamp + interval * FILTER_INTERVALS;
        let probed = self.probe_min.unwrap_or(stored(sample));
        if forgotten || self.min.is_none_or(|min| probed <= min) {
            self.min = Some(probed);
            self.stamp = self.probe_stamp;
        }
    }

    /// A departure from the draft: the time in which the path stood still says nothing of its round-trip time. Otherwise a stop as long as
    /// the interval would have it measured anew, while the flight of before is not known to be lost and leaves no room in a small window;
    /// and after one as long as the filter the stop itself would be the minimum.
    fn pass_over_stop(&mut self, now: Instant, sample: Duration) {
        let silence = now.saturating_since(std::mem::replace(&mut self.latest, now));
        let stood_still = self.get().is_some_and(|min| silence > min * STOP_ROUND_TRIPS);
        if stood_still && sample > silence {
            self.stamp += silence;
            self.probe_stamp += silence;
        }
    }

    /// The queue was drained, by PROBE_RTT or by silence: the next time is an interval away.
    pub(in crate::congestion) fn on_probed(&mut self, now: Instant) {
        self.probe_stamp = now;
        self.expired = false;
    }

    /// The path has become longer: this is its smallest round-trip time now.
    pub(super) fn replace(&mut self, now: Instant, rtt: Duration) {
        (self.min, self.probe_min) = (Some(stored(rtt)), Some(stored(rtt)));
        self.stamp = now;
        self.on_probed(now);
    }

    /// The least time between two measurements.
    pub(super) fn interval(&self) -> Duration {
        self.get().map_or(PROBE_INTERVAL, |min| PROBE_INTERVAL.max(min * PROBE_INTERVAL_ROUND_TRIPS))
    }
}

fn stored(rtt: Duration) -> NonZeroU64 {
    NonZeroU64::new(nanos(rtt)).unwrap_or(NonZeroU64::MIN)
}

fn duration(stored: NonZeroU64) -> Duration {
    Duration::from_nanos(stored.get())
}

#[cfg(test)]
mod tests;
