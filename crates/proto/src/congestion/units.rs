//! Rates and volumes in integers, so that a run is the same on every machine.

use std::time::Duration;

const NANOS: u64 = 1_000_000_000;

/// See [`slowest_pace`].
const SLOWEST_PACE_TIME: Duration = Duration::from_millis(100);

/// The bytes that `rate`, in bytes per second, delivers in `time`.
pub(super) fn volume(rate: u64, time: Duration) -> u64 {
    let bytes = u128::from(rate).saturating_mul(time.as_nanos());
    narrow_quotient(bytes, NANOS)
}

/// The rate, in bytes per second, that delivers `bytes` in `time`.
pub(super) fn rate(bytes: u64, time: Duration) -> u64 {
    let bytes = u128::from(bytes) * u128::from(NANOS);
    narrow_quotient(bytes, u64::try_from(time.as_nanos().max(1)).unwrap_or(u64::MAX))
}

/// The quotient of numbers most of which fit 64 bits, where dividing costs a fraction of what it does in 128.
fn narrow_quotient(dividend: u128, divisor: u64) -> u64 {
    match u64::try_from(dividend) {
        Ok(dividend) => dividend / divisor,
        Err(_) => u64::try_from(dividend / u128::from(divisor)).unwrap_or(u64::MAX),
    }
}

/// How long a path of this bandwidth, in bytes per second, takes for `packet` bytes; zero as long as it is not known.
pub(super) fn packet_time(packet: u64, bandwidth: u64) -> Duration {
    Duration::from_micros((packet * 1_000_000).checked_div(bandwidth).unwrap_or(0))
}

/// This many hundredths of `value`.
pub(super) fn percent(value: u64, hundredths: u64) -> u64 {
    narrow_quotient(u128::from(value) * u128::from(hundredths), 100)
}

/// The slowest pace in bytes per second: two packets, the smallest window, in a round trip, or in this time if that is longer.
///
/// A departure from the draft: a few small packets that are left of a flight show a bandwidth of some bytes per second, and the
/// pacer would keep the next packet for longer than a connection lives.
pub(super) fn slowest_pace(packet: u64, min_rtt: Option<Duration>) -> u64 {
    rate(2 * packet, min_rtt.unwrap_or_default().max(SLOWEST_PACE_TIME)).max(1)
}
