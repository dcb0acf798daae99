//! The largest bandwidth seen lately, and whether more of it can be had.

use super::units::percent;

/// A round in which the rate grew to less than this share of the last baseline did not grow.
pub(super) const GROWTH_PERCENT: u64 = 125;

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

    /// Begins a cycle. A cycle in which there was no sample leaves the filter as it is: it says nothing.
    pub(super) fn advance(&mut self) {
        if self.current > 0 {
            self.previous = self.current;
            self.current = 0;
        }
    }
}

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
    /// The largest sample of the round.
    round_max: u64,
}

impl FullPipe {
    /// Begins a search, with the rate from which it starts.
    pub(super) fn restart(&mut self, baseline: u64) {
        *self = Self { reached: self.reached, baseline, ..Self::default() };
    }

    /// Takes the sample of an acknowledgement. `growth` is what counts as growth in a round, usually
    /// [`GROWTH_PERCENT`].
    ///
    /// The draft compares the one sample that happens to begin a round. Here it is the largest of the
    /// round, since a single sample is noisy where acknowledgements come in bunches.
    pub(super) fn on_sample(&mut self, rate: u64, round_started: bool, app_limited: bool, growth: u64) {
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
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_ROUNDS;
        self.reached |= self.now;
    }

    /// Whether the last round has shown growth.
    pub(super) fn is_growing(&self) -> bool {
        self.rounds == 0
    }

    /// Something else than a plateau shows that the path is full.
    pub(super) fn set_full(&mut self) {
        self.now = true;
        self.reached = true;
    }
}
