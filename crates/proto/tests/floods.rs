//! Floods: what a stranger or a peer can make an end keep, or answer.

mod pair;

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use fulmar_proto::{
    Datagram, DropReason, Ecn, Endpoint, EndpointConfig, FourTuple, Instant, Recognized, ResetKey, Route,
    ServerConfig, Side, TransmitBatch,
};
use fulmar_wire::{ProtectedKind, read_packet};
use pair::{CLIENT, Pair, SERVER, Setup};

/// The first datagrams of a client of its own.
fn first_datagrams(seed: u8) -> Vec<Vec<u8>> {
    let mut pair = Setup { seed, ..Setup::default() }.dial();
    pair.run_for(Duration::from_millis(1));
    pair.client.sent.clone()
}

fn datagram(payload: &[u8], port: u16) -> Datagram {
    let addrs = FourTuple::new(([10, 0, 0, 9], port).into(), None);
    Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::from(payload) }
}

struct Server {
    endpoint: Endpoint,
    batch: TransmitBatch,
}

impl Server {
    fn new(max_incoming: usize) -> Self {
        let config = EndpointConfig { max_incoming, ..EndpointConfig::new(ResetKey::new(&[2; 32])) };
        let server = ServerConfig::new(Arc::new(pair::server_tls()));
        let endpoint = Endpoint::new(Arc::new(config), Some(Arc::new(server)), [1; 32]);
        Self { endpoint, batch: TransmitBatch::new(1) }
    }

    fn receive(&mut self, payload: &[u8], port: u16) -> Route {
        self.endpoint.handle_datagram(Instant::ZERO, datagram(payload, port), &mut self.batch)
    }
}

