//! The elements of a link as they are written in a scenario file, and what they are in the simulation.

use fulmar_base::Rng;
use fulmar_sim::{
    Aqm, CoDel, Corrupt, CrossTraffic, DualQ, EcnPath, Jitter, Loss, Policer, Red, Reorder, SuspendedSide,
    Suspension, TrafficPattern,
};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::values::{Count, Mbps, Millis, Probability};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SuspendedSpec {
    Send,
    Receive,
    Both,
}

/// A stop, after which everything that has gathered goes on.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SuspendSpec {
    pub(super) duration_ms: Millis,
    side: SuspendedSpec,
}

impl SuspendSpec {
    pub(super) fn model(self) -> Suspension {
        let side = match self.side {
            SuspendedSpec::Send => SuspendedSide::Send,
            SuspendedSpec::Receive => SuspendedSide::Receive,
            SuspendedSpec::Both => SuspendedSide::Both,
        };
        Suspension { duration: self.duration_ms.0, side }
    }
}

/// How a queue drops and marks before it is full.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum AqmSpec {
    DropTail,
    Red {
        min_bytes: u64,
        max_bytes: u64,
        #[serde(default)]
        probability_max: Option<Probability>,
        #[serde(default)]
        weight: Option<Probability>,
        #[serde(default)]
        ecn: bool,
        #[serde(default)]
        exact_share: bool,
    },
    CoDel,
    DualQ,
}

impl AqmSpec {
    /// Reads one whose numbers fit one another.
    pub(super) fn checked<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Self>, D::Error> {
        match Self::deserialize(from)? {
            Self::Red { min_bytes, max_bytes, .. } if min_bytes >= max_bytes => {
                Err(D::Error::custom(format!("{min_bytes} bytes are not less than {max_bytes}")))
            }
            aqm => Ok(Some(aqm)),
        }
    }

    pub(super) fn model(self) -> Aqm {
        match self {
            Self::DropTail => Aqm::DropTail,
            Self::Red { min_bytes, max_bytes, probability_max, weight, ecn, exact_share } => {
                let red = Red::between(min_bytes, max_bytes);
                Aqm::Red(Red {
                    probability_max: probability_max.map_or(red.probability_max, |p| p.0),
                    weight: weight.map_or(red.weight, |weight| weight.0),
                    ecn,
                    exact_share,
                    ..red
                })
            }
            Self::CoDel => Aqm::CoDel(CoDel::default()),
            Self::DualQ => Aqm::DualQ(DualQ::default()),
        }
    }
}

/// What becomes of ECN codepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum EcnPathSpec {
    Keep,
    Bleach,
    Drop,
    Swap,
    Downgrade,
    MarkAll,
    HideCongestion,
}

impl EcnPathSpec {
    pub(super) fn model(self) -> EcnPath {
        match self {
            Self::Keep => EcnPath::Keep,
            Self::Bleach => EcnPath::Bleach,
            Self::Drop => EcnPath::Drop,
            Self::Swap => EcnPath::Swap,
            Self::Downgrade => EcnPath::Downgrade,
            Self::MarkAll => EcnPath::MarkAll,
            Self::HideCongestion => EcnPath::HideCongestion,
        }
    }
}

/// Traffic of others in one direction, which does not react to anything.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CrossTrafficSpec {
    rate_mbps: Mbps,
    packet_bytes: Option<Count>,
    /// How long it is on; without it, always.
    on_ms: Option<Millis>,
    #[serde(default)]
    off_ms: Millis,
    /// Whether these times are means of exponential distributions.
    #[serde(default)]
    random: bool,
}

impl CrossTrafficSpec {
    pub(super) fn model(self) -> CrossTraffic {
        let base = CrossTraffic::steady(self.rate_mbps.0);
        let pattern = match (self.on_ms, self.off_ms.0) {
            (None, _) => TrafficPattern::Steady,
            (Some(on), off) if self.random => TrafficPattern::RandomOnOff { on_mean: on.0, off_mean: off },
            (Some(on), off) => TrafficPattern::OnOff { on: on.0, off },
        };
        CrossTraffic {
            packet_size: self.packet_bytes.map_or(base.packet_size, |bytes| bytes.0),
            pattern,
            ..base
        }
    }
}

/// A leaky bucket in front of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicerSpec {
    rate_mbps: Mbps,
    packets: Count,
}

