//! Endpoints that share what a server has once, and connections that are accepted while more of them arrives.

mod pair;

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use fulmar_proto::{
    AcceptProgress, AddressValidation, ClientConfig, Connection, ConnectionError, Datagram, DropReason, Ecn,
    Endpoint, EndpointConfig, EndpointShared, FourTuple, Incoming, Instant, ResetKey, RetryPolicy, Route,
    ServerConfig, SessionStore, Side, TransmitBatch,
};
use fulmar_wire::{ConnectionId, read_packet};
use pair::{Pair, Setup};

const NOW: Instant = Instant::from_millis(1);

/// Endpoints of one server, each of which a worker would have.
struct Server {
    shared: Arc<EndpointShared>,
    endpoints: [Endpoint; 2],
    batch: TransmitBatch,
}

impl Server {
    fn new(validation: AddressValidation) -> Self {
        let config = ServerConfig::new(Arc::new(pair::server_tls()));
        let config = Arc::new(config.with_address_validation(validation).unwrap());
        let endpoint =
            EndpointConfig { max_stateless_resets: 1, ..EndpointConfig::new(ResetKey::new(&[2; 32])) };
        let endpoint = Arc::new(endpoint);
        let shared = EndpointShared::new(&endpoint);
        let endpoints = [1, 2].map(|seed| {
            Endpoint::with_shared(shared.clone(), endpoint.clone(), Some(config.clone()), [seed; 32])
        });
        Self { shared, endpoints, batch: TransmitBatch::new(1) }
    }

    fn receive(&mut self, at: usize, payload: &[u8]) -> Route {
        let addrs = FourTuple::new(pair::CLIENT.parse().unwrap(), None);
        let datagram = Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::from(payload) };
        self.endpoints[at].handle_datagram(NOW, datagram, &mut self.batch)
    }

    #[track_caller]
    fn incoming(&mut self, at: usize, payload: &[u8]) -> Incoming {
        match self.receive(at, payload) {
            Route::Incoming(incoming) => incoming,
            other => panic!("{other:?}"),
        }
    }
}

/// What a client sends first: a ClientHello of two datagrams.
fn first_flight(seed: u8, sessions: Option<Arc<SessionStore>>) -> Vec<Vec<u8>> {
    let mut pair = Setup { seed, sessions, ..Setup::default() }.dial();
    pair.run_for(Duration::from_millis(1));
    pair.client.sent.clone()
}

/// Noise that looks like early data (0-RTT) of the client with this first flight.
fn early_data(flight: &[Vec<u8>], number: u8) -> Vec<u8> {
    let dst = read_packet(&flight[0], 8).unwrap().dst;
    let head = [&[0xd0, 0, 0, 0, 1, 8][..], dst.as_bytes(), &[0, 0x40, 100]].concat();
    [head, vec![number; 100]].concat()
}

/// What a connection has to send.
fn sent(connection: &mut Connection) -> usize {
    let mut batch = TransmitBatch::new(10);
    std::iter::from_fn(|| connection.poll_transmit(NOW, &mut batch).map(|transmit| transmit.len)).sum()
}

