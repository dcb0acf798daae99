//! Paths and tuples: what lives as long as a path, and what is replaced on migration.
//!
//! A [`Path`] is a multipath path: a packet number space, sequences of connection IDs and a probe timeout of its own;
//! it lives across migrations. A [`Tuple`] is a network path: the addresses and everything learned about what lies
//! between them; it is replaced when the path migrates. A path owns its tuples: the one in use, and a few that are
//! being tried or that it may return to. A connection without multipath has a path limit of one: path 0.
//!
//! When tuples come and go is decided in `connection/migration.rs`.
//!
//! RFC 9000 §5.1 (connection IDs), §8 (address validation), §9 (migration), §13.4 (ECN), §14 (datagram size).

mod amplification;
mod datagram_copies;
mod ecn;
mod left_paths;
mod local_cids;
mod mtud;
mod multipath;
mod packed;
mod paths;
mod pending;
mod probe_timer;
mod remote_cids;
mod responses;
mod spin;
mod tuple;
mod tuples;
mod validation;

use std::net::SocketAddr;
use std::sync::Arc;

use fulmar_base::{Instant, Rng, Timer};
use fulmar_wire::{ConnectionId, PathId};

use crate::packed::packed_around;
pub(crate) use amplification::AntiAmplification;
pub(crate) use left_paths::LeftPaths;
pub(crate) use local_cids::LocalCids;
pub(crate) use multipath::{Draining, Multipath, MultipathSetup, NoPath, PathCids, initial_max};
pub(crate) use packed::PackedPath;
pub(crate) use paths::Paths;
pub(crate) use pending::Pending;
pub(crate) use probe_timer::ProbeTimer;
pub(crate) use remote_cids::RemoteCids;
pub(crate) use tuple::Tuple;
pub(crate) use tuples::{MigrationCause, Tuples};
pub(crate) use validation::Validation;

use crate::config::EndpointConfig;
use crate::datagram::FourTuple;
use crate::ids::TupleId;
use crate::space::NumberSpace;

/// Tuples that were removed before they had answered. There are none most of the time.
#[derive(Debug, Default)]
struct GivenUp(Vec<FourTuple>);

/// A multipath path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) id: PathId,
    /// The packet number space of the path's 1-RTT packets.
    pub(crate) space: NumberSpace,
    pub(crate) local_cids: LocalCids,
    pub(crate) remote_cids: RemoteCids,
    /// The tuple in use.
    pub(crate) tuple: Tuple,
    off_path: Vec<Tuple>,
    /// The tuples that were removed before they had answered, which nobody has been told of.
    given_up: Option<Box<GivenUp>>,
    /// The largest congestion window of the tuples that were in use before.
    window_max: u64,
    /// Which of those off the path was in use before and is returned to if the one in use fails.
    fallback: Option<TupleId>,
    /// When the tuple in use was last changed.
    pub(crate) switched: Option<Instant>,
    /// Where the peer was in the handshake.
    pub(crate) first_remote: SocketAddr,
    /// Whether this end ever sent a challenge, so that an answer is no lie.
    pub(crate) has_challenged: bool,
    /// Whether no tuple of the path was ever validated.
    pub(crate) is_unproven: bool,
    /// How many validations of the tuple in use have failed since one succeeded.
    pub(crate) failures: u32,
    /// The largest datagram that the peer takes.
    pub(crate) mtu_limit: u16,
    /// Who may have something to send here.
    pub(crate) pending: Pending,
    /// Who may send here; everybody where there is one path.
    pub(crate) allowed: Pending,
    /// When an acknowledgement is overdue.
    pub(crate) pto: ProbeTimer,
    /// When the pacer lets the next packets leave.
    pub(crate) pacing: Timer,
    /// The address that the server prefers, while it is being tried.
    pub(crate) preferred: Option<SocketAddr>,
    pub(crate) rng: Rng,
    last_id: u32,
}

packed_around!(Path {
    id,
    remote_cids,
    window_max,
    fallback,
    switched,
    first_remote,
    has_challenged,
    is_unproven,
    failures,
    mtu_limit,
    pending,
    allowed,
    pto,
    pacing,
    preferred,
    rng,
    last_id,
} empty { off_path, given_up } around { space: NumberSpace, local_cids: LocalCids, tuple: Tuple });

