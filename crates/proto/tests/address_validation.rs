//! Proofs of a client's address: Retry and tokens of earlier connections (RFC 9000 §8.1).

mod pair;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use fulmar_proto::{
    AddressValidation, CidGenerator, ConnectionError, Datagram, DropReason, Ecn, EmptyCids, Endpoint,
    EndpointConfig, FourTuple, INITIAL_RTT, Instant, QuicLb, QuicLbConfig, RandomCids, ResetKey, RetryPolicy,
    Route, ServerConfig, SessionStore, Side, TokenKeys, TransmitBatch, TransportErrorCode, WorkerCids,
};
use fulmar_wire::{ProtectedKind, read_packet};
use pair::{Answer, CLIENT, DELAY, Pair, SERVER, Setup};

/// Each of the two datagrams of a ClientHello is answered; the client follows the first Retry.
const RETRIES: usize = 2;

fn always() -> AddressValidation {
    AddressValidation { retry: RetryPolicy::Always, ..AddressValidation::default() }
}

/// How many round trips the client's handshake took.
fn round_trips(pair: &mut Pair) -> u128 {
    let duration = pair.client.conn().stats().handshake_duration.expect("the handshake is complete");
    duration.as_nanos() / (2 * DELAY).as_nanos()
}

#[test]
fn a_retry_costs_one_round_trip() {
    for (validation, answer) in [(always(), Answer::Accept), (AddressValidation::default(), Answer::Retry)] {
        let mut pair = Setup { validation, answer, ..Setup::default() }.connect();
        assert_eq!((pair.server.replies, round_trips(&mut pair)), (RETRIES, 2));
        pair.transfer(Side::Server, 100_000, Duration::from_secs(1));
        pair.close_and_forget();
    }
    let mut plain = Pair::connected();
    assert_eq!((plain.server.replies, round_trips(&mut plain)), (0, 1));
}

#[test]
fn a_retry_leads_to_a_connection_whatever_the_length_of_the_servers_connection_ids() {
    let lb = QuicLbConfig { config_id: 1, server_id_len: 1, nonce_len: 4, key: None, encodes_len: false };
    let random = |len| -> Arc<dyn CidGenerator> { Arc::new(RandomCids::new(len)) };
    let generators: [Arc<dyn CidGenerator>; 7] = [
        Arc::new(EmptyCids),
        random(4),
        random(7),
        random(8),
        random(20),
        Arc::new(QuicLb::server(lb, &[9]).unwrap()),
        Arc::new(WorkerCids::new(random(4), 3)),
    ];
    for server_cids in generators {
        let len = server_cids.cid_len();
        let mut pair = Setup { validation: always(), server_cids, ..Setup::default() }.connect();
        assert!(pair.client.is_connected(), "{len} bytes: {:?}", pair.server.dropped);
        assert_eq!((pair.server.replies, round_trips(&mut pair)), (RETRIES, 2), "{len} bytes");
        pair.transfer(Side::Server, 100_000, Duration::from_secs(1));
        pair.close_and_forget();
    }
}

#[test]
fn a_short_connection_id_that_came_with_no_retry_of_this_server_is_not_answered() {
    let short_cids = |key: u8| Setup {
        validation: AddressValidation { keys: Some(TokenKeys::new([key; 32])), ..always() },
        server_cids: Arc::new(RandomCids::new(4)),
        ..Setup::default()
    };
    let mut pair = short_cids(1).dial();
    assert!(pair.run_while_waiting(Duration::from_secs(1), |pair| pair.server.connection.is_some()));
    let follows = |datagram: &&Vec<u8>| read_packet(datagram, 8).is_ok_and(|packet| packet.dst.len() == 4);
    let second = pair.client.sent.iter().find(follows).unwrap().clone();
    let mut other = short_cids(2).dial();
    other.inject(Side::Server, CLIENT.parse().unwrap(), second);
    assert_eq!((&other.server.dropped[..], other.server.replies), (&[DropReason::TooShort][..], 0));
}

