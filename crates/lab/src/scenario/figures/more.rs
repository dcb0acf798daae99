//! Figures that goals are about and the output leaves out.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_proto::Side;

use super::super::rate::Rate;
use super::{Measuring, bytes_read, millis, sides};
use crate::{ConnectionReport, LabPath, RunReport, SideReport};

/// Figures that only goals use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MoreFigures {
    /// The most bytes in flight of any connection on either side.
    pub bytes_in_flight_max: u64,
    /// Paths beyond the first on which the server has answered the client.
    pub paths_validated: u64,
    /// Bytes that both ends have sent over paths that are backups; `None` without such paths.
    pub backup_bytes: Option<u64>,
    /// Bytes of streams that the applications of both sides read from the start of what is measured to completion.
    pub bytes_until_completion: u64,
    /// Bytes of streams that were read at both ends of each connection until the first one was done, by those that had begun then; of all
    /// in the whole run if none was done before its time was over.
    pub bytes_by_connection: Vec<u64>,
    /// One-way delays of the unreliable datagrams that arrived, ascending.
    pub datagram_delays: Vec<Duration>,
    /// Of those, the delays of the datagrams that no stop of the link can have held up.
    pub datagram_delays_outside_events: Vec<Duration>,
    /// From the time of each frame of audio or video until it was read.
    pub frame_delays: Vec<Duration>,
    /// Round trips from the first data to the full rate of the link.
    pub full_rate_after_rtts: Option<f64>,
    /// Round trips from the end of a stop until the full rate is reached again, the longest.
    pub back_at_rate_rtts: Option<f64>,
    /// The share of the unreliable datagrams sent that came before their deadline.
    pub datagrams_in_time: Option<f64>,
    /// Seconds from the repair of the link to the next packet that reached its end.
    pub resumed_after_s: Option<f64>,
    /// Seconds from the repair until nearly the rate of all paths together arrives.
    pub sum_after_s: Option<f64>,
    /// The longest time between two reads of a side.
    pub read_gap_max_ms: Option<f64>,
    /// From the beginning of a connection until its client had completed the handshake, the longest.
    pub handshake_s: Option<f64>,
}

impl MoreFigures {
    pub(super) fn of(report: &RunReport, measuring: Measuring<'_>) -> Self {
        let all = || report.connections.iter().flat_map(sides);
        let mut datagrams: Vec<Message> = report.connections.iter().flat_map(Message::of).collect();
        datagrams.sort_by_key(|datagram| datagram.delay);
        let delays = [Side::Client, Side::Server].map(|sender| measuring.way(sender).delay);
        let calm = datagrams.iter().filter(|datagram| !datagram.is_held_up(measuring, delays));
        let datagram_delays_outside_events = calm.map(|datagram| datagram.delay).collect();
        let datagram_delays: Vec<Duration> = datagrams.iter().map(|datagram| datagram.delay).collect();
        let resumed = measuring.repaired_at.zip(report.first_watched);
        let rate = measuring.watched.and_then(|sender| watched_rate(report, measuring, sender));
        Self {
            bytes_in_flight_max: all().map(|side| side.peaks.bytes_in_flight).max().unwrap_or(0),
            paths_validated: report
                .connections
                .iter()
                .map(|connection| connection.client.paths_validated)
                .sum(),
            backup_bytes: backup_bytes(report, measuring.paths),
            bytes_until_completion: bytes_until_completion(report),
            bytes_by_connection: bytes_by_connection(report),
            datagram_delays,
            datagram_delays_outside_events,
            datagrams_in_time: datagrams_in_time(report, measuring.deadlines),
            frame_delays: all().flat_map(|side| side.frame_delays.iter().flatten().copied()).collect(),
            full_rate_after_rtts: rate.as_ref().and_then(|(rate, first)| rate.full_after_rtts((*first)?)),
            sum_after_s: rate.as_ref().and_then(|(rate, _)| rate.nearly_full_after_s(measuring.repaired_at?)),
            read_gap_max_ms: all().filter_map(|side| side.read_gap_max).max().map(millis),
            handshake_s: handshake_s(report),
            back_at_rate_rtts: rate.and_then(|(rate, _)| rate.back_after_rtts(measuring.events)),
            resumed_after_s: resumed.map(|(repaired_at, at)| (at - repaired_at).as_secs_f64()),
        }
    }

    /// The delay that this share of the unreliable datagrams that arrived did not exceed; `None` if none did.
    pub fn datagram_delay_ms(&self, share: f64) -> Option<f64> {
        percentile(&self.datagram_delays, share)
    }

    /// The same without the datagrams that a stop of the link can have held up.
    pub fn datagram_delay_outside_events_ms(&self, share: f64) -> Option<f64> {
        percentile(&self.datagram_delays_outside_events, share)
    }

    /// The mean delay of the frames of audio and video; `None` if there were none.
    pub fn frame_delay_mean_ms(&self) -> Option<f64> {
        let sum: f64 = self.frame_delays.iter().copied().map(millis).sum();
        (!self.frame_delays.is_empty()).then(|| sum / self.frame_delays.len() as f64)
    }