/// What a connection gives to its first path.
pub(crate) struct PathSetup {
    pub(crate) space: NumberSpace,
    /// The connection ID that the peer writes to in the handshake.
    pub(crate) local_cid: ConnectionId,
    /// The connection ID that is written to in the handshake.
    pub(crate) remote_cid: ConnectionId,
    /// How many connection IDs of the peer are kept at a time (`active_connection_id_limit`).
    pub(crate) remote_cids_max: u64,
    /// The tuple of the handshake.
    pub(crate) tuple: Tuple,
    pub(crate) pto: ProbeTimer,
    pub(crate) config: Arc<EndpointConfig>,
    pub(crate) rng: Rng,
}

impl Path {
    /// Path 0, on which the handshake takes place.
    pub(crate) fn new(setup: PathSetup) -> Self {
        let PathSetup { space, local_cid, remote_cid, remote_cids_max, mut tuple, pto, config, mut rng } =
            setup;
        let id = PathId::ZERO;
        tuple.peer_dst = Some(local_cid);
        let local = LocalCids::new(id, local_cid, config, rng.fork());
        let cids = PathCids { local, remote: RemoteCids::new(id, remote_cid, remote_cids_max) };
        Self::with_cids(id, space, cids, tuple, pto, rng)
    }

    /// A path with the connection IDs that both ends have given for it.
    pub(crate) fn with_cids(
        id: PathId,
        space: NumberSpace,
        cids: PathCids,
        mut tuple: Tuple,
        pto: ProbeTimer,
        rng: Rng,
    ) -> Self {
        tuple.remote_cid = cids.remote.active_sequence();
        Self {
            id,
            space,
            local_cids: cids.local,
            remote_cids: cids.remote,
            off_path: Vec::new(),
            given_up: None,
            window_max: 0,
            fallback: None,
            switched: None,
            first_remote: tuple.addrs.remote,
            has_challenged: false,
            is_unproven: !tuple.validated,
            failures: 0,
            mtu_limit: u16::MAX,
            pending: Pending::ALL,
            allowed: Pending::ALL,
            pto,
            pacing: Timer::new(),
            preferred: None,
            last_id: tuple.id.0,
            tuple,
            rng,
        }
    }

    /// Who may have something to send here, and may send it.
    #[inline]
    pub(crate) fn due(&self) -> Pending {
        self.pending.and(self.allowed)
    }

    /// What was said of connection IDs, and is not acknowledged, is said again: it may have gone where nobody is any more.
    pub(crate) fn repeat_cid_frames(&mut self) {
        self.local_cids.repeat_announcements();
        self.remote_cids.repeat_retirements();
        self.pending.raise(Pending::LOCAL_CIDS);
        self.pending.raise(Pending::REMOTE_CIDS);
    }

    /// Gives back the memory that nothing needs while the path rests.
    pub(crate) fn rest(&mut self) {
        self.space.rest();
        self.local_cids.rest();
        self.remote_cids.rest();
        self.off_path.shrink_to_fit();
        self.rng.rest();
        self.tuple.responses.rest();
    }

    /// Whether nothing is under way and there is nothing but the tuple in use, so that the path can be packed.
    fn is_at_rest(&self) -> bool {
        let tuple = &self.tuple;
        let is_alone = self.off_path.is_empty() && self.given_up.is_none() && tuple.validation.is_none();
        is_alone && self.space.is_at_rest() && tuple.congestion.is_at_rest()
    }

    /// The largest congestion window so far, of all tuples that were in use.
    pub(crate) fn window_max(&self) -> u64 {
        self.window_max.max(self.tuple.congestion.window_max())
    }

    /// The payload of the largest 1-RTT packet.
    pub(crate) fn datagram_room(&self) -> usize {
        usize::from(self.tuple.mtu()) - self.packet_overhead()
    }

    /// The bytes of a 1-RTT packet beside its payload at most.
    pub(crate) fn packet_overhead(&self) -> usize {
        1 + self.remote_cids.active().len() + 4 + crate::crypto::TAG_LEN
    }
}
