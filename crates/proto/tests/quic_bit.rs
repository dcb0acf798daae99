//! The QUIC bit, which means nothing (RFC 9287).

mod pair;

use std::time::Duration;

use fulmar_proto::{ConnectionError, DropReason, Side, TransportConfig};
use pair::{DELAY, End, Pair, Setup};

fn config(grease_quic_bit: bool) -> TransportConfig {
    TransportConfig { grease_quic_bit, ..TransportConfig::default() }
}

/// How many datagrams of an end begin with a packet whose QUIC bit is set, and how many with one whose is not.
fn bits(end: &End) -> (usize, usize) {
    let set = end.sent.iter().filter(|datagram| datagram[0] & 0x40 != 0).count();
    (set, end.sent.len() - set)
}

fn transfer(client: bool, server: bool) -> Pair {
    let mut pair = Pair::new(config(client), config(server));
    pair.run_for(DELAY * 20);
    pair.transfer(Side::Client, 200_000, Duration::from_secs(10));
    pair.transfer(Side::Server, 200_000, Duration::from_secs(10));
    pair
}

#[test]
fn towards_a_peer_that_takes_any_value_the_bit_is_random() {
    let pair = transfer(true, true);
    for end in [&pair.client, &pair.server] {
        let (set, cleared) = bits(end);
        assert!(set.min(cleared) * 3 > set.max(cleared), "{set} set, {cleared} not");
    }
    // A client that has not heard of the server sets it.
    assert_eq!(pair.client.sent[0][0] & 0x40, 0x40);
    assert!(pair.client.dropped.is_empty() && pair.server.dropped.is_empty());
}

#[test]
fn it_is_set_where_one_end_has_not_announced_the_extension() {
    for (client, server) in [(true, false), (false, true), (false, false)] {
        let pair = transfer(client, server);
        assert_eq!((bits(&pair.client).1, bits(&pair.server).1), (0, 0), "{client}, {server}");
    }
}

#[test]
fn every_packet_of_the_handshake_may_have_either_value() {
    let mut initial = [0; 2];
    for seed in 0..40 {
        let mut pair = Setup { seed, ..Setup::default() }.connect();
        assert!(pair.client.is_connected() && pair.server.is_connected(), "{seed}");
        let first = pair.server.sent[0][0];
        assert_eq!(first & 0xb0, 0x80, "an Initial packet");
        initial[usize::from(first & 0x40 != 0)] += 1;
        pair.close_and_forget();
    }
    assert!(initial[0] > 8 && initial[1] > 8, "{initial:?}");
}

#[test]
fn packets_without_the_bit_are_no_packets_for_who_has_not_announced_it() {
    for (server, alive) in [(true, false), (false, true)] {
        let mut pair = Pair::new(config(true), config(server));
        pair.run_for(DELAY * 20);
        assert!(pair.client.is_connected());
        // Of a connection that nobody knows.
        let stray = vec![0x00; 60];
        pair.inject(Side::Server, "10.0.0.9:9".parse().unwrap(), stray);
        let reset = pair.server.replies == 1;
        assert_eq!(reset, !alive, "a server that takes any value answers with a stateless reset");
        assert_eq!(pair.server.dropped.contains(&DropReason::Malformed), alive);
    }
}

#[test]
fn a_server_that_has_forgotten_the_connection_resets_it_whatever_the_bit_says() {
    let mut pair = Pair::connected();
    pair.server.restart();
    let from = pair.client.sent.len();
    pair.client.conn().ping();
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.lost(Side::Client), Some(ConnectionError::Reset));
    assert!(pair.client.sent.len() > from);
}
