//! The connections that the client makes.

use std::sync::Arc;
use std::time::Duration;

use fulmar_proto::{Side, TransportConfig};

use crate::Workload;

/// A connection that the client makes.
#[derive(Debug, Clone)]
pub struct Connecting {
    /// When, after the beginning of the run.
    pub start: Duration,
    /// Whether it also waits until the connection before it has ended at the client.
    pub after_previous: bool,
    /// The client's configuration for it; `None` for that of the [`Lab`](super::Lab).
    pub transport: Option<Arc<TransportConfig>>,
    /// What the client does with it.
    pub workload: Workload,
    /// How it ends.
    pub close: Close,
    /// The number of the path that it begins on.
    pub path: usize,
    /// What the rates of the run have to do with it.
    pub role: Role,
}

/// What the rates of a run have to do with a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// They are about it.
    #[default]
    Measured,
    /// What it moves counts until the measured ones have read all.
    Background,
    /// It is over when the others begin, and does not count.
    Preparation,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// This side closes it when both sides have done their workload, and no stream is left.
    WhenDone(Side),
    /// This side closes it so long after the client's handshake was complete, whatever is under way.
    After(Side, Duration),
    /// This side closes it when both are done, but at the latest so long after the client's handshake was complete.
    AtLatest(Side, Duration),
    /// Nobody closes it.
    Never,
}

impl Connecting {
    /// A connection from the beginning of the run on, closed by the client when both sides are done.
    pub fn new(workload: Workload) -> Self {
        Self {
            start: Duration::ZERO,
            after_previous: false,
            transport: None,
            workload,
            close: Close::WhenDone(Side::Client),
            path: 0,
            role: Role::Measured,
        }
    }

    /// Ends in another way.
    #[must_use]
    pub fn close(self, close: Close) -> Self {
        Self { close, ..self }
    }

    /// Begins on another path than the first.
    #[must_use]
    pub fn path(self, path: usize) -> Self {
        Self { path, ..self }
    }

    /// Has another part in the rates of the run.
    #[must_use]
    pub fn role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// Starts later.
    #[must_use]
    pub fn start(self, start: Duration) -> Self {
        Self { start, ..self }
    }

    /// Starts when the connection before it has ended at the client, and not before its start.
    #[must_use]
    pub fn after_previous(self) -> Self {
        Self { after_previous: true, ..self }
    }

    /// Uses a configuration of its own at the client.
    #[must_use]
    pub fn transport(self, transport: Arc<TransportConfig>) -> Self {
        Self { transport: Some(transport), ..self }
    }
}
