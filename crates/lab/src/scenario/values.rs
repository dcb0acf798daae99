//! Values of a scenario file that are checked as they are read, so that a complaint points at their place.

use std::time::Duration;

use serde::Deserialize;

/// The longest time a file can name, in seconds: some thirty years.
const SECONDS_MAX: f64 = 1e9;
/// The highest rate a file can name, in Mbit/s: a petabit per second.
const MBPS_MAX: f64 = 1e9;

/// A time in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct Millis(pub(crate) Duration);

/// A time in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct Seconds(pub(crate) Duration);

/// A rate in Mbit/s of UDP payload, kept in bits per second. Zero stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct Mbps(pub(crate) u64);

/// A number in `0.0..=1.0`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct Probability(pub(crate) f64);

/// A number of at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub(crate) struct Count(pub(crate) u32);

fn duration(value: f64, per_second: f64) -> Result<Duration, String> {
    match (0.0..=SECONDS_MAX * per_second).contains(&value) {
        true => Ok(Duration::from_secs_f64(value / per_second)),
        false => Err(format!("a time is between 0 and {} years, not {value}", SECONDS_MAX / 3.2e7)),
    }
}

impl TryFrom<f64> for Millis {
    type Error = String;
    fn try_from(value: f64) -> Result<Self, String> {
        duration(value, 1e3).map(Self)
    }
}

impl TryFrom<f64> for Seconds {
    type Error = String;
    fn try_from(value: f64) -> Result<Self, String> {
        duration(value, 1.0).map(Self)
    }
}

impl TryFrom<f64> for Mbps {
    type Error = String;
    fn try_from(value: f64) -> Result<Self, String> {
        match (0.0..=MBPS_MAX).contains(&value) {
            true => Ok(Self((value * 1e6).round() as u64)),
            false => Err(format!("a rate is between 0 and {MBPS_MAX} Mbit/s, not {value}")),
        }
    }
}

impl TryFrom<f64> for Probability {
    type Error = String;
    fn try_from(value: f64) -> Result<Self, String> {
        match (0.0..=1.0).contains(&value) {
            true => Ok(Self(value)),
            false => Err(format!("a probability is between 0 and 1, not {value}")),
        }
    }
}

impl TryFrom<u32> for Count {
    type Error = String;
    fn try_from(value: u32) -> Result<Self, String> {
        if value > 0 { Ok(Self(value)) } else { Err("at least 1 is needed".to_owned()) }
    }
}
