//! The round-trip time of a tuple (RFC 9002 §5), with statistics that are kept once per round trip.
//!
//! RFC 9002 §5.3 feeds every sample into exponentially weighted means. That was made for one sample per round trip. With
//! an ACK for every second packet there are hundreds. The weights then span a few milliseconds, and the variance falls to
//! the noise within one window. The probe timeout is then hardly longer than the round trip, and the first ACK that is a
//! little late comes after it. So the samples are collected for a round trip. Their mean moves the smoothed time (unless the
//! path stood still), and the farthest of them moves the variance. The number of ACKs then changes nothing. [`TimerStyle::Classic`] keeps to the letter of RFC 9002,
//! for comparison.

mod timer_style;

use std::time::Duration;

use fulmar_base::Instant;

use crate::packed::packed;
pub use timer_style::{TimerStyle, UnknownTimerStyle};

/// The round-trip time that is assumed before the first sample: the first packet is repeated after 250 ms, which
/// is this and three times the half of it. RFC 9002 §6.2.2 recommends 333 ms, for a first timeout of a second.
///
/// A short guess costs a repeated datagram where the round trip is longer, a long one costs the time where a
/// packet was lost. `crates/lab/tests/recovery/handshake.rs` measures both.
pub const INITIAL_RTT: Duration = Duration::from_millis(100);

/// The least that is assumed of a path because an earlier connection found it so (RFC 9002 §6.2.2): what a peer may wait by default
/// before it acknowledges (RFC 9000 §18.2). The first answer of a peer takes it a key exchange and a signature, and that of one that
/// has much to do some time in a queue: to repeat what it has received would give it more to do.
const ASSUMED_MIN: Duration = Duration::from_millis(25);

/// The finest timer that loss detection relies on (kGranularity, RFC 9002 §6.1.2).
pub(crate) const GRANULARITY: Duration = Duration::from_millis(1);

/// How many variances the probe timeout lies above the smoothed round-trip time. RFC 9002 §6.2.1 has 4; the
/// variance of [`TimerStyle::OncePerRtt`] is made of the farthest sample of each round trip, which is more than
/// the mean deviation.
const VARIANCES: u32 = 3;
const VARIANCES_CLASSIC: u32 = 4;

/// When all samples of the round trip after a stop are this many times as long as before it, there was no stop: the path has
/// become longer.
const LONGER: u32 = 2;

/// After so many stops in a row the path has become longer as well, by less than that.
const STOPS_MAX: u8 = 3;

/// So many samples in a row are left out because their acknowledgements were told again. More are rather those of a peer that answers
/// late, and the timer must follow it.
const TOLD_AGAIN_MAX: u8 = 3;

/// Estimates of the round-trip time of one tuple.
///
/// Loss detection, probe timeouts, pacing and congestion control read it; only samples change it.
#[derive(Debug, Clone)]
pub struct Rtt {
    style: TimerStyle,
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    min: Duration,
    first_sample: Option<Instant>,
    /// When the latest sample was taken.
    last_sample: Instant,
    period: Period,
    /// The largest rise from one sample to the next in the round trip before.
    step: Duration,
}

packed!(Rtt { style, latest, smoothed, variance, min, first_sample, last_sample, period, step });

/// The samples of a round trip. It ends when a packet that was sent after its start is acknowledged.
///
/// Sent, not acknowledged, is what counts: the packets that were already under way at the start would end a
/// period with every ACK. Times are compared rather than packet numbers, because a tuple carries packets of
/// several number spaces.
#[derive(Debug, Clone, Copy)]
struct Period {
    start: Instant,
    sum: Duration,
    samples: u32,
    /// The largest distance from the smoothed time.
    farthest: Duration,
    smallest: Duration,
    /// Whether a sample was beyond the probe timeout, or longer by the silence before it, since the last stop may have
    /// raised the timer: the path has stood still, or has become longer.
    stopped: bool,
    /// How many round trips before it, in a row, were taken for stops.
    stops_before: u8,
    /// How many acknowledgements since the last sample were told again, see [`Rtt::tells_nothing`].
    told_again: u8,
    /// The largest rise from one sample to the next.
    step: Duration,
}

