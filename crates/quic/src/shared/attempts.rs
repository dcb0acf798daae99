//! The attempts to connect that an endpoint makes, so that a report that nobody listens finds them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use super::Inner;

/// Below this number nobody looks which attempts are over.
const ATTEMPTS_MIN: usize = 16;

/// Attempts to connect, of all workers: the kernel gives a report to the socket of any of them, as it pleases. Those that have come to
/// something leave when there are twice as many as were left the last time, and when somebody asks.
///
/// Limit: the connections that the application has dialled and holds. A worker takes out those that it forgets, since an entry keeps
/// the memory of its connection.
#[derive(Default)]
pub(crate) struct Attempts {
    /// By the number of the connection.
    list: BTreeMap<u64, Weak<Inner>>,
    limit: usize,
}

impl Attempts {
    /// Adds an attempt.
    pub(crate) fn add(&mut self, connection: &Arc<Inner>) {
        if self.list.len() >= self.limit.max(ATTEMPTS_MIN) {
            self.limit = 2 * self.current().len();
        }
        self.list.insert(connection.id(), Arc::downgrade(connection));
    }

    /// Takes out a connection that is gone.
    pub(crate) fn remove(&mut self, id: u64) {
        self.list.remove(&id);
    }

    /// Those to this address that are not over.
    pub(crate) fn to(&mut self, remote: SocketAddr) -> Vec<Arc<Inner>> {
        let mut current = self.current();
        current.retain(|connection| connection.lock().proto.remote_address() == remote);
        current
    }

    /// Those that are not over. The others leave.
    fn current(&mut self) -> Vec<Arc<Inner>> {
        let mut current = Vec::new();
        self.list.retain(|_, attempt| {
            let attempt = attempt.upgrade().filter(|connection| {
                let state = connection.lock();
                !state.is_connected && state.error.is_none()
            });
            let is_current = attempt.is_some();
            current.extend(attempt);
            is_current
        });
        current
    }
}
