//! New keys in a running transfer (RFC 9001 §6).

use std::time::Duration;

use fulmar_base::Rng;
use fulmar_wire::{ProtectedKind, Side, read_packet, sample, unprotect_header};

use super::pair::{Pair, Setup};
use crate::rtt::{Rtt, TimerStyle};
use crate::{FourTuple, KeyUpdatePolicy, MultipathConfig, TransportConfig};

fn demand_update(pair: &mut Pair, side: Side) {
    pair.end(side).conn().handshake.keys.one_rtt_mut().unwrap().demand_update();
}

fn generation(pair: &mut Pair, side: Side) -> u64 {
    pair.end(side).conn().handshake.keys.one_rtt().unwrap().generation()
}

/// Delays datagrams by up to 20 ms, so that they overtake each other, and loses one of 30.
fn reorder(pair: &mut Pair) {
    for side in [Side::Client, Side::Server] {
        let mut rng = Rng::from_u64(side.is_server().into());
        pair.end(side).wire = Box::new(move |mut flying| {
            flying.at += Duration::from_micros(rng.below(20_000));
            if rng.below(30) == 0 { Vec::new() } else { vec![flying] }
        });
    }
}

#[test]
fn updates_of_either_end_in_a_transfer_with_reordering() {
    for initiators in [vec![Side::Client], vec![Side::Server], vec![Side::Client, Side::Server]] {
        let mut pair = Setup::default().connect();
        reorder(&mut pair);
        for round in 1..=5 {
            for &side in &initiators {
                demand_update(&mut pair, side);
            }
            pair.transfer(Side::Client, 200_000, Duration::from_secs(20));
            pair.transfer(Side::Server, 200_000, Duration::from_secs(20));
            pair.run_for(Duration::from_secs(2));
            for side in [Side::Client, Side::Server] {
                assert!(generation(&mut pair, side) >= round, "{initiators:?}, round {round}");
                // Keys are kept for as long as packets can be late.
                assert_eq!(pair.end(side).conn().stats().packets_unauthenticated, 0);
            }
        }
        assert_eq!(generation(&mut pair, Side::Client), generation(&mut pair, Side::Server));
    }
}

#[test]
fn an_update_while_the_other_end_is_silent() {
    let mut pair = Setup::default().connect();
    demand_update(&mut pair, Side::Client);
    pair.client.conn().ping();
    pair.run_for(Duration::from_secs(1));
    assert_eq!((generation(&mut pair, Side::Client), generation(&mut pair, Side::Server)), (1, 1));
    pair.transfer(Side::Server, 10_000, Duration::from_secs(1));
}

#[test]
fn keys_are_kept_and_not_updated_again_for_three_probe_timeouts_of_the_slowest_path() {
    let config =
        || TransportConfig { multipath: Some(MultipathConfig::default()), ..TransportConfig::default() };
    let mut pair = Setup { client: config(), server: config(), ..Setup::default() }.connect();
    let slow: std::net::SocketAddr = "10.0.1.1:1000".parse().unwrap();
    pair.client.more_addrs = vec![slow];
    let (now, addrs) = (pair.now, FourTuple::new(pair.server.addr, Some(slow.ip())));
    let id = pair.client.conn().open_path(now, addrs).unwrap();
    pair.run_for(Duration::from_millis(500));
    // What was measured in a moment of calm is not what matters here.
    pair.client.conn().paths.get_mut(id).unwrap().tuple.rtt =
        Rtt::new(Duration::from_secs(1), TimerStyle::default());
    demand_update(&mut pair, Side::Client);
    pair.client.conn().ping();
    pair.run_for(Duration::from_millis(500));
    assert_eq!((generation(&mut pair, Side::Client), generation(&mut pair, Side::Server)), (1, 1));
    let least = pair.client.conn().probe_timeout() * 3;
    assert!(least < Duration::from_millis(400), "{least:?}");
    demand_update(&mut pair, Side::Client);
    pair.client.conn().ping();
    pair.run_for(Duration::from_millis(100));
    assert_eq!(generation(&mut pair, Side::Client), 1, "packets may still come on the slow path");
    assert!(pair.client.conn().handshake.keys.one_rtt().unwrap().has_previous());
    pair.run_for(Duration::from_secs(10));
    pair.client.conn().ping();
    pair.run_for(Duration::from_secs(1));
    assert_eq!((generation(&mut pair, Side::Client), generation(&mut pair, Side::Server)), (2, 2));
}

