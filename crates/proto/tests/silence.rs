//! What a client does when it has something to say again after a long silence (RFC 9000 §9.5).

mod pair;

use std::time::Duration;

use fulmar_proto::{Dir, Side, TransportConfig};
use pair::{Flying, Pair, read_available};

/// Both ends wait long, so that silence alone ends nothing.
fn patient() -> TransportConfig {
    TransportConfig { max_idle_timeout: Some(Duration::from_secs(600)), ..TransportConfig::default() }
}

fn connected(client: TransportConfig) -> Pair {
    let mut pair = Pair::new(client, patient());
    pair.run_for(Duration::from_millis(100));
    pair.transfer(Side::Client, 1_000, Duration::from_secs(1));
    pair
}

fn changes(pair: &mut Pair) -> [u64; 2] {
    [Side::Client, Side::Server].map(|side| pair.end(side).conn().stats().cid_changes)
}

#[test]
fn the_connection_id_changes_once_after_each_long_silence() {
    let mut pair = connected(patient());
    assert_eq!(changes(&mut pair), [0, 0]);
    for silence in 1..=20 {
        pair.run_for(Duration::from_secs(6));
        pair.transfer(Side::Client, 20_000, Duration::from_secs(1));
        assert_eq!(changes(&mut pair), [silence, 0], "the server issues new ones as fast as they are used");
    }
    assert_eq!((pair.lost(Side::Client), pair.lost(Side::Server)), (None, None));
}

#[test]
fn a_short_silence_and_a_server_that_speaks_first_change_nothing() {
    let mut pair = connected(patient());
    for _ in 0..5 {
        pair.run_for(Duration::from_secs(4));
        pair.transfer(Side::Client, 1_000, Duration::from_secs(1));
    }
    pair.run_for(Duration::from_secs(60));
    pair.transfer(Side::Server, 1_000, Duration::from_secs(1));
    assert_eq!(changes(&mut pair), [0, 0]);
}

#[test]
fn a_ping_that_keeps_the_connection_alive_resumes_nothing() {
    let keep_alive_interval = Some(Duration::from_secs(10));
    let mut pair = connected(TransportConfig { keep_alive_interval, ..patient() });
    pair.run_for(Duration::from_secs(300));
    assert_eq!(changes(&mut pair), [0, 0]);
}

#[test]
fn waiting_for_a_distant_answer_is_no_silence() {
    // Seven seconds each way: every answer takes longer than five seconds.
    let far = Duration::from_secs(7);
    let distant = TransportConfig { initial_rtt: far * 2, handshake_timeout: far * 20, ..patient() };
    let mut pair = Pair::new(distant.clone(), distant);
    for side in [Side::Client, Side::Server] {
        pair.end(side).wire = Box::new(move |mut flying: Flying| {
            flying.at += far;
            vec![flying]
        });
    }
    pair.run_for(far * 6);
    pair.transfer(Side::Client, 1_000, far * 6);
    pair.run_for(Duration::from_secs(5));
    pair.transfer(Side::Client, 1_000, far * 6);
    assert_eq!(changes(&mut pair), [0, 0], "a round trip takes 14 s, so 42 s would be long");
    pair.run_for(Duration::from_secs(60));
    pair.transfer(Side::Client, 1_000, far * 6);
    assert_eq!(changes(&mut pair), [1, 0]);
}

#[test]
fn what_waits_is_asked_for_again_as_soon_as_a_packet_breaks_the_silence_of_a_path() {
    let mut pair = connected(patient());
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    pair.run_for(Duration::from_millis(200));
    (pair.client.mute, pair.server.mute) = (true, true);
    assert_eq!(pair.client.conn().streams().send(id).write(b"still there?"), Ok(12));
    // Each question takes twice as long as the one before by now: from 1.3 s on there is none for a second.
    pair.run_for(Duration::from_millis(1_500));
    (pair.client.mute, pair.server.mute) = (false, false);
    let mut heard = Vec::new();
    let from_server = pair.server.conn().streams().open(Dir::Uni).unwrap();
    assert_eq!(pair.server.conn().streams().send(from_server).write(b"here"), Ok(4));
    let arrived = pair.run_while_waiting(Duration::from_millis(40), |pair| {
        read_available(&mut pair.server, id, &mut heard);
        heard.len() == 12
    });
    assert!(arrived, "the question waits for the backoff of before");
}
