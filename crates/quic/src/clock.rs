//! The clock: this crate is where the time of the core comes from.

use std::sync::OnceLock;
use std::time::Duration;

use fulmar_base::Instant;

/// The origin of all [`Instant`]s of this process.
static EPOCH: OnceLock<std::time::Instant> = OnceLock::new();

/// How far ahead an alarm is set at most; it is set again when it rings.
const ALARM_MAX: Duration = Duration::from_secs(3_600);

fn epoch() -> std::time::Instant {
    #[allow(clippy::disallowed_methods, reason = "the core's time is read here and passed in")]
    *EPOCH.get_or_init(std::time::Instant::now)
}

/// The time of [`Instant::ZERO`] since the beginning of 1970: what outlives the process is dated by the time of day.
#[allow(clippy::disallowed_methods, reason = "this is where the clock is read")]
pub(crate) fn unix_epoch() -> Duration {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    since_1970.unwrap_or_default().saturating_sub(now().saturating_since(Instant::ZERO))
}

/// The time now.
pub(crate) fn now() -> Instant {
    Instant::ZERO + epoch().elapsed()
}

/// The instant as the clock of the program has it.
pub(crate) fn std_time(instant: Instant) -> std::time::Instant {
    epoch() + instant.saturating_since(Instant::ZERO)
}

/// The instant as the runtime's timers know it, or an earlier one if it is far away.
pub(crate) fn alarm_time(instant: Instant) -> tokio::time::Instant {
    let now = now();
    let capped = instant.min(now + ALARM_MAX);
    tokio::time::Instant::from_std(epoch() + Duration::from_nanos(capped.as_nanos()))
}
