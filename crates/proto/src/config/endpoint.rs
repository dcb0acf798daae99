//! The configuration of an endpoint.

use std::sync::Arc;
use std::time::Duration;

use fulmar_wire::{ConnectionId, ResetToken, Version};

use crate::cids::{CidGenerator, RandomCids};
use crate::crypto::ResetKey;

/// How an endpoint behaves.
#[derive(Debug, Clone)]
pub struct EndpointConfig {
    /// The key of stateless reset tokens. With the same key, an endpoint that was restarted can tell its old
    /// peers that it has forgotten them (RFC 9000 §10.3).
    pub reset_key: ResetKey,
    /// Makes connection IDs. Default: 8 random bytes.
    pub cid_generator: Arc<dyn CidGenerator>,
    /// The versions that are accepted and offered, the preferred one first. A server goes over to the one that its
    /// client likes best (RFC 9368). Default: version 1, then version 2.
    pub versions: Vec<Version>,
    /// The version of a client's first packets, if that is not the preferred one. Default `None`.
    pub initial_version: Option<Version>,
    /// How many connection attempts may wait to be accepted; later ones are dropped. Default 1024.
    pub max_incoming: usize,
    /// Bytes of packets that are kept for one waiting attempt, the first one included; later ones are dropped, and
    /// attempts whose first datagram is larger. Default 16 KiB.
    pub max_incoming_bytes: usize,
    /// How many stateless resets are sent in a second at most; further packets without a connection are ignored.
    /// Default 200.
    pub max_stateless_resets: u32,
    /// Bytes that the applications of all connections together may have buffered for sending, sent and not acknowledged
    /// included, and what is remembered of lost packets. It bounds what peers that acknowledge nothing can pin.
    ///
    /// Each connection may hold 16 KiB of each kind. Beyond that it may hold as much as all together have left: a connection that is alone
    /// gets half of this, and the share of each shrinks with their number. When it is used up, writing waits. A server that
    /// fills many long paths at once needs more: six times the product of its rate and the round-trip time. If it is less than
    /// twice what a connection may have buffered by its own window, that counts instead. Default 16 MiB.
    pub send_memory: u64,
    /// Bytes that all connections together may hold of what they received and the application has not read: data of streams, and
    /// datagrams. It bounds what peers can pin whose data is read slowly, or that leave gaps in it.
    ///
    /// Each connection may hold 16 KiB of each kind. Beyond that, windows shrink with what is left of the first half of this, and
    /// waiting datagrams are dropped, the oldest first. When more than a quarter is used, clients prove their address before
    /// anything is kept of them ([`RetryPolicy::Auto`](crate::RetryPolicy)); when more than half is, new connections are refused.
    /// The second half is for what peers send by credit that they have from before. When nothing is left of it either, a
    /// connection that would need more is closed with INTERNAL_ERROR. All of that ends when memory comes back. If this is less
    /// than twice a connection's `receive_window_max`, that counts instead for what the connection may hold. Default 256 MiB.
    pub receive_memory: u64,
    /// Bytes that the decoders of forward erasure correction of all connections may take together. Each takes what its
    /// [`FecConfig::window`](crate::FecConfig::window) needs, 440 KiB for the largest, from the first protected packet that it receives to the end of
    /// the connection. One that does not find so much left recovers nothing until it does. One always may. Default 64 MiB.
    pub fec_memory: u64,
    /// The time of [`Instant::ZERO`](crate::Instant::ZERO), since the beginning of 1970: tokens that outlive a
    /// process are dated by it. Default zero, which is as good as the truth as long as it is the same for all
    /// servers that share keys.
    pub epoch: Duration,
}

impl EndpointConfig {
    /// The default configuration with the given key for stateless resets.
    pub fn new(reset_key: ResetKey) -> Self {
        Self {
            reset_key,
            cid_generator: Arc::new(RandomCids::new(8)),
            versions: vec![Version::V1, Version::V2],
            initial_version: None,
            max_incoming: 1_024,
            max_incoming_bytes: 16 << 10,
            max_stateless_resets: 200,
            send_memory: 16 << 20,
            receive_memory: 256 << 20,
            fec_memory: 64 << 20,
            epoch: Duration::ZERO,
        }
    }

    /// The stateless reset token of one of our connection IDs.
    pub(crate) fn reset_token(&self, cid: &ConnectionId) -> ResetToken {
        self.reset_key.token(cid)
    }

    pub(crate) fn supports(&self, version: Version) -> bool {
        self.versions.contains(&version)
    }
}
