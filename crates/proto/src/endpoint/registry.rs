//! Which connections there are, and how datagrams find them (RFC 9000 §5.2).

use std::net::SocketAddr;

use fulmar_base::{HashKey, KeyedMap};
use fulmar_wire::{ConnectionId, ResetToken};
use slab::Slab;

use super::ConnectionHandle;
use super::shared::HalfOpen;

/// What the endpoint remembers of a connection, to forget it completely.
#[derive(Debug, Default)]
struct Registered {
    cids: Vec<ConnectionId>,
    reset_tokens: Vec<ResetToken>,
    /// Where the peer is, if the connection has no connection IDs.
    remote: Option<SocketAddr>,
    /// If it was accepted from an address that is not validated yet.
    half_open: Option<HalfOpen>,
}

/// The connections of an endpoint under all that names them in a datagram.
#[derive(Debug)]
pub(super) struct Registry {
    connections: Slab<Registered>,
    by_cid: KeyedMap<ConnectionId, ConnectionHandle>,
    by_reset_token: KeyedMap<ResetToken, ConnectionHandle>,
    /// The connections without connection IDs, by the address of the peer.
    by_remote: KeyedMap<SocketAddr, ConnectionHandle>,
}

impl Registry {
    pub(super) fn new(key: HashKey) -> Self {
        Self {
            connections: Slab::new(),
            by_cid: KeyedMap::new(key),
            by_reset_token: KeyedMap::new(key),
            by_remote: KeyedMap::new(key),
        }
    }

    /// How many connections there are.
    pub(super) fn len(&self) -> usize {
        self.connections.len()
    }

    /// The connection of a packet to `dst` from `remote`.
    pub(super) fn find(&self, dst: &ConnectionId, remote: &SocketAddr) -> Option<ConnectionHandle> {
        match dst.is_empty() {
            true => self.by_remote.get(remote).copied(),
            false => self.by_cid.get(dst).copied(),
        }
    }

    /// The connection that a stateless reset with this token would end.
    pub(super) fn find_reset(&self, token: &ResetToken) -> Option<ConnectionHandle> {
        self.by_reset_token.get(token).copied()
    }

    /// Whether there is a connection without connection IDs to `remote`.
    pub(super) fn is_in_use(&self, remote: &SocketAddr) -> bool {
        self.by_remote.contains_key(remote)
    }

    /// Adds a connection that is known by these connection IDs; `remote` is that of one that has none.
    pub(super) fn add(&mut self, cids: &[ConnectionId], remote: Option<SocketAddr>) -> ConnectionHandle {
        let registered = Registered { remote, ..Registered::default() };
        let handle = ConnectionHandle(self.connections.insert(registered));
        if let Some(remote) = remote {
            self.by_remote.insert(remote, handle);
        }
        for &cid in cids {
            self.add_cid(handle, cid);
        }
        handle
    }

    pub(super) fn add_cid(&mut self, handle: ConnectionHandle, cid: ConnectionId) {
        if let Some(registered) = self.connections.get_mut(handle.0).filter(|_| !cid.is_empty()) {
            registered.cids.push(cid);
            self.by_cid.insert(cid, handle);
        }
    }

    pub(super) fn remove_cid(&mut self, handle: ConnectionHandle, cid: ConnectionId) {
        if let Some(registered) = self.connections.get_mut(handle.0) {
            registered.cids.retain(|c| *c != cid);
            self.by_cid.remove(&cid);
        }
    }

    pub(super) fn add_reset_token(&mut self, handle: ConnectionHandle, token: ResetToken) {
        if let Some(registered) = self.connections.get_mut(handle.0) {
            registered.reset_tokens.push(token);
            self.by_reset_token.insert(token, handle);
        }
    }

    pub(super) fn remove_reset_token(&mut self, handle: ConnectionHandle, token: ResetToken) {
        if let Some(registered) = self.connections.get_mut(handle.0) {
            registered.reset_tokens.retain(|t| *t != token);
            self.by_reset_token.remove(&token);
        }
    }

    /// The connection was accepted from an address that is not validated.
    pub(super) fn open_half(&mut self, handle: ConnectionHandle, half_open: HalfOpen) {
        if let Some(registered) = self.connections.get_mut(handle.0) {
            registered.half_open = Some(half_open);
        }
    }

    /// The connection is half open no more.
    pub(super) fn close_half(&mut self, handle: ConnectionHandle) {
        if let Some(registered) = self.connections.get_mut(handle.0) {
            registered.half_open = None;
        }
    }

    /// Forgets the connection and all its names.
    pub(super) fn remove(&mut self, handle: ConnectionHandle) {
        let Some(registered) = self.connections.try_remove(handle.0) else {
            return;
        };
        for cid in registered.cids {
            self.by_cid.remove(&cid);
        }
        if let Some(remote) = registered.remote {
            self.by_remote.remove(&remote);
        }
        for token in registered.reset_tokens {
            self.by_reset_token.remove(&token);
        }
    }
}
