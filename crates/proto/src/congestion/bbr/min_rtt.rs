//! The smallest round-trip time seen lately, and when it must be measured anew.

use std::time::Duration;

use fulmar_base::Instant;

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

/// Up to this round-trip time delay comes from the scheduling of threads, not from a queue.
const MEANINGLESS_RTT: Duration = Duration::from_micros(128);

/// The minimum round-trip time and the schedule of PROBE_RTT (draft-ietf-ccwg-bbr, "ProbeRTT Logic").
#[derive(Debug, Clone)]
pub(in crate::congestion) struct MinRtt {
    /// The minimum of the filter window and when it was seen.
    min: Option<Duration>,
    stamp: Instant,
    /// The minimum of the probing interval and when it was seen.
    probe_min: Option<Duration>,
    probe_stamp: Instant,
    expired: bool,
}

impl MinRtt {
    pub(in crate::congestion) fn new(now: Instant) -> Self {
        Self { min: None, stamp: now, probe_min: None, probe_stamp: now, expired: false }
    }

    /// The minimum, once there was a sample.
    pub(in crate::congestion) fn get(&self) -> Option<Duration> {
        self.min
    }

    /// Whether the probing interval has passed without a sample as small as the minimum.
    pub(in crate::congestion) fn expired(&self) -> bool {
        self.expired
    }

    /// Whether delay says nothing about queues: the path is so short that it measures the scheduler.
    pub(in crate::congestion) fn is_meaningless(&self) -> bool {
        self.min.is_none_or(|min| min <= MEANINGLESS_RTT)
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
        self.expired = now > self.probe_stamp + interval;
        let Some(sample) = sample else { return };
        let confirms = |min: Duration| sample <= min + packet_time.max(min / CONFIRMATION_DIVISOR);
        // A departure from the draft, which measures anew after a silence of this length: what comes first after it, as
        // quickly as ever, has measured.
        self.expired &= !self.probe_min.is_some_and(confirms);
        if self.expired || self.probe_min.is_none_or(confirms) {
            let smaller = self.probe_min.filter(|_| !self.expired).map_or(sample, |min| min.min(sample));
            self.probe_min = Some(smaller);
            self.probe_stamp = now;
        }
        let forgotten = now > self.stamp + interval * FILTER_INTERVALS;
        let probed = self.probe_min.unwrap_or(sample);
        if forgotten || self.min.is_none_or(|min| probed <= min) {
            self.min = Some(probed);
            self.stamp = self.probe_stamp;
        }
    }

    /// The queue was drained, by PROBE_RTT or by silence: the next time is an interval away.
    pub(in crate::congestion) fn on_probed(&mut self, now: Instant) {
        self.probe_stamp = now;
        self.expired = false;
    }

    fn interval(&self) -> Duration {
        self.min.map_or(PROBE_INTERVAL, |min| PROBE_INTERVAL.max(min * PROBE_INTERVAL_ROUND_TRIPS))
    }
}

#[cfg(test)]
mod tests;
