//! What a scenario is to reach: `[[goal]]`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ControllerName, Figures};

/// What a goal without a figure of its own allows beyond the reference figure.
const TOLERANCE: f64 = 1.02;

/// A figure of a run that a goal is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Virtual time from the client's start to the last byte.
    #[default]
    CompletionS,
    /// The same, divided by that of the scenario with the settings of its `[baseline]`.
    CompletionRatio,
    /// The same, divided by that of the scenario with the classic timers of RFC 9002.
    TimersRatio,
    /// The rate until completion, divided by the sum of those of each path alone.
    SumShare,
    /// The same, divided by the rate of the path that is the best alone.
    BestShare,
    /// The same, divided by the rate of the best path and half of those of the others.
    BestAndHalfShare,
    /// What 99 % of the one-way delays of the unreliable datagrams did not exceed, divided by that of the scenario with the
    /// settings of its `[baseline]`.
    DatagramDelayP99Ratio,
    /// Paths beyond the first on which the server has answered the client.
    PathsValidated,
    /// Bytes that both ends have sent over paths that are backups.
    BackupBytes,
    /// Packets that both sides declared lost.
    PacketsLost,
    /// Packets that both sides declared lost although they arrived.
    PacketsSpurious,
    /// Packets that both sides sent.
    PacketsSent,
    /// The most bytes in flight of any connection on either side.
    BytesInFlightMax,
    /// Connections that the server accepted.
    ConnectionsAccepted,
    /// Jain's index of the bytes that the connections moved until the first one was done, or their times were over: 1 if all moved the
    /// same. It takes two connections.
    JainIndex,
    /// The smallest share that a connection had of the bytes of all.
    ShareMin,
    /// The same, by its median over the seeds.
    LesserShare,
    /// The one-way delay that half of the unreliable datagrams did not exceed.
    DatagramDelayP50Ms,
    /// The one-way delay that 99 % of the unreliable datagrams did not exceed.
    DatagramDelayP99Ms,
    /// The one-way delay that half of the datagrams did not exceed which no stop of the link can have held up.
    DatagramDelayP50OutsideEventsMs,
    /// The same for 99 %.
    DatagramDelayP99OutsideEventsMs,
    /// The mean time from a frame of audio or video until it was read.
    FrameDelayMeanMs,
    /// The longest such time.
    FrameDelayMaxMs,
    /// Round trips from the first data until the rate of the link is reached.
    FullRateAfterRtts,
    /// Round trips from the end of a stop of the link until its rate is reached again, the longest.
    BackAtRateRtts,
    /// The share of the unreliable datagrams that came before their deadline.
    DatagramsInTime,
    /// From the `repaired_at_s` of the scenario to the next packet that reaches its end.
    ResumedAfterS,
    /// From the `repaired_at_s` of the scenario until 90 % of the rate of all paths together arrive for ten round trips.
    SumAfterS,
    /// The longest time of all in which an application had nothing to read of what the streams still had to bring.
    ReadGapMaxMs,
    /// From the beginning of a connection until its client had completed the handshake, the longest.
    HandshakeS,
    /// Bytes of streams that were read, by the completion time, in Mbit/s.
    GoodputMbps,
    /// The share of the capacity of the busier direction, until completion, whose bytes came out of the link; of several links in a row
    /// that of the bottleneck, which is used most.
    Utilisation,
    /// How long half of the packets of the side that sent more waited for the bottleneck at most.
    QueueDelayP50Ms,
    /// The same for 99 %.
    QueueDelayP99Ms,
    /// The round-trip time of the side that sent more, at the median.
    RttP50Ms,
    /// The same for 99 %.
    RttP99Ms,
}

/// How figures of several seeds become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Median,
    Maximum,
    Minimum,
}

