//! This end moves: by choice, because its socket was replaced, or to the address that the server prefers
//! (RFC 9000 §9.2, §9.6).

use std::net::{IpAddr, SocketAddr};

use fulmar_base::Instant;
use fulmar_wire::{PathId, TransportErrorCode, VarInt};
use smallvec::SmallVec;
use thiserror::Error;

use super::Connection;
use super::off_path_arrival::leads_to_loopback;
use crate::datagram::{FourTuple, SocketId};
use crate::path::{AntiAmplification, MigrationCause, Path, Pending};

/// Why a connection cannot move to another address now.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MigrateError {
    /// Only clients move (RFC 9000 §9).
    #[error("only a client moves to another address")]
    NotAClient,
    /// Both ends stay where they are until the handshake is confirmed (RFC 9000 §9).
    #[error("the handshake is not confirmed yet")]
    NotConfirmed,
    /// The server has asked not to (RFC 9000 §18.2, disable_active_migration).
    #[error("the server takes part in no migration")]
    Disabled,
    /// The server has issued no connection ID for another path (RFC 9000 §9.5). It may do so in a moment.
    #[error("the server has given no connection ID for another path")]
    NoConnectionId,
    /// The connection is over.
    #[error("the connection is closed")]
    Closed,
}

/// Where a path goes whose socket was replaced.
struct Move {
    path: PathId,
    from: FourTuple,
    to: FourTuple,
}

impl Move {
    /// `None` for a path over another socket than the first one. `has` tells the addresses of the new one.
    fn of(path: &Path, has: &dyn Fn(IpAddr) -> bool) -> Option<Self> {
        let from = path.tuple.addrs;
        let to = FourTuple { local_ip: from.local_ip.filter(|ip| has(*ip)), ..from };
        (from.socket == SocketId::default()).then_some(Self { path: path.id, from, to })
    }

    fn leaves(&self) -> bool {
        self.from != self.to
    }
}

impl Connection {
    /// Moves the connection to another address of this end: `local_ip`, or whatever the socket has now if it is
    /// `None` (RFC 9000 §9.2). The server is told at once, under a fresh connection ID; until it answers, the
    /// connection would return to the address that it had.
    ///
    /// Congestion control, round-trip time and datagram size start anew unless `local_ip` is the address in use
    /// already, so that only the port has changed (RFC 9000 §9.4).
    ///
    /// # Errors
    /// See [`MigrateError`]. Then nothing has changed.
    pub fn migrate(&mut self, now: Instant, local_ip: Option<IpAddr>) -> Result<(), MigrateError> {
        let path = self.paths.primary().id;
        let index = self.own_tuple(now, path, local_ip)?;
        self.move_to(now, path, index);
        Ok(())
    }

    /// The first socket of this end was replaced by another one: all paths over it move there as [`Connection::migrate`] does, each
    /// to the address that it had been asked for, if the new socket `has` that, or else to whatever the socket has; of two that
    /// would be the same then, the later one is abandoned. Where no connection ID is left for that, a path goes on under the one in use,
    /// as a client does that a NAT has moved: it would be lost otherwise.
    ///
    /// # Errors
    /// See [`MigrateError`], of the first path that cannot move. A client that may not move sends from the new socket all the same.
    pub fn follow_socket(&mut self, now: Instant, has: &dyn Fn(IpAddr) -> bool) -> Result<(), MigrateError> {
        let moves: SmallVec<[Move; 8]> = self.paths.iter().filter_map(|path| Move::of(path, has)).collect();
        let mut result = Ok(());
        for (place, its) in moves.iter().enumerate() {
            // Two that share a way already, and stay, were meant to.
            let meets = |other: &Move| other.to == its.to && (other.leaves() || its.leaves());
            if self.side.is_client() && moves[..place].iter().any(meets) {
                let code = VarInt::saturating(TransportErrorCode::PATH_UNSTABLE_OR_POOR.0);
                self.drop_path(now, its.path, code, false);
            } else {
                result = result.and(self.follow_socket_over(now, its.path, its.to));
            }
        }
        result
    }

    fn follow_socket_over(&mut self, now: Instant, id: PathId, addrs: FourTuple) -> Result<(), MigrateError> {
        let index = match self.own_tuple(now, id, addrs.local_ip) {
            Err(error @ (MigrateError::Disabled | MigrateError::NotConfirmed)) => {
                // From an address that is gone nothing could be sent any more.
                if let Some(path) = self.paths.get_mut(id) {
                    path.tuple.addrs = addrs;
                }
                return Err(error);
            }
            Err(MigrateError::NoConnectionId) => {
                let path = self.paths.get(id).ok_or(MigrateError::Closed)?;
                let remote_cid = path.remote_cids.active_sequence();
                let index = self.admit(now, id, addrs, AntiAmplification::new(true), remote_cid);
                index.ok_or(MigrateError::NoConnectionId)?
            }
            found => found?,
        };
        self.move_to(now, id, index);
        Ok(())
    }