#[test]
fn a_proven_address_gets_more_than_three_times_what_it_sent() {
    let sessions = SessionStore::new(10);
    let server_tls = || pair::server_tls_with(pair::large_chain(7_500));
    let setup = || Setup { server_tls: server_tls(), sessions: Some(sessions.clone()), ..Setup::default() };
    let mut first = setup().connect();
    assert!(!first.server.amplification.exceeded);
    assert_eq!(round_trips(&mut first), 2, "the server waits for the client");
    let second = setup().connect();
    assert!(second.server.amplification.exceeded, "the client's token is trusted");
    assert!(second.client.is_connected());
}

#[test]
fn a_retry_that_is_lost_is_sent_again() {
    let mut pair = Setup { validation: always(), ..Setup::default() }.dial();
    // The first datagrams are lost, so no Retry answers them.
    let mut lost = 2;
    pair.client.wire = Box::new(move |flying| {
        lost -= i32::from(lost > 0);
        if lost > 0 { Vec::new() } else { vec![flying] }
    });
    assert!(pair.run_while_waiting(Duration::from_secs(5), |pair| pair.client.is_connected()));
    assert!(pair.server.replies >= 1);
}

/// How long a client waits that has followed a Retry and hears nothing, if what it has sent before that time was lost.
fn patience_after_a_retry(lost_until: Duration) -> Duration {
    let mut pair = Setup { validation: always(), ..Setup::default() }.dial();
    let begun = pair.now;
    let followed = Rc::new(RefCell::new(Vec::new()));
    let seen = followed.clone();
    pair.client.wire = Box::new(move |flying| {
        let packet = read_packet(&flying.payload, 8).unwrap();
        if matches!(packet.kind, ProtectedKind::Initial { token, .. } if !token.is_empty()) {
            seen.borrow_mut().push(flying.at);
            return Vec::new();
        }
        if flying.at < begun + lost_until { Vec::new() } else { vec![flying] }
    });
    let times = || -> BTreeSet<Instant> { followed.borrow().iter().copied().collect() };
    assert!(pair.run_while_waiting(Duration::from_secs(10), |_| times().len() == 2));
    *times().last().unwrap() - *times().first().unwrap()
}

#[test]
fn after_a_retry_the_timers_start_anew() {
    // RFC 9002 §6.3. Two timeouts have passed, so that nothing is known of the round trip but what is assumed.
    let plain = INITIAL_RTT + 3 * INITIAL_RTT / 2;
    assert_eq!(patience_after_a_retry(3 * plain), plain);
    // Of one datagram and its answer something is.
    assert_eq!(patience_after_a_retry(Duration::ZERO), Duration::from_micros(62_500), "25 ms at least");
}

/// Lets the client change its port when it has heard of the server, as a NAT that forgets does.
fn rebind_after_first_flight(pair: &mut Pair) {
    let mut sent = 0;
    pair.client.wire = Box::new(move |mut flying| {
        sent += 1;
        if sent > 2 {
            flying.from.set_port(2_000);
        }
        vec![flying]
    });
}

#[test]
fn a_retry_token_from_another_address_ends_the_attempt() {
    let mut pair = Setup { validation: always(), ..Setup::default() }.dial();
    rebind_after_first_flight(&mut pair);
    pair.run_for(Duration::from_millis(50));
    assert!(pair.server.connection.is_none());
    // The NAT forwards the answers.
    for answer in std::mem::take(&mut pair.strays) {
        pair.inject(Side::Client, SERVER.parse().unwrap(), answer);
    }
    let Some(ConnectionError::ConnectionClosed { code, .. }) = pair.lost(Side::Client) else {
        panic!("{:?}", pair.lost(Side::Client))
    };
    assert_eq!(code, TransportErrorCode::INVALID_TOKEN);
    assert_eq!((pair.server.endpoint.half_open(), pair.server.endpoint.open_connections()), (0, 0));
}

