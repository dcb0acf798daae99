//! Servers that say in Initial packets what belongs into Handshake packets.

use fulmar_base::Instant;
use fulmar_wire::{Dir, Side, TransportErrorCode, TransportParameters};

use super::super::Connection;
use super::by_hand::{ORIGINAL_DCID, cid, client_with, deliver, exchange, lost, sent, server_with};
use super::pair::{client_tls, server_tls};
use crate::{ConnectionError, EarlyData, TransportError};

/// A client and a server that take early data, and what is the same in all of their connections.
struct Friends {
    client: rustls::ClientConfig,
    server: rustls::ServerConfig,
}

impl Friends {
    fn new() -> Self {
        let mut friends = Self { client: client_tls(), server: server_tls() };
        friends.client.enable_early_data = true;
        friends.server.max_early_data_size = u32::MAX;
        friends
    }

    /// A client whose first packets have arrived at a server, which has not answered yet.
    fn half_way(&self, now: Instant) -> (Connection, Connection) {
        let of = |side: Side| move |parameters: TransportParameters| parameters.write(side, None);
        let mut client = client_with(now, &self.client, of(Side::Client));
        client.offer_early_data();
        if client.early_data() == EarlyData::Offered {
            let id = client.streams().open(Dir::Uni).unwrap();
            client.streams().send(id).write(b"early").unwrap();
        }
        let mut server = server_with(now, cid(ORIGINAL_DCID), &self.server, of(Side::Server));
        for datagram in sent(&mut client, now) {
            deliver(&mut server, now, &datagram);
        }
        (client, server)
    }
}

#[test]
fn a_flight_in_initial_packets_is_taken_from_a_server_that_takes_early_data() {
    let friends = Friends::new();
    let now = Instant::from_millis(1);
    let (mut client, mut server) = friends.half_way(now);
    assert_eq!(client.early_data(), EarlyData::Unused, "they have not met yet");
    exchange(&mut client, &mut server, now);

    let (mut client, mut server) = friends.half_way(now);
    assert_eq!(client.early_data(), EarlyData::Offered);
    server.handshake.tls.crypto.misplace_flight();
    exchange(&mut client, &mut server, now);
    assert_eq!((lost(&mut client), lost(&mut server)), (None, None));
    assert_eq!((client.early_data(), server.early_data()), (EarlyData::Accepted, EarlyData::Accepted));
    assert!(client.handshake.is_confirmed() && server.handshake.is_confirmed());
    let id = server.streams().accept(Dir::Uni).expect("the early data arrived");
    assert_eq!(server.streams().recv(id).read(9, true).unwrap().unwrap().bytes, b"early"[..]);
}

#[test]
fn without_early_data_it_is_refused() {
    let friends = Friends::new();
    let now = Instant::from_millis(1);
    let (mut client, mut server) = friends.half_way(now);
    server.handshake.tls.crypto.misplace_flight();
    exchange(&mut client, &mut server, now);
    match lost(&mut client) {
        Some(ConnectionError::Tls(_)) => {}
        Some(ConnectionError::Transport(TransportError { code, .. })) => {
            assert_eq!(code, TransportErrorCode::PROTOCOL_VIOLATION);
        }
        other => panic!("{other:?}"),
    }
    assert!(lost(&mut server).is_some(), "and the server hears of it");
}