    /// Goes over to a tuple of this end's choice. What it has proven before may not hold any more, and the connection has to be able
    /// to return; but the one that was in use until just now needs no proof.
    fn move_to(&mut self, now: Instant, id: PathId, index: usize) {
        if let Some(path) = self.paths.get_mut(id).filter(|path| path.fallback_index() != Some(index)) {
            path.off_path_mut()[index].validated = false;
        }
        self.switch_to(now, id, index, MigrationCause::Moved);
    }

    /// Finds out whether the connection could move to another address of this end, and prepares it. The answer is
    /// [`PathEvent::Validated`](crate::PathEvent::Validated) or [`PathEvent::Failed`](crate::PathEvent::Failed), each time; asked anew
    /// before the answer, there is one for both. The connection stays where it is (RFC 9000 §9.1).
    ///
    /// # Errors
    /// See [`MigrateError`].
    pub fn probe_path(&mut self, now: Instant, local_ip: Option<IpAddr>) -> Result<(), MigrateError> {
        let path = self.paths.primary().id;
        let index = self.own_tuple(now, path, local_ip)?;
        self.probe(now, path, index);
        Ok(())
    }

    /// A tuple from another address of this end for a path: where it is among those off that path.
    fn own_tuple(
        &mut self,
        now: Instant,
        id: PathId,
        local_ip: Option<IpAddr>,
    ) -> Result<usize, MigrateError> {
        if !self.lifecycle.is_open() {
            return Err(MigrateError::Closed);
        }
        if self.side.is_server() {
            return Err(MigrateError::NotAClient);
        }
        if !self.handshake.is_confirmed() {
            return Err(MigrateError::NotConfirmed);
        }
        let path = self.paths.get(id).ok_or(MigrateError::Closed)?;
        let disabled = self.handshake.peer_parameters().is_some_and(|p| p.disable_active_migration);
        // RFC 9000 §18.2: at the address that it prefers, a server takes part.
        if disabled && path.tuple.addrs.remote == self.paths.handshake_remote() {
            return Err(MigrateError::Disabled);
        }
        let addrs = FourTuple { local_ip, ..path.tuple.addrs };
        if let Some(index) = path.off_path().iter().position(|tuple| tuple.addrs == addrs) {
            return Ok(index);
        }
        self.try_tuple(now, id, addrs).ok_or(MigrateError::NoConnectionId)
    }

    /// Adds a tuple to an address of the peer that it has chosen itself, with a connection ID of its own.
    fn try_tuple(&mut self, now: Instant, id: PathId, addrs: FourTuple) -> Option<usize> {
        let path = self.paths.get_mut(id)?;
        path.pending.raise(Pending::ALL);
        if path.remote_cids.has_many_retirements() {
            return None;
        }
        // RFC 9000 §5.1.1: the peer needs an ID as well, or it could not answer.
        let events = &mut self.outbox.endpoint_events;
        if !path.remote_cids.has_spare() || !path.local_cids.prepare_move(events) {
            return None;
        }
        let remote_cid = path.remote_cids.take_spare()?;
        self.admit(now, id, addrs, AntiAmplification::new(true), remote_cid)
    }

    /// A client tries the address that its server prefers (RFC 9000 §9.6). Of two, it takes that of the family
    /// in use.
    pub(super) fn try_preferred_address(&mut self, now: Instant) {
        // Without connection IDs, datagrams from there would not be known as this connection's.
        let path = self.paths.primary();
        let can_follow = path.local_cids.cid_len() > 0 && self.config.follow_preferred_address;
        if self.side.is_server() || !can_follow {
            return;
        }
        let Some(preferred) = self.handshake.all_peer_parameters().and_then(|p| p.preferred_address) else {
            return;
        };
        let (v4, v6) = (preferred.v4.map(SocketAddr::V4), preferred.v6.map(SocketAddr::V6));
        let (id, current) = (path.id, path.tuple.addrs);
        let remote = if current.remote.is_ipv4() { v4.or(v6) } else { v6.or(v4) };
        let Some(remote) = remote.filter(|remote| *remote != current.remote && is_reachable(remote)) else {
            return;
        };
        if leads_to_loopback(current.remote, remote) {
            return;
        }
        let local_ip = current.local_ip.filter(|ip| ip.is_ipv4() == remote.is_ipv4());
        if let Some(index) = self.try_tuple(now, id, FourTuple { remote, local_ip, ..current }) {
            self.paths.primary_mut().preferred = Some(remote);
            self.probe(now, id, index);
        }
    }
}

/// Whether packets may be sent to an address that the peer has named: it must not make this end send packets to
/// everybody or to itself (RFC 9000 §21.5.3).
fn is_reachable(remote: &SocketAddr) -> bool {
    let ip = remote.ip();
    let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    remote.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && !broadcast
}
