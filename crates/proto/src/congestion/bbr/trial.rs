//! A departure from the draft: what losses change is on trial. Where the path loses as much afterwards, they were random, and what
//! they have changed is undone. Whether that is so, [`RandomLoss`](crate::congestion::random_loss::RandomLoss) finds out.

use fulmar_base::Instant;

use super::super::units::{percent, rate};
use super::loss::{BETA_PERCENT, larger_bound};
use super::{Bbr, Phase};
use crate::packed::packed;

/// During a trial the pace is this share of what arrives, in hundredths, as in PROBE_DOWN: a policer loses nothing of that.
const PACE_PERCENT: u64 = 90;

/// After a trial that has shown losses to be no chance the next one waits until the next probe for bandwidth, and each time for twice
/// as many of them, up to two to this power.
const MAX_DOUBLINGS: u8 = 6;

/// What is on trial of the reactions to losses, and when the next trial may begin.
#[derive(Debug, Clone, Default)]
pub(super) struct LossTrial {
    /// The long-term bound before the losses that are on trial.
    bound_before: Option<u64>,
    /// The bandwidth that is used during the trial.
    pub(super) bandwidth: Option<u64>,
    /// How many trials have shown losses that were no chance, since one has shown others.
    passed: u8,
    /// The next trial waits for so many probes for bandwidth.
    probes_until_next: u8,
    /// Whether it began in the present period of recovery.
    is_of_recovery: bool,
}

packed!(LossTrial { bound_before, bandwidth, passed, probes_until_next, is_of_recovery });

impl LossTrial {
    /// A probe for bandwidth begins.
    pub(super) fn on_probe(&mut self) {
        self.probes_until_next = self.probes_until_next.saturating_sub(1);
    }

    /// A period of recovery begins: if its losses turn out to be none, a trial from before goes on.
    pub(super) fn on_recovery(&mut self) {
        self.is_of_recovery = false;
    }

    /// Whether the last trial has shown losses that were no chance.
    pub(super) fn has_passed(&self) -> bool {
        self.passed > 0
    }

    /// A lower rate has lost next to nothing: that the path has shown, and it need not show it again soon.
    fn put_off(&mut self) {
        self.probes_until_next = 1 << self.passed;
        self.passed = (self.passed + 1).min(MAX_DOUBLINGS);
    }
}

impl Bbr {
    /// Puts what losses change from now on on trial.
    pub(super) fn begin_trial(&mut self, now: Instant) {
        self.losses.trial.bound_before = self.losses.long_inflight;
        self.losses.trial.bandwidth = None;
        self.losses.trial.is_of_recovery = true;
        self.losses.random.on_reaction(now, u64::MAX);
    }

    /// Begins a trial at a lower pace when losses are about to lower the bounds, unless one is under way or was put off.
    pub(super) fn begin_trial_if_due(&mut self, now: Instant) {
        let put_off = self.losses.trial.probes_until_next > 0 && !self.losses.random.is_retrial_due();
        if put_off || self.losses.random.is_on_trial() {
            return;
        }
        self.begin_trial(now);
        // A path that stood still is no reason for a crawl.
        let least = percent(self.bandwidth(), BETA_PERCENT);
        self.losses.trial.bandwidth = self.trial_pace(now).map(|pace| pace.max(least));
    }

    /// A little less than what has arrived since the first loss of the round. Samples of the rate that began before it may be
    /// larger than what the path carries, where tokens let a burst pass.
    fn trial_pace(&self, now: Instant) -> Option<u64> {
        let (since, before) = self.losses.first_loss?;
        let time = now.saturating_since(since);
        (!time.is_zero()).then(|| percent(rate(self.delivered.saturating_sub(before), time), PACE_PERCENT))
    }

    /// The losses of the period of recovery were none: there is nothing to find out about the reaction to them.
    pub(super) fn end_trial_of_recovery(&mut self) {
        if self.losses.trial.is_of_recovery {
            self.losses.random.end_trial();
        }
    }

    /// Undoes what random losses have changed, and goes on with STARTUP if they have ended it.
    pub(super) fn check_trial(&mut self) {
        if self.startup.remeasure_from.is_some() || !self.losses.random.is_on_trial() {
            return;
        }
        if !self.losses.random.trial_was_in_vain(self.control.window) {
            // It has shown congestion only where what is lost since is tolerated: chance spares a part of the packets, too.
            if !self.losses.random.is_on_trial() && self.losses.random.is_tolerable() {
                self.losses.trial.put_off();
            }
            return;
        }
        self.losses.trial.passed = 0;
        self.losses.begin_lossless_round();
        self.losses.reset_short_term();
        self.losses.long_inflight = larger_bound(self.losses.long_inflight, self.losses.trial.bound_before);
        if self.startup.is_full_by_losses && (self.phase.is_probe_bw() || self.phase == Phase::Drain) {
            self.full.reached = false;
            self.full.restart(0);
            self.enter_startup();
        }
    }
}

#[cfg(test)]
mod tests;
