//! What is left of a path that is gone, and of paths none of which answers.

mod pair;

use std::sync::Arc;
use std::time::Duration;

use fulmar_proto::{Dir, EmptyCids, FourTuple, OpenPathError, Side, TransportErrorCode};
use pair::{Pair, SECOND, Setup, multipath_config, read_available};

#[test]
fn what_was_under_way_on_an_abandoned_path_arrives_over_the_other() {
    for side in [Side::Client, Side::Server] {
        let mut pair = Pair::with_two_paths();
        let deaf = pair.client.more_addrs[0];
        pair.client.wire = Box::new(move |flying| if flying.from == deaf { vec![] } else { vec![flying] });
        let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
        assert_eq!(pair.client.conn().streams().send(id).write(&[7; 60_000]), Ok(60_000));
        pair.client.conn().streams().send(id).finish().unwrap();
        pair.run_for(Duration::from_millis(1));
        assert!(pair.client.conn().path_stats().all(|path| path.bytes_in_flight > 5_000));
        let now = pair.now;
        pair.end(side).conn().abandon_path(now, SECOND, TransportErrorCode::NO_ERROR).unwrap();
        let mut read = Vec::new();
        let limit = Duration::from_secs(1);
        assert!(
            pair.run_while_waiting(limit, |pair| read_available(&mut pair.server, id, &mut read)),
            "{side:?}"
        );
        assert_eq!(read, [7; 60_000]);
    }
}

#[test]
fn what_comes_late_on_an_abandoned_path_is_no_strangers_packet_for_three_probe_timeouts() {
    let mut pair = Pair::with_two_paths();
    let before = pair.client.sent.len();
    let second = pair.client.more_addrs[0];
    pair.transfer(Side::Client, 30_000, Duration::from_secs(1));
    let first_id = pair.client.sent[before][1..9].to_vec();
    let late = pair.client.sent[before..].iter().find(|datagram| datagram[1..9] != first_id).unwrap().clone();
    let now = pair.now;
    pair.client.conn().abandon_path(now, SECOND, TransportErrorCode::NO_ERROR).unwrap();
    pair.run_for(Duration::from_millis(70));
    let unmatched = |pair: &mut Pair| {
        pair.inject(Side::Server, second, late.clone());
        pair.server.replies + pair.server.dropped.len()
    };
    let before = unmatched(&mut pair);
    assert_eq!(before, 0, "it belongs to the connection");
    pair.run_for(Duration::from_millis(500));
    assert_eq!(unmatched(&mut pair), 1, "as to any other one, a stateless reset is the answer");
}

#[test]
fn what_a_peer_sends_on_an_abandoned_path_before_it_hears_of_that_is_no_strangers_packet() {
    let mut pair = Pair::with_two_paths();
    let before = pair.server.sent.len();
    let server = pair.server.addr;
    pair.transfer(Side::Server, 30_000, Duration::from_secs(1));
    let first_id = pair.server.sent[before][1..9].to_vec();
    let late = pair.server.sent[before..].iter().find(|datagram| datagram[1..9] != first_id).unwrap().clone();
    let unmatched = |pair: &mut Pair| {
        pair.inject(Side::Client, server, late.clone());
        pair.client.replies + pair.client.dropped.len()
    };
    // Nothing of the client's arrives for a time that is many probe timeouts, but no idle timeout.
    pair.client.mute = true;
    let now = pair.now;
    pair.client.conn().abandon_path(now, SECOND, TransportErrorCode::NO_ERROR).unwrap();
    pair.run_for(Duration::from_secs(3));
    assert_eq!(unmatched(&mut pair), 0, "the server knows of nothing");
    pair.client.mute = false;
    assert!(pair.run_while_waiting(Duration::from_secs(10), |pair| pair.server.conn().paths().count() == 1));
    pair.run_for(Duration::from_millis(50));
    assert_eq!(unmatched(&mut pair), 0, "what it sent before may be late");
    pair.run_for(Duration::from_secs(2));
    assert_eq!(unmatched(&mut pair), 1, "it sends nothing there any more");
}

#[test]
fn an_end_without_connection_ids_has_no_multipath() {
    let client_cids = Arc::new(EmptyCids);
    let mut pair =
        Setup { client: multipath_config(), server: multipath_config(), client_cids, ..Setup::default() }
            .connect();
    assert!(!pair.client.conn().is_multipath() && !pair.server.conn().is_multipath());
    let (now, addrs) = (pair.now, FourTuple::new(pair.server.addr, None));
    assert_eq!(pair.client.conn().open_path(now, addrs), Err(OpenPathError::NotNegotiated));
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
}

/// The bytes that the client sends in five seconds in which nothing of it arrives, beside those of the first flight.
fn sent_into_silence(mut pair: Pair) -> (u64, u32) {
    // So that the windows have room for it twice.
    pair.transfer(Side::Client, 500_000, Duration::from_secs(5));
    pair.run_for(Duration::from_millis(100));
    let stream = pair.client.conn().streams().open(Dir::Uni).unwrap();
    pair.client.wire = Box::new(|_| vec![]);
    assert_eq!(pair.client.conn().streams().send(stream).write(&[7; 40_000]), Ok(40_000));
    pair.run_for(Duration::from_millis(25));
    let sent = |pair: &mut Pair| pair.client.conn().path_stats().map(|path| path.bytes_sent).sum::<u64>();
    let before = sent(&mut pair);
    assert!(pair.client.conn().path_stats().map(|path| path.bytes_in_flight).sum::<u64>() > 40_000);
    pair.run_for(Duration::from_secs(5));
    let probes = pair.client.conn().path_stats().map(|path| path.pto_count).sum();
    (sent(&mut pair) - before, probes)
}

#[test]
fn where_no_path_answers_two_packets_are_sent_for_each_probe_timeout_at_most() {
    for pair in [Pair::with_two_paths(), Pair::connected()] {
        let (sent, probes) = sent_into_silence(pair);
        assert!(sent < u64::from(probes) * 3_000, "{sent} bytes, {probes} probe timeouts");
    }
}
