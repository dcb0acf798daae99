//! Datagrams that did not take the tuple in use: from whom they are taken (RFC 9000 §9).

use std::net::SocketAddr;

use fulmar_wire::Side;

use super::handshake::HandshakeState;
use crate::datagram::{Datagram, FourTuple};
use crate::path::Path;

/// Where a datagram came from that did not take the tuple in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OffPathArrival {
    addrs: FourTuple,
    /// What the address sent before it was known.
    received: u64,
}

impl OffPathArrival {
    /// The addresses that the datagram took.
    pub(super) fn addrs(&self) -> FourTuple {
        self.addrs
    }

    /// What the address has sent so far.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Decides about a datagram that may open a path beside those of a peer at `known`; `None` if it is to be dropped.
    pub(super) fn on_new_path(datagram: &Datagram, known: SocketAddr) -> Option<Self> {
        let new = Self { addrs: datagram.addrs, received: datagram.payload.len() as u64 };
        (!leads_to_loopback(known, datagram.addrs.remote)).then_some(new)
    }

    /// Decides about a datagram that did not take the tuple in use; `None` if it is to be dropped.
    pub(super) fn of(
        datagram: &Datagram,
        path: &mut Path,
        side: Side,
        handshake: &HandshakeState,
    ) -> Option<Self> {
        // RFC 9000 §9: both ends stay where they are until the handshake is confirmed, and a client takes packets
        // from addresses only that its server has named.
        let remote = datagram.addrs.remote;
        if !handshake.is_confirmed() || !(side.is_server() || path.is_known_remote(remote)) {
            return None;
        }
        if leads_to_loopback(path.tuple.addrs.remote, remote) {
            return None;
        }
        let bytes = datagram.payload.len() as u64;
        if let Some(index) = path.off_path_at(&datagram.addrs) {
            let tuple = &mut path.off_path_mut()[index];
            tuple.amplification.on_received(bytes);
            return Some(Self { addrs: tuple.addrs, received: 0 });
        }
        Some(Self { addrs: datagram.addrs, received: bytes })
    }
}

impl Path {
    fn is_known_remote(&self, remote: SocketAddr) -> bool {
        remote == self.first_remote || self.leads_to(remote)
    }
}

/// Whether a connection over a network would go on with this host itself, which is how a peer may try to have requests sent to
/// services that trust their own host (RFC 9000 §21.5.6).
pub(super) fn leads_to_loopback(from: SocketAddr, to: SocketAddr) -> bool {
    let is_loopback = |addr: SocketAddr| addr.ip().to_canonical().is_loopback();
    is_loopback(to) && !is_loopback(from)
}
