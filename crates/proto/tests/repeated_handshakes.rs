//! Connections come and go without end between two endpoints: whatever becomes of them, nothing of them stays.

mod pair;

use std::sync::Arc;
use std::time::Duration;

use fulmar_proto::{AddressValidation, ClientConfig, FourTuple, RetryPolicy, SessionStore, Side};
use pair::{Answer, Pair, SERVER, Setup};

/// How many connections are made, after those that fill the tables. Cryptography takes most of the time.
const COUNT: usize = if cfg!(debug_assertions) { 300 } else { 10_000 };
/// How many connections fill the tables of an endpoint, and those of one whose clients come back: a server forgets used tokens
/// after a day, of which each connection here takes 100 s, and TLS sessions when there are hundreds.
const FILL: usize = 150;
const FILL_RETURNING: usize = 900;
/// What may be left of all of them, in bytes: tables that grew a little.
const LEFT_MAX: i64 = 64 << 10;

/// Makes connections one after the other, each of which lives as `life` says and is then left alone until both ends have
/// forgotten it. What is left of the first `fill` is not counted.
fn repeat(setup: Setup, client: &ClientConfig, fill: usize, life: impl Fn(&mut Pair)) {
    let mut pair = setup.dial();
    let mut live = || {
        let addrs = FourTuple::new(SERVER.parse().unwrap(), None);
        life(&mut pair);
        pair.run_for(Duration::from_secs(100));
        for end in [&mut pair.client, &mut pair.server] {
            assert_eq!((end.endpoint.open_connections(), end.endpoint.half_open()), (0, 0));
            end.events.clear();
            end.sent.clear();
            end.dropped.clear();
            end.mute = false;
        }
        pair.strays.clear();
        pair.stray_addrs.clear();
        pair.server.connection = None;
        let dialled = pair.client.endpoint.connect(pair.now, client, addrs, "localhost").unwrap();
        pair.client.connection = Some(dialled);
    };
    (0..fill).for_each(|_| live());
    let seen = allocation_counter::measure(|| (0..COUNT).for_each(|_| live()));
    assert!(seen.bytes_current < LEFT_MAX, "{} bytes of {COUNT} connections", seen.bytes_current);
}

fn client() -> ClientConfig {
    ClientConfig::new(Arc::new(pair::client_tls()))
}

fn talk_and_close(pair: &mut Pair) {
    pair.run_for(Duration::from_millis(100));
    pair.transfer(Side::Client, 5_000, Duration::from_secs(1));
    let now = pair.now;
    pair.client.conn().close(now, 0u32.into(), bytes::Bytes::new());
}

#[test]
fn that_talk_and_close() {
    repeat(Setup::default(), &client(), FILL, talk_and_close);
}

#[test]
fn that_resume_a_session() {
    let sessions = SessionStore::new(4);
    let mut server_tls = pair::server_tls();
    server_tls.max_early_data_size = u32::MAX;
    let client = client().with_sessions(sessions).with_early_data(true);
    repeat(Setup { server_tls, ..Setup::default() }, &client, FILL_RETURNING, talk_and_close);
}

#[test]
fn that_follow_a_retry() {
    let validation = AddressValidation { retry: RetryPolicy::Always, ..AddressValidation::default() };
    repeat(Setup { validation, ..Setup::default() }, &client(), FILL, talk_and_close);
}

#[test]
fn that_fall_silent_in_the_handshake() {
    repeat(Setup::default(), &client(), FILL, |pair| {
        pair.run_for(Duration::from_millis(1));
        pair.client.mute = true;
    });
}

#[test]
fn that_fall_silent_later() {
    repeat(Setup::default(), &client(), FILL, |pair| {
        pair.run_for(Duration::from_millis(100));
        pair.client.mute = true;
        pair.server.mute = true;
    });
}

#[test]
fn that_are_refused() {
    repeat(Setup { answer: Answer::Refuse, ..Setup::default() }, &client(), FILL, |_| {});
}

#[test]
fn that_do_not_trust_the_server() {
    let (chain, _) = pair::certificate_for(&["localhost"], |_| {});
    let client = ClientConfig::new(Arc::new(pair::client_tls_that_trusts(&chain[0])));
    repeat(Setup::default(), &client, FILL, |_| {});
}
