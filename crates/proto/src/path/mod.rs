//! Paths and tuples: what lives as long as a path, and what is replaced on migration.
//!
//! A [`Path`] is a multipath path: a packet number space and sequences of connection IDs of its own; it lives
//! across migrations. A [`Tuple`] is a network path: the addresses and everything learned about what lies
//! between them; it is replaced when the path migrates. A path owns its tuple. A connection without multipath
//! has a path limit of one: path 0.
//!
//! RFC 9000 §5.1 (connection IDs), §8 (address validation), §9 (migration), §13.4 (ECN), §14 (datagram size),
//! RFC 9002 §5 (round-trip time).

mod amplification;
mod ecn;
mod local_cids;
mod mtud;
mod remote_cids;
mod responses;
mod rtt;
mod tuple;

use std::sync::Arc;

use fulmar_base::Rng;
use fulmar_wire::{ConnectionId, PathId};

pub(crate) use local_cids::LocalCids;
pub(crate) use remote_cids::{REMOTE_CIDS_MAX, RemoteCids};
pub(crate) use responses::PathResponses;
pub(crate) use rtt::GRANULARITY;
pub use rtt::{INITIAL_RTT, Rtt};
pub(crate) use tuple::Tuple;

use crate::config::EndpointConfig;
use crate::space::NumberSpace;

/// Names a tuple (a 4-tuple in use) within a connection. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TupleId(pub(crate) u32);

/// A multipath path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) id: PathId,
    /// The packet number space of the path's 1-RTT packets.
    pub(crate) space: NumberSpace,
    pub(crate) local_cids: LocalCids,
    pub(crate) remote_cids: RemoteCids,
    pub(crate) responses: PathResponses,
    pub(crate) tuple: Tuple,
}

impl Path {
    /// Path 0, on which the handshake takes place.
    pub(crate) fn new(
        space: NumberSpace,
        local_cid: ConnectionId,
        remote_cid: ConnectionId,
        tuple: Tuple,
        config: Arc<EndpointConfig>,
        rng: Rng,
    ) -> Self {
        let id = PathId::ZERO;
        Self {
            id,
            space,
            local_cids: LocalCids::new(id, local_cid, config, rng),
            remote_cids: RemoteCids::new(id, remote_cid),
            responses: PathResponses::default(),
            tuple,
        }
    }
}