#[test]
fn a_token_of_an_earlier_connection_saves_the_retry() {
    let sessions = SessionStore::new(10);
    let setup = || Setup { validation: always(), sessions: Some(sessions.clone()), ..Setup::default() };
    let mut first = setup().connect();
    assert_eq!(first.server.replies, RETRIES);
    first.transfer(Side::Client, 1_000, Duration::from_secs(1));
    // It has brought two tokens, and each of the following brings two more.
    for _ in 0..3 {
        let mut later = setup().connect();
        assert_eq!((later.server.replies, round_trips(&mut later)), (0, 1));
        later.transfer(Side::Client, 1_000, Duration::from_secs(1));
    }
}

#[test]
fn a_token_of_an_earlier_connection_proves_nothing_at_another_host() {
    let sessions = SessionStore::new(10);
    let setup = || Setup { validation: always(), sessions: Some(sessions.clone()), ..Setup::default() };
    setup().connect().transfer(Side::Client, 1_000, Duration::from_secs(1));
    let mut moved = setup().dial();
    moved.client.addr = "10.0.0.7:1000".parse().unwrap();
    moved.client.wire = Box::new(|mut flying| {
        flying.from = "10.0.0.7:1000".parse().unwrap();
        vec![flying]
    });
    moved.run_for(Duration::from_millis(100));
    assert_eq!((moved.server.replies, moved.client.is_connected()), (RETRIES, true));
}

#[test]
fn a_client_that_has_moved_gets_a_token_for_its_new_host_and_one_only() {
    let new_host = "10.0.0.7:1000".parse().unwrap();
    let sessions = SessionStore::new(10);
    let setup = || Setup { validation: always(), sessions: Some(sessions.clone()), ..Setup::default() };
    let mut first = setup().connect();
    first.transfer(Side::Client, 1_000, Duration::from_secs(1));
    // To and fro: the first host was served in the handshake, the second one is served once.
    for to in ["10.0.0.7:2000", CLIENT, "10.0.0.7:3000", "10.0.0.7:1000"] {
        first.client.addr = to.parse().unwrap();
        let now = first.now;
        first.client.conn().migrate(now, None).unwrap();
        first.run_for(Duration::from_millis(100));
        first.transfer(Side::Client, 1_000, Duration::from_secs(1));
    }
    let from_new_host = || {
        let mut pair = setup().dial();
        pair.client.addr = new_host;
        pair.run_for(Duration::from_millis(5));
        // It ends before the server can give further tokens.
        pair.client.mute = true;
        pair.run_for(Duration::from_millis(20));
        pair.server.replies
    };
    assert_eq!(from_new_host(), 0, "the token of the move proves the new host");
    assert_eq!(from_new_host(), RETRIES, "there was no other");
}

/// A server without a wire.
struct Server {
    endpoint: Endpoint,
    batch: TransmitBatch,
    now: Instant,
}

impl Server {
    fn new(validation: AddressValidation) -> Self {
        let server =
            ServerConfig::new(Arc::new(pair::server_tls())).with_address_validation(validation).unwrap();
        let config = EndpointConfig::new(ResetKey::new(&[2; 32]));
        let endpoint = Endpoint::new(Arc::new(config), Some(Arc::new(server)), [1; 32]);
        Self { endpoint, batch: TransmitBatch::new(1), now: Instant::from_millis(1) }
    }

    fn receive(&mut self, payload: &[u8], port: u16) -> Route {
        let addrs = FourTuple::new(([10, 0, 0, 9], port).into(), None);
        let datagram = Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::from(payload) };
        self.endpoint.handle_datagram(self.now, datagram, &mut self.batch)
    }

    fn is_retry(&self, len: usize) -> bool {
        let packet = read_packet(&self.batch.bytes()[..len], 8).expect("a packet");
        matches!(packet.kind, ProtectedKind::Retry { .. })
    }
}

