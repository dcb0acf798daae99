//! Where the logs of connections go.
//!
//! A connection notes what it does in a ring of its own (`TransportConfig::log_entries`). The worker moves the entries
//! out from time to time, while it has the connection anyway, and hands them to a [`LogSink`]: copying them is all that
//! happens on the way of datagrams.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fulmar_base::Instant;
use fulmar_proto::{ConnectionError, ConnectionId, Side};

/// What stands in the log of a connection.
pub use fulmar_proto::log::*;

/// The most events of an application that a connection keeps until they are handed over.
const APPLICATION_EVENTS_MAX: usize = 4_096;

/// What they may take in memory, in bytes. Beyond one of these limits the oldest are dropped, and counted.
const APPLICATION_BYTES_MAX: usize = 1 << 20;

/// Something that the protocol above QUIC notes of a connection: see [`Connection::log`](crate::Connection::log). Who takes it knows
/// its type.
pub trait ApplicationEvent: Any + Debug + Send + Sync {
    /// About what it takes in memory, in bytes.
    fn size(&self) -> usize;
}

/// Something that the protocol above QUIC has noted, and when.
#[derive(Debug, Clone)]
pub struct ApplicationEntry {
    /// When it was noted.
    pub at: Instant,
    /// What it is.
    pub event: Arc<dyn ApplicationEvent>,
}

impl ApplicationEntry {
    /// The event, if it is of this type.
    #[must_use]
    pub fn event<T: ApplicationEvent>(&self) -> Option<&T> {
        let event: &dyn Any = &*self.event;
        event.downcast_ref()
    }
}

/// Takes what connections note. It is called between datagrams, so it must not wait: whoever writes to a disk hands the
/// entries to a thread, through a queue with a limit. If it panics, the entries that it had are lost, and the endpoint goes on.
pub trait LogSink: Send + Sync {
    /// Takes the next entries of a connection.
    fn take(&self, batch: LogBatch);
}

/// When a [`LogSink`] gets entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogDelivery {
    /// As they come, whenever a quarter of the ring is full, and at the end.
    #[default]
    AsTheyCome,
    /// At the end of the connection, what the ring then holds.
    AtTheEnd,
}

/// Entries of a connection.
#[derive(Debug, Clone)]
pub struct LogBatch {
    /// The number of the connection, which no other of its endpoint has.
    pub connection: u64,
    /// This end.
    pub side: Side,
    /// The connection ID to which the client sent its first packet: both ends know it.
    pub original_cid: ConnectionId,
    /// Entries, oldest first.
    pub entries: Vec<LogEntry>,
    /// What the protocol above QUIC has noted, oldest first.
    pub application: Vec<ApplicationEntry>,
    /// Entries before these that were overwritten in the ring, of both kinds.
    pub overwritten: u64,
    /// Whether these are the last ones.
    pub is_last: bool,
    /// Why the connection is over, if it is.
    pub error: Option<ConnectionError>,
}

/// A sink, and when it gets entries.
#[derive(Clone)]
pub(crate) struct Logging {
    pub(crate) sink: Arc<dyn LogSink>,
    pub(crate) delivery: LogDelivery,
}

impl Logging {
    /// Gives entries to the sink. Its panics are no business of the connections that share the worker.
    pub(crate) fn hand_over(&self, batch: LogBatch) {
        if catch_unwind(AssertUnwindSafe(|| self.sink.take(batch))).is_err() {
            tracing::error!("the log sink has panicked");
        }
    }

    /// Takes the entries out of a connection, if it is time to.
    pub(crate) fn collect(
        &self,
        proto: &mut fulmar_proto::Connection,
        application: Option<&mut ApplicationLog>,
        connection: u64,
        is_last: bool,
        error: Option<&ConnectionError>,
    ) -> Option<LogBatch> {
        let (side, original_cid) = (proto.side(), proto.original_cid());
        let log = proto.log_mut()?;
        let is_full = log.len() >= log.capacity() / 4 || application.as_ref().is_some_and(|log| log.is_due());
        let due = self.delivery == LogDelivery::AsTheyCome && is_full;
        if !due && !is_last {
            return None;
        }
        let mut entries = Vec::with_capacity(log.len());
        let mut overwritten = log.drain_into(&mut entries);
        let (application, dropped) = application.map(ApplicationLog::take).unwrap_or_default();
        overwritten += dropped;
        let error = error.cloned();
        Some(LogBatch { connection, side, original_cid, entries, application, overwritten, is_last, error })
    }
}

/// What the protocol above QUIC has noted of a connection and nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct ApplicationLog {
    entries: VecDeque<ApplicationEntry>,
    bytes: usize,
    dropped: u64,
}

impl ApplicationLog {
    pub(crate) fn add(&mut self, at: Instant, event: Arc<dyn ApplicationEvent>) {
        self.bytes += event.size();
        self.entries.push_back(ApplicationEntry { at, event });
        while self.entries.len() > APPLICATION_EVENTS_MAX || self.bytes > APPLICATION_BYTES_MAX {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.event.size();
            self.dropped += 1;
        }
    }

    /// Whether it is time to hand over what there is.
    fn is_due(&self) -> bool {
        self.entries.len() >= APPLICATION_EVENTS_MAX / 4 || self.bytes >= APPLICATION_BYTES_MAX / 4
    }

    fn take(&mut self) -> (Vec<ApplicationEntry>, u64) {
        self.bytes = 0;
        (std::mem::take(&mut self.entries).into(), std::mem::take(&mut self.dropped))
    }
}
