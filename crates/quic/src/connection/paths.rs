//! Several paths of a connection (RFC 10069).

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use fulmar_proto::{
    ConnectionError, FourTuple, OpenPathError, PathError, PathEvent, PathId, PathInfo, PathManager,
    PathStats, PathUse, SocketId, TransportErrorCode,
};

use super::Connection;
use crate::clock;

/// Where a path begins on this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Local {
    /// The first socket of the endpoint, at the address that the kernel chooses.
    #[default]
    Any,
    /// The first socket of the endpoint, bound to all addresses, at this one.
    Ip(IpAddr),
    /// Another socket of the endpoint: see [`Endpoint::add_socket`](crate::Endpoint::add_socket).
    Socket(SocketId),
}

impl Local {
    /// The addresses of a path from here.
    pub fn to(self, remote: SocketAddr) -> FourTuple {
        let remote = fulmar_udp::canonical(remote);
        match self {
            Self::Any => FourTuple::new(remote, None),
            Self::Ip(ip) => FourTuple::new(remote, Some(ip.to_canonical())),
            Self::Socket(socket) => FourTuple { socket, ..FourTuple::new(remote, None) },
        }
    }
}

/// A path of a connection. It is a handle, which does not keep the path open.
#[derive(Clone)]
pub struct Path {
    connection: Connection,
    id: PathId,
}

impl Connection {
    /// Whether both ends have multipath: see `TransportConfig::multipath`.
    pub fn is_multipath(&self) -> bool {
        self.inner.lock().proto.is_multipath()
    }

    /// The paths that are open, in the order of their IDs. As long as the connection is not over there is at least one.
    pub fn paths(&self) -> Vec<Path> {
        let ids: Vec<PathId> = self.inner.lock().proto.paths().map(|path| path.id).collect();
        ids.into_iter().map(|id| self.path(id)).collect()
    }

    /// Opens another path (RFC 10069 §3.1). That needs a handshake that is confirmed: wait for [`confirmed`](Self::confirmed) before.
    /// The path carries data when the server has answered: see [`Path::validated`]. Only clients open paths; those that the client has
    /// opened are told to the server by [`path_event`](Self::path_event).
    ///
    /// # Errors
    /// See [`OpenPathError`]. After [`OpenPathError::NoConnectionId`] and [`OpenPathError::Limit`] the peer was asked for
    /// more, and it is worth trying again after a round trip. [`OpenPathError::Unreachable`] is told at once.
    pub fn open_path(&self, local: Local, remote: SocketAddr) -> Result<Path, OpenPathError> {
        let addrs = self.inner.inner().canonical(local.to(remote));
        self.inner.lock().check().map_err(|_| OpenPathError::Closed)?;
        if !self.inner.inner().can_reach(&addrs) {
            return Err(OpenPathError::Unreachable);
        }
        let mut state = self.inner.lock();
        let now = state.advance(clock::now());
        let opened = state.proto.open_path(now, addrs);
        self.inner.release(state);
        opened.map(|id| self.path(id))
    }

    /// Has `manager` open the paths of this connection from now on, such as [`AddressPairs`](crate::AddressPairs), or one of
    /// your own:
    ///
    /// ```
    /// use fulmar::{FourTuple, Instant, Local, PathEvent, PathManager, proto};
    ///
    /// /// Opens one more path, once.
    /// #[derive(Debug)]
    /// struct OneMore(Option<FourTuple>);
    ///
    /// impl PathManager for OneMore {
    ///     fn on_event(&mut self, _now: Instant, _event: &PathEvent) {}
    ///
    ///     fn manage(&mut self, now: Instant, connection: &mut proto::Connection) {
    ///         // It fails until the handshake is confirmed and the peer has given a connection ID for it, and is tried again
    ///         // whenever something has happened to the connection.
    ///         if let Some(addrs) = self.0
    ///             && connection.open_path(now, addrs).is_ok()
    ///         {
    ///             self.0 = None;
    ///         }
    ///     }
    ///
    ///     fn next_timeout(&self) -> Option<Instant> {
    ///         None
    ///     }
    /// }
    ///
    /// fn open_one_more(connection: &fulmar::Connection, from: Local) {
    ///     connection.set_path_manager(OneMore(Some(from.to(connection.remote_address()))));
    /// }
    /// ```
    pub fn set_path_manager(&self, manager: impl PathManager + 'static) {
        let mut state = self.inner.lock();
        state.set_path_manager(Box::new(manager));
        self.inner.release(state);
    }

    /// Waits for the next thing that happens to a path: it is opened, validated, abandoned, or used otherwise. Each event goes to one
    /// of those who wait. Events that nobody takes are kept, up to 64.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn path_event(&self) -> Result<PathEvent, ConnectionError> {
        loop {
            let changed = self.inner.inner().changed().paths.notified();
            {
                let mut state = self.inner.lock();
                if let Some(event) = state.next_path_event() {
                    return Ok(event);
                }
                state.check()?;
            }
            changed.await;
        }
    }

    fn path(&self, id: PathId) -> Path {
        Path { connection: self.clone(), id }
    }
}

impl Path {
    /// The name by which both ends know it.
    pub fn id(&self) -> PathId {
        self.id
    }

    /// The connection that it belongs to.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Its addresses and what both ends want of it; `None` if it is gone.
    pub fn info(&self) -> Option<PathInfo> {
        let state = self.connection.inner.lock();
        state.proto.paths().find(|path| path.id == self.id)
    }

    /// Its figures; `None` if it is gone.
    pub fn stats(&self) -> Option<PathStats> {
        let state = self.connection.inner.lock();
        state.proto.path_stats().find(|path| path.path == self.id)
    }

    /// Waits until the peer was seen to receive there: the path carries data from then on.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// The path is gone, or the connection is over.
    pub async fn validated(&self) -> Result<(), PathError> {
        loop {
            let changed = self.connection.inner.inner().changed().paths.notified();
            {
                let state = self.connection.inner.lock();
                state.check().map_err(|_| PathError::Unknown)?;
                let path = state.proto.paths().find(|path| path.id == self.id);
                if path.ok_or(PathError::Unknown)?.validated {
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    /// Says what this end wants of the path, and tells the peer (RFC 10069 §3.3).
    ///
    /// # Errors
    /// The path is gone.
    pub fn set_status(&self, wanted: PathUse) -> Result<(), PathError> {
        let mut state = self.connection.inner.lock();
        let result = state.proto.set_path_use(self.id, wanted);
        self.connection.inner.release(state);
        result
    }

    /// Says what the path costs, for schedulers that ask for it. Default 1.
    ///
    /// # Errors
    /// The path is gone.
    pub fn set_cost(&self, cost: u32) -> Result<(), PathError> {
        let mut state = self.connection.inner.lock();
        let result = state.proto.set_path_cost(self.id, cost);
        self.connection.inner.release(state);
        result
    }

    /// Abandons the path: what is under way on it is sent again on others. A manager does not open it again.
    ///
    /// # Errors
    /// The path is gone, or it is the only one: close the connection instead.
    pub fn abandon(&self) -> Result<(), PathError> {
        let mut state = self.connection.inner.lock();
        let now = state.advance(clock::now());
        let code = TransportErrorCode::APPLICATION_ABANDON_PATH;
        let result = state.proto.abandon_path(now, self.id, code);
        self.connection.inner.release(state);
        result
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Path").field("id", &self.id).finish_non_exhaustive()
    }
}
