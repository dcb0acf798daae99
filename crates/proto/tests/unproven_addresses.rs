//! Addresses that have not proven themselves: what is sent to them, and who may move where (RFC 9000 §8, §9, §10.2.1).

mod pair;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::{ConnectionError, Dir, Event, PathEvent, Side, TransportConfig};
use pair::{CLIENT, Flying, Pair, Setup, addr, large_chain, server_tls_with};

const MS: Duration = Duration::from_millis(1);

/// The longest reason that a CONNECTION_CLOSE carries.
const LONG_REASON: Bytes = Bytes::from_static(&[b'w'; 256]);

/// A new packet of the client that has not left: whoever holds it may send it from anywhere.
fn held_back(pair: &mut Pair) -> Vec<u8> {
    pair.client.mute = true;
    pair.client.conn().ping();
    pair.run_for(MS / 10);
    pair.client.mute = false;
    pair.client.sent.last().unwrap().clone()
}

fn bytes_to(pair: &Pair, to: SocketAddr) -> usize {
    pair.stray_addrs.iter().zip(&pair.strays).filter(|(addr, _)| **addr == to).map(|(_, p)| p.len()).sum()
}

#[test]
fn a_connection_that_closes_before_the_address_is_proven_keeps_the_limit() {
    // With the second size a remainder of the credit is left that a small datagram would fit.
    for initial_mtu in [1_200, 1_400] {
        let server = TransportConfig { initial_mtu, ..TransportConfig::default() };
        let server_tls = server_tls_with(large_chain(16_000));
        let mut pair = Setup { server, server_tls, ..Setup::default() }.dial();
        pair.server.mute = true;
        pair.run_for(6 * MS);
        pair.client.mute = true;
        pair.run_for(50 * MS);
        assert!(
            pair.server.amplification.sent > 2 * pair.server.amplification.received,
            "the credit is used"
        );
        let now = pair.now;
        pair.server.conn().close(now, 7u32.into(), LONG_REASON);
        pair.run_for(50 * MS);
        let amplification = &pair.server.amplification;
        assert!(!amplification.exceeded && !amplification.validated, "{initial_mtu}: {amplification:?}");
        // The client's next datagram makes room for the news.
        (pair.client.mute, pair.server.mute) = (false, false);
        pair.run_for(Duration::from_secs(2));
        assert!(!pair.server.amplification.exceeded, "{initial_mtu}: {:?}", pair.server.amplification);
        let lost = pair.lost(Side::Client);
        assert!(matches!(lost, Some(ConnectionError::ConnectionClosed { .. })), "{lost:?}");
    }
}

#[test]
fn a_closed_connection_tells_another_address_no_more_than_three_times_what_came_from_it() {
    let victim = addr("203.0.113.9:53");
    let mut pair = Pair::connected();
    let packet = held_back(&mut pair);
    let now = pair.now;
    pair.server.conn().close(now, 7u32.into(), LONG_REASON);
    for n in 1..=1_000 {
        pair.inject(Side::Server, victim, packet.clone());
        let (sent, limit) = (bytes_to(&pair, victim), 3 * n * packet.len());
        assert!(sent <= limit, "{sent} bytes for a third of {limit}");
    }
    assert!(bytes_to(&pair, victim) > 0, "a peer that was moved is told");
}

#[test]
fn a_connection_that_closes_in_the_handshake_tells_no_other_address() {
    let victim = addr("203.0.113.9:53");
    let mut pair = Setup::default().dial();
    pair.run_for(6 * MS);
    let initial = pair.client.sent[0].clone();
    let now = pair.now;
    pair.server.conn().close(now, 7u32.into(), Bytes::new());
    for _ in 0..100 {
        pair.inject(Side::Server, victim, initial.clone());
    }
    pair.run_for(100 * MS);
    assert_eq!(pair.strays.len(), 0);
    assert!(pair.lost(Side::Client).is_some(), "the client is told");
}

#[test]
fn a_packet_that_is_older_than_others_moves_nothing() {
    // RFC 9000 §9.3: it may have left before the peer came to where it is.
    let mut pair = Pair::connected();
    let old = held_back(&mut pair);
    pair.client.conn().ping();
    pair.run_for(50 * MS);
    let received = pair.server.conn().stats().packets_received;
    pair.inject(Side::Server, addr("10.0.0.1:2000"), old);
    pair.run_for(50 * MS);
    assert_eq!(pair.server.conn().stats().packets_received, received + 1, "the packet itself counts");
    assert_eq!(pair.server.conn().remote_address(), addr(CLIENT));
    assert_eq!(pair.server.conn().stats().migrations, 0);
    // The newest does.
    let new = held_back(&mut pair);
    pair.inject(Side::Server, addr("10.0.0.1:2000"), new);
    assert_eq!(pair.server.conn().remote_address(), addr("10.0.0.1:2000"));
}

