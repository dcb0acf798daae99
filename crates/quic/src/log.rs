//! Where the logs of connections go.
//!
//! A connection notes what it does in a ring of its own (`TransportConfig::log_entries`). The worker moves the entries
//! out from time to time, while it has the connection anyway, and hands them to a [`LogSink`]: copying them is all that
//! happens on the way of datagrams.

use std::sync::Arc;

use fulmar_proto::log::LogEntry;
use fulmar_proto::{ConnectionError, ConnectionId, Side};

/// Takes what connections note. It is called between datagrams, so it must not wait: whoever writes to a disk hands the
/// entries to a thread, through a queue with a limit.
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
    /// Entries before these that were overwritten in the ring.
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
    /// Takes the entries out of a connection, if it is time to.
    pub(crate) fn collect(
        &self,
        proto: &mut fulmar_proto::Connection,
        connection: u64,
        is_last: bool,
        error: Option<&ConnectionError>,
    ) -> Option<LogBatch> {
        let (side, original_cid) = (proto.side(), proto.original_cid());
        let log = proto.log_mut()?;
        let due = self.delivery == LogDelivery::AsTheyCome && log.len() >= log.capacity() / 4;
        if !due && !is_last {
            return None;
        }
        let mut entries = Vec::with_capacity(log.len());
        let overwritten = log.drain_into(&mut entries);
        let error = error.cloned();
        Some(LogBatch { connection, side, original_cid, entries, overwritten, is_last, error })
    }
}