#[test]
fn an_update_waits_for_the_end_of_the_last() {
    let mut pair = Setup::default().connect();
    demand_update(&mut pair, Side::Client);
    pair.client.conn().ping();
    pair.run_for(Duration::from_millis(1));
    demand_update(&mut pair, Side::Client);
    pair.client.conn().ping();
    pair.run_for(Duration::from_millis(1));
    assert_eq!(generation(&mut pair, Side::Client), 1, "the first is not confirmed");
    pair.run_for(Duration::from_secs(1));
    pair.client.conn().ping();
    pair.run_for(Duration::from_secs(1));
    assert_eq!((generation(&mut pair, Side::Client), generation(&mut pair, Side::Server)), (2, 2));
}

#[test]
fn keys_are_updated_as_often_as_configured_and_when_the_application_asks() {
    let policies = [
        KeyUpdatePolicy { packets: Some(50), bytes: None },
        KeyUpdatePolicy { packets: None, bytes: Some(60_000) },
    ];
    for key_update in policies {
        let client = TransportConfig { key_update, ..TransportConfig::default() };
        let mut pair = Setup { client, ..Setup::default() }.connect();
        // An update waits until the one before is long over.
        for _ in 0..5 {
            pair.transfer(Side::Client, 200_000, Duration::from_secs(20));
            pair.run_for(Duration::from_secs(1));
        }
        // The last one may wait for a packet that shows it.
        pair.client.conn().ping();
        pair.run_for(Duration::from_secs(1));
        let updates = pair.client.conn().stats().key_updates;
        assert!(updates >= 3, "{key_update:?}: {updates}");
        assert_eq!(pair.server.conn().stats().key_updates, updates);
    }
    let mut pair = Setup::default().connect();
    pair.server.conn().update_keys();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.client.conn().stats().key_updates, 1);
    assert_eq!(pair.client.conn().stats().packets_unauthenticated, 0);
}

#[test]
fn an_update_that_is_asked_for_too_early_waits() {
    let mut pair = Setup::default().dial();
    pair.run_for(Duration::from_millis(1));
    pair.client.conn().update_keys();
    pair.run_for(Duration::from_millis(100));
    assert!(pair.client.is_connected() && pair.server.is_connected());
    pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
}

/// The key phases and the packet numbers of the client's 1-RTT packets, as they are written: cut to their low bytes.
fn written_numbers(pair: &mut Pair) -> Vec<(bool, u32)> {
    let mut written = Vec::new();
    for datagram in pair.client.sent.clone() {
        let mut rest = &datagram[..];
        while let Ok(packet) = read_packet(rest, 8) {
            let (bytes, more) = rest.split_at(packet.len);
            rest = more;
            let ProtectedKind::OneRtt { pn_offset } = packet.kind else { continue };
            let keys = pair.server.conn().handshake.keys.one_rtt_mut().unwrap();
            let mask = keys.remote_header().mask(sample(bytes, pn_offset).unwrap());
            let bits = unprotect_header(&mut bytes.to_vec(), pn_offset, mask).unwrap();
            written.push((bits.key_phase(), bits.truncated_pn));
        }
    }
    written
}

#[test]
fn updates_are_understood_by_a_peer_that_compares_numbers_as_they_are_written() {
    let key_update = KeyUpdatePolicy { packets: Some(100), bytes: None };
    let client = TransportConfig { key_update, ..TransportConfig::default() };
    let mut pair = Setup { client, ..Setup::default() }.connect();
    for _ in 0..10 {
        pair.transfer(Side::Client, 200_000, Duration::from_secs(20));
        pair.run_for(Duration::from_secs(1));
    }
    // Such a peer takes a packet of the other phase for one of the next if its number is above that of the first one of this
    // phase, and for one of the last if not, which it cannot open then.
    let (mut phase, mut first, mut followed) = (false, None, 0);
    for (packet_phase, number) in written_numbers(&mut pair) {
        if packet_phase != phase {
            let first_of_phase = first.take().expect("a phase begins with a packet");
            assert!(number > first_of_phase, "update {followed}: {number} comes after {first_of_phase}");
            phase = packet_phase;
            followed += 1;
        }
        first.get_or_insert(number);
    }
    assert!(followed >= 8, "{followed} updates");
}
