//! Sessions that are resumed, and data that is sent before the handshake (RFC 9001 §4.6).

mod pair;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fulmar_proto::{
    AddressValidation, ClientConfig, Dir, DropReason, EarlyData, Event, FourTuple, MultipathConfig, PathId,
    RandomCids, RetryPolicy, ServerConfig, SessionStore, Side, StreamEvent, StreamId, TokenKeys,
    TransportConfig, TransportErrorCode, Version,
};
use fulmar_wire::{ProtectedKind, read_packet};
use pair::{DELAY, Pair, Setup, read_available};

/// A client that comes again and again, and its server.
struct Friends {
    client_tls: rustls::ClientConfig,
    server_tls: rustls::ServerConfig,
    sessions: Arc<SessionStore>,
}

impl Friends {
    /// They have talked already.
    fn new() -> Self {
        let mut server_tls = pair::server_tls();
        server_tls.max_early_data_size = u32::MAX;
        let friends = Self { client_tls: pair::client_tls(), server_tls, sessions: SessionStore::new(10) };
        friends.meet();
        friends
    }

    fn meet(&self) {
        let mut pair = self.setup().connect();
        pair.transfer(Side::Client, 1_000, Duration::from_secs(1));
        assert!(self.sessions.has_session("localhost", 443));
    }

    fn setup(&self) -> Setup {
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
fn send_early(pair: &mut Pair, len: usize) -> StreamId {
    let streams = pair.client.conn().streams();
    let id = streams.open(Dir::Bi).expect("the limits are remembered");
    assert_eq!(streams.send(id).write(&content(len)).unwrap(), len);
    streams.send(id).finish().unwrap();
    id
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 + n / 251) as u8).collect()
}

