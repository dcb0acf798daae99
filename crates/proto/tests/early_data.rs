//! Sessions that are resumed, and data that is sent before the handshake (RFC 9001 §4.6).

mod pair;

use std::sync::Arc;
use std::time::Duration;

use fulmar_proto::{
    AddressValidation, ClientConfig, Dir, EarlyData, Event, FourTuple, RetryPolicy, ServerConfig,
    SessionStore, Side, StreamEvent, StreamId, TokenKeys, TransportConfig, Version,
};
use pair::friends::{Friends, early_packets, receive, send_early, statuses};
use pair::{DELAY, Setup};

#[test]
fn early_data_arrives_with_the_first_packets() {
    let friends = Friends::new();
    let mut pair = friends.setup().dial();
    let start = pair.now;
    assert_eq!(pair.client.conn().early_data(), EarlyData::Offered);
    let id = send_early(&mut pair, 5_000);
    assert!(receive(&mut pair, id, 5_000));
    assert_eq!(pair.now - start, DELAY, "half a round trip");
    pair.run_for(Duration::from_millis(100));
    assert!(early_packets(&pair) > 0);
    assert_eq!(statuses(&mut pair), (EarlyData::Accepted, EarlyData::Accepted));
    assert!(pair.client.conn().stats().resumed && pair.server.conn().stats().resumed);
    assert_eq!(pair.client.conn().stats().packets_lost, 0);
    let later = send_early(&mut pair, 1_000);
    assert!(!receive(&mut pair, later, 1_000), "what is sent after the handshake is not early");
    pair.close_and_forget();
}

/// The length of a long header is written in two bytes, so that such a packet does not fill the datagram.
#[test]
fn early_data_arrives_where_datagrams_may_be_larger_than_its_packets() {
    let friends = Friends::new();
    let [client, server] = [(); 2].map(|()| TransportConfig {
        initial_mtu: 65_000,
        mtu_max: 65_000,
        ..TransportConfig::default()
    });
    let mut pair = Setup { client, server, ..friends.setup() }.dial();
    let id = send_early(&mut pair, 60_000);
    assert!(receive(&mut pair, id, 60_000));
    pair.run_for(Duration::from_millis(100));
    assert_eq!(statuses(&mut pair), (EarlyData::Accepted, EarlyData::Accepted));
    assert_eq!(pair.client.conn().stats().packets_lost, 0);
}

#[test]
fn without_a_wish_for_it_there_is_none() {
    let friends = Friends::new();
    let mut pair = Setup { early_data: false, ..friends.setup() }.dial();
    assert_eq!(pair.client.conn().early_data(), EarlyData::Unused);
    assert!(pair.client.conn().streams().open(Dir::Bi).is_none());
    pair.run_for(Duration::from_millis(100));
    assert!(pair.client.conn().stats().resumed);
    assert_eq!(early_packets(&pair), 0);
}

#[test]
fn a_server_that_has_forgotten_the_session_gets_the_data_after_the_handshake() {
    for len in [1, 5_000, 60_000] {
        let mut friends = Friends::new();
        friends.server_tls = pair::server_tls();
        let mut pair = friends.setup().dial();
        let id = send_early(&mut pair, len);
        assert!(!receive(&mut pair, id, len));
        pair.run_for(Duration::from_millis(100));
        assert_eq!(statuses(&mut pair), (EarlyData::Rejected, EarlyData::Unused));
        assert!(early_packets(&pair) > 0 && !pair.client.conn().stats().resumed);
        pair.transfer(Side::Server, 10_000, Duration::from_secs(1));
        pair.close_and_forget();
    }
}