/// What a run of a scenario with a controller is to reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The controller; `None` for the one of the default configuration.
    pub controller: Option<ControllerName>,
    /// The figure.
    #[serde(default)]
    pub metric: Metric,
    /// What another stack, or an earlier specification, reached.
    pub reference: Option<f64>,
    /// What is to be reached. Without it, the reference with a tolerance of 2 %.
    pub goal: Option<f64>,
    /// What differs from the scenario in the runs that this goal is about, by its path in the file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, toml::Value>,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 36] = [
        Self::CompletionS,
        Self::CompletionRatio,
        Self::TimersRatio,
        Self::SumShare,
        Self::BestShare,
        Self::BestAndHalfShare,
        Self::DatagramDelayP99Ratio,
        Self::PathsValidated,
        Self::BackupBytes,
        Self::PacketsLost,
        Self::PacketsSpurious,
        Self::PacketsSent,
        Self::BytesInFlightMax,
        Self::ConnectionsAccepted,
        Self::JainIndex,
        Self::ShareMin,
        Self::LesserShare,
        Self::DatagramDelayP50Ms,
        Self::DatagramDelayP99Ms,
        Self::DatagramDelayP50OutsideEventsMs,
        Self::DatagramDelayP99OutsideEventsMs,
        Self::FrameDelayMeanMs,
        Self::FrameDelayMaxMs,
        Self::FullRateAfterRtts,
        Self::BackAtRateRtts,
        Self::DatagramsInTime,
        Self::ResumedAfterS,
        Self::SumAfterS,
        Self::ReadGapMaxMs,
        Self::HandshakeS,
        Self::GoodputMbps,
        Self::Utilisation,
        Self::QueueDelayP50Ms,
        Self::QueueDelayP99Ms,
        Self::RttP50Ms,
        Self::RttP99Ms,
    ];

    /// Whether the figure compares runs of two variants of a scenario.
    pub const fn compares_runs(self) -> bool {
        let of_variant =
            matches!(self, Self::CompletionRatio | Self::TimersRatio | Self::DatagramDelayP99Ratio);
        of_variant || self.is_about_paths_alone()
    }

    /// Whether the figure compares a run with runs that have one of the paths each.
    pub const fn is_about_paths_alone(self) -> bool {
        matches!(self, Self::SumShare | Self::BestShare | Self::BestAndHalfShare)
    }

    /// Whether the figure compares a run with one that has the settings of the `[baseline]`.
    pub const fn needs_baseline(self) -> bool {
        matches!(self, Self::CompletionRatio | Self::DatagramDelayP99Ratio)
    }

    /// What the rates of the paths alone come to, by which the rate of all is divided.
    pub(super) fn of_alone(self, rates: &[f64]) -> Option<f64> {
        let best = rates.iter().copied().max_by(f64::total_cmp)?;
        let sum: f64 = rates.iter().sum();
        match self {
            Self::SumShare => Some(sum),
            Self::BestShare => Some(best),
            Self::BestAndHalfShare => Some(best + (sum - best) / 2.0),
            _ => None,
        }
    }

    /// Whether the figure is about the rate in the direction that the scenario watches.
    pub const fn is_about_rate(self) -> bool {
        matches!(self, Self::FullRateAfterRtts | Self::BackAtRateRtts | Self::SumAfterS)
    }

    /// The figure of a run; `None` if the run does not have it.
    pub fn of(self, figures: &Figures) -> Option<f64> {
        let sides = [&figures.client, &figures.server];
        let sum = |figure: fn(&super::SideFigures) -> u64| sides.map(figure).iter().sum::<u64>() as f64;
        let more = &figures.more;
        let (sender, direction) = match figures.client.bytes_sent > figures.server.bytes_sent {
            true => (&figures.client, 0),
            false => (&figures.server, 1),
        };
        let link = figures.bottleneck(direction);
        match self {
            Self::CompletionS | Self::CompletionRatio | Self::TimersRatio => figures.completion_s,
            Self::SumShare | Self::BestShare | Self::BestAndHalfShare => figures.goodput_mbps(),
            Self::SumAfterS => more.sum_after_s,
            Self::ReadGapMaxMs => more.read_gap_max_ms,
            Self::HandshakeS => more.handshake_s,
            Self::PathsValidated => Some(more.paths_validated as f64),
            Self::BackupBytes => more.backup_bytes.map(|bytes| bytes as f64),
            Self::PacketsLost => Some(sum(|side| side.packets_lost)),
            Self::PacketsSpurious => Some(sum(|side| side.packets_spurious)),
            Self::PacketsSent => Some(sum(|side| side.packets_sent)),
            Self::BytesInFlightMax => Some(more.bytes_in_flight_max as f64),
            Self::ConnectionsAccepted => Some(sum(|side| side.connections_accepted)),
            Self::JainIndex => more.jain_index(),
            Self::ShareMin | Self::LesserShare => more.share_min(),
            Self::DatagramDelayP50Ms => more.datagram_delay_ms(0.5),
            Self::DatagramDelayP99Ms | Self::DatagramDelayP99Ratio => more.datagram_delay_ms(0.99),
            Self::DatagramDelayP50OutsideEventsMs => more.datagram_delay_outside_events_ms(0.5),
            Self::DatagramDelayP99OutsideEventsMs => more.datagram_delay_outside_events_ms(0.99),
            Self::FrameDelayMeanMs => more.frame_delay_mean_ms(),
            Self::FrameDelayMaxMs => more.frame_delay_max_ms(),
            Self::FullRateAfterRtts => more.full_rate_after_rtts,
            Self::BackAtRateRtts => more.back_at_rate_rtts,
            Self::DatagramsInTime => more.datagrams_in_time,
            Self::ResumedAfterS => more.resumed_after_s,
            Self::GoodputMbps => figures.goodput_mbps(),
            Self::Utilisation => {
                let both = [0, 1].map(|direction| figures.bottleneck(direction));
                both.into_iter().filter_map(|link| link.utilisation).max_by(f64::total_cmp)
            }
            Self::QueueDelayP50Ms => link.queue_delay_p50_ms,
            Self::QueueDelayP99Ms => link.queue_delay_p99_ms,
            Self::RttP50Ms => sender.rtt_p50_ms,
            Self::RttP99Ms => sender.rtt_p99_ms,
        }
    }

    /// The figures of several seeds as one: the median of times, the worst of what has a bound. `None` if a
    /// run does not have the figure.
    pub fn over_seeds(self, figures: &[Option<f64>]) -> Option<f64> {
        let mut figures = figures.iter().copied().collect::<Option<Vec<f64>>>()?;
        figures.sort_by(f64::total_cmp);
        match self.over() {
            Over::Minimum => figures.first().copied(),
            Over::Maximum => figures.last().copied(),
            Over::Median => median(&figures),
        }
    }

    fn over(self) -> Over {
        match self {
            Self::CompletionS
            | Self::CompletionRatio
            | Self::TimersRatio
            | Self::SumShare
            | Self::BestShare
            | Self::BestAndHalfShare
            | Self::LesserShare
            | Self::DatagramDelayP99Ratio
            | Self::SumAfterS
            | Self::HandshakeS => Over::Median,
            Self::JainIndex
            | Self::ShareMin
            | Self::PathsValidated
            | Self::DatagramsInTime
            | Self::GoodputMbps
            | Self::Utilisation => Over::Minimum,
            _ => Over::Maximum,
        }
    }

    /// Whether more is better.
    fn is_at_least(self) -> bool {
        self.over() == Over::Minimum || self.is_about_paths_alone() || self == Self::LesserShare
    }

    /// The name as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CompletionS => "completion_s",
            Self::CompletionRatio => "completion_ratio",
            Self::TimersRatio => "timers_ratio",
            Self::SumShare => "sum_share",
            Self::BestShare => "best_share",
            Self::BestAndHalfShare => "best_and_half_share",
            Self::DatagramDelayP99Ratio => "datagram_delay_p99_ratio",
            Self::PathsValidated => "paths_validated",
            Self::BackupBytes => "backup_bytes",
            Self::PacketsLost => "packets_lost",
            Self::PacketsSpurious => "packets_spurious",
            Self::PacketsSent => "packets_sent",
            Self::BytesInFlightMax => "bytes_in_flight_max",
            Self::ConnectionsAccepted => "connections_accepted",
            Self::JainIndex => "jain_index",
            Self::ShareMin => "share_min",
            Self::LesserShare => "lesser_share",
            Self::DatagramDelayP50Ms => "datagram_delay_p50_ms",
            Self::DatagramDelayP99Ms => "datagram_delay_p99_ms",
            Self::DatagramDelayP50OutsideEventsMs => "datagram_delay_p50_outside_events_ms",
            Self::DatagramDelayP99OutsideEventsMs => "datagram_delay_p99_outside_events_ms",
            Self::FrameDelayMeanMs => "frame_delay_mean_ms",
            Self::FrameDelayMaxMs => "frame_delay_max_ms",
            Self::FullRateAfterRtts => "full_rate_after_rtts",
            Self::BackAtRateRtts => "back_at_rate_rtts",
            Self::DatagramsInTime => "datagrams_in_time",
            Self::ResumedAfterS => "resumed_after_s",
            Self::SumAfterS => "sum_after_s",
            Self::ReadGapMaxMs => "read_gap_max_ms",
            Self::HandshakeS => "handshake_s",
            Self::GoodputMbps => "goodput_mbps",
            Self::Utilisation => "utilisation",
            Self::QueueDelayP50Ms => "queue_delay_p50_ms",
            Self::QueueDelayP99Ms => "queue_delay_p99_ms",
            Self::RttP50Ms => "rtt_p50_ms",
            Self::RttP99Ms => "rtt_p99_ms",
        }
    }
}

/// The middle of sorted figures; of an even number, the mean of the two in the middle.
pub(crate) fn median(sorted: &[f64]) -> Option<f64> {
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

impl Goal {
    /// The figure that is to be reached.
    pub fn limit(&self) -> Option<f64> {
        self.goal.or_else(|| {
            let factor = if self.metric.is_at_least() { 1.0 / TOLERANCE } else { TOLERANCE };
            Some(self.reference? * factor)
        })
    }

    /// Whether a measured figure reaches the goal. What could not be measured does not.
    pub fn is_met(&self, measured: Option<f64>) -> bool {
        let (Some(limit), Some(measured)) = (self.limit(), measured) else { return false };
        if self.metric.is_at_least() { measured >= limit } else { measured <= limit }
    }
}

#[cfg(test)]
mod tests;
