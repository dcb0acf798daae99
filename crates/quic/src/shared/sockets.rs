//! The sockets of an endpoint beside the first: one for each interface, say.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use fulmar_proto::SocketId;
use fulmar_udp::{SocketStats, UdpSocket};

use crate::sync::lock;

/// The most sockets beside the first: each is asked in each turn of the worker.
const SOCKETS_MAX: usize = 16;

/// The sockets and their names.
pub(crate) type Sockets = Vec<(SocketId, Arc<UdpSocket>)>;

/// What handles add and remove, and the worker uses.
#[derive(Default)]
pub(crate) struct MoreSockets {
    list: Mutex<List>,
    /// The list is another one than the worker knows.
    is_changed: AtomicBool,
}

#[derive(Default)]
struct List {
    sockets: Sockets,
    /// The figures of those that were removed.
    past: SocketStats,
    /// The last name that was given. None is given twice.
    last: u16,
}

impl MoreSockets {
    /// Adds a socket, and gives it a name.
    pub(crate) fn add(&self, socket: UdpSocket) -> io::Result<SocketId> {
        let mut list = lock(&self.list);
        let last = list.last.checked_add(1).filter(|_| list.sockets.len() < SOCKETS_MAX);
        let last = last.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "too many sockets"))?;
        list.last = last;
        list.sockets.push((SocketId(last), Arc::new(socket)));
        self.is_changed.store(true, Ordering::Release);
        Ok(SocketId(last))
    }

    /// Removes a socket. Returns whether there was one of this name.
    pub(crate) fn remove(&self, id: SocketId) -> bool {
        let mut list = lock(&self.list);
        let Some(index) = list.sockets.iter().position(|(known, _)| *known == id) else { return false };
        let (_, socket) = list.sockets.remove(index);
        list.past += socket.stats();
        self.is_changed.store(true, Ordering::Release);
        true
    }

    /// All sockets.
    pub(crate) fn all(&self) -> Sockets {
        lock(&self.list).sockets.clone()
    }

    /// The figures of all of them, and of those that were removed.
    pub(crate) fn stats(&self) -> SocketStats {
        let list = lock(&self.list);
        let mut stats = list.past;
        list.sockets.iter().for_each(|(_, socket)| stats += socket.stats());
        stats
    }

    /// The sockets, if others are there than when this was asked last.
    pub(crate) fn take_change(&self) -> Option<Sockets> {
        let is_changed =
            self.is_changed.load(Ordering::Relaxed) && self.is_changed.swap(false, Ordering::Acquire);
        is_changed.then(|| self.all())
    }
}
