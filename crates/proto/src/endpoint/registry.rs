//! Which connections there are, and how datagrams find them (RFC 9000 §5.2).

use std::net::SocketAddr;

use fulmar_base::{HashKey, KeyedIndex, KeyedMap};
use fulmar_wire::{ConnectionId, PathId, ResetToken};
use slab::Slab;

use super::reset_tokens::ResetTokens;
use super::shared::HalfOpen;
use super::{ConnectionHandle, Destination};

/// The bit of the first byte that only long headers have (RFC 8999 §5.1).
const LONG_FORM: u8 = 0x80;

/// What the endpoint remembers of a connection, to forget it completely.
#[derive(Debug, Default)]
struct Registered {
    /// Those that stand for it and for no other one, each with the path that it was given for.
    cids: Vec<(ConnectionId, PathId)>,
    reset_tokens: Vec<ResetToken>,
    /// Where the peer is, if the connection has no connection IDs.
    remote: Option<SocketAddr>,
    /// If it was accepted from an address that is not validated yet.
    half_open: Option<HalfOpen>,
}

impl Registered {
    /// The path that the connection ID was given for, if it stands for this connection.
    fn path_of(&self, cid: &ConnectionId) -> Option<PathId> {
        self.cids.iter().find(|(known, _)| known == cid).map(|(_, path)| *path)
    }
}

/// The connections of an endpoint under all that names them in a datagram.
#[derive(Debug)]
pub(super) struct Registry {
    connections: Slab<Registered>,
    /// Where in `connections` the one is that a connection ID stands for.
    by_cid: KeyedIndex,
    /// The connection ID that was found last: the packets of a batch go to one.
    recent: Option<(ConnectionId, Destination)>,
    by_reset_token: ResetTokens,
    /// The connections without connection IDs, by the address of the peer.
    by_remote: KeyedMap<SocketAddr, ConnectionHandle>,
}

impl Registry {
    pub(super) fn new(key: HashKey, by_reset_token: ResetTokens) -> Self {
        Self {
            connections: Slab::new(),
            by_cid: KeyedIndex::new(key),
            recent: None,
            by_reset_token,
            by_remote: KeyedMap::new(key),
        }
    }

    /// How many connections there are.
    pub(super) fn len(&self) -> usize {
        self.connections.len()
    }

    /// The connection, and the path, of a packet to `dst` from `remote`.
    pub(super) fn find(&mut self, dst: &ConnectionId, remote: &SocketAddr) -> Option<Destination> {
        match dst.is_empty() {
            // Several paths need connection IDs (RFC 10069).
            true => {
                self.by_remote.get(remote).map(|&connection| Destination { connection, path: PathId::ZERO })
            }
            false => {
                if let Some((cid, found)) = self.recent
                    && cid == *dst
                {
                    return Some(found);
                }
                let found = self.destination(dst)?;
                self.recent = Some((*dst, found));
                Some(found)
            }
        }
    }

    /// The connection and path of a datagram that begins with a 1-RTT packet to the connection ID that was found last.
    #[inline]
    pub(super) fn find_again(&self, datagram: &[u8]) -> Option<Destination> {
        let (cid, found) = self.recent.as_ref()?;
        let is_short = datagram.first()? & LONG_FORM == 0;
        (is_short && datagram.get(1..=cid.len())? == cid.as_bytes()).then_some(*found)
    }

    /// The connection that a stateless reset with this token would end.
    pub(super) fn find_reset(&self, token: &ResetToken) -> Option<ConnectionHandle> {
        self.by_reset_token.find(token)
    }

    /// The number of this endpoint among those that share the tokens.
    pub(super) fn endpoint(&self) -> usize {
        self.by_reset_token.endpoint()
    }

    /// Whether there is a connection without connection IDs to `remote`.
    pub(super) fn is_in_use(&self, remote: &SocketAddr) -> bool {
        self.by_remote.contains_key(remote)
    }

    /// Adds a connection that is known by these connection IDs of path 0; `remote` is that of one that has none.
    pub(super) fn add(&mut self, cids: &[ConnectionId], remote: Option<SocketAddr>) -> ConnectionHandle {
        let registered = Registered { remote, ..Registered::default() };
        let handle = ConnectionHandle(self.connections.insert(registered));
        if let Some(remote) = remote {
            self.by_remote.insert(remote, handle);
        }
        for &cid in cids {
            self.add_cid(Destination { connection: handle, path: PathId::ZERO }, cid);
        }
        handle
    }

    /// Whether the connection ID stands for a connection.
    pub(super) fn knows(&self, cid: &ConnectionId) -> bool {
        self.destination(cid).is_some()
    }

    /// What the connection ID stands for.
    fn destination(&self, cid: &ConnectionId) -> Option<Destination> {
        self.by_cid.find(cid, |place| {
            let path = self.connections.get(place)?.path_of(cid)?;
            Some(Destination { connection: ConnectionHandle(place), path })
        })
    }

