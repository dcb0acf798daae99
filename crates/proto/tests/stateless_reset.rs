//! An end that has forgotten a connection says so to the other (RFC 9000 §10.3).

mod pair;

use std::time::Duration;

use fulmar_proto::{ConnectionError, FourTuple, MultipathConfig, ResetToken, Rng, Side, TransportConfig};
use pair::{CLIENT, Pair, SERVER, Setup};

#[test]
fn a_client_notices_that_its_server_was_started_again() {
    let mut pair = Pair::connected();
    pair.server.restart();
    pair.client.conn().ping();
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.lost(Side::Client), Some(ConnectionError::Reset));
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.client.endpoint.open_connections(), 0);
}

#[test]
fn a_client_that_was_started_again_can_only_be_silent() {
    let mut pair = Pair::connected();
    pair.client.restart();
    pair.server.conn().ping();
    pair.run_for(Duration::from_millis(50));
    // RFC 9000 §18.2: a client has no token to give for the connection ID of the handshake.
    assert!(pair.client.replies > 0);
    assert_eq!(pair.server.lost(), None);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.server.lost(), Some(ConnectionError::TimedOut));
}

#[test]
fn a_server_with_another_key_cannot_reset() {
    let mut pair = Pair::connected();
    let key = fulmar_proto::ResetKey::new(&[99; 32]);
    pair.server.config = std::sync::Arc::new(fulmar_proto::EndpointConfig::new(key));
    pair.server.restart();
    pair.client.conn().ping();
    pair.run_for(Duration::from_millis(50));
    assert!(pair.server.replies > 0);
    assert_eq!(pair.client.lost(), None);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.client.lost(), Some(ConnectionError::TimedOut));
}

/// Both ends after the handshake, with multipath.
fn with_multipath() -> Pair {
    let config =
        || TransportConfig { multipath: Some(MultipathConfig::default()), ..TransportConfig::default() };
    let mut pair = Setup { client: config(), server: config(), ..Setup::default() }.connect();
    assert!(pair.client.conn().is_multipath());
    pair
}

#[test]
fn a_client_with_multipath_notices_that_its_server_was_started_again() {
    for paths in [1, 2] {
        let mut pair = with_multipath();
        if paths == 2 {
            let other = "10.0.1.1:1000".parse().unwrap();
            pair.client.more_addrs = vec![other];
            let (now, addrs) = (pair.now, FourTuple::new(pair.server.addr, Some(other.ip())));
            pair.client.conn().open_path(now, addrs).unwrap();
            pair.run_for(Duration::from_millis(100));
        }
        assert_eq!(pair.client.conn().paths().filter(|path| path.validated).count(), paths);
        pair.server.restart();
        pair.client.conn().ping();
        pair.run_for(Duration::from_millis(50));
        assert!(pair.server.replies > 0);
        assert_eq!(pair.lost(Side::Client), Some(ConnectionError::Reset), "{paths} paths");
    }
}

#[test]
fn with_multipath_a_reset_is_recognised_whatever_its_first_bytes_are_and_only_from_where_the_peer_is() {
    for first in [0x00, 0x3f, 0x40, 0xc0, 0xff] {
        let mut pair = with_multipath();
        let token = token_of_the_server(&mut pair);
        let reset = [&[first; 40][..], &token.0].concat();
        pair.inject(Side::Client, "10.0.0.9:9".parse().unwrap(), reset.clone());
        pair.inject(Side::Server, CLIENT.parse().unwrap(), reset.clone());
        assert_eq!((pair.lost(Side::Client), pair.lost(Side::Server)), (None, None), "{first:#x}");
        pair.inject(Side::Client, SERVER.parse().unwrap(), reset);
        assert_eq!(pair.lost(Side::Client), Some(ConnectionError::Reset), "{first:#x}");
    }
}

fn token_of_the_server(pair: &mut Pair) -> ResetToken {
    let parameters = pair.client.conn().peer_transport_parameters().unwrap();
    parameters.stateless_reset_token.unwrap()
}