impl PolicerSpec {
    pub(super) fn model(self) -> Policer {
        Policer::packets(self.rate_mbps.0, u64::from(self.packets.0))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum JitterSpec {
    None,
    Uniform { max_ms: Millis },
    Normal { mean_ms: Millis, deviation_ms: Millis },
    Exponential { mean_ms: Millis },
    Wifi { mean_ms: Millis },
}

impl JitterSpec {
    /// Reads one that its model has.
    pub(super) fn checked<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Self>, D::Error> {
        match Self::deserialize(from)? {
            Self::Wifi { mean_ms } if mean_ms.0 > Jitter::WIFI_MEAN_MAX => {
                let (max, mean) = (Jitter::WIFI_MEAN_MAX.as_millis(), mean_ms.0.as_secs_f64() * 1e3);
                Err(D::Error::custom(format!(
                    "the jitter of a Wi-Fi has a mean of {max} ms at most, not {mean}"
                )))
            }
            jitter => Ok(Some(jitter)),
        }
    }

    pub(super) fn model(self) -> Jitter {
        match self {
            Self::None => Jitter::None,
            Self::Uniform { max_ms } => Jitter::Uniform { max: max_ms.0 },
            Self::Normal { mean_ms, deviation_ms } => {
                Jitter::Normal { mean: mean_ms.0, deviation: deviation_ms.0 }
            }
            Self::Exponential { mean_ms } => Jitter::Exponential { mean: mean_ms.0 },
            Self::Wifi { mean_ms } => Jitter::Wifi { mean: mean_ms.0 },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum LossSpec {
    None,
    Everything,
    Uniform {
        probability: Probability,
    },
    Capped {
        probability: Probability,
        run_max: Count,
    },
    Burst {
        probability: Probability,
        length_min: Count,
        length_max: Count,
    },
    GilbertElliott {
        to_bad: Probability,
        to_good: Probability,
        loss_good: Probability,
        loss_bad: Probability,
    },
    GilbertElliottTimed {
        good_mean_ms: Millis,
        bad_mean_ms: Millis,
        loss_good: Probability,
        loss_bad: Probability,
    },
    Pattern {
        period: Count,
        /// Without it, the seed decides where in the pattern the first packet is.
        offset: Option<u32>,
        lost: u32,
    },
    Listed {
        packets: Vec<u64>,
    },
}

impl LossSpec {
    /// Reads one whose numbers fit one another.
    pub(super) fn checked<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Self>, D::Error> {
        let loss = Self::deserialize(from)?;
        loss.problem().map_or(Ok(Some(loss)), |problem| Err(D::Error::custom(problem)))
    }

    fn problem(&self) -> Option<String> {
        match *self {
            Self::Burst { length_min, length_max, .. } if length_min.0 > length_max.0 => {
                Some(format!("no burst has at least {} packets and at most {}", length_min.0, length_max.0))
            }
            Self::Pattern { period, offset, lost } => {
                let first = offset.unwrap_or(0);
                let fits = first < period.0 && lost <= period.0 - first;
                let behind = offset.map_or(String::new(), |offset| format!(" behind the first {offset}"));
                (!fits).then(|| format!("a pattern of {} packets has no {lost}{behind} to lose", period.0))
            }
            _ => None,
        }
    }

    /// `rng` draws what the file leaves to the seed.
    pub(super) fn model(&self, rng: &mut Rng) -> Loss {
        match self {
            Self::None => Loss::None,
            Self::Everything => Loss::Everything,
            Self::Uniform { probability } => Loss::Uniform { probability: probability.0 },
            Self::Capped { probability, run_max } => {
                Loss::Capped { probability: probability.0, run_max: run_max.0 }
            }
            Self::Burst { probability, length_min, length_max } => {
                Loss::Burst { probability: probability.0, length: length_min.0..=length_max.0 }
            }
            Self::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => Loss::GilbertElliott {
                to_bad: to_bad.0,
                to_good: to_good.0,
                loss_good: loss_good.0,
                loss_bad: loss_bad.0,
            },
            Self::GilbertElliottTimed { good_mean_ms, bad_mean_ms, loss_good, loss_bad } => {
                Loss::GilbertElliottTimed {
                    good_mean: good_mean_ms.0,
                    bad_mean: bad_mean_ms.0,
                    loss_good: loss_good.0,
                    loss_bad: loss_bad.0,
                }
            }
            Self::Pattern { period, offset, lost } => Loss::Pattern {
                period: u64::from(period.0),
                offset: offset
                    .map_or_else(|| rng.below(u64::from(period.0.saturating_sub(*lost)) + 1), u64::from),
                lost: u64::from(*lost),
            },
            Self::Listed { packets } => Loss::Listed(packets.iter().copied().collect()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ReorderSpec {
    None,
    Time { probability: Probability, delay_max_ms: Millis },
    Depth { probability: Probability, depth_max: Count, hold_max_ms: Millis },
}

impl ReorderSpec {
    pub(super) fn model(self) -> Reorder {
        match self {
            Self::None => Reorder::None,
            Self::Time { probability, delay_max_ms } => {
                Reorder::ByTime { probability: probability.0, delay_max: delay_max_ms.0 }
            }
            Self::Depth { probability, depth_max, hold_max_ms } => Reorder::ByDepth {
                probability: probability.0,
                depth_max: depth_max.0,
                hold_max: hold_max_ms.0,
            },
        }
    }
}

/// One byte of each chosen packet is changed.
pub(super) fn corrupt(probability: Probability) -> Corrupt {
    Corrupt { probability: probability.0, bytes_max: 1, replace: true }
}
