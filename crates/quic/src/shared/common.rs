//! What the handles of an endpoint and all of its workers share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::attempts::Attempts;
use super::known_paths::KnownPaths;
use crate::log::Logging;

/// What concerns the whole endpoint, however many workers serve it.
pub(crate) struct Common {
    /// A connection attempt waits at a worker, or none ever will again.
    pub(crate) incoming: Notify,
    /// A worker has no connections left.
    pub(crate) idle: Notify,
    pub(crate) logging: Option<Logging>,
    /// Of the clients of a server.
    pub(crate) known_paths: KnownPaths,
    /// Connections that were dialled. To be locked before any connection.
    pub(crate) attempts: Mutex<Attempts>,
    /// How long workers look for the next datagram of a conversation before they sleep.
    pub(crate) busy_poll: Duration,
    /// How many handles of the endpoint exist.
    handles: AtomicUsize,
    next_id: AtomicU64,
}

impl Common {
    pub(crate) fn new(logging: Option<Logging>, known_paths_max: usize, busy_poll: Duration) -> Self {
        Self {
            incoming: Notify::new(),
            idle: Notify::new(),
            logging,
            known_paths: KnownPaths::new(known_paths_max),
            attempts: Mutex::default(),
            busy_poll,
            handles: AtomicUsize::new(0),
            next_id: AtomicU64::new(0),
        }
    }

    /// A number that no connection of this endpoint had before.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a new handle of the endpoint.
    pub(super) fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a handle less. Returns whether that was the last one.
    pub(super) fn remove_handle(&self) -> bool {
        self.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether there is no handle left.
    pub(super) fn is_abandoned(&self) -> bool {
        self.handles.load(Ordering::Acquire) == 0
    }
}