#[test]
fn what_arrives_while_a_connection_is_accepted_reaches_it_in_order() {
    let flight = first_flight(0, None);
    let mut server = Server::new(AddressValidation::default());
    let incoming = server.incoming(0, &flight[0]);
    let (accepting, work) = server.endpoints[0].begin_accept(NOW, incoming, None).unwrap();
    let later = [early_data(&flight, 1), flight[1].clone(), early_data(&flight, 2)];
    for datagram in &later {
        assert!(matches!(server.receive(0, datagram), Route::Dropped(DropReason::Buffered)));
    }
    let mut connection = work.run(NOW).unwrap();
    assert!(sent(&mut connection) < 2_000, "only half of the ClientHello was there");

    let AcceptProgress::More(accepting, datagrams) = server.endpoints[0].finish_accept(accepting).unwrap()
    else {
        panic!("datagrams are kept")
    };
    assert_eq!(datagrams.iter().map(|datagram| datagram.payload.to_vec()).collect::<Vec<_>>(), later);
    for datagram in datagrams {
        connection.handle_datagram(NOW, datagram);
    }
    assert!(sent(&mut connection) > 1_200, "the server answers the whole ClientHello");

    // It is known from now on, and only now.
    assert_eq!(server.endpoints[0].open_connections(), 0);
    let AcceptProgress::Done(handle) = server.endpoints[0].finish_accept(accepting).unwrap() else {
        panic!("nothing has come since")
    };
    assert!(matches!(server.receive(0, &flight[1]), Route::Connection(to, _) if to == handle));
    assert_eq!((server.endpoints[0].open_connections(), server.shared.half_open()), (1, 1));
}

#[test]
fn what_is_kept_while_a_connection_is_accepted_has_an_end() {
    let flight = first_flight(0, None);
    let mut server = Server::new(AddressValidation::default());
    let incoming = server.incoming(0, &flight[0]);
    let (mut accepting, _) = server.endpoints[0].begin_accept(NOW, incoming, None).unwrap();
    let mut kept = 0;
    // However slowly TLS works, and however fast the client sends, this ends.
    loop {
        let route = server.receive(0, &early_data(&flight, kept as u8));
        let is_kept = matches!(route, Route::Dropped(DropReason::Buffered));
        match server.endpoints[0].finish_accept(accepting).unwrap() {
            AcceptProgress::More(place, datagrams) => {
                assert!(is_kept && datagrams.len() == 1);
                (accepting, kept) = (place, kept + 1);
            }
            AcceptProgress::Done(_) => {
                assert!(matches!(route, Route::Dropped(DropReason::Overloaded)));
                break;
            }
        }
    }
    // `max_incoming_bytes`, with 128 for a small datagram.
    assert_eq!(kept, (16 << 10) / 128);
}

#[test]
fn an_attempt_that_is_not_accepted_after_all_leaves_nothing_behind() {
    let flight = first_flight(0, None);
    let mut server = Server::new(AddressValidation::default());
    for _ in 0..3 {
        let incoming = server.incoming(0, &flight[0]);
        let (accepting, work) = server.endpoints[0].begin_accept(NOW, incoming, None).unwrap();
        assert_eq!(server.shared.half_open(), 1);
        drop(work);
        let incoming = server.endpoints[0].cancel_accept(accepting);
        server.endpoints[0].ignore(incoming);
        assert_eq!((server.shared.half_open(), server.endpoints[0].open_connections()), (0, 0));
    }
}

#[test]
fn half_open_attempts_are_counted_together() {
    let retry = RetryPolicy::Auto { half_open: 2 };
    let mut server = Server::new(AddressValidation { retry, ..AddressValidation::default() });
    let flights = [0, 1, 2].map(|seed| first_flight(seed, None));
    let waits = server.incoming(0, &flights[0][0]);
    let accepted = server.incoming(0, &flights[1][0]);
    server.endpoints[0].accept(NOW, accepted).unwrap();
    assert!(matches!(server.receive(1, &flights[2][0]), Route::Reply(_)), "a Retry");
    server.endpoints[0].ignore(waits);
    server.incoming(1, &flights[2][0]);

    // An endpoint that goes takes its attempts with it.
    let [first, second] = server.endpoints;
    drop(first);
    assert_eq!(server.shared.half_open(), 1);
    drop(second);
    assert_eq!(server.shared.half_open(), 0);
}