#[test]
fn who_waits_to_open_a_stream_is_told_when_early_data_is_rejected_and_more_are_allowed() {
    let mut friends = Friends::new();
    friends.server_tls = pair::server_tls();
    let server = TransportConfig { max_concurrent_bidi_streams: 200, ..TransportConfig::default() };
    let mut pair = Setup { server, ..friends.setup() }.dial();
    let mut opened = 0;
    while pair.client.conn().streams().open(Dir::Bi).is_some() {
        opened += 1;
    }
    assert_eq!(opened, TransportConfig::default().max_concurrent_bidi_streams);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(statuses(&mut pair).0, EarlyData::Rejected);
    let is_told = |event: &Event| matches!(event, Event::Stream(StreamEvent::Available { dir: Dir::Bi }));
    assert!(pair.client.events.iter().any(is_told));
    assert!(pair.client.conn().streams().open(Dir::Bi).is_some());
}

#[test]
fn a_server_with_lower_limits_rejects_and_gets_no_more_than_it_allows() {
    let friends = Friends::new();
    let server = TransportConfig {
        max_concurrent_bidi_streams: 2,
        stream_receive_window: 3_000,
        stream_receive_window_max: 3_000,
        receive_window: 8_000,
        receive_window_max: 8_000,
        ..TransportConfig::default()
    };
    let mut pair = Setup { server, ..friends.setup() }.dial();
    let ids: Vec<StreamId> = (0..5).map(|_| send_early(&mut pair, 10_000)).collect();
    let reset = pair.client.conn().streams().open(Dir::Bi).unwrap();
    pair.client.conn().streams().send(reset).write(&[1; 9_000]).unwrap();
    pair.run_for(Duration::from_millis(1));
    pair.client.conn().streams().send(reset).reset(7_u32.into()).unwrap();
    for id in ids {
        // The answer of the server ends the stream, so that another one is allowed.
        receive(&mut pair, id, 10_000);
        pair.server.conn().streams().send(id).finish().unwrap();
        pair.run_while_waiting(Duration::from_secs(1), |pair| {
            pair.client.conn().streams().recv(id).read(1, true) == Ok(None)
        });
    }
    assert_eq!(statuses(&mut pair).0, EarlyData::Rejected);
    assert_eq!((pair.lost(Side::Client), pair.lost(Side::Server)), (None, None));
}

#[test]
fn a_session_serves_once_and_is_not_resumed_with_another_version() {
    let friends = Friends::new();
    // Two sessions came with the first connection.
    for _ in 0..2 {
        let mut pair = friends.setup().dial();
        assert_eq!(pair.client.conn().early_data(), EarlyData::Offered);
        // Nothing comes back, so no new sessions do.
        pair.server.mute = true;
        pair.run_for(Duration::from_millis(100));
    }
    let mut pair = friends.setup().dial();
    assert_eq!(pair.client.conn().early_data(), EarlyData::Unused);

    let friends = Friends::new();
    let versions = vec![Version::V2];
    let mut pair =
        Setup { client_versions: versions.clone(), server_versions: versions, ..friends.setup() }.dial();
    assert_eq!(pair.client.conn().early_data(), EarlyData::Unused);
    pair.run_for(Duration::from_millis(100));
    assert!(pair.client.is_connected() && !pair.client.conn().stats().resumed);
}

#[test]
fn early_data_is_read_in_the_version_in_which_the_client_began() {
    // The session is one of version 1, and both ends like version 2 better by now (RFC 9369 §4.1).
    let friends = Friends::new();
    let versions = vec![Version::V2, Version::V1];
    let mut pair =
        Setup { client_versions: versions.clone(), server_versions: versions, ..friends.setup() }.dial();
    let id = send_early(&mut pair, 2_000);
    assert!(receive(&mut pair, id, 2_000));
    pair.run_for(Duration::from_millis(100));
    assert_eq!(statuses(&mut pair), (EarlyData::Accepted, EarlyData::Accepted));
    for side in [Side::Client, Side::Server] {
        assert_eq!(pair.end(side).conn().version(), Version::V2);
    }
}