packed!(Period { start, sum, samples, farthest, smallest, stopped, stops_before, told_again, step });

impl Period {
    fn starting(start: Instant) -> Self {
        let zero = Duration::ZERO;
        Self {
            start,
            sum: zero,
            samples: 0,
            farthest: zero,
            smallest: Duration::MAX,
            stopped: false,
            stops_before: 0,
            told_again: 0,
            step: zero,
        }
    }

    fn add(&mut self, sample: Duration, smoothed: Duration) {
        self.sum = self.sum.saturating_add(sample);
        self.samples = self.samples.saturating_add(1);
        self.farthest = self.farthest.max(smoothed.abs_diff(sample));
        self.smallest = self.smallest.min(sample);
    }

    /// Whether the samples are those of a stop, and say nothing of the path.
    ///
    /// When a path stands still and goes on, what was held arrives together, and fills the rest of a round trip, or the
    /// whole. Its samples would slow down the pace for a dozen round trips. The round trip after it decides: if its
    /// smallest sample is long as well, the path has become longer. Nor does a path stop again and again without end.
    fn shows_stop(&self, smoothed: Duration) -> bool {
        let is_longer = match self.stops_before {
            0 => false,
            1..STOPS_MAX => self.smallest >= smoothed * LONGER,
            STOPS_MAX.. => true,
        };
        self.stopped && !is_longer
    }

    /// The mean of the samples. After a stop it is the smallest: the others may be the last that were held.
    fn mean(&self) -> Duration {
        if self.stops_before > 0 { self.smallest } else { self.sum / self.samples.max(1) }
    }
}

impl Rtt {
    /// An estimate without samples. `initial` is a guess, [`INITIAL_RTT`] if nothing better is known.
    pub fn new(initial: Duration, style: TimerStyle) -> Self {
        Self {
            style,
            latest: initial,
            smoothed: initial,
            variance: initial / 2,
            min: initial,
            first_sample: None,
            last_sample: Instant::ZERO,
            period: Period::starting(Instant::ZERO),
            step: Duration::ZERO,
        }
    }

    /// Before the first sample: an earlier connection over the same path found this round-trip time (RFC 9002 §6.2.2).
    pub(crate) fn assume(&mut self, rtt: Duration) {
        if !self.has_sample() {
            *self = Self::new(rtt.max(ASSUMED_MIN), self.style);
        }
    }

    /// Takes a sample.
    ///
    /// `ack_delay` is what the peer says it waited before it acknowledged. `max_ack_delay` is the longest
    /// wait that the peer promised, and is given once the handshake is confirmed: before that the peer may
    /// have waited for keys (RFC 9002 §5.3).
    pub fn update(
        &mut self,
        now: Instant,
        sample: Duration,
        ack_delay: Duration,
        max_ack_delay: Option<Duration>,
    ) {
        let previous = std::mem::replace(&mut self.latest, sample);
        let silence = now.saturating_since(std::mem::replace(&mut self.last_sample, now));
        if self.first_sample.is_none() {
            self.first_sample = Some(now);
            self.min = sample;
            self.smoothed = sample;
            self.variance = sample / 2;
            self.period = Period::starting(now);
            return;
        }
        self.period.step = self.period.step.max(sample.saturating_sub(previous));
        self.period.told_again = 0;
        // RFC 9002 §5.2: the minimum ignores the acknowledgement delay.
        self.min = self.min.min(sample);
        let ack_delay = max_ack_delay.map_or(ack_delay, |max| ack_delay.min(max));
        // RFC 9002 §5.3: a delay that would take the sample below the minimum is not believed.
        let adjusted = match sample.checked_sub(ack_delay) {
            Some(adjusted) if adjusted >= self.min => adjusted,
            _ => sample,
        };
        match self.style {
            TimerStyle::Classic => self.weigh(adjusted, self.smoothed.abs_diff(adjusted)),
            TimerStyle::OncePerRtt => {
                self.period.stopped |= silence >= self.smoothed && adjusted >= self.smoothed + silence / 2;
                self.collect(now, sample, adjusted);
            }
        }
    }

