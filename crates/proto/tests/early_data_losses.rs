//! Early data that comes in another order, comes late or does not come (RFC 9001 §4.6, §4.9.3).

mod pair;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fulmar_proto::{
    AddressValidation, DropReason, EarlyData, FourTuple, MultipathConfig, PathId, RandomCids, RetryPolicy,
    Side, TransportConfig, TransportErrorCode,
};
use fulmar_wire::{ProtectedKind, read_packet};
use pair::Setup;
use pair::friends::{Friends, early_packets, receive, send_early, statuses};

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
