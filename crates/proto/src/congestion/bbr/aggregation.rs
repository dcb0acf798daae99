//! How much more than expected is acknowledged at once.

use std::time::Duration;

use fulmar_base::Instant;

use super::units::volume;

/// The maximum is taken over so many rounds once the path was filled (BBR.ExtraAckedFilterLen), in two halves.
const HALF_FILTER_ROUNDS: u64 = 5;

/// A silence of more than so many round trips, and than [`MIN_STOP`], is a stop of the path and no aggregation.
const STOP_ROUND_TRIPS: u32 = 3;
const MIN_STOP: Duration = Duration::from_millis(50);

/// The excess of acknowledgements over what the bandwidth explains (BBR.extra_acked).
#[derive(Debug, Clone)]
pub(super) struct Aggregation {
    interval_start: Instant,
    /// Bytes acknowledged since then.
    delivered: u64,
    last_ack: Instant,
    /// Packets sent until then were held up by a stop of the path.
    stopped_until: Option<Instant>,
    current: u64,
    previous: u64,
    half_start_round: u64,
}

/// What [`Aggregation::on_ack`] needs to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct AggregationInput {
    pub(super) bandwidth: u64,
    pub(super) acked_bytes: u64,
    /// When the newest acknowledged packet was sent.
    pub(super) sent_time: Instant,
    pub(super) min_rtt: Duration,
    pub(super) window: u64,
    pub(super) round: u64,
    /// Whether the path was ever full; before that only a round is remembered.
    pub(super) full: bool,
}

impl Aggregation {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            interval_start: now,
            delivered: 0,
            last_ack: now,
            stopped_until: None,
            current: 0,
            previous: 0,
            half_start_round: 0,
        }
    }

    /// The maximum of the filter, in bytes.
    pub(super) fn extra(&self) -> u64 {
        self.current.max(self.previous)
    }

    /// The flow restarts from idle.
    pub(super) fn restart(&mut self, now: Instant) {
        self.interval_start = now;
        self.last_ack = now;
        self.delivered = 0;
    }

    /// Takes an acknowledgement (draft-ietf-ccwg-bbr, "BBR.extra_acked").
    ///
    /// A radio that stops for a moment delivers all that was under way at once. The draft would add that to
    /// the window for ten rounds, and a series of stops would double it each time; therefore what was under
    /// way during a stop is no sample.
    pub(super) fn on_ack(&mut self, now: Instant, input: &AggregationInput) {
        let silence = now.saturating_since(self.last_ack);
        if silence > MIN_STOP.max(input.min_rtt * STOP_ROUND_TRIPS) {
            self.stopped_until = Some(now);
        }
        if self.stopped_until.is_some_and(|until| input.sent_time <= until) {
            self.restart(now);
            return;
        }
        self.stopped_until = None;
        self.last_ack = now;
        if self.delivered <= volume(input.bandwidth, now.saturating_since(self.interval_start)) {
            // Acknowledgements are no faster than expected: a new interval begins.
            self.delivered = 0;
            self.interval_start = now;
        }
        let expected = volume(input.bandwidth, now.saturating_since(self.interval_start));
        self.delivered += input.acked_bytes;
        self.remember(self.delivered.saturating_sub(expected).min(input.window), input);
    }

    fn remember(&mut self, extra: u64, input: &AggregationInput) {
        let length = if input.full { HALF_FILTER_ROUNDS } else { 1 };
        if input.round >= self.half_start_round + length {
            self.half_start_round = input.round;
            self.previous = std::mem::take(&mut self.current);
        }
        self.current = self.current.max(extra);
    }
}