    /// Whether a sample says nothing of the path: the acknowledgement was lost, and the peer has told it again when it sent something
    /// else. It says itself that it has waited longer than it had promised, and the sample would raise the timeout. RFC 9002 §5.3 would
    /// take off no more than was promised, and one such sample makes the timeout as long as the silence was. A peer that always answers
    /// so late is believed at the fourth time.
    pub(crate) fn tells_nothing(
        &mut self,
        sample: Duration,
        ack_delay: Duration,
        max_ack_delay: Duration,
    ) -> bool {
        let is_told_again = self.style == TimerStyle::OncePerRtt
            && self.has_sample()
            && ack_delay > max_ack_delay
            && ack_delay <= sample
            && sample.saturating_sub(max_ack_delay) > self.pto_base()
            && self.period.told_again < TOLD_AGAIN_MAX;
        self.period.told_again += u8::from(is_told_again);
        is_told_again
    }

    /// Nothing got through for long, and perhaps the path is another one now: the minimum is the latest sample (RFC 9002 §5.2).
    pub(crate) fn on_persistent_congestion(&mut self) {
        self.min = self.latest;
    }

    /// The variance is measured against the old mean (RFC 9002 errata 7539).
    fn weigh(&mut self, sample: Duration, distance: Duration) {
        self.variance = (self.variance * 3 + distance) / 4;
        self.smoothed = (self.smoothed * 7 + sample) / 8;
    }

    fn collect(&mut self, now: Instant, sample: Duration, adjusted: Duration) {
        self.period.add(adjusted, self.smoothed);
        if adjusted > self.pto_base() {
            // The timer is too short, and the packets under way now must not pay for it until the period ends.
            self.variance = (adjusted - self.smoothed) / VARIANCES;
            self.period.stopped = true;
        }
        let newest_was_sent_after_start = self.period.start + sample <= now;
        if newest_was_sent_after_start {
            let stopped = self.period.shows_stop(self.smoothed);
            let mean = if stopped { self.smoothed } else { self.period.mean() };
            self.weigh(mean, self.period.farthest);
            self.step = self.period.step;
            let stops_before = if stopped { self.period.stops_before + 1 } else { 0 };
            self.period = Period { stops_before, ..Period::starting(now) };
        }
    }

    /// The latest sample, or the initial guess.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// The exponentially weighted mean.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean of the samples of the round trip that is under way, less what the peer has waited; the smoothed time before there
    /// is one. It follows a queue at once.
    pub(crate) fn recent(&self) -> Duration {
        if self.period.samples > 0 { self.period.mean() } else { self.smoothed }
    }

    /// How long a packet is on its way to the peer, by a guess: the way back takes half of the smallest round trip, as queues
    /// stand where data goes.
    pub(crate) fn to_peer(&self) -> Duration {
        self.smoothed.saturating_sub(self.min / 2)
    }

    /// The deviation (rttvar): the mean of the largest one of each round trip, or with
    /// [`TimerStyle::Classic`] of all.
    pub fn variance(&self) -> Duration {
        self.variance
    }

    /// How much later than the one before a sample came at most, during the last round trip or two: how unevenly
    /// acknowledgements come, whatever the round-trip time does in the long run. What comes sooner, as when a queue
    /// drains, does not count.
    pub(crate) fn jitter(&self) -> Duration {
        self.step.max(self.period.step)
    }

    /// The smallest sample since persistent congestion, or the initial guess.
    pub fn min(&self) -> Duration {
        self.min
    }

    /// Whether there was a sample; otherwise the figures are a guess.
    pub fn has_sample(&self) -> bool {
        self.first_sample.is_some()
    }

    /// When the first sample was taken.
    pub fn first_sample(&self) -> Option<Instant> {
        self.first_sample
    }

    /// The part of the probe timeout that the round-trip time explains (RFC 9002 §6.2.1), without the
    /// peer's acknowledgement delay.
    pub fn pto_base(&self) -> Duration {
        let variances = match self.style {
            TimerStyle::Classic => VARIANCES_CLASSIC,
            TimerStyle::OncePerRtt => VARIANCES,
        };
        self.smoothed + (self.variance * variances).max(GRANULARITY)
    }
}

impl Default for Rtt {
    fn default() -> Self {
        Self::new(INITIAL_RTT, TimerStyle::default())
    }
}

#[cfg(test)]
mod tests;
