//! The space that links are drawn from.

use fulmar_base::Rng;
use serde::Deserialize;

use crate::scenario::ScenarioError;

/// From which ranges links are drawn. Each key of a file replaces the default's.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Space {
    /// Who sends.
    pub direction: DataDirection,
    /// The rate in the direction of the data in Mbit/s of UDP payload, log-uniform.
    pub rate_mbps: Range,
    /// The round-trip time without queues and jitter, log-uniform.
    pub rtt_ms: Range,
    /// The queue before the link in products of its rate and the round-trip time, log-uniform.
    pub queue_bdp: Range,
    /// No queue holds fewer packets of 1,500 bytes.
    pub queue_packets_min: u32,
    /// Bytes that are moved, log-uniform.
    pub bytes: Range,
    /// Loss in the direction of the data.
    pub loss: LossSpace,
    /// Jitter in both directions; the order of packets is kept.
    pub jitter: JitterSpace,
    /// Return paths that are slower than the way of the data.
    pub slow_return: ReturnSpace,
}

/// Who sends the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataDirection {
    /// The server.
    Download,
    /// The client.
    Upload,
    /// One of them, by lot.
    Either,
}

/// A range of numbers, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(from = "[f64; 2]")]
pub struct Range {
    min: f64,
    max: f64,
}

/// Random loss.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossSpace {
    /// The share of links that lose packets one by one.
    pub single_share: f64,
    /// The share of links that lose packets in bursts.
    pub burst_share: f64,
    /// The share of their packets that these links lose, uniform.
    pub probability: Range,
    /// The mean length of bursts in packets, log-uniform; each burst has 1 to twice as many, less one.
    pub burst_packets: Range,
    /// Whether the way of the acknowledgements loses as many.
    pub both_ways: bool,
}

/// Jitter.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JitterSpace {
    /// The share of links with a bell curve of jitter, with a deviation of a third of the mean.
    pub bell_share: f64,
    /// The share of links with the jitter of a Wi-Fi, which also stops for some 86 ms now and then.
    pub wifi_share: f64,
    /// The mean of the jitter, log-uniform.
    pub mean_ms: Range,
}

/// Slow return paths.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReturnSpace {
    /// The share of links that have one.
    pub share: f64,
    /// How many times slower it is, log-uniform.
    pub ratio: Range,
    /// No return path is slower than this.
    pub rate_mbps_min: f64,
}

impl Default for Space {
    /// What people's links are like, and somewhat beyond.
    fn default() -> Self {
        Self {
            direction: DataDirection::Download,
            rate_mbps: Range::new(1.0, 1_000.0),
            rtt_ms: Range::new(2.0, 1_200.0),
            queue_bdp: Range::new(0.15, 3.0),
            queue_packets_min: 10,
            bytes: Range::new(3e4, 3e7),
            loss: LossSpace::default(),
            jitter: JitterSpace::default(),
            slow_return: ReturnSpace::default(),
        }
    }
}

impl Default for LossSpace {
    fn default() -> Self {
        Self {
            single_share: 0.3,
            burst_share: 0.3,
            probability: Range::new(0.0, 0.08),
            burst_packets: Range::new(2.0, 10.0),
            both_ways: false,
        }
    }
}

impl Default for JitterSpace {
    fn default() -> Self {
        Self { bell_share: 0.15, wifi_share: 0.15, mean_ms: Range::new(1.0, 8.0) }
    }
}

impl Default for ReturnSpace {
    fn default() -> Self {
        Self { share: 0.25, ratio: Range::new(5.0, 100.0), rate_mbps_min: 0.5 }
    }
}

impl From<[f64; 2]> for Range {
    fn from([min, max]: [f64; 2]) -> Self {
        Self { min, max }
    }
}

impl Range {
    /// From `min` to `max`.
    pub const fn new(min: f64, max: f64) -> Self {
        Self { min, max }
    }

    fn is_within(self, low: f64, high: f64) -> bool {
        low <= self.min && self.min <= self.max && self.max <= high
    }

    /// Each number as likely as the others.
    pub(super) fn uniform(self, rng: &mut Rng) -> f64 {
        rounded(self.min + (self.max - self.min) * rng.unit())
    }

    /// Each factor as likely as the others.
    pub(super) fn log_uniform(self, rng: &mut Rng) -> f64 {
        let (min, max) = (self.min.ln(), self.max.ln());
        rounded((min + (max - min) * rng.unit()).exp())
    }
}

/// To four digits: a file is easier to read so, and machines differ in the last bits of logarithms.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

impl Space {
    /// Reads a space. `name` is its name in complaints.
    ///
    /// # Errors
    /// The first thing in the text that makes no sense, with its place.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let space: Self = toml::from_str(text).map_err(|error| ScenarioError::parsing(name, text, &error))?;
        match space.problem() {
            Some((field, message)) => Err(ScenarioError::about_field(name, text, field, message)),
            None => Ok(space),
        }
    }

    fn problem(&self) -> Option<(&'static str, String)> {
        let ranges = [
            ("rate_mbps", self.rate_mbps, 0.01, 1e6),
            ("rtt_ms", self.rtt_ms, 0.01, 1e7),
            ("queue_bdp", self.queue_bdp, 0.001, 1e3),
            ("bytes", self.bytes, 1.0, 1e10),
            ("probability", self.loss.probability, 0.0, 0.9),
            ("burst_packets", self.loss.burst_packets, 1.0, 1e4),
            ("mean_ms", self.jitter.mean_ms, 1.0, 85.0),
            ("ratio", self.slow_return.ratio, 1.0, 1e6),
        ];
        let out_of_range = ranges.into_iter().find(|(_, range, low, high)| !range.is_within(*low, *high));
        if let Some((field, _, low, high)) = out_of_range {
            return Some((field, format!("a range from its smaller to its larger end, in {low} to {high}")));
        }
        let shares = [
            ("single_share", [self.loss.single_share, self.loss.burst_share]),
            ("bell_share", [self.jitter.bell_share, self.jitter.wifi_share]),
            ("share", [self.slow_return.share, 0.0]),
        ];
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        let is_wrong = |[a, b]: [f64; 2]| !(is_share(a) && is_share(b) && is_share(a + b));
        if let Some((field, _)) = shares.iter().find(|(_, shares)| is_wrong(*shares)) {
            return Some((field, "shares are at least 0, and at most 1 together".to_owned()));
        }
        let rate_min = self.slow_return.rate_mbps_min;
        (!(0.01..=1e6).contains(&rate_min)).then(|| ("rate_mbps_min", "a rate in 0.01 to 1000000".to_owned()))
    }
}
