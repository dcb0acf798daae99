//! How much more than expected is acknowledged at once.

use std::time::Duration;

use fulmar_base::Instant;

use super::super::units::{percent, volume};
use crate::packed::packed;

/// The maximum is taken over this many rounds once the path was filled (BBR.ExtraAckedFilterLen), in two halves.
const HALF_FILTER_ROUNDS: u64 = 5;

/// A window that was handed over as a whole shows only that the path holds back that much or more. The
/// allowance grows by this factor until it bridges the silence.
const GROWTH: u64 = 2;

/// Where the window ends before the silence does, the pace is what the window allowed and not what the path does: what
/// bridges the silence is reckoned with this many hundredths of it, or window and pace would confirm each other.
const HEADROOM_PERCENT: u64 = 175;

/// A silence of more than this many round trips is more than the window bridges in any case.
pub(in crate::congestion) const HELD_ROUND_TRIPS: u32 = 2;

/// The excess of acknowledgements over what the bandwidth explains (BBR.extra_acked).
#[derive(Debug, Clone)]
pub(in crate::congestion) struct Aggregation {
    interval_start: Instant,
    /// Bytes acknowledged since then.
    delivered: u64,
    last_ack: Instant,
    /// The smallest excess of the round, before an acknowledgement.
    low: u64,
    round: u64,
    /// How long nothing was acknowledged before the interval.
    silence: Duration,
    /// Whether the allowance has grown to bridge a silence since [`Aggregation::take_growth`] was asked.
    grown: bool,
    /// Whether the current half of the filter holds the bridge of a silence.
    bridged: bool,
    current: u64,
    previous: u64,
    half_start_round: u64,
}

packed!(Aggregation {
    interval_start,
    delivered,
    last_ack,
    low,
    round,
    silence,
    grown,
    bridged,
    current,
    previous,
    half_start_round,
});

/// What [`Aggregation::on_ack`] needs to know.
#[derive(Debug, Clone, Copy)]
pub(in crate::congestion) struct AggregationInput {
    /// In bytes per second.
    pub(in crate::congestion) bandwidth: u64,
    /// The pace of the sender in bytes per second: more than the bandwidth while it looks for more.
    pub(in crate::congestion) pace: u64,
    pub(in crate::congestion) acked_bytes: u64,
    pub(in crate::congestion) min_rtt: Duration,
    pub(in crate::congestion) window: u64,
    pub(in crate::congestion) round: u64,
    /// Whether the path was ever full; before that only a round is remembered.
    pub(in crate::congestion) full: bool,
}

impl Aggregation {
    pub(in crate::congestion) fn new(now: Instant) -> Self {
        Self {
            interval_start: now,
            delivered: 0,
            last_ack: now,
            low: u64::MAX,
            round: 0,
            silence: Duration::ZERO,
            grown: false,
            bridged: false,
            current: 0,
            previous: 0,
            half_start_round: 0,
        }
    }

    /// The maximum of the filter, in bytes.
    pub(in crate::congestion) fn extra(&self) -> u64 {
        self.current.max(self.previous)
    }

    /// The flow restarts from idle.
    pub(in crate::congestion) fn restart(&mut self, now: Instant) {
        self.interval_start = now;
        self.last_ack = now;
        self.delivered = 0;
    }

    /// Takes an acknowledgement (draft-ietf-ccwg-bbr, "BBR.extra_acked").
    ///
    /// A departure from the draft: a path that holds packets back again and again, as a radio does, for many
    /// times its smallest round-trip time, hands over the whole window at once and then waits for the sender.
    /// The excess cannot exceed the window there, so that the window would stay too small to bridge the
    /// silence; up to [`HEADROOM_PERCENT`] of what the pace gives in it the excess counts [`GROWTH`] times.
    /// Before the path was full such a bridge is remembered longer than other excess: the next silence will come.
    pub(in crate::congestion) fn on_ack(&mut self, now: Instant, input: &AggregationInput) {
        self.forget_excess(now, input);
        if self.delivered <= volume(input.bandwidth, now.saturating_since(self.interval_start)) {
            // Acknowledgements are no faster than expected: a new interval begins.
            self.delivered = 0;
            self.interval_start = now;
            self.silence = now.saturating_since(self.last_ack);
        }
        self.last_ack = now;
        let expected = volume(input.bandwidth, now.saturating_since(self.interval_start));
        self.delivered += input.acked_bytes;
        let excess = self.delivered.saturating_sub(expected).min(input.window);
        let bridge = self.bridge(excess, input);
        self.grown |= bridge > self.extra();
        self.remember(excess.max(bridge), input);
        self.bridged |= bridge > 0;
    }

    /// Another departure: an excess that was there for a whole round is none of this round. Where the bandwidth
    /// is met exactly, the interval does not end, and a single burst would be remembered for good.
    fn forget_excess(&mut self, now: Instant, input: &AggregationInput) {
        let expected = volume(input.bandwidth, now.saturating_since(self.interval_start));
        self.low = self.low.min(self.delivered.saturating_sub(expected));
        if input.round != self.round {
            self.round = input.round;
            self.delivered -= std::mem::replace(&mut self.low, u64::MAX).min(self.delivered);
        }
    }

    /// What would have to be in flight to bridge the silence, as far as `excess` shows it.
    fn bridge(&self, excess: u64, input: &AggregationInput) -> u64 {
        let held = self.silence > input.min_rtt * HELD_ROUND_TRIPS;
        let exhausted = GROWTH * excess > input.window;
        if !(held && exhausted) {
            return 0;
        }
        let bridge = volume(percent(input.pace, HEADROOM_PERCENT), self.silence);
        bridge.min(GROWTH * excess)
    }

    /// Whether the window was too small for the path's silences lately, so that the rate shows no plateau.
    pub(in crate::congestion) fn take_growth(&mut self) -> bool {
        std::mem::take(&mut self.grown)
    }

    fn remember(&mut self, extra: u64, input: &AggregationInput) {
        let length = if input.full || self.bridged { HALF_FILTER_ROUNDS } else { 1 };
        if input.round >= self.half_start_round + length {
            self.half_start_round = input.round;
            self.previous = std::mem::take(&mut self.current);
            self.bridged = false;
        }
        self.current = self.current.max(extra);
    }
}

#[cfg(test)]
mod tests;
