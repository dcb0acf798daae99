//! What is in flight beyond the window, on a path that stops again and again: enough to go on sending while nothing comes back.
//!
//! A radio link may hold packets back for many times the smallest round-trip time and hand them over at once. A window for that round-trip
//! time is used up long before, and the path is idle until the link goes on. A window that grows beyond it would bridge the silence, but by
//! the round-trip time without stops it is a pace far above that of the path, so that a queue overflows after each stop, and the window
//! shrinks again. So the two are told apart: the window of the controller sets the pace, and losses set the window; what the pace gives in a
//! silence may be in flight beside it.
//!
//! The specifications of NewReno, CUBIC and Prague have no such allowance. BBR has one of its own, which this follows (`bbr/aggregation.rs`).

use std::time::Duration;

use fulmar_base::Instant;

use super::bbr::{HELD_ROUND_TRIPS, Rounds};
use super::hystart::MEANINGLESS_RTT;
use super::units::{rate, volume};
use crate::packed::packed;

/// What was handed over shows that the path holds as much or more: it is doubled until it bridges the silence, as with BBR.
const GROWTH: u64 = 2;

/// The largest bridge is remembered for so many rounds, in two halves: together the 63 rounds that BBR at most lets pass between two
/// probes, and for which it remembers a path that stops. Rounds between stops are short.
const HALF_FILTER_ROUNDS: u64 = 32;

/// Measures silences and what follows them.
#[derive(Debug, Clone)]
pub(super) struct Bridge {
    /// Since when acknowledgements have come faster than the window explains, and how many bytes since then.
    interval_start: Instant,
    delivered: u64,
    last_ack: Instant,
    /// How long nothing was acknowledged before the interval.
    silence: Duration,
    rounds: Rounds,
    current: u64,
    previous: u64,
    half_start_round: u64,
}

packed!(Bridge { interval_start, delivered, last_ack, silence, rounds, current, previous, half_start_round });

/// What [`Bridge::on_ack`] needs to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivery {
    /// The window of the controller, in bytes.
    pub(super) window: u64,
    /// The pace that follows from it, in bytes per second.
    pub(super) pace: u64,
    pub(super) acked_bytes: u64,
    /// Bytes delivered before the newest packet of them was sent, and until now.
    pub(super) prior_delivered: u64,
    pub(super) total_delivered: u64,
    pub(super) min_rtt: Duration,
    pub(super) smoothed_rtt: Duration,
}

impl Bridge {
    /// Nothing is known of the path.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            interval_start: now,
            delivered: 0,
            last_ack: now,
            silence: Duration::ZERO,
            rounds: Rounds::default(),
            current: 0,
            previous: 0,
            half_start_round: 0,
        }
    }

    /// The bytes that may be in flight beside the window.
    pub(super) fn get(&self) -> u64 {
        self.current.max(self.previous)
    }

    /// Something leaves while nothing is in flight: the time before it was no silence of the path.
    pub(super) fn on_begin(&mut self, now: Instant) {
        (self.interval_start, self.last_ack) = (now, now);
        (self.delivered, self.silence) = (0, Duration::ZERO);
    }

    /// What is known says nothing of the path any more.
    pub(super) fn forget(&mut self) {
        (self.current, self.previous) = (0, 0);
    }

    /// Takes an acknowledgement.
    pub(super) fn on_ack(&mut self, now: Instant, delivery: &Delivery) {
        if self.rounds.on_ack(delivery.prior_delivered, delivery.total_delivered) {
            // What was held back has come by now. Where the window is met exactly, the interval does not end.
            self.silence = Duration::ZERO;
        }
        let usual = rate(delivery.window, delivery.smoothed_rtt);
        let expected = |since: Instant| volume(usual, now.saturating_since(since));
        if self.delivered <= expected(self.interval_start) {
            self.interval_start = now;
            self.delivered = 0;
            self.silence = now.saturating_since(self.last_ack);
        }
        self.last_ack = now;
        self.delivered += delivery.acked_bytes;
        let excess = self.delivered.saturating_sub(expected(self.interval_start));
        self.remember(self.shown(excess, delivery));
    }

    /// What would have to be in flight beside the window, as far as `excess` shows it. What the window bridges in any case needs nothing, and
    /// where half of what may be in flight has arrived in time, the silence was not that of the whole path.
    fn shown(&self, excess: u64, delivery: &Delivery) -> u64 {
        if delivery.min_rtt <= MEANINGLESS_RTT {
            // Such a silence is that of a thread.
            return 0;
        }
        let unbridged = self.silence.saturating_sub(delivery.min_rtt * HELD_ROUND_TRIPS);
        let flight = delivery.window.saturating_add(self.get());
        let held_back = (2 * excess.min(flight)).saturating_sub(flight);
        volume(delivery.pace, unbridged).min(GROWTH * held_back)
    }

    fn remember(&mut self, bridge: u64) {
        let round = self.rounds.count();
        if round >= self.half_start_round + HALF_FILTER_ROUNDS {
            self.half_start_round = round;
            self.previous = std::mem::take(&mut self.current);
        }
        self.current = self.current.max(bridge);
    }
}

#[cfg(test)]
mod tests;
