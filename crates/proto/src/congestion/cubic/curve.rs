//! What a reaction of CUBIC to congestion changes (RFC 9438 §4.6, §4.7).

use super::stage::Stage;
use crate::congestion::recovery::Before;
use crate::congestion::{Cause, CoupledShare};

/// The window after a loss, in tenths (beta, RFC 9438 §4.6).
pub(super) const BETA_TENTHS: u64 = 7;

/// What a reaction to congestion changes and its undoing restores.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    pub(super) window: u64,
    pub(super) ssthresh: Option<u64>,
    /// The window of the last loss, where the curve is flat; `None` where no loss set it.
    pub(super) plateau: Option<u64>,
    /// The window when `ssthresh` was last set (cwnd_prior).
    pub(super) prior_window: u64,
    /// The present stage of congestion avoidance.
    pub(super) stage: Option<Stage>,
    /// Whether losses have ended the first slow start.
    pub(super) ended_by_losses: bool,
}

impl Before for Curve {
    fn window(&self) -> u64 {
        self.window
    }
}

/// How a reaction changes the curve.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reduction {
    pub(super) fast_convergence: bool,
    pub(super) share: CoupledShare,
    /// No window is below this.
    pub(super) smallest: u64,
}

impl Reduction {
    /// What a reaction makes of this.
    pub(super) fn of(self, before: &Curve, cause: Cause) -> Curve {
        let window = before.window;
        // RFC 9438 §4.7: a flow that could not return to its last plateau aims lower than where it is.
        let shrinks = self.fast_convergence && before.plateau.is_some_and(|plateau| window < plateau);
        let reduced = self.share.reduced(window, window * BETA_TENTHS / 10).max(self.smallest);
        Curve {
            window: reduced,
            ssthresh: Some(reduced),
            plateau: Some(if shrinks { window * (10 + BETA_TENTHS) / 20 } else { window }),
            prior_window: window,
            stage: None,
            ended_by_losses: if before.ssthresh.is_none() {
                cause == Cause::Loss
            } else {
                before.ended_by_losses
            },
        }
    }
}
