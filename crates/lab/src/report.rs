//! What came out of a run.

use std::fmt;
use std::iter::Sum;
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_proto::log::LogEntry;
use fulmar_proto::{ConnectionStats, PathId};
use fulmar_sim::{Distribution, LinkStats, LinkTrace};

use crate::application::ReceivingEnd;
use crate::{Peaks, Session, TraceHash};

/// A run in which everything was as it must be.
#[derive(Debug, Clone)]
pub struct RunReport {
    /// The seed that repeats the run.
    pub seed: u64,
    /// The fingerprint of all packets; the same in each repetition.
    pub trace: TraceHash,
    /// Virtual time until both endpoints had forgotten all connections.
    pub duration: Duration,
    /// How often the time stopped because something happened.
    pub steps: u64,
    /// The packets that reached their end in the direction that was to be watched: when, and how many bytes each.
    pub arrivals: Vec<(Instant, u32)>,
    /// What a side saw, as a pcapng file, if that was asked for.
    pub capture: Option<Vec<u8>>,
    /// When the first packet reached its end after the time that was to be watched from.
    pub first_watched: Option<Instant>,
    /// The connections, in the order in which the client made them.
    pub connections: Vec<ConnectionReport>,
    /// How many connections the server accepted.
    pub server_sessions: usize,
    /// The link from the client to the server; where there are paths, all of them together.
    pub up: LinkStats,
    /// The link from the server to the client.
    pub down: LinkStats,
    /// Each path by itself; empty if the run had one link that is no path.
    pub paths: Vec<PathReport>,
    /// The links behind those, from the client's end to the server's.
    pub hops: Vec<HopReport>,
    /// The part of the run that its rates are about; `None` if no connection that is [`Role::Measured`](crate::Role::Measured) has read
    /// anything.
    pub window: Option<Window>,
    /// What was recorded, if [`Lab::recorded`](crate::Lab::recorded) asked for it.
    pub recording: Option<Recording>,
}

/// What had been moved when a part of a run began, and when it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// When the first connection began that is no preparation.
    pub start: Progress,
    /// When a measured connection read last.
    pub end: Progress,
}

/// What a run had moved at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of streams that the applications of both sides had read.
    pub bytes_read: u64,
    /// What each link had moved, from the client to the server and back: those of the paths, or the only one.
    pub links: Vec<[Moved; 2]>,
    /// The same of the links behind those.
    pub hops: Vec<[Moved; 2]>,
}

/// Bytes of UDP payload that one direction of a link had moved at some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Those that were put into it.
    pub sent: u64,
    /// Those that came out at the far end, without copies that the link made.
    pub delivered: u64,
}

impl Sum for Moved {
    fn sum<I: Iterator<Item = Self>>(moved: I) -> Self {
        moved.fold(Self::default(), |sum, moved| Self {
            sent: sum.sent + moved.sent,
            delivered: sum.delivered + moved.delivered,
        })
    }
}

impl Moved {
    /// All that the link has moved.
    pub(crate) fn of(stats: &LinkStats) -> Self {
        Self { sent: stats.bytes_sent, delivered: stats.bytes_delivered - stats.bytes_of_copies }
    }
}

/// What happened on the link of a path.
#[derive(Debug, Clone)]
pub struct PathReport {
    /// Its name.
    pub name: String,
    /// From the client to the server.
    pub up: LinkStats,
    /// From the server to the client.
    pub down: LinkStats,
}

/// What happened on a link behind the first one, or behind the paths.
#[derive(Debug, Clone)]
pub struct HopReport {
    /// From the client to the server.
    pub up: LinkStats,
    /// From the server to the client.
    pub down: LinkStats,
}

/// The course of a run.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The logs of the connections, in the order in which the client made them.
    pub connections: Vec<ConnectionLogs>,
    /// The link from the client to the server; where there are paths, that of the first one.
    pub up: LinkTrace,
    /// The link from the server to the client.
    pub down: LinkTrace,
    /// The links of all paths; empty if the run had one link that is no path.
    pub paths: Vec<PathRecording>,
}

