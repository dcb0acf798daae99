//! Careful resume in the terms of the model (RFC 9959, appendix on BBR).

use fulmar_base::Instant;

use super::super::units::rate;
use super::{Bbr, Phase};
use crate::congestion::ResumeStep;

impl Bbr {
    /// Follows careful resume while the flow is in STARTUP. What the jump really delivers, the samples show two
    /// rounds later, so that nothing has to be settled.
    pub(super) fn follow_resume(&mut self, now: Instant, step: ResumeStep) {
        match step {
            ResumeStep::Jump { window, rtt } if self.phase == Phase::Startup => {
                // The pace never falls in STARTUP, so it holds until the rate of delivery shows more.
                self.control.pacing_rate = self.control.pacing_rate.max(rate(window, rtt));
                self.control.measured = true;
                // The RFC allows twice as much. But the first loss is two round trips away, and what the window does not
                // hold cannot be lost until then.
                self.control.window = self.control.window.max(window);
            }
            ResumeStep::Retreat { window } => {
                if self.phase == Phase::Startup {
                    // The queue that the jump has made goes before anything else is tried.
                    self.full.set_full();
                    self.enter_drain();
                }
                if !self.recovery.covers(now) {
                    self.recovery.enter_last(now);
                }
                self.recovery.make_final();
                let window = window.max(self.control.min_pipe());
                self.losses.short_inflight =
                    Some(self.losses.short_inflight.map_or(window, |old| old.min(window)));
                self.control.window = self.control.window.min(window);
            }
            ResumeStep::SlowStartUpTo { ssthresh } if self.losses.short_inflight.is_some() => {
                // After a retreat: so much has been shown to fit, and whether more does, the next probe finds out.
                self.losses.short_inflight = self.losses.short_inflight.max(Some(ssthresh));
                self.startup.probes_soon = self.phase == Phase::Drain;
                self.probe_soon(now);
            }
            _ => {}
        }
    }
}
