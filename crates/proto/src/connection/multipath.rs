//! Paths come and go (RFC 10069 §3): the client opens them, the server follows, either end abandons them.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{PathAbandon, PathId, PathStatus, TransportErrorCode, VarInt};
use thiserror::Error;

use super::Connection;
use super::delivery::Fate;
use super::off_path_arrival::OffPathArrival;
use super::recovery::{Recovery, pto_base_max};
use crate::datagram::FourTuple;
use crate::error::TransportError;
use crate::events::{PathEvent, PathUse};
use crate::ids::{SpaceId, TupleId};
use crate::path::{
    AntiAmplification, Draining, Multipath, MultipathSetup, NoPath, Path, PathCids, Pending, ProbeTimer,
    Tuple,
};
use crate::space::NumberSpace;

/// For how many probe timeouts packets may still arrive on a path that the peer has abandoned (RFC 10069 §3.4).
const DRAINING_PTOS: u32 = 3;

/// How long the connection IDs of a path that this end has abandoned are kept for a peer that does not say that it has abandoned
/// it, too. Until then it may go on sending there. One that says nothing for as long as connections may be idle by default has
/// either lost this one or does not do what it must; what it sends there later is a stranger's.
const PEER_ABANDON_MAX: Duration = Duration::from_secs(30);

/// Why no path can be opened now.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenPathError {
    /// One of the ends has no multipath.
    #[error("the ends have not agreed on multipath")]
    NotNegotiated,
    /// Only clients open paths (RFC 10069 §3).
    #[error("only a client opens a path")]
    NotAClient,
    /// The handshake is not confirmed.
    #[error("the handshake is not confirmed yet")]
    NotConfirmed,
    /// The server wants no other paths to its address (RFC 9000 §18.2, disable_active_migration).
    #[error("the server takes no other paths to its address")]
    Disabled,
    /// One of the ends allows no more paths now. The peer was told, if it is that.
    #[error("no more paths are allowed")]
    Limit,
    /// The server has given no connection ID for another path. It may do so in a moment.
    #[error("the server has given no connection ID for another path")]
    NoConnectionId,
    /// The connection is over.
    #[error("the connection is closed")]
    Closed,
    /// No datagram can reach the address from there: its port is zero, its family is another, or there is no such socket. Who has the
    /// sockets says so, as the core knows none.
    #[error("the address cannot be reached from there")]
    Unreachable,
}

/// Why a path cannot be abandoned, or its status set.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// There is no such path, or it is gone.
    #[error("there is no such path")]
    Unknown,
    /// It is the only one: close the connection instead.
    #[error("it is the only path")]
    LastPath,
}

/// A path of a connection as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathInfo {
    /// Its name, which both ends know it by.
    pub id: PathId,
    /// The addresses in use.
    pub addrs: FourTuple,
    /// Whether the peer was seen to receive there.
    pub validated: bool,
    /// What this end wants of it.
    pub local_use: PathUse,
    /// What the peer wants of it.
    pub remote_use: PathUse,
    /// What it costs to use it, see [`Connection::set_path_cost`].
    pub cost: u32,
}

impl Connection {
    /// Whether the handshake is confirmed (RFC 9001 §4.1.2), as from then on more paths can be opened.
    pub fn is_confirmed(&self) -> bool {
        self.handshake.is_confirmed()
    }

    /// Whether both ends have multipath.
    pub fn is_multipath(&self) -> bool {
        self.paths.multipath.is_some()
    }

    /// The paths that are open, in the order of their IDs. There is always one.
    pub fn paths(&self) -> impl Iterator<Item = PathInfo> {
        self.paths.iter().map(|path| {
            let status = self.paths.multipath.as_ref().map_or((true, true), |m| m.status(path.id));
            PathInfo {
                id: path.id,
                addrs: path.tuple.addrs,
                validated: path.tuple.validated,
                local_use: PathUse::new(status.0),
                remote_use: PathUse::new(status.1),
                cost: self.paths.multipath.as_ref().map_or(1, |m| m.cost(path.id)),
            }
        })
    }