#[test]
fn random_ends_are_no_resets_and_short_datagrams_neither() {
    let mut pair = Pair::connected();
    let token = token_of_the_server(&mut pair);
    let mut rng = Rng::from_u64(3);
    let server = SERVER.parse().unwrap();
    for len in 0..200 {
        let mut payload = vec![0; len];
        rng.fill(&mut payload);
        pair.inject(Side::Client, server, payload.clone());
        // RFC 9000 §10.3: at least 21 bytes.
        if (16..21).contains(&len) {
            payload[len - 16..].copy_from_slice(&token.0);
            pair.inject(Side::Client, server, payload);
        }
    }
    // From elsewhere, or to somebody else, it is none either.
    let reset = [&[0x41; 20][..], &token.0].concat();
    pair.inject(Side::Client, "10.0.0.9:9".parse().unwrap(), reset.clone());
    pair.inject(Side::Server, CLIENT.parse().unwrap(), reset.clone());
    pair.transfer(Side::Server, 10_000, Duration::from_secs(1));
    pair.inject(Side::Client, server, reset);
    assert_eq!(pair.lost(Side::Client), Some(ConnectionError::Reset));
}

#[test]
fn a_reset_is_recognised_whatever_its_first_bytes_are() {
    // RFC 9000 §10.3.1: it may come from an end that uses other connection IDs, or another version.
    for first in [0x00, 0x3f, 0x40, 0xc0, 0xff] {
        let mut pair = Pair::connected();
        let token = token_of_the_server(&mut pair);
        let reset = [&[first; 40][..], &token.0].concat();
        pair.inject(Side::Client, SERVER.parse().unwrap(), reset);
        assert_eq!(pair.lost(Side::Client), Some(ConnectionError::Reset), "{first:#x}");
    }
}

#[test]
fn a_token_within_a_packet_is_no_reset() {
    let mut pair = Pair::connected();
    let token = token_of_the_server(&mut pair);
    let data = bytes::Bytes::from(token.0.repeat(20));
    pair.server.conn().send_datagram(data.clone(), false).unwrap();
    pair.run_for(Duration::from_millis(20));
    assert_eq!(pair.client.conn().read_datagram(), Some(data));
    assert_eq!(pair.client.lost(), None);
}

#[test]
fn unknown_packets_are_answered_by_shorter_resets_until_silence() {
    let mut pair = Pair::connected();
    pair.server.restart();
    pair.client.restart();
    let sent = pair.server.sent.last().unwrap().clone();
    let mut unknown = vec![0x40; 1_200];
    unknown[1..9].copy_from_slice(&[5; 8]);
    for payload in [sent, unknown] {
        pair.inject(Side::Client, SERVER.parse().unwrap(), payload);
        pair.run_for(Duration::from_secs(5));
    }
    let replies = pair.client.replies + pair.server.replies;
    assert!((2..=2 * 43).contains(&replies), "{replies} resets of resets");
}

#[test]
fn resets_are_smaller_than_what_they_answer_and_short_packets_get_none() {
    for len in 1..100 {
        let mut pair = Pair::connected();
        let mut payload = vec![0x40; len];
        if let Some(cid) = payload.get_mut(1..9) {
            cid.copy_from_slice(&[5; 8]);
        }
        pair.inject(Side::Server, "10.0.0.9:9".parse().unwrap(), payload);
        let answer = pair.strays.first().map(Vec::len);
        assert!(answer.is_none_or(|answer| answer < len && answer >= 21), "{answer:?} for {len}");
        assert_eq!(answer.is_some(), len >= 22);
    }
}

#[test]
fn a_storm_of_packets_without_a_connection_is_answered_two_hundred_times_in_a_second() {
    let mut pair = Pair::connected();
    let storm = |pair: &mut Pair, first: u16| {
        let before = pair.server.replies;
        for n in first..first + 5_000 {
            let mut payload = vec![0x40; 100];
            payload[1..3].copy_from_slice(&n.to_be_bytes());
            pair.inject(Side::Server, std::net::SocketAddr::from(([203, 0, 113, n as u8], n)), payload);
        }
        pair.server.replies - before
    };
    assert_eq!(storm(&mut pair, 1), 200);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(storm(&mut pair, 10_000), 200);
    assert!(pair.strays.iter().all(|reset| reset.len() < 100), "each answer is smaller than its cause");
    pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
}
