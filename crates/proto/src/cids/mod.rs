//! Connection IDs that an endpoint issues, and what load balancers and workers can read in them.
//!
//! A [`CidGenerator`] makes them. [`RandomCids`] are random bytes, and [`EmptyCids`] have no bytes. From those of [`QuicLb`] load
//! balancers learn the server. [`WorkerCids`] add a byte to any of them, from which the kernel learns the worker.

mod quic_lb;
mod worker;

use std::fmt;

use fulmar_base::Rng;
use fulmar_wire::ConnectionId;

pub use quic_lb::{QuicLb, QuicLbConfig, QuicLbError};
pub use worker::WorkerCids;

/// Makes the connection IDs that an endpoint issues.
pub trait CidGenerator: Send + Sync + fmt::Debug {
    /// A new connection ID, of [`CidGenerator::cid_len`] bytes and unlike all others with overwhelming
    /// probability. Nobody but load balancers may see that two IDs have something in common (RFC 9000 §5.1).
    fn generate(&self, rng: &mut Rng) -> ConnectionId;

    /// The length of all IDs that this generator makes, 0 to 20 bytes. Where it is 0, the endpoint tells
    /// connections apart by the address of the peer.
    fn cid_len(&self) -> usize;
}

/// Connection IDs of random bytes.
#[derive(Debug, Clone, Copy)]
pub struct RandomCids {
    len: usize,
}

impl RandomCids {
    /// IDs of `len` bytes, 4 to 20. With 4 or 5 they are for few connections at a time: among 77,000 of 4 bytes (each connection has
    /// up to five) two are the same with a probability of a half, and what is sent to it reaches the connection that had it first.
    ///
    /// # Panics
    /// Panics if `len` is out of this range: shorter IDs would collide.
    pub fn new(len: usize) -> Self {
        assert!((4..=20).contains(&len), "a connection ID has 4 to 20 bytes");
        Self { len }
    }
}

impl CidGenerator for RandomCids {
    fn generate(&self, rng: &mut Rng) -> ConnectionId {
        let bytes: [u8; 20] = rng.bytes();
        ConnectionId::new(&bytes[..self.len]).unwrap_or(ConnectionId::EMPTY)
    }

    fn cid_len(&self) -> usize {
        self.len
    }
}

/// No connection IDs: 8 bytes less in every packet to this end (RFC 9000 §5.1).
///
/// For clients that keep a socket for each connection. A connection without IDs does not survive a change of the
/// peer's address, and a second one to the same address cannot be told from the first.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmptyCids;

impl CidGenerator for EmptyCids {
    fn generate(&self, _: &mut Rng) -> ConnectionId {
        ConnectionId::EMPTY
    }

    fn cid_len(&self) -> usize {
        0
    }
}

/// A connection ID that nobody can guess, for a client's first packets (RFC 9000 §7.2).
pub(crate) fn random_cid(rng: &mut Rng) -> ConnectionId {
    ConnectionId::new(&rng.bytes::<8>()).unwrap_or(ConnectionId::EMPTY)
}
