//! The manager that keeps a path open over each pair of addresses.

mod pair;

use std::time::Duration;

use fulmar_proto::{
    AddressPairs, Event, FourTuple, Instant, MultipathConfig, PathEvent, PathId, PathManager,
    TransportConfig, TransportErrorCode, VarInt,
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
    TransportConfig {
        multipath: Some(MultipathConfig::default()),
        handshake_timeout: Duration::from_secs(10),
        ..TransportConfig::default()
    }
}

/// Lets the time pass as whoever drives the client does.
fn run(pair: &mut Pair, manager: &mut AddressPairs, time: Duration) {
    run_and_watch(pair, manager, time, |_, _| {});
}

/// As [`run`]; `see` is shown all events of paths.
fn run_and_watch(
    pair: &mut Pair,
    manager: &mut AddressPairs,
    time: Duration,
    mut see: impl FnMut(Instant, &PathEvent),
) {
    let end = pair.now + time;
    while pair.now < end {
        let now = pair.now;
        for event in std::mem::take(&mut pair.client.events) {
            if let Event::Path(event) = event {
                see(now, &event);
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
    run(&mut pair, &mut manager, Duration::from_secs(12));
    let before = paths(&mut pair);
    assert!(before.iter().all(|(id, validated)| *id == PathId::ZERO || !validated), "{before:?}");
    pair.client.wire = Box::new(|flying| vec![flying]);
    // Not only the next path asks again, each does so every 0.6 s.
    run(&mut pair, &mut manager, Duration::from_secs(1));
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

/// How long, in seconds, a pair rests after each of its failures.
fn rests(pair: &mut Pair, manager: &mut AddressPairs, time: Duration) -> Vec<u64> {
    let (mut rests, mut failed) = (Vec::new(), None);
    run_and_watch(pair, manager, time, |now, event| match event {
        PathEvent::Abandoned { .. } => failed = Some(now),
        PathEvent::Opened { .. } => {
            rests.extend(failed.take().map(|failed| (now - failed).as_millis() as u64 / 1_000));
        }
        _ => {}
    });
    rests
}

#[test]
fn the_rest_of_a_pair_doubles_up_to_16_s_until_it_answers_or_the_network_changes() {
    let (mut pair, mut manager) = connected(config());
    let silent = pair.client.more_addrs[0];
    pair.client.wire = Box::new(move |flying| if flying.from == silent { vec![] } else { vec![flying] });
    // A path has 10 s to prove itself, as a handshake.
    assert_eq!(rests(&mut pair, &mut manager, Duration::from_secs(140)), [1, 2, 4, 8, 16, 16, 16]);
    manager.retry();
    assert_eq!(rests(&mut pair, &mut manager, Duration::from_secs(40))[..2], [1, 2]);
    pair.client.wire = Box::new(|flying| vec![flying]);
    run(&mut pair, &mut manager, Duration::from_secs(32));
    assert_eq!(paths(&mut pair).len(), 2);
    pair.client.wire = Box::new(move |flying| if flying.from == silent { vec![] } else { vec![flying] });
    let (now, id) = (pair.now, paths(&mut pair)[1].0);
    pair.server.conn().abandon_path(now, id, TransportErrorCode::PATH_UNSTABLE_OR_POOR).unwrap();
    assert_eq!(rests(&mut pair, &mut manager, Duration::from_secs(40))[..2], [1, 2]);
}

#[test]
fn a_pair_that_is_removed_keeps_its_path_and_gets_no_other() {
    let (mut pair, mut manager) = connected(config());
    run(&mut pair, &mut manager, Duration::from_millis(200));
    manager.remove(&FourTuple::new(pair.server.addr, Some(pair.client.more_addrs[0].ip())));
    run(&mut pair, &mut manager, Duration::from_millis(200));
    assert_eq!(paths(&mut pair), [(PathId::ZERO, true), (SECOND, true)]);
    let now = pair.now;
    let code = TransportErrorCode::PATH_UNSTABLE_OR_POOR;
    pair.server.conn().abandon_path(now, SECOND, code).unwrap();
    run(&mut pair, &mut manager, Duration::from_secs(3));
    assert_eq!(paths(&mut pair), [(PathId::ZERO, true)]);
}

#[test]
fn the_other_pairs_are_kept_when_an_application_abandons_a_path() {
    let (mut pair, mut manager) = connected(config());
    pair.client.more_addrs.push("10.0.2.1:1000".parse().unwrap());
    manager.add(FourTuple::new(pair.server.addr, Some(pair.client.more_addrs[1].ip())));
    run(&mut pair, &mut manager, Duration::from_millis(200));
    let now = pair.now;
    let code = TransportErrorCode::APPLICATION_ABANDON_PATH;
    pair.client.conn().abandon_path(now, SECOND, code).unwrap();
    run(&mut pair, &mut manager, Duration::from_millis(200));
    let now = pair.now;
    let code = TransportErrorCode::PATH_UNSTABLE_OR_POOR;
    pair.server.conn().abandon_path(now, PathId(2), code).unwrap();
    run(&mut pair, &mut manager, Duration::from_secs(3));
    assert_eq!(paths(&mut pair), [(PathId::ZERO, true), (PathId(3), true)]);
}

#[test]
fn the_pair_that_a_path_has_left_gets_another_path() {
    let (mut pair, mut manager) = connected(config());
    let first = FourTuple::new(pair.server.addr, None);
    let second = FourTuple::new(pair.server.addr, Some(pair.client.more_addrs[0].ip()));
    let mut alone = AddressPairs::new([first]);
    run(&mut pair, &mut alone, Duration::from_millis(100));
    alone.add(second);
    let now = pair.now;
    pair.client.conn().migrate(now, second.local_ip).unwrap();
    run(&mut pair, &mut alone, Duration::from_secs(1));
    let addrs: Vec<_> = pair.client.conn().paths().map(|path| (path.id, path.addrs)).collect();
    assert_eq!(addrs, [(PathId::ZERO, second), (SECOND, first)]);
    run(&mut pair, &mut manager, Duration::from_secs(1));
    assert_eq!(paths(&mut pair).len(), 2, "a manager that comes later finds them");
}

#[test]
fn with_the_connection_the_manager_ends_although_a_pair_rests() {
    let (mut pair, mut manager) = connected(config());
    run(&mut pair, &mut manager, Duration::from_millis(200));
    let now = pair.now;
    let code = VarInt::from_u32(TransportErrorCode::PATH_UNSTABLE_OR_POOR.0 as u32);
    manager.on_event(now, &PathEvent::Abandoned { path: SECOND, code, by_peer: true });
    pair.client.conn().abandon_path(now, SECOND, TransportErrorCode::PATH_UNSTABLE_OR_POOR).unwrap();
    manager.manage(now, pair.client.conn());
    assert_eq!(manager.next_timeout(), Some(now + Duration::from_secs(1)));
    pair.client.conn().close(now, VarInt::ZERO, Default::default());
    manager.manage(now, pair.client.conn());
    assert_eq!(manager.next_timeout(), None);
}