    /// Opens another path over these addresses (RFC 10069 §3.1). It carries data once the server has answered, which
    /// [`PathEvent::Validated`] tells. If it does not, [`PathEvent::Abandoned`] follows.
    ///
    /// # Errors
    /// See [`OpenPathError`]. Then nothing has changed.
    pub fn open_path(&mut self, now: Instant, addrs: FourTuple) -> Result<PathId, OpenPathError> {
        if !self.lifecycle.is_open() {
            return Err(OpenPathError::Closed);
        }
        if self.side.is_server() {
            return Err(OpenPathError::NotAClient);
        }
        if !self.handshake.is_confirmed() {
            return Err(OpenPathError::NotConfirmed);
        }
        let disabled = self.handshake.peer_parameters().is_some_and(|p| p.disable_active_migration);
        if disabled && addrs.remote == self.paths.handshake_remote() {
            return Err(OpenPathError::Disabled);
        }
        self.paths.raise(Pending::MULTIPATH);
        let multipath = self.paths.multipath.as_mut().ok_or(OpenPathError::NotNegotiated)?;
        let id = multipath.next_unused().map_err(|reason| match reason {
            NoPath::Limit => OpenPathError::Limit,
            NoPath::NoCid => OpenPathError::NoConnectionId,
        })?;
        let cids = multipath.open(id).ok_or(OpenPathError::NoConnectionId)?;
        self.add_path(now, id, addrs, AntiAmplification::new(true), cids);
        Ok(id)
    }

    /// Abandons a path: nothing is sent on it any more, and what was under way is sent again on others. `code` is a
    /// transport error code that tells the peer why, such as [`TransportErrorCode::APPLICATION_ABANDON_PATH`].
    ///
    /// # Errors
    /// There is no such path, or no other one that was validated: one that may lead nowhere is no replacement.
    pub fn abandon_path(
        &mut self,
        now: Instant,
        id: PathId,
        code: TransportErrorCode,
    ) -> Result<(), PathError> {
        if self.paths.get(id).is_none() {
            return Err(PathError::Unknown);
        }
        if !self.paths.iter().any(|other| other.id != id && other.tuple.validated) {
            return Err(PathError::LastPath);
        }
        self.drop_path(now, id, VarInt::saturating(code.0), false);
        Ok(())
    }

    /// Tells the peer what this end wants of a path, and does so itself.
    ///
    /// # Errors
    /// There is no such path.
    pub fn set_path_use(&mut self, id: PathId, wanted: PathUse) -> Result<(), PathError> {
        if self.paths.get(id).is_none() {
            return Err(PathError::Unknown);
        }
        let multipath = self.paths.multipath.as_mut().ok_or(PathError::Unknown)?;
        multipath.set_status(id, wanted == PathUse::Available);
        self.paths.raise(Pending::ALL);
        Ok(())
    }

    /// Says what it costs to use a path, for the scheduler, which decides what follows from that. The peer does not hear of it.
    /// 1 where nobody has said so.
    ///
    /// # Errors
    /// There is no such path.
    pub fn set_path_cost(&mut self, id: PathId, cost: u32) -> Result<(), PathError> {
        if self.paths.get(id).is_none() {
            return Err(PathError::Unknown);
        }
        let multipath = self.paths.multipath.as_mut().ok_or(PathError::Unknown)?;
        multipath.set_cost(id, cost);
        self.paths.raise(Pending::ALL);
        Ok(())
    }

    /// Both ends have offered the extension.
    pub(super) fn begin_multipath(&mut self) -> Result<(), TransportError> {
        let peer = self.handshake.all_peer_parameters();
        let (Some(config), Some(peer)) = (&self.config.multipath, peer) else { return Ok(()) };
        let path = self.paths.primary();
        let Some(peer_max) = peer.initial_max_path_id.filter(|_| path.local_cids.cid_len() > 0) else {
            return Ok(());
        };
        if path.remote_cids.active().is_empty() {
            // RFC 10069 §2.1.
            return Err(TransportError::protocol_violation("multipath without connection IDs"));
        }
        let setup = MultipathSetup {
            paths_max: config.paths_max,
            scheduler: config.scheduler.build(),
            coupling: config.coupling.as_ref().map(|coupling| coupling.build()),
            peer_max,
            handshake_remote: path.first_remote,
            peer_cids_max: peer.active_connection_id_limit.get(),
            remote_cids_max: self.config.connection_ids,
            config: path.local_cids.config().clone(),
            rng: self.rng.fork(),
        };
        let multipath = Multipath::new(setup, &mut self.outbox.endpoint_events);
        self.paths.multipath = Some(Box::new(multipath));
        Ok(())
    }

    /// Follows a client that has opened a path: its first packet there was authentic. Returns false if this end cannot
    /// follow, because one of the ends has given no connection ID for it yet.
    pub(super) fn follow_path(&mut self, now: Instant, id: PathId, arrival: &OffPathArrival) -> bool {
        let cids = self.paths.multipath.as_mut().and_then(|multipath| multipath.open(id));
        let Some(cids) = cids else { return false };
        let mut amplification = AntiAmplification::new(false);
        amplification.on_received(arrival.received());
        self.add_path(now, id, arrival.addrs(), amplification, cids);
        true
    }

    /// The longest probe timeout of all paths.
    pub(super) fn probe_timeout_max(&self) -> Duration {
        pto_base_max(&self.paths, &self.handshake, &self.extensions)
    }

