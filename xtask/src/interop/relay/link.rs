//! One direction of the relay: delay, rate, a queue that overflows, loss.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use fulmar_base::Rng;

/// The most datagrams on their way when a link sets no smaller queue; more are lost.
const IN_FLIGHT_MAX: usize = 10_000;

/// How one direction treats datagrams; the default lets them pass at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Link {
    /// One-way delay.
    pub(crate) delay: Duration,
    /// A rate in bit/s and the datagrams that may wait for their turn; more are lost.
    pub(crate) rate: Option<Rate>,
    /// Independent losses.
    pub(crate) loss: Option<Loss>,
    /// Loses the datagrams with these numbers; the first has the number 1.
    pub(crate) drop: Option<RangeInclusive<u64>>,
}

/// A bottleneck.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) bit_per_s: u64,
    pub(crate) queue_datagrams: usize,
}

/// Each datagram is lost with `probability`, but never more than `burst_max` in a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loss {
    pub(crate) probability: f64,
    pub(crate) burst_max: u32,
    /// What the losses are drawn with: the same seed loses the same datagrams, counted from the first.
    pub(crate) seed: u64,
}

/// The datagrams on their way over a [`Link`].
pub(super) struct Queue {
    link: Link,
    rng: Rng,
    offered: u64,
    lost_in_a_row: u32,
    /// When the last bit of the last datagram left the bottleneck.
    busy_until: Option<Instant>,
    in_flight: VecDeque<InFlight>,
}

struct InFlight {
    leaves_bottleneck: Instant,
    due: Instant,
    datagram: Vec<u8>,
}

impl Queue {
    pub(super) fn new(link: Link) -> Self {
        let rng = Rng::from_u64(link.loss.map_or(0, |loss| loss.seed));
        Self { link, rng, offered: 0, lost_in_a_row: 0, busy_until: None, in_flight: VecDeque::new() }
    }

    /// Takes a datagram that arrived at `now`, or loses it.
    pub(super) fn push(&mut self, now: Instant, datagram: &[u8]) {
        self.offered += 1;
        if self.is_listed() || self.is_unlucky() || self.is_full(now) {
            return;
        }
        let leaves_bottleneck = match self.link.rate {
            None => now,
            Some(rate) => {
                let start = self.busy_until.map_or(now, |busy| busy.max(now));
                start + Duration::from_secs_f64(datagram.len() as f64 * 8.0 / rate.bit_per_s as f64)
            }
        };
        self.busy_until = Some(leaves_bottleneck);
        let due = leaves_bottleneck + self.link.delay;
        self.in_flight.push_back(InFlight { leaves_bottleneck, due, datagram: datagram.to_vec() });
    }

    /// The next datagram whose time has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.in_flight.front()?.due > now {
            return None;
        }
        self.in_flight.pop_front().map(|first| first.datagram)
    }

    /// When [`Self::pop_due`] has something next.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.in_flight.front().map(|first| first.due)
    }

    fn is_listed(&self) -> bool {
        self.link.drop.as_ref().is_some_and(|listed| listed.contains(&self.offered))
    }

    fn is_unlucky(&mut self) -> bool {
        let Some(loss) = self.link.loss else { return false };
        let lost = self.lost_in_a_row < loss.burst_max && self.rng.chance(loss.probability);
        self.lost_in_a_row = if lost { self.lost_in_a_row + 1 } else { 0 };
        lost
    }

    fn is_full(&self, now: Instant) -> bool {
        let Some(rate) = self.link.rate else { return self.in_flight.len() >= IN_FLIGHT_MAX };
        // Times of departure rise, so those that still wait are at the back.
        let gone = self.in_flight.partition_point(|datagram| datagram.leaves_bottleneck <= now);
        self.in_flight.len() - gone >= rate.queue_datagrams
    }
}

#[cfg(test)]
mod tests;
