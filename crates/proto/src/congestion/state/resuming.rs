//! Careful resume of a tuple (RFC 9959): what an earlier connection knew of the path, and what is worth remembering of this one.

use fulmar_base::Instant;

use super::super::careful_resume::CarefulResume;
use super::super::{ResumeStep, SavedPath, initial_window};
use super::CongestionState;

/// A path that holds less than this many initial windows is not worth remembering (RFC 9959 §3.1).
const CAPACITY_MIN_WINDOWS: u64 = 4;

impl CongestionState {
    /// Begins careful resume with what an earlier connection knew of the path, unless packets were lost. If some have
    /// left already, the next ones are the reconnaissance.
    pub(crate) fn resume(&mut self, saved: SavedPath) {
        if self.delivery.lost() == 0 {
            self.resume = Some(Box::new(CarefulResume::new(saved, self.initial_window())));
        }
    }

    /// The window, or a larger one that careful resume is going to try.
    #[inline]
    pub(crate) fn window_ahead(&self) -> u64 {
        let jump = self.resume.as_deref().map_or(0, CarefulResume::jump);
        self.controller.window().max(jump)
    }

    /// The bytes that the path delivers in a round trip, once that is known and worth knowing (RFC 9959 §3.1).
    pub(crate) fn capacity(&self) -> Option<u64> {
        let least = CAPACITY_MIN_WINDOWS * self.initial_window();
        self.capacity.get().filter(|&bytes| bytes >= least)
    }

    fn initial_window(&self) -> u64 {
        initial_window(u16::try_from(self.pacer.packet()).unwrap_or(u16::MAX))
    }

    /// Whether the path was full when its capacity was measured.
    pub(crate) fn is_full(&self) -> bool {
        self.capacity.is_full()
    }

    /// The phase of careful resume, if there is one.
    pub(crate) fn resume_state(&self) -> Option<&'static str> {
        self.resume.as_deref().map(CarefulResume::state)
    }

    pub(super) fn apply_resume(&mut self, now: Instant, step: Option<ResumeStep>) {
        if let Some(step) = step {
            self.controller.on_resume(now, step);
        }
        if self.resume.as_deref().is_some_and(CarefulResume::is_over) {
            self.resume = None;
        }
    }

    pub(super) fn resume_after_congestion(&mut self, now: Instant) {
        let step = self.resume.as_deref_mut().and_then(CarefulResume::on_congestion);
        self.apply_resume(now, step);
    }
}
