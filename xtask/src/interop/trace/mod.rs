//! Captured datagrams as QUIC packets: whose they are, and, where the key log has the secrets, what is in them.
//!
//! The observer reads what one end of the network saw, in order. It follows connection IDs, Retry, version changes and key
//! updates as far as the rules of the cases need it; a packet that it cannot open is still listed.

mod connection;
mod key_log;
mod keys;

use std::net::SocketAddr;

use fulmar_wire::{
    ConnectionId, Dialect, Frame, PacketKind, ProtectedKind, ProtectedPacket, Side, Version, frames,
    read_packet,
};

use self::connection::Tracked;
pub(super) use self::connection::contiguous;
pub(super) use self::key_log::KeyLog;
pub(crate) use self::keys::PacketKeys;
use super::network::Seen;

/// What kind of packet it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Protected(PacketKind),
    Retry,
    VersionNegotiation,
}

/// A packet, as far as it could be read.
#[derive(Debug, Clone)]
pub(super) struct QuicPacket {
    pub(super) from: Side,
    /// The client's address, as this end of the network saw it.
    pub(super) client: SocketAddr,
    pub(super) server: SocketAddr,
    pub(super) ecn: u8,
    pub(super) kind: Kind,
    /// The version in a long header.
    pub(super) version: Option<Version>,
    pub(super) dst: ConnectionId,
    /// Empty in short headers.
    pub(super) src: ConnectionId,
    /// Of an Initial or Retry packet.
    pub(super) token: Vec<u8>,
    /// Which connection it belongs to, counted from 0; `None` if that cannot be told.
    pub(super) connection: Option<usize>,
    /// What was inside, if it could be opened.
    pub(super) content: Option<Content>,
    /// The bytes of the packet, and of the datagram if it is the first in it, else 0.
    pub(super) len: usize,
    pub(super) datagram_len: usize,
}

/// The inside of a packet.
#[derive(Debug, Clone)]
pub(super) struct Content {
    pub(super) number: u64,
    pub(super) key_phase: bool,
    payload: Vec<u8>,
}

impl QuicPacket {
    pub(super) fn is(&self, from: Side, kind: PacketKind) -> bool {
        self.from == from && self.kind == Kind::Protected(kind)
    }

    /// The frames, if the packet could be opened; one that is malformed ends them.
    pub(super) fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        let payload = self.content.as_ref().map_or(&[][..], |content| &content.payload);
        frames(payload, Dialect::SinglePath).map_while(Result::ok)
    }
}

/// The bit that is one in all packets of QUIC, unless it is greased (RFC 9000 §17, RFC 9287).
const QUIC_BIT: u8 = 0x40;

/// Reads all packets of a capture.
pub(super) fn read<'a>(seen: impl Iterator<Item = &'a Seen>, key_log: &KeyLog) -> Vec<QuicPacket> {
    let mut observer = Observer { key_log, connections: Vec::new(), packets: Vec::new() };
    for seen in seen {
        if let Some(payload) = seen.payload() {
            observer.datagram(seen, payload);
        }
    }
    observer.packets
}

struct Observer<'a> {
    key_log: &'a KeyLog,
    connections: Vec<Tracked>,
    packets: Vec<QuicPacket>,
}

impl Observer<'_> {
    fn datagram(&mut self, seen: &Seen, datagram: &[u8]) {
        let (client, server) = match seen.from {
            Side::Client => (seen.packet.from(), seen.packet.to()),
            Side::Server => (seen.packet.to(), seen.packet.from()),
        };
        let mut rest = datagram;
        while !rest.is_empty() {
            let Some(header) = self.header(seen.from, client, rest) else { return };
            let (bytes, behind) = rest.split_at(header.len.min(rest.len()));
            let connection = self.connection_of(seen.from, client, &header);
            let content = connection.and_then(|index| {
                self.connections[index].see(seen.from, client, &header, bytes, self.key_log)
            });
            self.packets.push(QuicPacket {
                from: seen.from,
                client,
                server,
                ecn: seen.packet.ecn,
                kind: kind(&header.kind),
                version: header.version,
                dst: header.dst,
                src: header.src,
                token: token(&header.kind, bytes).to_vec(),
                connection,
                content,
                len: bytes.len(),
                datagram_len: if rest.len() == datagram.len() { datagram.len() } else { 0 },
            });
            rest = behind;
        }
    }

    /// Reads a header. How long the connection ID of a short one is, only the connections know.
    fn header(&self, from: Side, client: SocketAddr, bytes: &[u8]) -> Option<ProtectedPacket> {
        let known = self.connections.iter().rev().find_map(|tracked| tracked.short_cid_len(from, bytes));
        let by_address = || {
            let same = self.connections.iter().rev().find(|tracked| tracked.client == client);
            same.and_then(|tracked| tracked.usual_cid_len(from))
        };
        // Peers that both know RFC 9287 draw the second bit at random.
        let mut ungreased = bytes.to_vec();
        ungreased[0] |= QUIC_BIT;
        read_packet(&ungreased, known.or_else(by_address).unwrap_or(0)).ok()
    }

    fn connection_of(&mut self, from: Side, client: SocketAddr, header: &ProtectedPacket) -> Option<usize> {
        let found = self.connections.iter().rposition(|tracked| tracked.owns(from, header));
        if found.is_some() {
            return found;
        }
        if from.is_client() && matches!(header.kind, ProtectedKind::Initial { .. }) {
            self.connections.push(Tracked::new(client, header));
            return Some(self.connections.len() - 1);
        }
        // A short connection ID may be none at all; then the address tells.
        self.connections.iter().rposition(|tracked| tracked.client == client)
    }
}

fn kind(kind: &ProtectedKind) -> Kind {
    match kind {
        ProtectedKind::Initial { .. } => Kind::Protected(PacketKind::Initial),
        ProtectedKind::ZeroRtt { .. } => Kind::Protected(PacketKind::ZeroRtt),
        ProtectedKind::Handshake { .. } => Kind::Protected(PacketKind::Handshake),
        ProtectedKind::OneRtt { .. } => Kind::Protected(PacketKind::OneRtt),
        ProtectedKind::Retry { .. } => Kind::Retry,
        ProtectedKind::VersionNegotiation { .. } => Kind::VersionNegotiation,
    }
}

fn token<'a>(kind: &ProtectedKind, packet: &'a [u8]) -> &'a [u8] {
    match kind {
        ProtectedKind::Initial { token, .. } | ProtectedKind::Retry { token, .. } => {
            packet.get(token.clone()).unwrap_or(&[])
        }
        _ => &[],
    }
}