#[test]
fn an_address_token_counts_at_one_endpoint_only() {
    let sessions = SessionStore::new(10);
    let earlier = Setup { sessions: Some(sessions.clone()), ..Setup::default() };
    earlier.connect().transfer(Side::Client, 1_000, Duration::from_secs(1));
    let flight = first_flight(1, Some(sessions));
    let mut server = Server::new(AddressValidation::default());
    assert!(server.incoming(1, &flight[0]).is_validated());
    assert!(!server.incoming(0, &flight[0]).is_validated(), "the token was used at the other one");

    let mut alone = Server::new(AddressValidation::default());
    assert!(alone.incoming(0, &flight[0]).is_validated(), "nothing else is wrong with it");
}

#[test]
fn stateless_resets_are_counted_together() {
    let mut server = Server::new(AddressValidation::default());
    let unknown = [&[0x40][..], &[7; 100]].concat();
    assert!(matches!(server.receive(0, &unknown), Route::Reply(_)));
    assert!(matches!(server.receive(1, &unknown), Route::Dropped(DropReason::Overloaded)));
}

#[test]
fn a_stateless_reset_is_known_to_all_endpoints_as_that_of_the_one_with_the_connection() {
    let shared = EndpointShared::new(&EndpointConfig::new(ResetKey::new(&[2; 32])));
    let mut pair = Setup { server_shared: Some(shared.clone()), ..Setup::default() }.connect();
    let config = pair.server.config.clone();
    let mut other = Endpoint::with_shared(shared.clone(), config, pair.server.server.clone(), [9; 32]);
    assert_eq!((pair.server.endpoint.number(), other.number()), (0, 1));
    // A client gives tokens with all connection IDs but the first: its server takes another one to try a new address.
    pair.client.addr = "10.0.0.1:2000".parse().unwrap();
    let first = pair.server.sent.last().unwrap()[1..9].to_vec();
    let now = pair.now;
    pair.client.conn().migrate(now, None).unwrap();
    pair.run_for(Duration::from_millis(100));
    let short = pair.server.sent.iter().filter(|datagram| datagram[0] & 0x80 == 0);
    let cid = short.map(|datagram| &datagram[1..9]).find(|cid| *cid != first).unwrap();
    let cid = ConnectionId::new(cid).unwrap();
    let token = ResetKey::new(&[1; 32]).token(&cid);
    let reset = [&[0x41; 20][..], &token.0].concat();

    assert_eq!(shared.endpoint_of_reset(&reset), Some(0));
    assert_eq!(shared.endpoint_of_reset(&reset[16..]), None, "too short to be one");
    let addrs = FourTuple::new(pair.client.addr, None);
    let datagram = Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::from(&reset[..]) };
    let route = other.handle_datagram(pair.now, datagram, &mut TransmitBatch::new(1));
    assert!(!matches!(route, Route::Connection(..)), "{route:?}");
    pair.inject(Side::Server, pair.client.addr, reset.clone());
    assert_eq!(pair.lost(Side::Server), Some(ConnectionError::Reset));
    pair.run_for(Duration::from_secs(5));
    assert_eq!(shared.endpoint_of_reset(&reset), None, "the connection is forgotten");
}

#[test]
fn an_endpoint_that_goes_takes_the_reset_tokens_of_its_connections_with_it() {
    let shared = EndpointShared::new(&EndpointConfig::new(ResetKey::new(&[1; 32])));
    let mut pair = Pair::connected();
    pair.client.share(shared.clone());
    let config = ClientConfig::new(Arc::new(pair::client_tls()));
    let addrs = FourTuple::new(pair.server.addr, None);
    pair.server.restart();
    pair.client.connection =
        Some(pair.client.endpoint.connect(pair.now, &config, addrs, "localhost").unwrap());
    pair.run_for(Duration::from_millis(100));
    let token = pair.client.conn().peer_transport_parameters().unwrap().stateless_reset_token.unwrap();
    let reset = [&[0x41; 20][..], &token.0].concat();
    assert_eq!(shared.endpoint_of_reset(&reset), Some(0));
    pair.client.restart();
    assert_eq!(shared.endpoint_of_reset(&reset), None);
}