/// The course of the link of a path.
#[derive(Debug, Clone)]
pub struct PathRecording {
    /// Its name.
    pub name: String,
    /// From the client to the server.
    pub up: LinkTrace,
    /// From the server to the client.
    pub down: LinkTrace,
}

/// What both ends of a connection noted.
#[derive(Debug, Clone, Default)]
pub struct ConnectionLogs {
    /// The client's entries.
    pub client: Vec<LogEntry>,
    /// The server's entries.
    pub server: Vec<LogEntry>,
    /// The links over which its paths went when they were new, as places in [`Recording::paths`], by the server's log.
    pub links: Vec<(PathId, usize)>,
    /// Entries of both that there was no room for.
    pub overwritten: u64,
}

/// Both ends of a connection.
#[derive(Debug, Clone)]
pub struct ConnectionReport {
    /// The client's end.
    pub client: SideReport,
    /// The server's end; empty if the client never reached it.
    pub server: SideReport,
    /// Bytes of streams that the applications of both ends had read when the first connection was done that is no preparation: until
    /// then they all compete. `None` if none was done before its time was over, or if this one had not begun then.
    pub bytes_at_first_end: Option<u64>,
}

/// One end of a connection.
#[derive(Debug, Clone, Default)]
pub struct SideReport {
    /// Streams on which this side could send.
    pub streams_sent: usize,
    /// Streams on which this side could receive.
    pub streams_received: usize,
    /// Of those, how many were read to their end.
    pub streams_finished: usize,
    /// Bytes of streams that the application wrote.
    pub bytes_written: u64,
    /// Bytes of streams that the application read.
    pub bytes_read: u64,
    /// Unreliable datagrams that the connection took from the application.
    pub datagrams_sent: u64,
    /// Unreliable datagrams that the connection took and never sent, as it told the application.
    pub datagrams_dropped: u64,
    /// Unreliable datagrams that the application got.
    pub datagrams_received: u64,
    /// When the application read first.
    pub first_read: Option<Instant>,
    /// When the connection began on this side.
    pub started: Option<Instant>,
    /// How long the handshake took from the first attempt on, once it is complete.
    pub handshake: Option<Duration>,
    /// When the application read last: bytes of a stream, or its end.
    pub last_read: Option<Instant>,
    /// The longest time between two reads of the application, or between the end of a stream and the beginning of the next.
    pub read_gap_max: Option<Duration>,
    /// When each unreliable datagram was given to the connection, by index.
    pub datagram_times_sent: Vec<Instant>,
    /// Which unreliable datagrams arrived, and when, in the order of arrival.
    pub datagram_times_received: Vec<(u64, Instant)>,
    /// For each stream of frames of the peer, from the time of each frame until it was read.
    pub frame_delays: Vec<Vec<Duration>>,
    /// How many paths the peer has answered on beyond the first, at a client.
    pub paths_validated: u64,
    /// The largest values of some figures.
    pub peaks: Peaks,
    /// The latest round-trip time, each time that something was sent.
    pub rtts: Distribution,
    /// Why the connection ended.
    pub end: String,
    /// The connection's own figures, at its end.
    pub stats: Option<ConnectionStats>,
}

/// A run that went wrong.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The seed that repeats the run.
    pub seed: u64,
    /// The virtual time at which it was noticed.
    pub at: Instant,
    /// What is wrong, in a sentence.
    pub what: String,
    /// The state of both hosts.
    pub state: String,
    /// What a side saw until then, as a pcapng file, if that was asked for.
    pub capture: Option<Vec<u8>>,
}

