//! A client that comes again and again, and early data (RFC 9001 §4.6).

use std::sync::Arc;
use std::time::Duration;

use fulmar_proto::{Dir, EarlyData, SessionStore, Side, StreamId};
use fulmar_wire::{ProtectedKind, read_packet};

use super::{Pair, Setup, client_tls, read_available, server_tls};

/// A client that comes again and again, and its server.
pub struct Friends {
    client_tls: rustls::ClientConfig,
    pub server_tls: rustls::ServerConfig,
    sessions: Arc<SessionStore>,
}

impl Friends {
    /// They have talked already.
    pub fn new() -> Self {
        let mut server_tls = server_tls();
        server_tls.max_early_data_size = u32::MAX;
        let friends = Self { client_tls: client_tls(), server_tls, sessions: SessionStore::new(10) };
        friends.meet();
        friends
    }

    pub fn meet(&self) {
        let mut pair = self.setup().connect();
        pair.transfer(Side::Client, 1_000, Duration::from_secs(1));
        assert!(self.sessions.has_session("localhost", 443));
    }

    pub fn setup(&self) -> Setup {
        Setup {
            client_tls: self.client_tls.clone(),
            server_tls: self.server_tls.clone(),
            sessions: Some(self.sessions.clone()),
            early_data: true,
            ..Setup::default()
        }
    }
}

/// Opens a stream of the client and sends `len` bytes on it, as early as can be.
pub fn send_early(pair: &mut Pair, len: usize) -> StreamId {
    let streams = pair.client.conn().streams();
    let id = streams.open(Dir::Bi).expect("the limits are remembered");
    assert_eq!(streams.send(id).write(&content(len)).unwrap(), len);
    streams.send(id).finish().unwrap();
    id
}

pub fn content(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 + n / 251) as u8).collect()
}

/// Waits until the server has all of a stream; returns whether some of it was early data.
#[track_caller]
pub fn receive(pair: &mut Pair, id: StreamId, len: usize) -> bool {
    let (mut read, mut early) = (Vec::new(), false);
    let done = pair.run_while_waiting(Duration::from_secs(10), |pair| {
        if pair.server.connection.is_none() {
            return false;
        }
        early |= pair.server.conn().streams().recv(id).is_early_data();
        read_available(&mut pair.server, id, &mut read)
    });
    assert!(done, "{} bytes; {:?} {:?}", read.len(), pair.lost(Side::Client), pair.lost(Side::Server));
    assert!(read == content(len), "other bytes arrived than were sent");
    early
}

pub fn early_packets(pair: &Pair) -> usize {
    let mut count = 0;
    for datagram in &pair.client.sent {
        let mut rest = &datagram[..];
        while let Ok(packet) = read_packet(rest, 8) {
            count += usize::from(matches!(packet.kind, ProtectedKind::ZeroRtt { .. }));
            rest = &rest[packet.len..];
        }
    }
    count
}

pub fn statuses(pair: &mut Pair) -> (EarlyData, EarlyData) {
    (pair.client.conn().early_data(), pair.server.conn().early_data())
}