    /// The longest delay of a frame.
    pub fn frame_delay_max_ms(&self) -> Option<f64> {
        self.frame_delays.iter().max().copied().map(millis)
    }

    /// Jain's index of the bytes of the connections: 1 if all moved the same, 1/n if one moved everything; `None` of fewer than two.
    pub fn jain_index(&self) -> Option<f64> {
        let sum: f64 = self.bytes_by_connection.iter().map(|bytes| *bytes as f64).sum();
        let squares: f64 = self.bytes_by_connection.iter().map(|bytes| (*bytes as f64).powi(2)).sum();
        (self.share_something() && sum > 0.0)
            .then(|| sum * sum / (squares * self.bytes_by_connection.len() as f64))
    }

    /// Whether there is anything to be shared fairly.
    fn share_something(&self) -> bool {
        self.bytes_by_connection.len() > 1
    }

    /// The smallest share that a connection had of all bytes; `None` of fewer than two connections.
    pub fn share_min(&self) -> Option<f64> {
        let sum: u64 = self.bytes_by_connection.iter().sum();
        let smallest = self.bytes_by_connection.iter().min()?;
        (self.share_something() && sum > 0).then(|| *smallest as f64 / sum as f64)
    }
}

/// Bytes of streams that were read in the part of the run that counts.
fn bytes_until_completion(report: &RunReport) -> u64 {
    report.window.as_ref().map_or(0, |window| window.end.bytes_read - window.start.bytes_read)
}

/// What each connection had moved while all of them competed.
fn bytes_by_connection(report: &RunReport) -> Vec<u64> {
    let connections = &report.connections;
    let at_first_end: Vec<u64> =
        connections.iter().filter_map(|connection| connection.bytes_at_first_end).collect();
    match at_first_end.is_empty() {
        true => connections.iter().map(bytes_read).collect(),
        false => at_first_end,
    }
}

/// What both ends have sent over paths that are backups; `None` without such paths.
fn backup_bytes(report: &RunReport, paths: &[LabPath]) -> Option<u64> {
    let backups = report.paths.iter().zip(paths).filter(|(_, path)| path.is_backup);
    let bytes = backups.map(|(path, _)| path.up.bytes_sent + path.down.bytes_sent);
    bytes.reduce(|sum, bytes| sum + bytes)
}

/// The share of the unreliable datagrams sent that came before the deadline of their connection, if it has one.
fn datagrams_in_time(report: &RunReport, deadlines: &[Option<Duration>]) -> Option<f64> {
    let (mut sent, mut in_time) = (0, 0);
    for (connection, deadline) in report.connections.iter().zip(deadlines) {
        let Some(deadline) = *deadline else { continue };
        sent += sides(connection).map(|side| side.datagrams_sent).iter().sum::<u64>();
        in_time += Message::of(connection).filter(|datagram| datagram.delay <= deadline).count();
    }
    (sent > 0).then(|| in_time as f64 / sent as f64)
}

/// The longest handshake of all clients; `None` if one was not completed.
fn handshake_s(report: &RunReport) -> Option<f64> {
    let durations = report.connections.iter().map(|connection| connection.client.handshake);
    let durations: Option<Vec<Duration>> = durations.collect();
    durations?.into_iter().max().map(|duration| duration.as_secs_f64())
}

/// The packets of a side over time, and when the first data that it sent were read.
fn watched_rate<'a>(
    report: &'a RunReport,
    measuring: Measuring<'_>,
    sender: Side,
) -> Option<(Rate<'a>, Option<Instant>)> {
    let reads = report.connections.iter().filter_map(|connection| {
        let [client, server] = sides(connection);
        if sender.is_client() { server.first_read } else { client.first_read }
    });
    let (there, back) = (measuring.way(sender), measuring.way(!sender));
    let round = there.delay + back.delay;
    let rate = Rate::new(&report.arrivals, there, round)?;
    Some((rate, reads.min()))
}

/// An unreliable datagram that arrived.
#[derive(Debug, Clone, Copy)]
struct Message {
    sender: Side,
    sent: Instant,
    delay: Duration,
}

impl Message {
    /// Those of both sides of a connection.
    fn of(ConnectionReport { client, server, .. }: &ConnectionReport) -> impl Iterator<Item = Self> {
        let sent = [Self::all(Side::Client, client, server), Self::all(Side::Server, server, client)];
        sent.into_iter().flatten()
    }

    fn all(sender: Side, from: &SideReport, to: &SideReport) -> Vec<Self> {
        let arrived = to.datagram_times_received.iter().filter_map(|(index, at)| {
            let sent = *from.datagram_times_sent.get(usize::try_from(*index).ok()?)?;
            Some(Self { sender, sent, delay: *at - sent })
        });
        arrived.collect()
    }

    /// Whether it was sent in a stop of its direction, or was under way when one began.
    fn is_held_up(&self, measuring: Measuring<'_>, delays: [Duration; 2]) -> bool {
        let way = delays[usize::from(self.sender.is_server())];
        measuring.events.iter().any(|event| {
            event.concerns(self.sender) && event.start <= self.sent + way && self.sent <= event.end
        })
    }
}

/// The value that this share of sorted delays does not exceed, in milliseconds.
fn percentile(sorted: &[Duration], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().map(millis)
}
