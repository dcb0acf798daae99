//! What the relay saw: counts, and the server's use of the amplification limit.

use std::net::SocketAddr;
use std::time::Instant;

/// QUIC version 1, the only one whose packet types are read here.
const VERSION_1: u32 = 1;
/// Long header packet types, RFC 9000 §17.2.
const TYPE_INITIAL: u8 = 0;
const TYPE_HANDSHAKE: u8 = 2;
const TYPE_RETRY: u8 = 3;
/// A server may send this many times what it received before the client's address is validated, RFC 9000 §8.1.
const AMPLIFICATION_FACTOR: u64 = 3;

/// Counts of what passed the relay, in datagrams and in bytes of UDP payload.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic {
    /// Where the client's last datagram came from.
    pub(super) client: Option<SocketAddr>,
    /// What was let through to the server.
    pub(crate) to_server: Count,
    /// What came from the server, whether or not it was let through.
    pub(crate) from_server: Count,
    /// Whether the client proved its address to the server, with a Handshake packet that was let through.
    pub(crate) client_validated: bool,
    /// The worst breach of the amplification limit by the server, if there was one.
    pub(crate) amplification: Option<Amplification>,
    /// Retry packets from the server.
    pub(crate) retries: u64,
    /// The largest datagram of the client with a short header.
    pub(super) largest_protected: Vec<u8>,
}

/// Datagrams of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Count {
    pub(crate) datagrams: u64,
    pub(crate) bytes: u64,
    pub(crate) last: Option<Instant>,
}

/// A breach of the amplification limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amplification {
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

impl Traffic {
    /// Counts a datagram that goes on to the server now.
    pub(super) fn on_to_server(&mut self, datagram: &[u8]) {
        self.to_server.add(datagram);
        // A Handshake packet shows that the client read what the server sent to this address, RFC 9000 §8.1.
        self.client_validated |= long_header_types(datagram).any(|kind| kind == TYPE_HANDSHAKE);
        if is_protected(datagram) && datagram.len() > self.largest_protected.len() {
            self.largest_protected = datagram.to_vec();
        }
    }

    /// Counts a datagram that came from the server.
    pub(super) fn on_from_server(&mut self, datagram: &[u8]) {
        self.from_server.add(datagram);
        self.retries += u64::from(long_header_types(datagram).next() == Some(TYPE_RETRY));
        let now = Amplification { received: self.to_server.bytes, sent: self.from_server.bytes };
        let is_worse = self.amplification.is_none_or(|worst| now.factor() > worst.factor());
        if !self.client_validated && now.exceeds(AMPLIFICATION_FACTOR) && is_worse {
            self.amplification = Some(now);
        }
    }

    /// When the last datagram passed, in whatever direction.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.to_server.last.max(self.from_server.last)
    }
}

impl Amplification {
    /// Whether the server sent more than `factor` times what it received.
    pub(crate) fn exceeds(self, factor: u64) -> bool {
        self.sent > factor * self.received
    }

    fn factor(self) -> f64 {
        self.sent as f64 / self.received as f64
    }
}

impl Count {
    fn add(&mut self, datagram: &[u8]) {
        self.datagrams += 1;
        self.bytes += datagram.len() as u64;
        self.last = Some(Instant::now());
    }
}

/// Whether the first packet has a short header.
fn is_protected(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0x80 == 0)
}

/// The types of the long header packets in a datagram, up to the first byte that is none.
///
/// Type and lengths are not protected, RFC 9001 §5.4, so no keys are needed to walk coalesced packets.
fn long_header_types(datagram: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let (kind, after) = split_long_header_packet(rest)?;
        rest = after;
        Some(kind)
    })
}

/// The type of the first packet and what follows it, RFC 9000 §17.2; `None` for anything else than version 1.
fn split_long_header_packet(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (version, rest) = rest.split_first_chunk::<4>()?;
    if first & 0x80 == 0 || u32::from_be_bytes(*version) != VERSION_1 {
        return None;
    }
    let kind = (first >> 4) & 0b11;
    let rest = skip_connection_id(skip_connection_id(rest)?)?;
    if kind == TYPE_RETRY {
        // A Retry packet has no length and takes the rest of the datagram.
        return Some((kind, &[]));
    }
    let rest = if kind == TYPE_INITIAL {
        let (token_len, rest) = split_varint(rest)?;
        rest.get(token_len..)?
    } else {
        rest
    };
    let (len, rest) = split_varint(rest)?;
    Some((kind, rest.get(len..)?))
}

fn skip_connection_id(bytes: &[u8]) -> Option<&[u8]> {
    let (&len, rest) = bytes.split_first()?;
    rest.get(usize::from(len)..)
}

/// A variable-length integer, RFC 9000 §16.
fn split_varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = number[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    Some((usize::try_from(value).ok()?, rest))
}

#[cfg(test)]
mod tests;