#[test]
fn a_client_that_moves_before_its_handshake_is_confirmed_is_not_followed() {
    // RFC 9000 §9.
    let mut pair = Setup::default().dial();
    pair.run_for(6 * MS);
    assert!(pair.server.conn().is_handshaking());
    pair.client.addr = addr("10.0.0.1:2000");
    pair.run_for(Duration::from_secs(1));
    assert!(pair.client.sent.len() > 2, "the client has answered");
    assert!(pair.server.conn().is_handshaking());
    assert_eq!(pair.server.conn().remote_address(), addr(CLIENT));
    // Back where it was, it is heard.
    pair.client.addr = addr(CLIENT);
    pair.run_for(Duration::from_secs(3));
    assert!(pair.client.is_connected() && pair.server.is_connected());
    assert_eq!(pair.server.conn().stats().migrations, 0);
}

#[test]
fn the_size_of_datagrams_is_proven_at_the_new_address_when_the_first_challenge_was_small() {
    // RFC 9000 §8.2.1: three times the client's small packet leaves no room for a full datagram.
    let mut pair = Pair::connected();
    let new = addr("10.0.0.1:2000");
    pair.client.addr = new;
    pair.client.conn().ping();
    let (sent, strays) = (pair.server.sent.len(), pair.strays.len());
    pair.run_for(100 * MS);
    let full = |datagrams: &[Vec<u8>]| datagrams.iter().filter(|datagram| datagram.len() == 1_200).count();
    let at_the_new = full(&pair.server.sent[sent..]) - full(&pair.strays[strays..]);
    assert_eq!(at_the_new, 1, "what is sent to the old address proves nothing of the new one");
    assert_eq!(pair.server.conn().remote_address(), new);
}

#[test]
fn an_address_that_never_answers_is_tried_ever_more_patiently() {
    let forever = TransportConfig { max_idle_timeout: None, ..TransportConfig::default() };
    let mut pair = Setup { client: forever.clone(), server: forever, ..Setup::default() }.connect();
    pair.transfer(Side::Client, 50_000, Duration::from_secs(2));
    // The client is heard at its new address and hears nothing there.
    pair.client.addr = addr("10.0.0.1:2000");
    pair.server.wire = Box::new(|_: Flying| vec![]);
    let mut failures = Vec::new();
    for _ in 0..2_000 {
        pair.client.conn().ping();
        pair.run_for(50 * MS);
        let failed = |event: &Event| matches!(event, Event::Path(PathEvent::Failed { .. }));
        if pair.server.events.drain(..).any(|event| failed(&event)) {
            failures.push(pair.now);
        }
    }
    // After 3, 6, 12, 24 and 48 s, of which the tuple beside waits for some as well.
    assert!((3..8).contains(&failures.len()), "{} failures in 100 seconds", failures.len());
    let gaps: Vec<Duration> = failures.windows(2).map(|pair| pair[1].saturating_since(pair[0])).collect();
    assert!(gaps.windows(2).all(|gaps| gaps[1] > gaps[0] * 3 / 2), "{gaps:?}");
    // An address that answers ends the patience.
    pair.server.wire = Box::new(|flying| vec![flying]);
    pair.transfer(Side::Client, 10_000, Duration::from_secs(10));
}

#[test]
fn a_probe_for_larger_datagrams_waits_for_the_proof_of_the_address() {
    let victim = addr("203.0.113.9:53");
    let large = || TransportConfig { mtu_max: 4_000, ..TransportConfig::default() };
    let mut pair = Setup { client: large(), server: large(), ..Setup::default() }.connect();
    let id = pair.server.conn().streams().open(Dir::Uni).unwrap();
    pair.client.mute = true;
    let before = pair.client.sent.len();
    let own = pair.client.conn().streams().open(Dir::Uni).unwrap();
    pair.client.conn().streams().send(own).write(&[1; 1_700]).unwrap();
    pair.run_for(MS);
    let packets = pair.client.sent.split_off(before);
    let received: usize = packets.iter().map(Vec::len).sum();
    for packet in packets {
        pair.inject(Side::Server, victim, packet);
    }
    for _ in 0..2 {
        pair.server.conn().streams().send(id).write(&[7; 1_130]).unwrap();
        pair.run_for(60 * MS);
    }
    let sent = bytes_to(&pair, victim);
    assert!(sent > 2_000 && sent <= 3 * received, "{sent} bytes for {received}");
}
