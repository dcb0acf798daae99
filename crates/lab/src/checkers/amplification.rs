//! A server sends little to an address that may be forged (RFC 9000 §8.1).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use fulmar_wire::{ConnectionId, ProtectedKind, read_packet};

/// How many times what it received a server may send to an address that is not validated.
const FACTOR: u64 = 3;

/// Counts for one connection of a server what it received and sent before the client proved that it receives.
///
/// This counts without any help of the connection: the address is validated when a Handshake packet arrives,
/// because only who has seen the server's first packet can make one.
#[derive(Debug, Default)]
pub(crate) struct Amplification {
    received: u64,
    sent: u64,
    validated: bool,
}

impl Amplification {
    /// A datagram arrived for the connection.
    pub(crate) fn on_received(&mut self, payload: &[u8], cid_len: usize) {
        self.received += payload.len() as u64;
        self.validated |= has_handshake_packet(payload, cid_len);
    }

    /// The client has shown a token that only its address can have been given.
    pub(crate) fn validate(&mut self) {
        self.validated = true;
    }

    /// The connection sends `bytes`.
    pub(crate) fn on_sent(&mut self, bytes: u64) -> Result<(), String> {
        self.sent += bytes;
        if self.validated || self.sent <= FACTOR * self.received {
            return Ok(());
        }
        Err(format!("{} bytes were sent to an address that had sent {}", self.sent, self.received))
    }
}

/// Datagrams that the endpoint keeps for a connection that it does not have yet: early data may overtake the first
/// packet. They count for the address that they came from.
#[derive(Debug, Default)]
pub(crate) struct Kept(BTreeMap<(SocketAddr, ConnectionId), Vec<Vec<u8>>>);

impl Kept {
    /// The endpoint has kept a datagram.
    pub(crate) fn keep(&mut self, source: SocketAddr, payload: &[u8], cid_len: usize) {
        if let Ok(packet) = read_packet(payload, cid_len) {
            self.0.entry((source, packet.dst)).or_default().push(payload.to_vec());
        }
    }

    /// The connection that `first` opens is there: what was kept for it.
    pub(crate) fn take(&mut self, source: SocketAddr, first: &[u8], cid_len: usize) -> Vec<Vec<u8>> {
        let dst = read_packet(first, cid_len).map(|packet| packet.dst);
        dst.ok().and_then(|dst| self.0.remove(&(source, dst))).unwrap_or_default()
    }
}

fn has_handshake_packet(mut payload: &[u8], cid_len: usize) -> bool {
    while let Ok(packet) = read_packet(payload, cid_len) {
        if matches!(packet.kind, ProtectedKind::Handshake { .. }) {
            return true;
        }
        match payload.get(packet.len..) {
            Some(rest) if packet.len > 0 => payload = rest,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests;
