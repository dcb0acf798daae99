//! The manager that keeps a path open over each pair of addresses.

mod pair;

use std::time::Duration;

use fulmar_proto::{
    AddressPairs, Event, FourTuple, MultipathConfig, PathId, PathManager, TransportConfig, TransportErrorCode,
};
use pair::{Pair, Setup};

const OTHER: &str = "10.0.1.1:1000";
const SECOND: PathId = PathId(1);

/// Both ends after the handshake; the client has another address, and a manager of both.
fn connected(server: TransportConfig) -> (Pair, AddressPairs) {
    let mut pair = Setup { client: config(), server, ..Setup::default() }.connect();
    pair.client.more_addrs = vec![OTHER.parse().unwrap()];
    let pairs = [None, Some(pair.client.more_addrs[0].ip())];
    let pairs = pairs.map(|local_ip| FourTuple::new(pair.server.addr, local_ip));
    (pair, AddressPairs::new(pairs))
}

fn config() -> TransportConfig {
    TransportConfig { multipath: Some(MultipathConfig::default()), ..TransportConfig::default() }
}

/// Lets the time pass as whoever drives the client does.
fn run(pair: &mut Pair, manager: &mut AddressPairs, time: Duration) {
    let end = pair.now + time;
    while pair.now < end {
        let now = pair.now;
        for event in std::mem::take(&mut pair.client.events) {
            if let Event::Path(event) = event {
                manager.on_event(now, &event);
            }
        }
        manager.manage(now, pair.client.conn());
        pair.run_for(Duration::from_millis(10));
    }
}

fn paths(pair: &mut Pair) -> Vec<(PathId, bool)> {
    pair.client.conn().paths().map(|path| (path.id, path.validated)).collect()
}

#[test]
fn a_path_is_opened_over_each_pair_once() {
    let (mut pair, mut manager) = connected(config());
    run(&mut pair, &mut manager, Duration::from_secs(3));
    assert_eq!(paths(&mut pair), [(PathId::ZERO, true), (SECOND, true)]);
}

#[test]
fn a_pair_that_answers_nothing_is_tried_again_and_found_when_it_does() {
    let (mut pair, mut manager) = connected(config());
    let silent = pair.client.more_addrs[0];
    pair.client.wire = Box::new(move |flying| if flying.from == silent { vec![] } else { vec![flying] });
    run(&mut pair, &mut manager, Duration::from_secs(10));
    let before = paths(&mut pair);
    assert!(before.iter().all(|(id, validated)| *id == PathId::ZERO || !validated), "{before:?}");
    pair.client.wire = Box::new(|flying| vec![flying]);
    run(&mut pair, &mut manager, Duration::from_secs(20));
    let after = paths(&mut pair);
    assert!(after.len() == 2 && after[1].1 && after[1].0 > SECOND, "{after:?}");
}

#[test]
fn a_path_that_the_peer_gives_up_as_poor_returns() {
    let (mut pair, mut manager) = connected(config());
    run(&mut pair, &mut manager, Duration::from_millis(200));
    let now = pair.now;
    let code = TransportErrorCode::PATH_UNSTABLE_OR_POOR;
    pair.server.conn().abandon_path(now, SECOND, code).unwrap();
    run(&mut pair, &mut manager, Duration::from_secs(2));
    assert_eq!(paths(&mut pair), [(PathId::ZERO, true), (PathId(2), true)]);
}

#[test]
fn a_path_that_an_application_abandons_stays_closed() {
    let (mut pair, mut manager) = connected(config());
    run(&mut pair, &mut manager, Duration::from_millis(200));
    let now = pair.now;
    let code = TransportErrorCode::APPLICATION_ABANDON_PATH;
    pair.client.conn().abandon_path(now, SECOND, code).unwrap();
    run(&mut pair, &mut manager, Duration::from_secs(5));
    assert_eq!(paths(&mut pair), [(PathId::ZERO, true)]);
}

#[test]
fn the_first_path_returns_too() {
    let (mut pair, mut manager) = connected(config());
    run(&mut pair, &mut manager, Duration::from_millis(200));
    let now = pair.now;
    let code = TransportErrorCode::PATH_UNSTABLE_OR_POOR;
    pair.client.conn().abandon_path(now, PathId::ZERO, code).unwrap();
    run(&mut pair, &mut manager, Duration::from_secs(2));
    assert_eq!(paths(&mut pair), [(SECOND, true), (PathId(2), true)]);
    assert!(manager.next_timeout().is_none());
}

#[test]
fn a_peer_without_multipath_is_left_alone() {
    let (mut pair, mut manager) = connected(TransportConfig::default());
    run(&mut pair, &mut manager, Duration::from_secs(1));
    assert_eq!(paths(&mut pair).len(), 1);
    assert!(manager.next_timeout().is_none());
}