#[test]
fn attempts_from_many_addresses_wait_in_a_limited_room() {
    let mut server = Server::new(10);
    let mut waiting = Vec::new();
    let mut refused = 0;
    for seed in 0..40 {
        match server.receive(&first_datagrams(seed)[0], u16::from(seed)) {
            Route::Incoming(incoming) => waiting.push(incoming),
            Route::Dropped(DropReason::Overloaded) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((waiting.len(), refused), (10, 30));
    assert_eq!(server.endpoint.open_connections(), 0, "who waits is no connection");
    // Each of the three ways out makes room.
    let accepted = waiting.pop().unwrap();
    server.endpoint.accept(Instant::ZERO, accepted).unwrap();
    let refused = waiting.pop().unwrap();
    let Server { endpoint, batch } = &mut server;
    endpoint.refuse(refused, batch);
    let ignored = waiting.pop().unwrap();
    server.endpoint.ignore(ignored);
    let admitted =
        (40..60).filter(|seed| matches!(server.receive(&first_datagrams(*seed)[0], 7), Route::Incoming(_)));
    assert_eq!(admitted.count(), 3);
}

#[test]
fn the_datagrams_of_one_attempt_that_waits_are_limited() {
    let mut server = Server::new(10);
    let [first, second] = &first_datagrams(0)[..] else { panic!("a ClientHello in two datagrams") };
    let Route::Incoming(_incoming) = server.receive(first, 1) else { panic!("no attempt") };
    let (mut kept, mut overloaded) = (0, 0);
    for _ in 0..1_000 {
        match server.receive(second, 1) {
            Route::Dropped(DropReason::Buffered) => kept += 1,
            Route::Dropped(DropReason::Overloaded) => overloaded += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(kept, (16 * 1024 - first.len()) / second.len());
    assert_eq!(kept + overloaded, 1_000);
    // RFC 9000 §14.1: small datagrams carry no Initial packets, so their number needs no limit.
    let packet = read_packet(second, 8).unwrap();
    let ProtectedKind::Initial { pn_offset, .. } = packet.kind else { panic!("{packet:?}") };
    let mut small = second[..pn_offset + 40].to_vec();
    small[pn_offset - 2..pn_offset].copy_from_slice(&[0x40, 40]);
    assert!(matches!(server.receive(&small, 1), Route::Dropped(DropReason::TooShort)));
}

#[test]
fn forged_attempts_leave_no_trace() {
    let mut server = Server::new(10);
    let genuine = &first_datagrams(0)[0];
    for at in (0..genuine.len()).step_by(7).filter(|at| !(1..5).contains(at)) {
        let mut forged = genuine.clone();
        forged[at] ^= 0x55;
        assert!(matches!(server.receive(&forged, 1), Route::Dropped(_)), "byte {at}");
    }
    assert!(matches!(server.receive(genuine, 1), Route::Incoming(_)));
}

#[test]
fn packets_that_wait_for_keys_are_limited_and_the_handshake_goes_on() {
    let mut pair = Setup::default().dial();
    pair.run_for(Duration::from_millis(1));
    // A Handshake packet and a 1-RTT packet to the client, long before it has the keys.
    let initial = read_packet(&pair.client.sent[0], 8).unwrap();
    let cid = initial.src.as_bytes();
    let handshake = [&[0xe0, 0, 0, 0, 1, 8][..], cid, &[4, 9, 9, 9, 9, 0x40, 60], &[5; 60]].concat();
    let one_rtt = [&[0x40][..], cid, &[6; 60]].concat();
    for _ in 0..10_000 {
        for payload in [&handshake, &one_rtt] {
            pair.inject(Side::Client, SERVER.parse().unwrap(), payload.clone());
        }
    }
    let stats = pair.client.conn().stats();
    assert_eq!(stats.packets_dropped, 20_000 - 32, "so many are kept");
    pair.run_for(Duration::from_secs(1));
    assert!(pair.client.is_connected());
    // Half of those have another source than the server's packets, which is seen before they are opened.
    assert_eq!(pair.client.conn().stats().packets_unauthenticated, 16, "and found to be forged");
    pair.transfer(Side::Server, 10_000, Duration::from_secs(1));
}

#[test]
fn a_flood_of_packets_with_broken_protection_makes_no_answers() {
    let mut pair = Pair::connected();
    let mut forged = pair.client.sent.last().unwrap().clone();
    *forged.last_mut().unwrap() ^= 1;
    let before = pair.server.sent.len();
    for _ in 0..100_000 {
        pair.inject(Side::Server, CLIENT.parse().unwrap(), forged.clone());
    }
    assert_eq!(pair.server.sent.len(), before);
    assert_eq!(pair.server.conn().stats().packets_unauthenticated, 100_000);
    pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
}

/// A packet of the handshake that nobody can open, of a client and for a server with these connection IDs.
fn trailing_packet(kind: u8, dst: &[u8], src: &[u8], len: usize) -> Vec<u8> {
    let mut packet = vec![0xc0 | kind << 4];
    packet.extend([0, 0, 0, 1, dst.len() as u8]);
    packet.extend(dst);
    packet.push(src.len() as u8);
    packet.extend(src);
    packet.extend((len as u16 | 0x4000).to_be_bytes());
    packet.extend(vec![0x5a; len]);
    packet
}

const EARLY: u8 = 1;
const HANDSHAKE: u8 = 2;

#[test]
fn good_initial_packets_with_bad_ones_behind_them_leave_nothing() {
    let mut server = Server::new(10);
    let genuine = first_datagrams(0)[0].clone();
    let packet = read_packet(&genuine, 8).unwrap();
    let (dst, src) = (packet.dst.as_bytes().to_vec(), packet.src.as_bytes().to_vec());
    let spoilt: Vec<Vec<u8>> = [EARLY, HANDSHAKE]
        .iter()
        .map(|kind| {
            let trailing = trailing_packet(*kind, &dst, &src, 60);
            [genuine.clone(), trailing.repeat(150)].concat()
        })
        .collect();
    let seen = allocation_counter::measure(|| {
        let mut first = None;
        for n in 0..100_000_usize {
            match server.receive(&spoilt[n % 2], 1) {
                Route::Incoming(incoming) => assert!(first.replace(incoming).is_none(), "one attempt"),
                Route::Dropped(_) => {}
                other => panic!("{other:?}"),
            }
        }
        let incoming = first.expect("an attempt");
        server.endpoint.accept(Instant::ZERO, incoming).unwrap();
    });
    assert!(seen.bytes_max < 512 << 10, "{seen:?}");
}

#[test]
fn a_connection_keeps_little_of_what_it_cannot_open_however_large_it_is() {
    let mut pair = Setup::default().dial();
    // The second datagram of the ClientHello is late, so the server has no other keys.
    pair.run_for(Duration::from_millis(1));
    let [first, _] = &pair.client.sent[..] else { panic!("a ClientHello in two datagrams") };
    let first = first.clone();
    let packet = read_packet(&first, 8).unwrap();
    let (dst, src) = (packet.dst.as_bytes().to_vec(), packet.src.as_bytes().to_vec());
    let mut victim = Setup::default().dial();
    victim.client.mute = true;
    victim.inject(Side::Server, CLIENT.parse().unwrap(), first);
    assert!(victim.server.connection.is_some());
    let seen = allocation_counter::measure(|| {
        for kind in [EARLY, HANDSHAKE] {
            let large = trailing_packet(kind, &dst, &src, 16_000);
            for _ in 0..1_000 {
                victim.inject(Side::Server, CLIENT.parse().unwrap(), large.clone());
            }
        }
        victim.server.sent.clear();
    });
    assert!(seen.bytes_current < 128 << 10, "{seen:?}");
}

#[test]
fn a_first_datagram_that_is_too_large_to_wait_is_dropped() {
    let mut server = Server::new(1_024);
    let genuine = first_datagrams(0)[0].clone();
    let mut large = genuine.clone();
    large.resize(60_000, 0);
    assert!(matches!(server.receive(&large, 1), Route::Dropped(DropReason::Overloaded)));
    assert!(matches!(server.receive(&genuine, 1), Route::Incoming(_)));
}

#[test]
fn the_reset_token_of_a_connection_is_told_to_nobody_while_it_lives() {
    let mut pair = Pair::connected();
    let live = pair.client.sent.last().unwrap().clone();
    // Every first byte and every length, to the connection ID of a live connection, from others.
    for first in 0..=u8::MAX {
        for len in [9, 21, 30, 43, 100, 1_200, 1_400] {
            let mut probe = live.clone();
            probe.resize(len, 0xaa);
            probe[0] = first;
            let before = pair.server.replies;
            pair.inject(Side::Server, "10.9.9.9:99".parse().unwrap(), probe);
            if pair.server.replies > before {
                // An unknown version is answered; a reset looks like a packet with a short header.
                assert!(pair.strays.last().unwrap()[0] & 0x80 != 0, "{first:#x} of {len} bytes");
            }
        }
    }
    pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
}

#[test]
fn what_names_a_connection_is_told_apart_from_what_a_stranger_sends() {
    let mut server = Server::new(10);
    let hello = first_datagrams(1);
    let is_stranger = |found| matches!(found, Recognized::Unknown(_));
    let Recognized::Unknown(stranger) = server.endpoint.recognize(datagram(&hello[0], 7)) else {
        panic!("no connection")
    };
    assert_eq!(stranger.payload[..], hello[0][..], "it is given back as it was");
    let Route::Incoming(incoming) = server.receive(&hello[0], 7) else { panic!("an attempt to connect") };
    assert!(is_stranger(server.endpoint.recognize(datagram(&hello[0], 7))), "who waits is no connection");
    let (handle, _connection) = server.endpoint.accept(Instant::ZERO, incoming).unwrap();
    let Recognized::Connection(known, _) = server.endpoint.recognize(datagram(&hello[0], 7)) else {
        panic!("known")
    };
    assert_eq!(known.connection, handle);
    for noise in [&[][..], &[0x40; 3], &[0x40; 30], &[0xc0; 30]] {
        assert!(is_stranger(server.endpoint.recognize(datagram(noise, 7))));
    }
}