fn first_datagram(seed: u8) -> Vec<u8> {
    let mut pair = Setup { seed, ..Setup::default() }.dial();
    pair.run_for(Duration::from_millis(1));
    pair.client.sent[0].clone()
}

#[test]
fn a_flood_of_attempts_is_answered_with_retries_and_costs_no_memory() {
    let retry = RetryPolicy::Auto { half_open: 10 };
    let mut server = Server::new(AddressValidation { retry, ..AddressValidation::default() });
    let mut retries = 0;
    for seed in 0..60 {
        let first = first_datagram(seed);
        match server.receive(&first, u16::from(seed)) {
            // Half of them wait, half are accepted: both are half open.
            Route::Incoming(incoming) if seed % 2 == 0 => {
                assert!(!incoming.is_validated());
                server.endpoint.accept(server.now, incoming).unwrap();
            }
            Route::Incoming(_) => {}
            Route::Reply(transmit) => {
                assert!(server.is_retry(transmit.len) && transmit.len < first.len());
                retries += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((retries, server.endpoint.half_open(), server.endpoint.open_connections()), (50, 10, 5));
}

#[test]
fn who_completes_the_handshake_is_half_open_no_more() {
    let mut pair = Pair::connected();
    assert_eq!(pair.server.endpoint.half_open(), 0);
    let mut silent = Setup::default().dial();
    silent.run_for(Duration::from_millis(1));
    silent.client.mute = true;
    silent.run_for(Duration::from_millis(20));
    assert_eq!(silent.server.endpoint.half_open(), 1);
    silent.run_for(Duration::from_secs(60));
    assert_eq!(silent.server.endpoint.half_open(), 0, "it was given up");
    pair.close_and_forget();
}

#[test]
fn forged_attempts_are_not_even_answered_with_a_retry() {
    let mut server = Server::new(always());
    let genuine = first_datagram(0);
    for at in (0..genuine.len()).step_by(11).filter(|at| !(1..5).contains(at)) {
        let mut forged = genuine.clone();
        forged[at] ^= 0x55;
        assert!(matches!(server.receive(&forged, 1), Route::Dropped(_)), "byte {at}");
    }
    assert!(matches!(server.receive(&genuine, 1), Route::Reply(_)));
}

#[test]
fn early_data_before_its_connection_is_kept_within_limits() {
    let mut server = Server::new(AddressValidation::default());
    let zero_rtt = |cid: u32| {
        let head = [&[0xd0, 0, 0, 0, 1, 8][..], &cid.to_be_bytes(), &[0; 4], &[0, 0x40, 100]].concat();
        [head, vec![5; 100]].concat()
    };
    let mut kept = 0;
    for _ in 0..1_000 {
        match server.receive(&zero_rtt(1), 1) {
            Route::Dropped(DropReason::Buffered) => kept += 1,
            other => assert!(matches!(other, Route::Dropped(DropReason::Overloaded))),
        }
    }
    assert!(kept > 10 && kept < 100, "{kept}");
    for cid in 0..10_000 {
        assert!(matches!(server.receive(&zero_rtt(cid), 1), Route::Dropped(_)));
    }
    assert!(matches!(
        server.receive(&first_datagram(0), CLIENT.parse::<std::net::SocketAddr>().unwrap().port()),
        Route::Incoming(_)
    ));
}

/// RFC 9000 §7.2: a client makes up at least eight bytes. It may also send to an ID that came with a Retry, which is as long as the server's others.
#[test]
fn early_data_for_ids_that_no_client_has_at_first_is_not_kept() {
    let mut server = Server::new(AddressValidation::default());
    let kept: Vec<usize> = (0..=20)
        .filter(|&len| {
            let head = [&[0xd0, 0, 0, 0, 1, len as u8][..], &vec![9; len], &[0, 0x40, 100]].concat();
            let route = server.receive(&[head, vec![5; 100]].concat(), 1);
            matches!(route, Route::Dropped(DropReason::Buffered))
        })
        .collect();
    assert_eq!(kept, (8..=20).collect::<Vec<_>>());
}