impl ConnectionReport {
    pub(crate) fn of(client: &Session, server: Option<&Session>) -> Self {
        let Some(server) = server else {
            let (client, server) = (SideReport::of(client), SideReport::default());
            return Self { client, server, bytes_at_first_end: None };
        };
        let frame_delays = |from: &Session, to: &Session| {
            let frames = from.application().frames().iter();
            frames.map(|frames| frames.delays(to.application().receiving())).collect()
        };
        Self {
            client: SideReport { frame_delays: frame_delays(server, client), ..SideReport::of(client) },
            server: SideReport { frame_delays: frame_delays(client, server), ..SideReport::of(server) },
            bytes_at_first_end: None,
        }
    }
}

impl SideReport {
    pub(crate) fn of(session: &Session) -> Self {
        let application = session.application();
        let receiving = application.receiving();
        let finished = receiving.values().filter(|receiving| receiving.end() == ReceivingEnd::Finished);
        Self {
            streams_sent: application.sending().len(),
            streams_received: receiving.len(),
            streams_finished: finished.count(),
            bytes_written: application.sending().values().map(|sending| sending.written()).sum(),
            bytes_read: receiving.values().map(|receiving| receiving.bytes()).sum(),
            datagrams_sent: application.messages().sent(),
            datagrams_dropped: application.messages().dropped(),
            datagrams_received: application.messages().received(),
            first_read: application.first_read(),
            started: Some(session.started()),
            handshake: session.handshake_duration(),
            last_read: application.last_read(),
            read_gap_max: application.read_gap_max(),
            datagram_times_sent: application.messages().times_sent().to_vec(),
            datagram_times_received: application.messages().times_received().to_vec(),
            frame_delays: Vec::new(),
            paths_validated: session.paths_validated(),
            peaks: session.peaks(),
            rtts: session.rtts().clone(),
            end: application.lost().map(ToString::to_string).unwrap_or_default(),
            stats: Some(session.connection().stats()),
        }
    }
}

impl Failure {
    /// A run that did not come to its end, because the stack panicked.
    pub fn panicked(seed: u64) -> Self {
        Self::before_start(seed, "panicked".to_owned())
    }

    pub(crate) fn new(seed: u64, at: Instant, what: &str, state: String) -> Self {
        Self { seed, at, what: what.to_owned(), state, capture: None }
    }

    pub(crate) fn before_start(seed: u64, what: String) -> Self {
        Self { seed, at: Instant::ZERO, what, state: String::new(), capture: None }
    }
}

impl Failure {
    /// What is wrong, of which run and when, in one line.
    pub fn sentence(&self) -> String {
        let what: Vec<_> = self.what.lines().map(str::trim).collect();
        format!("seed {} at {:?}: {}", self.seed, self.at, what.join(" "))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.sentence(), self.state)
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {:.3} s in {} steps", self.seed, self.duration.as_secs_f64(), self.steps)?;
        writeln!(f, "  trace {}", self.trace)?;
        for (number, connection) in self.connections.iter().enumerate() {
            writeln!(f, "  connection {number}")?;
            writeln!(f, "    client {}", connection.client)?;
            writeln!(f, "    server {}", connection.server)?;
        }
        for (name, link) in [("up", &self.up), ("down", &self.down)] {
            writeln!(
                f,
                "  {name}: {} packets, {} dropped, {} twice, {} changed, {} overtaken",
                link.packets_sent,
                link.packets_dropped_in_all(),
                link.packets_duplicated,
                link.packets_corrupted,
                link.packets_reordered,
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for SideReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wrote {} bytes on {} streams, ", self.bytes_written, self.streams_sent)?;
        write!(f, "read {} bytes on {} streams", self.bytes_read, self.streams_received)?;
        if self.datagrams_sent + self.datagrams_received > 0 {
            write!(f, ", datagrams {} out {} in", self.datagrams_sent, self.datagrams_received)?;
        }
        if let Some(stats) = &self.stats {
            write!(
                f,
                ", {} packets, {} lost, {} PTOs",
                stats.packets_sent, stats.packets_lost, stats.pto_count
            )?;
            write!(f, ", rtt {:?}, mtu {}, {}", stats.rtt, stats.mtu, stats.controller)?;
        }
        write!(f, "; {}", self.end)
    }
}
