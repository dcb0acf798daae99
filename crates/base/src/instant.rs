//! A point in time that does not know any clock.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point in time: nanoseconds since an origin that the caller chose.
///
/// 64 bits of nanoseconds reach 584 years, so the deep-space links that Fulmar is made for fit. Arithmetic
/// saturates: an instant that cannot be represented is [`Instant::FAR_FUTURE`], never a panic.
///
/// An `Option<Instant>` takes no more room than an instant: a connection has dozens of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(
    /// One more than the nanoseconds, so that it is never zero.
    NonZeroU64,
);

impl Instant {
    /// The origin of the caller's clock.
    pub const ZERO: Self = Self(NonZeroU64::MIN);
    /// The last representable instant.
    pub const FAR_FUTURE: Self = Self(NonZeroU64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// The instant `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Self::from_nanos(micros.saturating_mul(1_000))
    }

    /// The instant `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self::from_nanos(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Seconds since the origin, for printing.
    pub fn as_secs_f64(self) -> f64 {
        self.as_nanos() as f64 / 1e9
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// The time from `earlier` to `self`, or `None` if `earlier` is later.
    pub fn checked_since(self, earlier: Self) -> Option<Duration> {
        self.0.get().checked_sub(earlier.0.get()).map(Duration::from_nanos)
    }

    /// The instant `duration` before `self`, not before the origin.
    pub fn saturating_sub(self, duration: Duration) -> Self {
        NonZeroU64::new(self.0.get().saturating_sub(nanos(duration))).map_or(Self::ZERO, Self)
    }
}

/// Nanoseconds of a duration, saturating at 584 years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub for Instant {
    type Output = Duration;
    /// The time between two instants; zero if `earlier` is later.
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.as_nanos() / 1_000_000_000, self.as_nanos() % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Instant::ZERO - Instant::from_millis(5), Duration::ZERO);
        assert_eq!(Instant::ZERO + Duration::MAX, Instant::FAR_FUTURE);
        assert_eq!(Instant::from_millis(5).saturating_sub(Duration::from_secs(1)), Instant::ZERO);
        assert_eq!(Instant::from_millis(5).saturating_sub(Duration::from_millis(5)), Instant::ZERO);
        assert_eq!(Instant::from_nanos(u64::MAX), Instant::FAR_FUTURE);
    }

    #[test]
    fn nanoseconds_come_back() {
        for nanos in [0, 1, 1_000_000_007, u64::MAX - 1] {
            assert_eq!(Instant::from_nanos(nanos).as_nanos(), nanos);
        }
        assert_eq!(size_of::<Option<Instant>>(), size_of::<u64>());
    }
}
