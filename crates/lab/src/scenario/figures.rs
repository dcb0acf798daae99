//! The figures of a run, as `fulmar lab run --json` prints them.

mod capacity;
mod more;
mod side;

use std::collections::BTreeMap;
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_proto::Side;
use fulmar_sim::{LinkConfig, LinkStats};
use serde::Serialize;

use self::capacity::Capacity;
pub(crate) use self::capacity::Way;
pub use self::more::MoreFigures;
pub use self::side::{FecFigures, SideFigures};
use super::Metric;
use super::link::LinkEvent;
use crate::{ConnectionReport, LabPath, Moved, PathReport, Progress, RunReport, SideReport};

/// The figures of a run of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// The name of the scenario.
    pub scenario: String,
    /// The congestion controller.
    pub controller: String,
    /// The seed that repeats the run.
    pub seed: u64,
    /// Virtual time in seconds from the beginning of the first connection that is no preparation to the last byte of the workload;
    /// `None` if no stream was read.
    pub completion_s: Option<f64>,
    /// Bytes of streams that the applications of both sides read.
    pub bytes: u64,
    /// The client, all of its connections together.
    pub client: SideFigures,
    /// The server.
    pub server: SideFigures,
    /// The link from the client to the server; where there are paths, all of them together.
    pub up: LinkFigures,
    /// The link from the server to the client.
    pub down: LinkFigures,
    /// Each path; of a scenario with a `[link]` there are none, and the output leaves it out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathFigures>,
    /// Each link behind those, from the client's end to the server's; without a `[[hop]]` the output leaves it out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopFigures>,
    /// What goals can be about, as far as the run has it, by the name of the metric.
    pub metrics: BTreeMap<&'static str, f64>,
    /// The fingerprint of all packets: the same in each repetition.
    pub trace_sha256: String,
    /// What goals are about and the output leaves out.
    #[serde(skip)]
    pub more: MoreFigures,
}

/// The figures of a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PathFigures {
    /// Its name.
    pub name: String,
    /// Its link from the client to the server.
    pub up: LinkFigures,
    /// Its link from the server to the client.
    pub down: LinkFigures,
}

/// The figures of a link behind the first one, or behind the paths.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HopFigures {
    /// From the client to the server.
    pub up: LinkFigures,
    /// From the server to the client.
    pub down: LinkFigures,
}

/// The figures of one direction of the link.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LinkFigures {
    /// Packets put into it.
    pub packets_sent: u64,
    /// Bytes of UDP payload of those.
    pub bytes_sent: u64,
    /// Packets that it dropped, for whatever reason.
    pub packets_dropped: u64,
    /// Packets that it marked with the ECN codepoint CE.
    pub packets_marked: u64,
    /// The most bytes that waited in its queue.
    pub queue_bytes_max: u64,
    /// How long packets waited in it: what half of them do not exceed, right to some 3 %. `None` without a rate.
    pub queue_delay_p50_ms: Option<f64>,
    /// The same of 99 %.
    pub queue_delay_p99_ms: Option<f64>,
    /// The share of the bytes that were ACK frames; `None` for a path and for a hop, whose ends do not count them apart. With `seeded`, bytes
    /// count from the start of the connections that are measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_share: Option<f64>,
    /// The share of its capacity that was asked for, from the beginning of the first connection that is no preparation until completion.
    /// Its capacity is what the rates of the schedule come to; `None` where it has no rate for a part of the time.
    pub load: Option<f64>,
    /// The same of what came out at the far end, without copies that the link made.
    pub utilisation: Option<f64>,
}

/// What the shares of one direction of a link are about.
#[derive(Debug, Clone, Copy)]
struct Shared {
    /// What it had moved when that began ...
    before: Moved,
    /// ... and at completion.
    after: Moved,
    /// Bytes that it could carry between the two.
    capacity: Option<f64>,
    /// Bytes of ACK frames of the connections that count.
    ack_bytes: Option<u64>,
}

impl Shared {
    fn share_of_capacity(&self, moved: fn(Moved) -> u64) -> Option<f64> {
        share(moved(self.after).saturating_sub(moved(self.before)), self.capacity?)
    }
}

