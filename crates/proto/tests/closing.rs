//! The end of a connection in the middle of a transfer.

mod pair;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::{
    ClientConfig, ConnectError, ConnectionError, Datagram, Dir, Ecn, EmptyCids, FourTuple, Instant,
    Recognized, Side, TimerReason, TransportConfig, VarInt,
};
use pair::{CLIENT, Pair, SERVER, Setup};

#[test]
fn the_end_is_told_over_a_path_that_works() {
    for dead in [0, 1] {
        let mut pair = Pair::with_two_paths();
        let dead = [pair.client.addr, pair.client.more_addrs[0]][dead];
        pair.client.wire = Box::new(move |it| if it.from == dead { vec![] } else { vec![it] });
        pair.transfer(Side::Client, 500_000, Duration::from_secs(10));
        let now = pair.now;
        pair.client.conn().close(now, VarInt::from_u32(7), Bytes::new());
        pair.run_for(Duration::from_millis(7));
        assert!(pair.lost(Side::Server).is_some(), "{dead} is dead");
    }
}

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

/// A server whose client has not heard that it has closed, and which has left the rest to its endpoint.
fn left_to_close() -> Pair {
    let mut pair = Pair::connected();
    let now = pair.now;
    pair.server.conn().leave_to_close(now);
    assert!(!pair.server.conn().is_drained(), "it is open");
    pair.server.conn().close(now, VarInt::from_u32(7), Bytes::from_static(b"enough"));
    pair.server.conn().leave_to_close(now);
    assert!(!pair.server.conn().is_drained(), "it has not said so yet");
    pair.server.mute = true;
    pair.run_for(Duration::from_millis(1));
    pair.server.mute = false;
    let now = pair.now;
    pair.server.conn().leave_to_close(now);
    pair.run_for(Duration::from_millis(1));
    assert!(pair.server.conn().is_drained());
    pair
}

#[test]
fn a_peer_that_has_not_heard_of_the_end_is_told_again_by_the_endpoint() {
    let mut pair = left_to_close();
    assert_eq!(pair.server.endpoint.open_connections(), 1, "the peer may not know yet");
    assert!(pair.lost(Side::Client).is_none());
    pair.client.conn().ping();
    pair.run_for(Duration::from_millis(20));
    let lost = pair.lost(Side::Client);
    let code = VarInt::from_u32(7);
    assert!(
        matches!(&lost, Some(ConnectionError::ApplicationClosed { code: c, reason }) if *c == code && reason == "enough"),
        "{lost:?}"
    );
}

#[test]
fn who_goes_on_sending_to_a_connection_that_was_left_is_told_more_and_more_rarely() {
    let mut pair = left_to_close();
    let packet = pair.client.sent.last().expect("a packet").clone();
    let told: Vec<usize> = (0..20).filter(|_| answers(&mut pair, &packet) > 0).collect();
    assert_eq!(told, [0, 2, 6, 14]);
    let until = pair.server.endpoint.poll_timeout().expect("its time has not passed");
    let before = Instant::ZERO + until.saturating_since(Instant::from_micros(1));
    pair.server.endpoint.handle_timeout(before);
    assert_eq!(pair.server.endpoint.open_connections(), 1);
    pair.server.endpoint.handle_timeout(until);
    assert_eq!((pair.server.endpoint.open_connections(), pair.server.endpoint.poll_timeout()), (0, None));
}

#[test]
fn a_datagram_for_a_connection_that_was_left_is_told_apart_at_a_first_look() {
    let mut pair = left_to_close();
    let packet = pair.client.sent.last().expect("a packet").clone();
    let datagram = || Datagram {
        addrs: FourTuple::new(CLIENT.parse().expect("an address"), None),
        ecn: Ecn::NotEct,
        payload: packet[..].into(),
    };
    // It is due to be answered, for which the endpoint must be asked.
    assert!(matches!(pair.server.endpoint.recognize(datagram()), Recognized::Unknown(_)));
    assert_eq!(answers(&mut pair, &packet), 1);
    assert!(matches!(pair.server.endpoint.recognize(datagram()), Recognized::Closed));
    assert!(matches!(pair.server.endpoint.recognize(datagram()), Recognized::Unknown(_)));
}

#[test]
fn a_client_that_closes_before_its_handshake_is_confirmed_can_be_left_too() {
    let mut pair = Setup::default().dial();
    let limit = Duration::from_secs(1);
    assert!(pair.run_while_waiting(limit, |pair| pair.client.is_connected()));
    pair.server.mute = true;
    let now = pair.now;
    pair.client.conn().close(now, VarInt::from_u32(7), Bytes::new());
    pair.run_for(Duration::from_micros(10));
    let now = pair.now;
    pair.client.conn().leave_to_close(now);
    assert!(pair.client.conn().is_drained());
}

#[test]
fn a_server_is_not_left_before_its_client_has_proven_its_address() {
    let mut pair = Setup::default().dial();
    let limit = Duration::from_secs(1);
    assert!(pair.run_while_waiting(limit, |pair| pair.server.connection.is_some()));
    let now = pair.now;
    pair.server.conn().close(now, VarInt::from_u32(7), Bytes::new());
    pair.run_for(Duration::from_millis(1));
    let now = pair.now;
    pair.server.conn().leave_to_close(now);
    assert!(pair.server.conn().is_closed() && !pair.server.conn().is_drained());
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

#[test]
fn a_peer_that_may_acknowledge_late_does_not_decide_how_long_it_is_remembered() {
    let late = || TransportConfig { ack_frequency: false, ..TransportConfig::default() };
    let client = || TransportConfig { max_ack_delay: Duration::from_millis(16_383), ..late() };
    let patient = || TransportConfig { handshake_timeout: Duration::from_secs(100), ..late() };
    for closes in [Side::Client, Side::Server] {
        let remembered_for = |server: TransportConfig| {
            let mut pair = Setup { client: client(), server, ..Setup::default() }.connect();
            let now = pair.now;
            pair.end(closes).conn().close(now, VarInt::ZERO, Bytes::new());
            pair.run_for(Duration::from_millis(50));
            let (until, reason) = pair.server.conn().poll_timeout().expect("it is remembered");
            assert_eq!(reason, TimerReason::Drained);
            until - now
        };
        assert!(
            remembered_for(late()) < Duration::from_millis(30_050),
            "as long as it waits for a silent peer"
        );
        // RFC 9000 §10.2: three probe timeouts, where this end has that patience.
        assert!(remembered_for(patient()) > Duration::from_millis(3 * 16_383));
    }
}

/// Its endpoint could not tell what comes for it.
#[test]
fn an_end_without_connection_ids_that_has_closed_is_not_left() {
    let mut pair = Setup { client_cids: Arc::new(EmptyCids), ..Setup::default() }.connect();
    pair.server.mute = true;
    let now = pair.now;
    pair.client.conn().close(now, VarInt::from_u32(7), Bytes::new());
    pair.run_for(Duration::from_millis(1));
    let now = pair.now;
    pair.client.conn().leave_to_close(now);
    assert!(pair.client.conn().is_closed() && !pair.client.conn().is_drained());
}
