//! A rise of the delay that is not jitter.

use std::time::Duration;

/// So many samples must agree.
const SAMPLES: usize = 8;

/// A rise is at least so large: less is the granularity of timers and of acknowledgements.
const MIN_RISE: Duration = Duration::from_millis(4);

/// A rise is at least this part of the round-trip time, but on long paths [`MAX_RISE`] is enough.
const RTT_DIVISOR: u32 = 4;
const MAX_RISE: Duration = Duration::from_millis(50);

/// A rise is at least so many times the usual difference of two samples in a row. A queue that fills changes
/// them little by little, a radio link throws them about.
const JITTER_FACTOR: u32 = 4;

/// The usual difference of two samples is a mean that forgets with this weight.
const JITTER_WEIGHT: u32 = 8;

/// The latest samples of the round-trip time.
#[derive(Debug, Clone, Default)]
pub(super) struct DelayWatch {
    samples: [Duration; SAMPLES],
    count: usize,
    jitter: Duration,
}

impl DelayWatch {
    /// Takes a sample.
    pub(super) fn on_sample(&mut self, sample: Duration) {
        if self.count > 0 {
            let last = self.samples[(self.count - 1) % SAMPLES];
            self.jitter = (self.jitter * (JITTER_WEIGHT - 1) + last.abs_diff(sample)) / JITTER_WEIGHT;
        }
        self.samples[self.count % SAMPLES] = sample;
        self.count += 1;
    }

    /// The smallest of the latest samples, once there are enough.
    pub(super) fn recent_min(&self) -> Option<Duration> {
        self.samples.iter().min().copied().filter(|_| self.count >= SAMPLES)
    }

    /// Whether the latest samples all exceed `base` so much that a queue has grown.
    pub(super) fn has_risen(&self, base: Duration) -> bool {
        let rise = (base / RTT_DIVISOR).clamp(MIN_RISE, MAX_RISE).max(self.jitter * JITTER_FACTOR);
        self.recent_min().is_some_and(|recent| recent > base + rise)
    }
}