    /// The connection ID stands for `destination` from now on, unless it stands for a connection already, which keeps it.
    pub(super) fn add_cid(&mut self, destination: Destination, cid: ConnectionId) {
        let Destination { connection, path } = destination;
        if cid.is_empty() || self.knows(&cid) {
            return;
        }
        if let Some(registered) = self.connections.get_mut(connection.0) {
            push(&mut registered.cids, (cid, path));
            self.recent = None;
            self.by_cid.insert(&cid, connection.0);
        }
    }

    pub(super) fn remove_cid(&mut self, handle: ConnectionHandle, cid: ConnectionId) {
        let registered = self.connections.get_mut(handle.0);
        if let Some(registered) = registered.filter(|it| it.path_of(&cid).is_some()) {
            registered.cids.retain(|(known, _)| *known != cid);
            self.recent = None;
            self.by_cid.remove(&cid, handle.0);
        }
    }

    pub(super) fn add_reset_token(&mut self, handle: ConnectionHandle, token: ResetToken) {
        if let Some(registered) = self.connections.get_mut(handle.0) {
            push(&mut registered.reset_tokens, token);
            self.by_reset_token.add(handle, token);
        }
    }

    pub(super) fn remove_reset_token(&mut self, handle: ConnectionHandle, token: ResetToken) {
        if let Some(registered) = self.connections.get_mut(handle.0) {
            registered.reset_tokens.retain(|t| *t != token);
            self.by_reset_token.remove(handle, &token);
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

    /// Forgets the connection and all its names. Returns its connection IDs.
    pub(super) fn remove(&mut self, handle: ConnectionHandle) -> Vec<ConnectionId> {
        let Some(registered) = self.connections.try_remove(handle.0) else {
            return Vec::new();
        };
        for (cid, _) in &registered.cids {
            self.recent = None;
            self.by_cid.remove(cid, handle.0);
        }
        if let Some(remote) = registered.remote {
            self.by_remote.remove(&remote);
        }
        for token in registered.reset_tokens {
            self.by_reset_token.remove(handle, &token);
        }
        registered.cids.into_iter().map(|(cid, _)| cid).collect()
    }
}

impl Drop for Registry {
    /// The table of tokens may outlive this endpoint.
    fn drop(&mut self) {
        for (place, registered) in &self.connections {
            for token in &registered.reset_tokens {
                self.by_reset_token.remove(ConnectionHandle(place), token);
            }
        }
    }
}

/// Adds to a list that mostly has a few entries and grows no more: to have an eighth of it in reserve is enough.
fn push<T>(list: &mut Vec<T>, entry: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(1 + list.len() / 8);
    }
    list.push(entry);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fulmar_base::Rng;

    use super::*;

    fn registry() -> Registry {
        let key = HashKey::new(&mut Rng::from_u64(1));
        Registry::new(key, ResetTokens::new(Arc::default(), key))
    }

    #[test]
    fn each_connection_id_stands_for_a_path_until_it_is_forgotten() {
        let mut registry = registry();
        let (first, other) = (ConnectionId::new(&[1; 8]).unwrap(), ConnectionId::new(&[2; 8]).unwrap());
        let remote = ([10, 0, 0, 1], 1).into();
        let connection = registry.add(&[first], None);
        registry.add_cid(Destination { connection, path: PathId(3) }, other);
        assert_eq!(registry.find(&first, &remote), Some(Destination { connection, path: PathId::ZERO }));
        assert_eq!(registry.find(&other, &remote), Some(Destination { connection, path: PathId(3) }));
        registry.remove_cid(connection, other);
        assert_eq!(registry.find(&other, &remote), None);
        registry.remove(connection);
        assert_eq!((registry.find(&first, &remote), registry.len()), (None, 0));
    }

    #[test]
    fn of_two_connections_with_the_same_id_the_older_one_keeps_it() {
        let mut registry = registry();
        let [same, first, second] = [[1; 8], [2; 8], [3; 8]].map(|bytes| ConnectionId::new(&bytes).unwrap());
        let remote = ([10, 0, 0, 1], 1).into();
        let older = registry.add(&[same, first], None);
        let newer = registry.add(&[second, same], None);
        let found = |registry: &mut Registry| {
            [same, first, second].map(|cid| registry.find(&cid, &remote).map(|found| found.connection))
        };
        assert_eq!(found(&mut registry), [Some(older), Some(older), Some(newer)]);
        registry.remove_cid(newer, same);
        assert_eq!(found(&mut registry), [Some(older), Some(older), Some(newer)]);
        assert_eq!(registry.remove(newer), [second], "it takes no name of another one along");
        assert_eq!(found(&mut registry), [Some(older), Some(older), None]);
        registry.remove_cid(older, same);
        assert!(!registry.knows(&same) && registry.knows(&first));
    }

    #[test]
    fn where_there_are_no_connection_ids_the_address_stands_for_path_0() {
        let mut registry = registry();
        let (here, there) = (([10, 0, 0, 1], 1).into(), ([10, 0, 0, 1], 2).into());
        let none = ConnectionId::new(&[]).unwrap();
        let connection = registry.add(&[none], Some(here));
        assert_eq!(registry.find(&none, &here), Some(Destination { connection, path: PathId::ZERO }));
        assert_eq!(registry.find(&none, &there), None);
    }
}