fn share(part: u64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part as f64 / whole)
}

impl LinkFigures {
    fn of(stats: &LinkStats, shared: Shared) -> Self {
        // Connections count their ACK frames to the end.
        let bytes_of_connections = stats.bytes_sent.saturating_sub(shared.before.sent) as f64;
        Self {
            packets_sent: stats.packets_sent,
            bytes_sent: stats.bytes_sent,
            packets_dropped: stats.packets_dropped_in_all(),
            packets_marked: stats.packets_marked,
            queue_bytes_max: stats.queue_bytes_max,
            queue_delay_p50_ms: stats.queue_delays.quantile(0.5).map(millis),
            queue_delay_p99_ms: stats.queue_delays.quantile(0.99).map(millis),
            ack_share: shared.ack_bytes.and_then(|bytes| share(bytes, bytes_of_connections)),
            load: shared.share_of_capacity(|moved| moved.sent),
            utilisation: shared.share_of_capacity(|moved| moved.delivered),
        }
    }
}

/// What the figures need to know of the scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measuring<'a> {
    pub(crate) scenario: &'a str,
    pub(crate) controller: &'a str,
    /// For each connection whether completion does not wait for it.
    pub(crate) background: &'a [bool],
    /// For each connection after which time a datagram is of no use.
    pub(crate) deadlines: &'a [Option<Duration>],
    /// When the link is repaired.
    pub(crate) repaired_at: Option<Instant>,
    /// When the first connection began that is no preparation.
    pub(crate) start: Instant,
    /// The stops of the link.
    pub(crate) events: &'a [LinkEvent],
    /// Whose packets are watched.
    pub(crate) watched: Option<Side>,
    /// From the client to the server, and back.
    pub(crate) links: [&'a LinkConfig; 2],
    pub(crate) paths: &'a [LabPath],
    /// The links behind those, from the client's end to the server's.
    pub(crate) hops: &'a [(LinkConfig, LinkConfig)],
}

impl Measuring<'_> {
    /// What packets of this side go through.
    pub(crate) fn way(&self, sender: Side) -> Way {
        Way::of(sender, &self.side_by_side(usize::from(sender.is_server())), self.hops)
    }

    /// The links that lie side by side, in the direction with this number: 0 is that from the client.
    fn side_by_side(&self, direction: usize) -> Vec<&LinkConfig> {
        match self.paths {
            [] => vec![self.links[direction]],
            paths => paths.iter().map(|path| [&path.up, &path.down][direction]).collect(),
        }
    }
}

impl Figures {
    pub(crate) fn of(report: &RunReport, measuring: Measuring<'_>) -> Self {
        let connections = &report.connections;
        let foreground = connections.iter().zip(measuring.background).filter(|(_, background)| !**background);
        let last_read =
            foreground.flat_map(|(connection, _)| sides(connection)).filter_map(|side| side.last_read).max();
        let completion_s = last_read.map(|at| (at - measuring.start).as_secs_f64());
        let client = SideFigures::of(connections.iter().map(|connection| &connection.client), 0);
        let accepted = report.server_sessions as u64;
        let server = SideFigures::of(connections.iter().map(|connection| &connection.server), accepted);
        let shares = Shares { report, measuring, completion: last_read };
        let mut figures = Self {
            scenario: measuring.scenario.to_owned(),
            controller: measuring.controller.to_owned(),
            seed: report.seed,
            completion_s,
            bytes: connections.iter().map(bytes_read).sum(),
            up: LinkFigures::of(&report.up, shares.of_all(0, client.ack_bytes)),
            down: LinkFigures::of(&report.down, shares.of_all(1, server.ack_bytes)),
            client,
            server,
            paths: shares.path_figures(),
            hops: shares.hop_figures(),
            metrics: BTreeMap::new(),
            trace_sha256: report.trace.to_string(),
            more: MoreFigures::of(report, measuring),
        };
        let of_one_run = Metric::ALL.into_iter().filter(|metric| !metric.compares_runs());
        figures.metrics =
            of_one_run.filter_map(|metric| Some((metric.as_str(), metric.of(&figures)?))).collect();
        figures
    }
}