    fn add_path(
        &mut self,
        now: Instant,
        id: PathId,
        addrs: FourTuple,
        amplification: AntiAmplification,
        cids: PathCids,
    ) {
        let first = self.paths.primary();
        let (policy, mtu_limit) = (first.space.ack_policy(), first.mtu_limit);
        let mut rng = self.rng.fork();
        let mut tuple = Tuple::new(TupleId(0), addrs, amplification, &self.config, now, &mut rng);
        tuple.mtud.on_peer_limit(mtu_limit);
        tuple.on_mtu_changed(now);
        let left = self.paths.multipath.as_mut().and_then(|multipath| multipath.left.take(now, &addrs));
        if let Some(saved) = left {
            tuple.congestion.resume(saved);
        }
        let mut space = NumberSpace::new(policy, &mut rng);
        space.begin_beside_others();
        let pto = ProbeTimer::new(now, self.config.timers);
        let mut path = Path::with_cids(id, space, cids, tuple, pto, rng);
        path.mtu_limit = mtu_limit;
        path.allowed = Pending::OWN;
        path.begin_validation(now, &self.config);
        self.paths.add(path);
        self.paths.raise(Pending::ALL);
        self.outbox.push_path(PathEvent::Opened { path: id, addrs });
    }

    /// The peer abandons a path.
    pub(super) fn on_path_abandon(
        &mut self,
        now: Instant,
        frame: &PathAbandon,
    ) -> Result<(), TransportError> {
        let draining = self.probe_timeout_max() * DRAINING_PTOS;
        let Some(multipath) = &mut self.paths.multipath else { return Ok(()) };
        if !multipath.admits(frame.path)? {
            multipath.abandoned.on_by_both(frame.path, now + draining);
            return Ok(());
        }
        if self.paths.get(frame.path).is_some() && self.paths.is_single() {
            // RFC 10069 §3.4: the connection ends with its last path.
            return Err(TransportError::new(
                TransportErrorCode::NO_VIABLE_PATH,
                "the last path was abandoned",
            ));
        }
        self.drop_path(now, frame.path, frame.code, true);
        Ok(())
    }

    /// The peer says whether a path should be used.
    pub(super) fn on_path_status(&mut self, frame: &PathStatus) -> Result<(), TransportError> {
        let Some(multipath) = &mut self.paths.multipath else { return Ok(()) };
        if multipath.on_status(frame)? {
            let wanted = PathUse::new(frame.available);
            self.outbox.push_path(PathEvent::Status { path: frame.path, wanted });
        }
        Ok(())
    }

    /// A path, open or not yet, is gone from now on.
    pub(super) fn drop_path(&mut self, now: Instant, id: PathId, code: VarInt, by_peer: bool) {
        self.recovery(now).lose_all(id);
        self.resend_released(now);
        let draining = self.probe_timeout_max() * DRAINING_PTOS;
        let path = self.paths.remove(id);
        if let Some(log) = self.log_mut().filter(|_| path.is_some()) {
            log.forget_path(id);
        }
        let (draining, left) = path
            .map(|path| {
                path.remote_cids.forget(&mut self.outbox.endpoint_events);
                self.outbox.push_path(PathEvent::Abandoned { path: id, code, by_peer });
                let until = now + if by_peer { draining } else { draining.max(PEER_ABANDON_MAX) };
                (Draining::new(until, by_peer, path.local_cids, path.space), path.tuple)
            })
            .unzip();
        let mut over = None;
        if let Some(multipath) = &mut self.paths.multipath {
            if let Some(tuple) = &left {
                multipath.left.keep(now, tuple);
            }
            over = multipath.abandon(id, code, draining, &mut self.outbox.endpoint_events);
        }
        self.forget_keys_of(over);
        self.paths.raise(Pending::ALL);
        self.liveness.idle.on_pto_changed();
    }

    /// Nothing arrives on these paths any more.
    pub(super) fn forget_keys_of(&mut self, paths: impl IntoIterator<Item = PathId>) {
        if let Some(keys) = self.handshake.keys.one_rtt_mut() {
            paths.into_iter().for_each(|path| keys.forget_path(path));
        }
    }
}

impl Recovery<'_> {
    /// All that is in flight on a path is said again, as the path is gone. That tells nothing of congestion elsewhere.
    fn lose_all(&mut self, id: PathId) {
        let space = SpaceId::Data(id);
        let Some(path) = self.owners.paths.get_mut(id) else { return };
        let sent: Vec<_> = path.space.discard().collect();
        for (_, packet) in &sent {
            match packet.symbol {
                Some(symbol) => self.on_symbol_lost(space, symbol, packet),
                None if packet.repeated => self.owners.lose_repeated(space, &packet.frames),
                None => self.owners.deliver(space, &packet.frames, Fate::Lost),
            }
        }
    }
}
