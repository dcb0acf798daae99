//! The largest bandwidth seen lately, and whether more of it can be had.

use std::time::Duration;

use fulmar_base::Instant;

use super::units::percent;

/// A round in which the rate grew to less than this share of the last baseline did not grow.
pub(in crate::congestion) const GROWTH_PERCENT: u64 = 125;

/// So many rounds without growth mean that the path is full.
const FULL_ROUNDS: u32 = 3;

/// The maximum over the current and the previous cycle of probing (BBR.max_bw_filter with MaxBwFilterLen 2),
/// in bytes per second.
#[derive(Debug, Clone, Default)]
pub(super) struct MaxBandwidth {
    previous: u64,
    current: u64,
}

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
    /// The longest time without an acknowledgement.
    silence: Duration,
    /// Whether the path stopped in the round before: the samples of this one began in it.
    was_held: bool,
}

impl RoundBest {
    pub(super) fn new(now: Instant) -> Self {
        Self { max: 0, limited: false, start: now, last_ack: now, silence: Duration::ZERO, was_held: false }
    }

    /// Whether the path stopped for `time` or longer in this round or the one before.
    pub(super) fn has_stopped(&self, time: Duration) -> bool {
        self.was_held || self.silence >= time
    }

    /// Takes a sample. Returns the largest of a round with the sample that ends it, unless the application
    /// limited the round, or the path stopped in it or in the one before: then the average says nothing about its rate.
    pub(super) fn on_sample(
        &mut self,
        now: Instant,
        rate: u64,
        round_started: bool,
        app_limited: bool,
    ) -> Option<u64> {
        self.max = self.max.max(rate);
        self.limited |= app_limited;
        self.silence = self.silence.max(now.saturating_since(self.last_ack));
        self.last_ack = now;
        if !round_started {
            return None;
        }
        let round = std::mem::replace(self, Self::new(now));
        self.was_held = round.silence > now.saturating_since(round.start) / HELD_DIVISOR;
        Some(round.max).filter(|_| !round.limited && !round.was_held && !self.was_held)
    }
}

/// Estimates whether sending faster still brings a higher rate of delivery (draft-ietf-ccwg-bbr,
/// "Exiting Acceleration Based on Bandwidth Plateau").
#[derive(Debug, Clone, Default)]
pub(in crate::congestion) struct FullPipe {
    /// Whether the path was ever full (BBR.full_bw_reached).
    pub(in crate::congestion) reached: bool,
    /// Whether it is full since the search last began (BBR.full_bw_now).
    pub(in crate::congestion) now: bool,
    baseline: u64,
    rounds: u32,
    /// The largest sample of the round.
    round_max: u64,
    /// Whether the last round that was judged has shown growth.
    growing: bool,
}

impl FullPipe {
    /// What counts as growth in a round, in hundredths.
    pub(in crate::congestion) const GROWTH_PERCENT: u64 = GROWTH_PERCENT;

    /// Begins a search, with the rate from which it starts.
    pub(in crate::congestion) fn restart(&mut self, baseline: u64) {
        *self = Self { reached: self.reached, baseline, ..Self::default() };
    }

    /// Takes the sample of an acknowledgement. `growth` is what counts as growth in a round, usually
    /// [`GROWTH_PERCENT`].
    ///
    /// The draft compares the one sample that happens to begin a round. Here it is the largest of the
    /// round, since a single sample is noisy where acknowledgements come in bunches.
    pub(in crate::congestion) fn on_sample(
        &mut self,
        rate: u64,
        round_started: bool,
        app_limited: bool,
        growth: u64,
    ) {
        self.round_max = self.round_max.max(rate);
        if !round_started {
            return;
        }
        let best = std::mem::take(&mut self.round_max);
        // A round that the application limited shows no plateau, and neither resets one.
        if self.now || app_limited {
            return;
        }
        if best >= percent(self.baseline, growth) {
            self.restart(best);
            self.growing = true;
            return;
        }
        self.growing = false;
        self.rounds += 1;
        self.now = self.rounds >= FULL_ROUNDS;
        self.reached |= self.now;
    }

    /// Whether the last round has shown growth since the search began.
    pub(in crate::congestion) fn is_growing(&self) -> bool {
        self.growing
    }

    /// Something else than a plateau shows that the path is full.
    pub(in crate::congestion) fn set_full(&mut self) {
        self.now = true;
        self.reached = true;
    }
}

#[cfg(test)]
mod tests;