/// Waits until the server has all of a stream; returns whether some of it was early data.
#[track_caller]
fn receive(pair: &mut Pair, id: StreamId, len: usize) -> bool {
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

fn early_packets(pair: &Pair) -> usize {
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

fn statuses(pair: &mut Pair) -> (EarlyData, EarlyData) {
    (pair.client.conn().early_data(), pair.server.conn().early_data())
}

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
fn early_data_may_overtake_the_packet_that_follows_a_retry() {
    for len in [4, 8] {
        let friends = Friends::new();
        let validation = AddressValidation { retry: RetryPolicy::Always, ..AddressValidation::default() };
        let server_cids = Arc::new(RandomCids::new(len));
        let mut pair = Setup { validation, server_cids, ..friends.setup() }.dial();
        pair.client.addr = "10.0.0.77:1000".parse().unwrap();
        pair.client.wire = Box::new(|mut flying| {
            flying.from = "10.0.0.77:1000".parse().unwrap();
            let first = read_packet(&flying.payload, 8).unwrap();
            let is_early = matches!(first.kind, ProtectedKind::ZeroRtt { .. });
            flying.at += if is_early { Duration::ZERO } else { Duration::from_millis(1) };
            vec![flying]
        });
        let id = send_early(&mut pair, 5_000);
        assert!(pair.run_while_waiting(Duration::from_secs(1), |pair| pair.server.connection.is_some()));
        let kept = pair.server.dropped.iter().filter(|reason| **reason == DropReason::Buffered).count();
        assert!(receive(&mut pair, id, 5_000) && pair.server.replies > 0);
        // Before the Retry it went to an ID that nobody came back to.
        assert!(kept > 5, "{kept} datagrams were kept");
        assert_eq!(pair.client.conn().stats().packets_lost, 0, "{len} bytes: none had to be sent again");
    }
}

#[test]
fn early_data_that_overtakes_or_is_lost_arrives() {
    for seed in 0..100_u64 {
        let friends = Friends::new();
        let mut pair = friends.setup().dial();
        let mut rng = fulmar_proto::Rng::from_u64(seed);
        pair.client.wire = Box::new(move |mut flying| {
            flying.at += Duration::from_micros(rng.below(15_000));
            if rng.below(4) == 0 { Vec::new() } else { vec![flying] }
        });
        let id = send_early(&mut pair, 8_000);
        receive(&mut pair, id, 8_000);
        pair.transfer(Side::Server, 10_000, Duration::from_secs(20));
    }
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

/// RFC 9001 §4.9.3.
#[test]
fn early_data_that_comes_behind_the_first_packet_with_other_keys_is_dropped() {
    let friends = Friends::new();
    let mut pair = friends.setup().dial();
    let late = Rc::new(RefCell::new(Vec::new()));
    let kept = Rc::clone(&late);
    pair.client.wire = Box::new(move |flying| {
        let first = read_packet(&flying.payload, 8).unwrap();
        if matches!(first.kind, ProtectedKind::ZeroRtt { .. }) && kept.borrow().is_empty() {
            kept.borrow_mut().push(flying.payload);
            return Vec::new();
        }
        vec![flying]
    });
    let id = send_early(&mut pair, 5_000);
    assert!(receive(&mut pair, id, 5_000), "part of it was sent again");
    assert_eq!(statuses(&mut pair), (EarlyData::Accepted, EarlyData::Accepted));
    let before = pair.server.conn().stats();
    let datagram = late.borrow_mut().pop().expect("one was kept back");
    pair.inject(Side::Server, pair::CLIENT.parse().unwrap(), datagram);
    let after = pair.server.conn().stats();
    assert_eq!(after.datagrams_received, before.datagrams_received + 1, "it is known whose it is");
    assert_eq!(after.packets_received, before.packets_received);
    assert_eq!(after.packets_dropped, before.packets_dropped + 1);
}

#[test]
fn early_data_that_comes_when_the_first_path_is_gone_is_dropped() {
    let friends = Friends::new();
    let config =
        || TransportConfig { multipath: Some(MultipathConfig::default()), ..TransportConfig::default() };
    let mut pair = Setup { client: config(), server: config(), ..friends.setup() }.dial();
    pair.client.more_addrs = vec!["10.0.1.1:1000".parse().unwrap()];
    let id = send_early(&mut pair, 5_000);
    assert!(receive(&mut pair, id, 5_000));
    let early: Vec<Vec<u8>> = pair.client.sent.clone();
    pair.run_for(Duration::from_millis(100));
    assert_eq!(statuses(&mut pair), (EarlyData::Accepted, EarlyData::Accepted));
    let addrs = FourTuple::new(pair.server.addr, Some(pair.client.more_addrs[0].ip()));
    let now = pair.now;
    pair.client.conn().open_path(now, addrs).unwrap();
    pair.run_for(Duration::from_millis(100));
    let now = pair.now;
    pair.client.conn().abandon_path(now, PathId::ZERO, TransportErrorCode::NO_ERROR).unwrap();
    pair.run_for(Duration::from_millis(100));
    assert!(pair.server.conn().paths().all(|path| path.id != PathId::ZERO));
    let before = pair.server.conn().stats();
    for from in ["10.0.0.1:1000", "10.0.1.1:1000"] {
        for datagram in &early {
            pair.inject(Side::Server, from.parse().unwrap(), datagram.clone());
        }
    }
    let after = pair.server.conn().stats();
    assert_eq!(after.packets_received, before.packets_received, "it belongs to no other path");
    assert!(after.packets_dropped > before.packets_dropped);
    pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
}

#[test]
fn early_data_that_a_server_accepts_and_drops_is_sent_again() {
    for len in [1, 5_000, 60_000] {
        let friends = Friends::new();
        let mut pair = friends.setup().dial();
        // The server cannot open any packet of early data.
        pair.client.wire = Box::new(|mut flying| {
            let mut at = 0;
            while let Ok(packet) = read_packet(&flying.payload[at..], 8) {
                at += packet.len;
                if matches!(packet.kind, ProtectedKind::ZeroRtt { .. }) {
                    flying.payload[at - 1] ^= 1;
                }
            }
            vec![flying]
        });
        let start = pair.now;
        let id = send_early(&mut pair, len);
        assert!(!receive(&mut pair, id, len));
        let time = pair.now - start;
        assert!(time < Duration::from_millis(500), "{len} bytes took {time:?}");
        pair.run_for(Duration::from_millis(100));
        assert!(early_packets(&pair) > 0);
        assert_eq!(pair.client.conn().early_data(), EarlyData::Accepted);
    }
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
