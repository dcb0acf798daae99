//! Which path carries data, where there are several: the trait, what it sees, and the schedulers that there are.
//!
//! A scheduler is asked before each batch, and only while more than one path may carry data. It puts paths in an order; the
//! connection lets them send one after the other, each as far as its window and its pacer allow. Paths that are left out
//! carry acknowledgements, probes and what is said of paths, and no data.

mod backup;
mod earliest_completion;
mod loss_rounds;
mod min_rtt;
mod redundant;
mod weighted;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::PathId;
use smallvec::SmallVec;
use thiserror::Error;

/// A path as it is now, for a scheduler. All of those that it is shown are validated, answer as far as any does, and are no
/// backup as long as another one works.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PathView {
    /// Its name.
    pub id: PathId,
    /// The smoothed round-trip time, or the assumed one before the first measurement.
    pub rtt: Duration,
    /// The last measurement of the round-trip time: where a queue fills, the smoothed one is behind by a round trip.
    pub rtt_latest: Duration,
    /// The mean deviation of the round-trip time.
    pub rtt_variance: Duration,
    /// How long a packet is on its way to the peer: the round-trip time without the way back, which is taken for half of the
    /// smallest round trip, as queues stand where data goes.
    pub delay: Duration,
    /// The congestion window in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Bytes that the window leaves.
    pub window_left: u64,
    /// The pacing rate in bytes per second.
    pub pacing_rate: u64,
    /// Bytes that the pacer lets leave now.
    pub pacing_budget: u64,
    /// The rate at which packets were acknowledged, by the last sample, in bytes per second; 0 before it.
    pub delivery_rate: u64,
    /// The size of a full datagram.
    pub mtu: u16,
    /// Bytes that were acknowledged so far.
    pub bytes_delivered: u64,
    /// Bytes that were declared lost so far.
    pub bytes_lost: u64,
    /// Whether acknowledgements are overdue. Then they are on all paths that may carry data.
    pub is_silent: bool,
    /// Whether one of the ends wants it as a backup. Then no other path works.
    pub is_backup: bool,
    /// What it costs to use the path, by [`Connection::set_path_cost`](crate::Connection::set_path_cost). Default 1.
    pub cost: u32,
}

pub(crate) use loss_rounds::{loss_chance, resends, until_resent};

/// What waits to be sent.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Waiting {
    /// Bytes of streams that were never sent, or are to be sent again; what flow control holds back is among them.
    pub stream_bytes: u64,
    /// Bytes of unreliable datagrams.
    pub datagram_bytes: u64,
    /// The urgency of the stream that is written next (RFC 9218), 0 to 7, the most urgent first; `None` if none waits.
    pub urgency: Option<u8>,
    /// The bytes of the frame of the unreliable datagram that is written next; `None` if none waits.
    pub datagram: Option<usize>,
    /// When the first of the unreliable datagrams that wait will be of no use any more.
    pub deadline: Option<Instant>,
    /// Whether the stream is written before the datagram: its level is higher, or datagrams have had their turn beside streams of the
    /// same level. Otherwise the datagram is, if one waits.
    pub streams_first: bool,
}

impl Waiting {
    /// Bytes of streams and of unreliable datagrams.
    pub fn bytes(&self) -> u64 {
        self.stream_bytes.saturating_add(self.datagram_bytes)
    }
}

/// The paths that may carry data, in the order in which they are asked. Up to eight take no allocation.
#[derive(Debug, Default)]
pub struct PathOrder(SmallVec<[(PathId, u64); 8]>);

impl PathOrder {
    /// The next one.
    pub fn push(&mut self, path: PathId) {
        self.push_up_to(path, u64::MAX);
    }

    /// The next one, for about so many bytes, and one packet at least; then the scheduler is asked again.
    pub fn push_up_to(&mut self, path: PathId, bytes: u64) {
        self.0.push((path, bytes));
    }

    /// The paths, and how many bytes may leave on each before the scheduler is asked again.
    pub(crate) fn as_slice(&self) -> &[(PathId, u64)] {
        &self.0
    }

    pub(crate) fn contains(&self, path: PathId) -> bool {
        self.0.iter().any(|(id, _)| *id == path)
    }
}

/// Decides which paths carry data.
pub trait Scheduler: fmt::Debug + Send {
    /// Puts paths into `order`, which is empty, the best first. `paths` are in the order of their IDs; there are at least two.
    fn schedule(&mut self, now: Instant, paths: &[PathView], waiting: &Waiting, order: &mut PathOrder);

    /// Datagrams of so many bytes in all have left on a path, with data or without.
    fn on_sent(&mut self, path: PathId, bytes: usize) {
        let _ = (path, bytes);
    }

    /// Whether unreliable datagrams leave on every path that may carry data. Default: on one.
    fn repeats_datagrams(&self) -> bool {
        false
    }
}

/// Makes a scheduler for each connection.
pub trait SchedulerFactory: fmt::Debug + Send + Sync {
    /// A scheduler in its first state.
    fn build(&self) -> Box<dyn Scheduler>;
}

/// The schedulers that there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchedulerKind {
    /// The path on which it arrives first: a slower one carries data only if it arrives there before it could on the quicker
    /// ones, with all that waits.
    #[default]
    EarliestCompletion,
    /// The quickest path with room in its window.
    MinRtt,
    /// As [`SchedulerKind::EarliestCompletion`], and unreliable datagrams leave on every path. RFC 9221 gives them no numbers: the
    /// peer's application gets those twice that arrive twice.
    Redundant,
    /// One path carries everything, that of the least cost, and among those the one with the least ID; the next one if it fails.
    Backup,
    /// Bytes are shared among the paths by the inverse of their costs, as far as their windows allow.
    Weighted,
}

/// A name that no scheduler has.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("no scheduler has the name {0}; there are earliest-completion, min-rtt, redundant, backup, weighted")]
pub struct UnknownScheduler(pub String);

impl SchedulerKind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::EarliestCompletion, Self::MinRtt, Self::Redundant, Self::Backup, Self::Weighted];

    /// The name by which programs and files choose it.
    pub fn name(self) -> &'static str {
        match self {
            Self::EarliestCompletion => "earliest-completion",
            Self::MinRtt => "min-rtt",
            Self::Redundant => "redundant",
            Self::Backup => "backup",
            Self::Weighted => "weighted",
        }
    }
}

impl fmt::Display for SchedulerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SchedulerKind {
    type Err = UnknownScheduler;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| UnknownScheduler(name.to_owned()))
    }
}

impl SchedulerFactory for SchedulerKind {
    fn build(&self) -> Box<dyn Scheduler> {
        match self {
            Self::EarliestCompletion => Box::<earliest_completion::EarliestCompletion>::default(),
            Self::MinRtt => Box::new(min_rtt::MinRtt),
            Self::Redundant => Box::<redundant::Redundant>::default(),
            Self::Backup => Box::new(backup::Backup),
            Self::Weighted => Box::new(weighted::Weighted::default()),
        }
    }
}

#[cfg(test)]
mod tests;
