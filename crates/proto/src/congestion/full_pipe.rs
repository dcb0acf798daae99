//! Whether the pipe is full: the rate of delivery has stopped growing (draft-ietf-ccwg-bbr, BBR.full_bw_reached). The start with
//! packet trains and BBR version 1 use it as well.

use super::units::percent;
use crate::packed::packed;

/// This many rounds without growth mean that the path is full.
const FULL_ROUNDS: u32 = 3;

/// Estimates whether sending faster still brings a higher rate of delivery (draft-ietf-ccwg-bbr,
/// "Exiting Acceleration Based on Bandwidth Plateau").
#[derive(Debug, Clone, Default)]
pub(super) struct FullPipe {
    /// Whether the path was ever full (BBR.full_bw_reached).
    pub(super) reached: bool,
    /// Whether it is full since the search last began (BBR.full_bw_now).
    pub(super) now: bool,
    baseline: u64,
    rounds: u32,
    /// The sample of the last round that was judged.
    last: u64,
    /// Whether the last round that was judged has shown growth.
    growing: bool,
}

packed!(FullPipe { reached, now, baseline, rounds, last, growing });

impl FullPipe {
    /// A round in which the rate grew to less than this many hundredths of the last baseline did not grow.
    pub(super) const GROWTH_PERCENT: u64 = 125;

    /// Begins a search, with the rate from which it starts.
    pub(super) fn restart(&mut self, baseline: u64) {
        *self = Self { reached: self.reached, baseline, last: baseline, ..Self::default() };
    }

    /// Takes the sample of an acknowledgement. `growth` is what counts as growth in a round, usually
    /// [`FullPipe::GROWTH_PERCENT`].
    ///
    /// Two departures from the draft, for a path with rounds of very different lengths, as a radio link that stops: a rate that grows
    /// against that of the round before is no plateau, though a shorter round was faster; and a round that the application limited
    /// can show growth.
    pub(super) fn on_sample(&mut self, rate: u64, round_started: bool, app_limited: bool, growth: u64) {
        if !round_started || self.now {
            return;
        }
        // The rate of a round that the application limited is the least that the path can do.
        if rate >= percent(self.baseline, growth) {
            self.restart(rate);
            self.growing = true;
            return;
        }
        // But it shows no plateau.
        if app_limited {
            return;
        }
        let last = std::mem::replace(&mut self.last, rate);
        if rate >= percent(last, growth) {
            return;
        }
        self.growing = false;
        self.rounds += 1;
        self.now = self.rounds >= FULL_ROUNDS;
        self.reached |= self.now;
    }

    /// Whether `rate` is as much below the baseline as growth would be above it.
    pub(super) fn has_fallen(&self, rate: u64, growth: u64) -> bool {
        percent(rate, growth) <= self.baseline
    }

    /// Whether the last round has shown growth since the search began.
    pub(super) fn is_growing(&self) -> bool {
        self.growing
    }

    /// Something else than a plateau shows that the path is full.
    pub(super) fn set_full(&mut self) {
        self.now = true;
        self.reached = true;
    }
}

#[cfg(test)]
mod tests;
