//! Losses that are no sign of congestion: few of them, on a long path, without a queue.
//!
//! A radio link loses packets at random. On a path over a satellite, a controller that takes each loss for congestion is
//! left with a thousandth of the capacity, since its window needs many round trips to grow back. That the queue tells the two
//! kinds apart is the idea of TCP Veno (C. P. Fu and S. C. Liew, 2003). The bounds are our own. No RFC has this exception,
//! so controllers say where they use it.

use std::time::Duration;

use fulmar_base::Instant;

use super::AckEvent;
use super::delay::DelayWatch;

/// On shorter paths the window grows back fast enough, and what looks like chance may be the work of a queue that is
/// kept short.
const LONG_RTT: Duration = Duration::from_millis(80);

/// The rate of loss is a mean over the latest packets that forgets with this weight.
const WEIGHT: u32 = 128;

/// After this many packets nothing is left of the mean before them.
const MEMORY: u64 = 2048;

/// One, as a rate of loss.
const ONE: u32 = 1 << 20;

/// From this rate on, losses are congestion whatever the delay says: a policer or a very short queue gives no other
/// sign.
const RATE_MAX: u32 = ONE / 20;

/// A delay that exceeds the smallest by this part of it, within these bounds, is a queue.
const QUEUE_DIVISOR: u32 = 16;
const QUEUE_MIN: Duration = Duration::from_millis(4);
const QUEUE_MAX: Duration = Duration::from_millis(25);

/// Tells random losses from congestion.
#[derive(Debug, Clone, Default)]
pub(in crate::congestion) struct RandomLoss {
    rate: u32,
    delay: DelayWatch,
    min_rtt: Duration,
}

impl RandomLoss {
    /// Takes an ACK frame.
    pub(in crate::congestion) fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>) {
        self.min_rtt = ack.rtt.min();
        if let Some(sample) = ack.rtt_sample {
            self.delay.on_sample(now, sample, self.min_rtt);
        }
        for _ in 0..ack.acked_packets.min(MEMORY) {
            self.rate -= self.rate / WEIGHT;
        }
    }

    /// The smallest round-trip time of the path so far.
    pub(in crate::congestion) fn min_rtt(&self) -> Duration {
        self.min_rtt
    }

    /// Counts the loss of `packets`, and returns whether they may be random and need no reaction. A queue says that they are
    /// not, unless the sender has just made it itself, to probe the path (`own_queue`).
    pub(in crate::congestion) fn tolerates(&mut self, packets: u64, own_queue: bool) -> bool {
        for _ in 0..packets.min(MEMORY) {
            self.rate += (ONE - self.rate) / WEIGHT;
        }
        let queue = (self.min_rtt / QUEUE_DIVISOR).clamp(QUEUE_MIN, QUEUE_MAX);
        let is_empty = self.delay.recent_min().is_none_or(|recent| recent <= self.min_rtt + queue);
        self.min_rtt >= LONG_RTT && self.rate <= RATE_MAX && (own_queue || is_empty)
    }
}

#[cfg(test)]
mod tests;
