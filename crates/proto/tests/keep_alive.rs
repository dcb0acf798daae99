//! Keep-alive: PINGs in silence, and only there (RFC 9000 §10.1.2).

mod pair;

use std::time::Duration;

use fulmar_proto::{Dir, Side, TransportConfig};
use pair::Pair;

fn pair_with_keep_alive(interval: Option<Duration>) -> Pair {
    let client = TransportConfig {
        max_idle_timeout: Some(Duration::from_secs(10)),
        keep_alive_interval: interval,
        ..TransportConfig::default()
    };
    let mut pair = Pair::new(client, TransportConfig::default());
    pair.run_for(Duration::from_millis(100));
    pair
}

#[test]
fn a_silent_connection_outlives_its_idle_timeout() {
    let mut pair = pair_with_keep_alive(Some(Duration::from_secs(2)));
    pair.run_for(Duration::from_secs(60));
    assert!(!pair.client.conn().is_closed() && !pair.server.conn().is_closed());
}

#[test]
fn a_peer_with_less_patience_is_kept_as_well() {
    let of = |idle, keep_alive_interval| TransportConfig {
        max_idle_timeout: Some(Duration::from_secs(idle)),
        keep_alive_interval,
        ..TransportConfig::default()
    };
    let mut pair = Pair::new(of(60, Some(Duration::from_secs(20))), of(10, None));
    pair.run_for(Duration::from_secs(100));
    assert!(!pair.client.conn().is_closed() && !pair.server.conn().is_closed());
}

/// Bytes in flight when the server has not answered for three seconds.
fn in_flight_without_answer(interval: Option<Duration>) -> u64 {
    let mut pair = pair_with_keep_alive(interval);
    pair.server.mute = true;
    let id = pair.client.conn().streams().open(Dir::Bi).unwrap();
    pair.client.conn().streams().send(id).write(&[0; 500_000]).unwrap();
    pair.run_for(Duration::from_secs(3));
    let stats = pair.client.conn().stats();
    assert!(stats.pto_count > 0);
    stats.bytes_in_flight
}

#[test]
fn a_keep_alive_adds_nothing_to_what_waits_for_an_answer() {
    let with = in_flight_without_answer(Some(Duration::from_secs(2)));
    assert_eq!(with, in_flight_without_answer(None));
}

/// How many acknowledgements the questions carry that the client asks in a second without an answer.
fn told_in_silence(pair: &mut Pair) -> u64 {
    pair.server.mute = true;
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    pair.client.conn().streams().send(id).write(&[0; 500]).unwrap();
    let before = pair.client.conn().stats();
    pair.run_for(Duration::from_secs(1));
    let after = pair.client.conn().stats();
    assert!(after.pto_count > 0);
    pair.server.mute = false;
    pair.run_for(Duration::from_secs(2));
    after.acks_sent - before.acks_sent
}

#[test]
fn a_question_is_alone_once_the_peer_knows_what_has_arrived() {
    let mut pair = pair_with_keep_alive(None);
    pair.transfer(Side::Server, 5_000, Duration::from_secs(1));
    assert!(told_in_silence(&mut pair) > 0, "whether the server has heard of it is not known");
    assert_eq!(
        told_in_silence(&mut pair),
        0,
        "the server has acknowledged what told it, and has sent nothing since"
    );
}

/// What the client has received is acknowledged once, and that gets lost: the server must not wait for its own timeout to hear of it.
#[test]
fn a_question_tells_again_what_the_peer_may_not_know() {
    let mut pair = pair_with_keep_alive(Some(Duration::from_secs(1)));
    pair.transfer(Side::Server, 5_000, Duration::from_secs(1));
    let id = pair.server.conn().streams().open(Dir::Bi).unwrap();
    pair.server.conn().streams().send(id).write(&[0; 500]).unwrap();
    pair.run_for(Duration::from_millis(15));
    (pair.client.mute, pair.server.mute) = (true, true);
    pair.run_for(Duration::from_secs(3));
    let unheard = pair.client.conn().stats().acks_sent;
    assert!(pair.server.conn().stats().bytes_in_flight > 0);
    // Only questions of the client pass.
    pair.client.mute = false;
    pair.run_for(Duration::from_secs(1));
    assert!(pair.client.conn().stats().acks_sent > unheard);
    let told = pair.server.conn().stats();
    let timer = told.rtt + 3 * told.rtt_variance;
    assert!(timer < Duration::from_millis(500), "the silence is no round trip: {timer:?}");
    pair.server.mute = false;
    pair.run_for(Duration::from_secs(4));
    let heard = pair.client.conn().stats().acks_sent;
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.client.conn().stats().acks_sent, heard, "the server has told that it knows");
}