#[test]
fn a_recorded_flight_is_not_taken_a_second_time() {
    let friends = Friends::new();
    let mut pair = friends.setup().dial();
    let id = send_early(&mut pair, 2_000);
    assert!(receive(&mut pair, id, 2_000));
    let flight: Vec<Vec<u8>> = pair.client.sent.clone();
    // The same server in all that matters to an attacker: its keys and its sessions. It has forgotten the connection.
    let mut victim = friends.setup().dial();
    victim.client.mute = true;
    for datagram in flight {
        victim.inject(Side::Server, pair::CLIENT.parse().unwrap(), datagram);
    }
    assert!(victim.server.connection.is_some(), "it is an attempt like any other");
    victim.run_for(Duration::from_millis(5));
    assert_eq!(victim.server.conn().early_data(), EarlyData::Unused);
    assert!(victim.server.conn().streams().accept(Dir::Bi).is_none(), "nothing of it was read");
    assert!(!victim.server.conn().stats().resumed);
}

#[test]
fn early_data_survives_a_retry() {
    let friends = Friends::new();
    let validation = AddressValidation { retry: RetryPolicy::Always, ..AddressValidation::default() };
    let mut pair = Setup { validation, ..friends.setup() }.dial();
    // Another host than in the first meeting, whose token would spare the Retry.
    pair.client.wire = Box::new(|mut flying| {
        flying.from = "10.0.0.77:1000".parse().unwrap();
        vec![flying]
    });
    pair.client.addr = "10.0.0.77:1000".parse().unwrap();
    let id = send_early(&mut pair, 5_000);
    assert!(receive(&mut pair, id, 5_000), "early data after the Retry");
    assert!(pair.server.replies > 0);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(statuses(&mut pair), (EarlyData::Accepted, EarlyData::Accepted));
}

#[test]
fn sealed_tickets_resume_at_any_server_with_the_keys_but_take_no_early_data() {
    let sealed = |key: u8| {
        let config = ServerConfig::new(Arc::new(pair::server_tls()));
        config.with_sealed_tickets(TokenKeys::new([key; 32]))
    };
    let client_tls = Arc::new(pair::client_tls());
    let sessions = SessionStore::new(10);
    let client =
        || ClientConfig::new(client_tls.clone()).with_sessions(sessions.clone()).with_early_data(true);
    let mut resumed = Vec::new();
    for key in [1, 1, 2] {
        let mut pair = Setup::default().dial();
        pair.server.endpoint.set_server_config(Some(Arc::new(sealed(key))));
        let addrs = FourTuple::new(pair.server.addr, None);
        let dialled = pair.client.endpoint.connect(pair.now, &client(), addrs, "localhost").unwrap();
        assert_eq!(dialled.1.early_data(), EarlyData::Unused);
        pair.client.connection = Some(dialled);
        pair.run_for(Duration::from_millis(100));
        assert!(pair.client.is_connected());
        resumed.push(pair.client.conn().stats().resumed);
    }
    assert_eq!(resumed, [false, true, false]);
}

/// When a client repeats its first flight that nobody answers, in milliseconds after it was sent.
fn first_repeat(setup: Setup) -> u128 {
    let mut pair = setup.dial();
    pair.server.mute = true;
    let start = pair.now;
    pair.run_for(Duration::ZERO);
    let flight = pair.client.sent.len();
    assert!(flight > 0);
    assert!(pair.run_while_waiting(Duration::from_secs(2), |pair| pair.client.sent.len() > flight));
    (pair.now - start).as_millis()
}

#[test]
fn a_client_repeats_its_first_flight_by_the_round_trip_time_of_the_last_connection() {
    let friends = Friends::new();
    assert_eq!(first_repeat(friends.setup()), 250, "the last one is not over");

    let mut pair = friends.setup().connect();
    pair.transfer(Side::Server, 1_000, Duration::from_secs(1));
    pair.close_and_forget();
    // 25 ms, the least that is assumed of a path, and three times the half of it.
    assert_eq!(first_repeat(friends.setup()), 62);
}
