//! The largest bandwidth seen lately.

use std::time::Duration;

use fulmar_base::Instant;

use super::super::delay::nanos;
use super::aggregation::HELD_ROUND_TRIPS;
use super::probe_bw::MAX_WAIT_ROUNDS;
use crate::packed::packed;

/// The maximum over the current and the previous cycle of probing (BBR.max_bw_filter with MaxBwFilterLen 2),
/// in bytes per second.
#[derive(Debug, Clone, Default)]
pub(super) struct MaxBandwidth {
    previous: u64,
    current: u64,
}

packed!(MaxBandwidth { previous, current });

impl MaxBandwidth {
    pub(super) fn get(&self) -> u64 {
        self.previous.max(self.current)
    }

    /// Takes a sample. One that the application limited counts only if it is larger than all others.
    pub(super) fn on_sample(&mut self, rate: u64, app_limited: bool) {
        if !app_limited || rate >= self.get() {
            self.current = self.current.max(rate);
        }
    }

    /// Forgets what was measured before: the path has changed.
    pub(super) fn replace(&mut self, rate: u64) {
        *self = Self { previous: 0, current: rate };
    }

    /// Begins a cycle. A cycle in which there was no sample leaves the filter as it is: it says nothing.
    pub(super) fn advance(&mut self) {
        if self.current > 0 {
            self.previous = self.current;
            self.current = 0;
        }
    }
}

/// A silence of more than this part of a round means that the path held packets back.
const HELD_DIVISOR: u32 = 4;

/// The largest sample of a round, as far as it shows what the path can deliver.
#[derive(Debug, Clone)]
pub(super) struct RoundBest {
    max: u64,
    /// Whether the application limited any sample of the round.
    limited: bool,
    start: Instant,
    last_ack: Instant,
    /// When the newest packet that was acknowledged had left.
    last_sent: Instant,
    /// By how much, at most, an acknowledgement came later after the one before than its packet had left after that of it, in nanoseconds.
    /// Where the sender makes the silences, since a flight leaves before the answer can be there, this is nothing.
    stop: u64,
    /// Whether that was a part of the round before that says that the path stopped.
    had_stop: bool,
    /// The longest time without an acknowledgement.
    silence: Duration,
    /// Whether the path stopped in the round before: the samples of this one began in it.
    was_held: bool,
    /// Whether it stopped for longer than a window bridges in any case; a flight of few packets makes shorter silences.
    was_stopped: bool,
    /// Whether a round has shown the bandwidth since [`RoundBest::take_shown`] was asked.
    is_shown: bool,
    /// How many rounds in a row have not.
    stopped_rounds: u8,
}

packed!(RoundBest {
    max,
    limited,
    start,
    last_ack,
    last_sent,
    stop,
    had_stop,
    silence,
    was_held,
    was_stopped,
    is_shown,
    stopped_rounds,
});

impl RoundBest {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            max: 0,
            limited: false,
            start: now,
            last_ack: now,
            last_sent: now,
            stop: 0,
            had_stop: false,
            silence: Duration::ZERO,
            was_held: false,
            was_stopped: false,
            is_shown: false,
            stopped_rounds: 0,
        }
    }

    /// Whether a round has shown the bandwidth since this was last asked: one in which the path did not stop for more than
    /// [`HELD_ROUND_TRIPS`], nor in the one before it, or the last of [`MAX_WAIT_ROUNDS`] in which it did.
    pub(super) fn take_shown(&mut self) -> bool {
        std::mem::take(&mut self.is_shown)
    }

    /// Whether the path stopped for `time` or longer in this round or the one before.
    pub(super) fn has_stopped(&self, time: Duration) -> bool {
        self.was_held || self.silence >= time
    }

    /// Takes a sample. Returns the largest of a round with the sample that ends it, unless the application
    /// limited the round, or the path stopped in it or in the one before: then the average says nothing about its rate. `sent` is when the
    /// newest packet had left, `base` the smallest round-trip time.
    pub(super) fn on_sample(
        &mut self,
        now: Instant,
        sent: Instant,
        base: Duration,
        rate: u64,
        round_started: bool,
        app_limited: bool,
    ) -> Option<u64> {
        self.max = self.max.max(rate);
        self.limited |= app_limited;
        let silence = now.saturating_since(self.last_ack);
        self.silence = self.silence.max(silence);
        let stop = silence.saturating_sub(sent.saturating_since(self.last_sent));
        self.stop = self.stop.max(nanos(stop));
        (self.last_ack, self.last_sent) = (now, sent);
        if !round_started {
            return None;
        }
        let round = std::mem::replace(self, Self::new(now));
        self.last_sent = sent;
        let held = now.saturating_since(round.start) / HELD_DIVISOR;
        self.was_held = round.silence > held;
        self.had_stop = round.stop > nanos(held);
        self.count_round(&round, base);
        Some(round.max).filter(|_| !round.limited && !round.had_stop && !self.had_stop)
    }

    /// Notes whether `round`, which has ended, shows the bandwidth; `base` is the smallest round-trip time.
    fn count_round(&mut self, round: &Self, base: Duration) {
        self.was_stopped = self.was_held && round.silence > base * HELD_ROUND_TRIPS;
        let is_steady = !round.was_stopped && !self.was_stopped;
        let stopped_rounds = if is_steady { 0 } else { round.stopped_rounds + 1 };
        self.is_shown = round.is_shown || is_steady || stopped_rounds == MAX_WAIT_ROUNDS;
        self.stopped_rounds = stopped_rounds % MAX_WAIT_ROUNDS;
    }
}

#[cfg(test)]
mod tests;
