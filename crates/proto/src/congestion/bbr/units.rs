//! Rates times times, in integers: a run is the same on every machine.

use std::time::Duration;

/// The bytes that `rate`, in bytes per second, delivers in `time`.
pub(in crate::congestion) fn volume(rate: u64, time: Duration) -> u64 {
    let bytes = u128::from(rate).saturating_mul(time.as_nanos()) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The rate, in bytes per second, that delivers `bytes` in `time`.
pub(in crate::congestion) fn rate(bytes: u64, time: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / time.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// So many hundredths of `value`.
pub(in crate::congestion) fn percent(value: u64, hundredths: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(hundredths) / 100).unwrap_or(u64::MAX)
}