impl Figures {
    /// The links in this direction, 0 for that from the client: those side by side together, and each behind them.
    fn in_direction(&self, direction: usize) -> impl Iterator<Item = &LinkFigures> {
        let hops = self.hops.iter().map(move |hop| [&hop.up, &hop.down][direction]);
        std::iter::once([&self.up, &self.down][direction]).chain(hops)
    }

    /// The bottleneck of a direction: of its links the one of whose capacity most was used. Without rates it is the first.
    pub(super) fn bottleneck(&self, direction: usize) -> &LinkFigures {
        let first = [&self.up, &self.down][direction];
        let used = |link: &LinkFigures| link.utilisation.unwrap_or(-1.0);
        self.in_direction(direction).skip(1).fold(
            first,
            |most, link| {
                if used(link) > used(most) { link } else { most }
            },
        )
    }

    /// Bytes of streams that were read until completion, by the completion time; `None` if there was nothing to read.
    pub fn goodput_mbps(&self) -> Option<f64> {
        let time = self.completion_s.filter(|time| *time > 0.0)?;
        Some(self.more.bytes_until_completion as f64 * 8.0 / 1e6 / time)
    }
}

/// What links have to do with the connections that count, from their start to completion.
#[derive(Debug, Clone, Copy)]
struct Shares<'a> {
    report: &'a RunReport,
    measuring: Measuring<'a>,
    completion: Option<Instant>,
}

impl Shares<'_> {
    /// All links together, in the direction with this number: 0 is that from the client.
    fn of_all(self, direction: usize, ack_bytes: u64) -> Shared {
        let links = self.measuring.side_by_side(direction);
        let moved = self.moved(|progress| progress.links.iter().map(|link| link[direction]).sum());
        self.shared(moved, &links, Some(ack_bytes))
    }

    fn path_figures(self) -> Vec<PathFigures> {
        let paths = self.report.paths.iter().zip(self.measuring.paths).enumerate();
        let figures = paths.map(|(number, (PathReport { name, up, down }, path))| {
            let of = |stats: &LinkStats, link: &LinkConfig, direction: usize| {
                let moved = self.moved(|progress| progress.links[number][direction]);
                LinkFigures::of(stats, self.shared(moved, &[link], None))
            };
            PathFigures { name: name.clone(), up: of(up, &path.up, 0), down: of(down, &path.down, 1) }
        });
        figures.collect()
    }

    fn hop_figures(self) -> Vec<HopFigures> {
        let hops = self.report.hops.iter().zip(self.measuring.hops).enumerate();
        let figures = hops.map(|(number, (report, (up, down)))| {
            let of = |stats: &LinkStats, link: &LinkConfig, direction: usize| {
                let moved = self.moved(|progress| progress.hops[number][direction]);
                LinkFigures::of(stats, self.shared(moved, &[link], None))
            };
            HopFigures { up: of(&report.up, up, 0), down: of(&report.down, down, 1) }
        });
        figures.collect()
    }

    /// What a direction had moved before the part of the run that counts, and at its end; nothing without such a part. `of` picks it
    /// among the links.
    fn moved(self, of: impl Fn(&Progress) -> Moved) -> [Moved; 2] {
        let Some(window) = &self.report.window else { return [Moved::default(); 2] };
        [&window.start, &window.end].map(of)
    }

    fn shared(self, [before, after]: [Moved; 2], links: &[&LinkConfig], ack_bytes: Option<u64>) -> Shared {
        let until_completion = |end| Capacity::of(links).between(self.measuring.start, end);
        Shared { before, after, capacity: self.completion.and_then(until_completion), ack_bytes }
    }
}

fn sides(connection: &ConnectionReport) -> [&SideReport; 2] {
    [&connection.client, &connection.server]
}

fn bytes_read(connection: &ConnectionReport) -> u64 {
    sides(connection).map(|side| side.bytes_read).iter().sum()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests;
