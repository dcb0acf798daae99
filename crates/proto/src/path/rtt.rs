//! The round-trip time of a tuple (RFC 9002 §5).

use std::time::Duration;

use fulmar_base::Instant;

/// The round-trip time that is assumed before the first sample (RFC 9002 §6.2.2): the first probe timeout
/// is then one second.
pub const INITIAL_RTT: Duration = Duration::from_millis(333);

/// The finest timer that loss detection relies on (kGranularity, RFC 9002 §6.1.2).
pub(crate) const GRANULARITY: Duration = Duration::from_millis(1);

/// Estimates of the round-trip time of one tuple.
///
/// Loss detection, probe timeouts, pacing and congestion control read it; only [`Rtt::update`] changes it.
#[derive(Debug, Clone)]
pub struct Rtt {
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    min: Duration,
    first_sample: Option<Instant>,
}

impl Rtt {
    /// An estimate without samples. `initial` is a guess, [`INITIAL_RTT`] if nothing better is known.
    pub fn new(initial: Duration) -> Self {
        Self { latest: initial, smoothed: initial, variance: initial / 2, min: initial, first_sample: None }
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
        self.latest = sample;
        if self.first_sample.is_none() {
            self.first_sample = Some(now);
            self.min = sample;
            self.smoothed = sample;
            self.variance = sample / 2;
            return;
        }
        // RFC 9002 §5.2: the minimum ignores the acknowledgement delay.
        self.min = self.min.min(sample);
        let ack_delay = max_ack_delay.map_or(ack_delay, |max| ack_delay.min(max));
        // RFC 9002 §5.3: a delay that would take the sample below the minimum is not believed.
        let adjusted = match sample.checked_sub(ack_delay) {
            Some(adjusted) if adjusted >= self.min => adjusted,
            _ => sample,
        };
        // The variance is measured against the old mean (RFC 9002 errata 7539).
        self.variance = (self.variance * 3 + self.smoothed.abs_diff(adjusted)) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
    }

    /// The latest sample, or the initial guess.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// The exponentially weighted mean.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean deviation (rttvar).
    pub fn variance(&self) -> Duration {
        self.variance
    }

    /// The smallest sample, or the initial guess.
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
        self.smoothed + (self.variance * 4).max(GRANULARITY)
    }
}

impl Default for Rtt {
    fn default() -> Self {
        Self::new(INITIAL_RTT)
    }
}

#[cfg(test)]
mod tests;
