//! A deadline that belongs to one owner.

use crate::Instant;

/// An optional deadline. It is not `Copy`, so that a deadline has exactly one owner.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Timer(Option<Instant>);

impl Timer {
    /// A timer that is not set.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Arms the timer, replacing an earlier deadline.
    pub fn set(&mut self, at: Instant) {
        self.0 = Some(at);
    }

    /// Arms the timer unless it is armed for an earlier time.
    pub fn set_earlier(&mut self, at: Instant) {
        self.0 = Some(self.0.map_or(at, |old| old.min(at)));
    }

    /// Disarms the timer.
    pub fn cancel(&mut self) {
        self.0 = None;
    }

    /// When the timer rings, if it is armed.
    pub fn deadline(&self) -> Option<Instant> {
        self.0
    }

    /// Whether the timer is armed.
    pub fn is_armed(&self) -> bool {
        self.0.is_some()
    }

    /// Returns true once, and disarms, if the deadline has been reached at `now`.
    pub fn take_expired(&mut self, now: Instant) -> bool {
        let expired = self.0.is_some_and(|at| at <= now);
        if expired {
            self.0 = None;
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_once() {
        let mut timer = Timer::new();
        timer.set(Instant::from_millis(5));
        timer.set_earlier(Instant::from_millis(7));
        assert!(!timer.take_expired(Instant::from_millis(4)));
        assert!(timer.take_expired(Instant::from_millis(5)));
        assert!(!timer.take_expired(Instant::from_millis(9)));
    }
}
