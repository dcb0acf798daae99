//! The end of a connection in the middle of a transfer.

mod pair;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::{ClientConfig, ConnectError, ConnectionError, Dir, EmptyCids, FourTuple, Side, VarInt};
use pair::{CLIENT, Pair, SERVER, Setup};

#[test]
fn a_receiver_hears_of_the_end_although_its_buffer_was_full_of_data() {
    let mut pair = Pair::connected();
    let id = pair.server.conn().streams().open(Dir::Uni).expect("a stream is allowed");
    for _ in 0..35 {
        while pair.server.conn().streams().send(id).write(&[7; 10_000]).is_ok() {}
        pair.run_for(Duration::from_millis(1));
    }
    assert!(pair.server.conn().stats().bytes_in_flight > 20_000);
    // What the server says to each of the acknowledgements that are under way is lost.
    let now = pair.now;
    pair.server.conn().close(now, VarInt::from_u32(7), Bytes::from_static(b"stopping"));
    pair.server.mute = true;
    pair.run_for(Duration::from_millis(150));
    pair.server.mute = false;
    assert!(pair.lost(Side::Client).is_none());
    pair.run_for(Duration::from_millis(500));
    let lost = pair.lost(Side::Client);
    let code = VarInt::from_u32(7);
    assert!(
        matches!(lost, Some(ConnectionError::ApplicationClosed { code: c, .. }) if c == code),
        "{lost:?}"
    );
    assert!(pair.server.conn().is_drained());
}

/// How many datagrams a server sends to a client that repeats a packet.
fn answers(pair: &mut Pair, packet: &[u8]) -> usize {
    let before = pair.server.replies + pair.server.sent.len();
    pair.inject(Side::Server, CLIENT.parse().expect("an address"), packet.to_vec());
    pair.server.replies + pair.server.sent.len() - before
}

#[test]
fn what_comes_for_a_connection_that_was_left_to_drain_is_dropped_until_its_time_has_passed() {
    let mut pair = Pair::connected();
    pair.client.conn().ping();
    pair.run_for(Duration::from_millis(100));
    let packet = pair.client.sent.last().expect("an acknowledgement or a PING").clone();
    let now = pair.now;
    pair.server.conn().leave_to_drain(now);
    assert!(!pair.server.conn().is_drained(), "it is open");
    pair.client.conn().close(now, VarInt::from_u32(7), Bytes::new());
    pair.run_for(Duration::from_millis(50));
    assert!(pair.server.conn().is_closed() && !pair.server.conn().is_drained());
    let now = pair.now;
    pair.server.conn().leave_to_drain(now);
    pair.run_for(Duration::from_millis(1));
    assert!(pair.server.conn().is_drained());
    assert_eq!(pair.server.conn().poll_timeout(), None);
    assert_eq!(pair.server.endpoint.open_connections(), 0);
    assert_eq!(answers(&mut pair, &packet), 0);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(answers(&mut pair, &packet), 1, "a stateless reset, as for any unknown connection");
}

#[test]
fn a_connection_that_this_end_has_closed_is_not_left_to_drain() {
    let mut pair = Pair::connected();
    pair.server.mute = true;
    let now = pair.now;
    pair.client.conn().close(now, VarInt::from_u32(7), Bytes::new());
    pair.client.conn().leave_to_drain(now);
    assert!(!pair.client.conn().is_drained(), "it has to say so again");
}

#[test]
fn a_client_without_connection_ids_can_come_again_when_its_server_has_closed() {
    let setup = Setup { client_cids: Arc::new(EmptyCids), ..Setup::default() };
    let (config, name) = (ClientConfig::new(Arc::new(setup.client_tls.clone())), setup.server_name);
    let addrs = FourTuple::new(SERVER.parse().expect("an address"), None);
    let mut pair = setup.connect();
    let connect = |pair: &mut Pair| pair.client.endpoint.connect(pair.now, &config, addrs, name).map(|_| ());
    assert!(matches!(connect(&mut pair), Err(ConnectError::AddressInUse)));
    let now = pair.now;
    pair.server.conn().close(now, VarInt::from_u32(7), Bytes::new());
    pair.run_for(Duration::from_millis(50));
    let now = pair.now;
    pair.client.conn().leave_to_drain(now);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.client.endpoint.open_connections(), 0);
    assert!(connect(&mut pair).is_ok());
}
