//! The figures of a run, as `fulmar lab run --json` prints them.

use std::time::Duration;

use fulmar_base::Instant;
use serde::Serialize;

use crate::{ConnectionReport, RunReport, SideReport};

/// The figures of a run of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// The name of the scenario.
    pub scenario: String,
    /// The congestion controller.
    pub controller: String,
    /// The seed that repeats the run.
    pub seed: u64,
    /// Virtual time in seconds from the client's start to the last byte of the workload; `None` if no
    /// stream was read.
    pub completion_s: Option<f64>,
    /// Bytes of streams that the applications of both sides read.
    pub bytes: u64,
    /// The client, all of its connections together.
    pub client: SideFigures,
    /// The server.
    pub server: SideFigures,
    /// The fingerprint of all packets: the same in each repetition.
    pub trace_sha256: String,
    /// What goals are about and the output leaves out.
    #[serde(skip)]
    pub more: MoreFigures,
}

/// The figures of one side: sums over its connections, or the extreme where the name says so.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SideFigures {
    /// QUIC packets sent.
    pub packets_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Packets declared lost that have arrived after all.
    pub packets_spurious: u64,
    /// Bytes of UDP payload sent.
    pub bytes_sent: u64,
    /// Bytes of ACK frames sent.
    pub ack_bytes: u64,
    /// ACK frames sent.
    pub acks_sent: u64,
    /// How often a probe timeout has passed.
    pub pto_count: u64,
    /// The smallest round-trip time in milliseconds; `None` without a measurement.
    pub rtt_min_ms: Option<f64>,
    /// The largest round-trip time in milliseconds.
    pub rtt_max_ms: Option<f64>,
    /// The largest congestion window in bytes.
    pub cwnd_max: u64,
    /// Connections that this side accepted; 0 at the client.
    pub connections_accepted: u64,
}

/// Figures that only goals use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MoreFigures {
    /// The most bytes in flight of any connection on either side.
    pub bytes_in_flight_max: u64,
    /// Bytes of streams that were read at both ends of each connection.
    pub bytes_by_connection: Vec<u64>,
    /// One-way delays of the unreliable datagrams that arrived, ascending.
    pub datagram_delays: Vec<Duration>,
    /// The share of the unreliable datagrams sent that came before their deadline.
    pub datagrams_in_time: Option<f64>,
    /// Seconds from the repair of the link to the next packet that reached its end.
    pub resumed_after_s: Option<f64>,
}

/// What the figures need to know of the scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measuring<'a> {
    pub(crate) scenario: &'a str,
    pub(crate) controller: &'a str,
    /// For each connection whether completion does not wait for it.
    pub(crate) background: &'a [bool],
    /// After which time a datagram is of no use.
    pub(crate) deadline: Option<Duration>,
    /// When the link is repaired.
    pub(crate) repaired_at: Option<Instant>,
}

impl Figures {
    pub(crate) fn of(report: &RunReport, measuring: Measuring<'_>) -> Self {
        let connections = &report.connections;
        let foreground = connections.iter().zip(measuring.background).filter(|(_, background)| !**background);
        let last_read =
            foreground.flat_map(|(connection, _)| sides(connection)).filter_map(|side| side.last_read).max();
        let client = SideFigures::of(connections.iter().map(|connection| &connection.client), 0);
        let accepted = report.server_sessions as u64;
        Self {
            scenario: measuring.scenario.to_owned(),
            controller: measuring.controller.to_owned(),
            seed: report.seed,
            completion_s: last_read.map(Instant::as_secs_f64),
            bytes: connections.iter().map(bytes_read).sum(),
            client,
            server: SideFigures::of(connections.iter().map(|connection| &connection.server), accepted),
            trace_sha256: report.trace.to_string(),
            more: MoreFigures::of(report, measuring),
        }
    }
}

fn sides(connection: &ConnectionReport) -> [&SideReport; 2] {
    [&connection.client, &connection.server]
}

fn bytes_read(connection: &ConnectionReport) -> u64 {
    sides(connection).map(|side| side.bytes_read).iter().sum()
}

impl SideFigures {
    fn of<'a>(connections: impl Iterator<Item = &'a SideReport>, connections_accepted: u64) -> Self {
        let mut figures = Self { connections_accepted, ..Self::default() };
        for side in connections {
            if let Some(stats) = &side.stats {
                figures.packets_sent += stats.packets_sent;
                figures.packets_lost += stats.packets_lost;
                figures.packets_spurious += stats.packets_spurious;
                figures.bytes_sent += stats.bytes_sent;
                figures.ack_bytes += stats.ack_bytes;
                figures.acks_sent += stats.acks_sent;
                figures.pto_count += stats.pto_count;
                figures.cwnd_max = figures.cwnd_max.max(stats.cwnd_max);
                if let Some(rtt_min) = stats.rtt_min.map(millis) {
                    figures.rtt_min_ms = Some(figures.rtt_min_ms.map_or(rtt_min, |other| other.min(rtt_min)));
                    let rtt_max = millis(side.peaks.rtt);
                    figures.rtt_max_ms = Some(figures.rtt_max_ms.map_or(rtt_max, |other| other.max(rtt_max)));
                }
            }
        }
        figures
    }
}

impl MoreFigures {
    fn of(report: &RunReport, measuring: Measuring<'_>) -> Self {
        let all = || report.connections.iter().flat_map(sides);
        let streams = report.connections.iter().flat_map(|ConnectionReport { client, server }| {
            [datagram_delays(client, server), datagram_delays(server, client)]
        });
        let mut datagram_delays: Vec<Duration> = streams.flatten().collect();
        datagram_delays.sort();
        let sent: u64 = all().map(|side| side.datagrams_sent).sum();
        let in_time = measuring
            .deadline
            .filter(|_| sent > 0)
            .map(|deadline| datagram_delays.partition_point(|delay| *delay <= deadline) as f64 / sent as f64);
        let resumed = measuring.repaired_at.zip(report.first_watched);
        Self {
            bytes_in_flight_max: all().map(|side| side.peaks.bytes_in_flight).max().unwrap_or(0),
            bytes_by_connection: report.connections.iter().map(bytes_read).collect(),
            datagram_delays,
            datagrams_in_time: in_time,
            resumed_after_s: resumed.map(|(repaired_at, at)| (at - repaired_at).as_secs_f64()),
        }
    }

    /// The delay that this share of the unreliable datagrams that arrived did not exceed; `None` if none did.
    pub fn datagram_delay_ms(&self, share: f64) -> Option<f64> {
        let rank = (self.datagram_delays.len() as f64 * share).ceil() as usize;
        self.datagram_delays.get(rank.saturating_sub(1)).copied().map(millis)
    }

    /// Jain's index of the bytes of the connections: 1 if all moved the same, 1/n if one moved everything.
    pub fn jain_index(&self) -> Option<f64> {
        let sum: f64 = self.bytes_by_connection.iter().map(|bytes| *bytes as f64).sum();
        let squares: f64 = self.bytes_by_connection.iter().map(|bytes| (*bytes as f64).powi(2)).sum();
        (sum > 0.0).then(|| sum * sum / (squares * self.bytes_by_connection.len() as f64))
    }

    /// The smallest share that a connection had of all bytes.
    pub fn share_min(&self) -> Option<f64> {
        let sum: u64 = self.bytes_by_connection.iter().sum();
        let smallest = self.bytes_by_connection.iter().min()?;
        (sum > 0).then(|| *smallest as f64 / sum as f64)
    }
}

fn datagram_delays<'a>(
    sender: &'a SideReport,
    receiver: &'a SideReport,
) -> impl Iterator<Item = Duration> + use<'a> {
    receiver.datagram_times_received.iter().filter_map(|(index, at)| {
        let sent = sender.datagram_times_sent.get(usize::try_from(*index).ok()?)?;
        Some(*at - *sent)
    })
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests;
