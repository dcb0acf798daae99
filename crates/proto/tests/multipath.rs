//! Several paths in one connection (RFC 10069).

mod pair;

use std::ops::RangeInclusive;
use std::time::Duration;

use fulmar_proto::congestion::{CongestionControl, PragueConfig};
use fulmar_proto::{
    Event, FourTuple, OpenPathError, PathError, PathEvent, PathId, PathUse, Side, TransportConfig,
    TransportErrorCode,
};
use pair::{Flying, OTHER, Pair, SECOND, Setup, multipath_config as config};

/// Both ends after the handshake; the client has another address.
fn connected() -> Pair {
    let mut pair = Setup { client: config(), server: config(), ..Setup::default() }.connect();
    pair.client.more_addrs = vec![OTHER.parse().unwrap()];
    pair
}

fn other(pair: &Pair) -> FourTuple {
    let ip = pair.client.more_addrs[0].ip();
    FourTuple::new(pair.server.addr, Some(ip))
}

fn has_event(pair: &mut Pair, side: Side, wanted: impl Fn(&PathEvent) -> bool) -> bool {
    pair.end(side).events.iter().any(|event| matches!(event, Event::Path(event) if wanted(event)))
}

#[test]
fn a_client_opens_a_second_path_and_both_ends_validate_it() {
    let mut pair = Pair::with_two_paths();
    for side in [Side::Client, Side::Server] {
        assert!(pair.end(side).conn().is_multipath());
        let paths: Vec<_> = pair.end(side).conn().paths().collect();
        assert_eq!(paths.iter().map(|path| path.id).collect::<Vec<_>>(), [PathId::ZERO, SECOND]);
        assert!(paths.iter().all(|path| path.validated), "{side:?}: {paths:?}");
        assert!(has_event(&mut pair, side, |event| matches!(event, PathEvent::Opened { path: SECOND, .. })));
        assert!(has_event(&mut pair, side, |event| matches!(
            event,
            PathEvent::Validated { path: SECOND, .. }
        )));
    }
    assert_eq!((pair.lost(Side::Client), pair.lost(Side::Server)), (None, None));
}

#[test]
fn a_second_path_is_validated_however_slow_it_is() {
    for round_trip in [700, 800, 2_000, 8_000, 20_000].map(Duration::from_millis) {
        let mut pair = connected();
        let slow = pair.client.more_addrs[0];
        let first_cid = pair.server.sent.last().unwrap()[1..9].to_vec();
        let late = move |flying: Flying| vec![Flying { at: flying.at + round_trip / 2, ..flying }];
        pair.client.wire = Box::new(move |it| if it.from == slow { late(it) } else { vec![it] });
        pair.server.wire =
            Box::new(move |it| if it.payload[1..9] != first_cid { late(it) } else { vec![it] });
        let (now, addrs) = (pair.now, other(&pair));
        assert_eq!(pair.client.conn().open_path(now, addrs), Ok(SECOND));
        let before = pair.client.sent.len();
        pair.run_for(3 * round_trip);
        for side in [Side::Client, Side::Server] {
            let path = pair.end(side).conn().paths().nth(1);
            assert!(path.is_some_and(|path| path.validated), "{round_trip:?}, {side:?}");
        }
        let (sent, allowed) = (pair.client.sent.len() - before, 60.max(6 * round_trip.as_secs()));
        assert!((sent as u64) < allowed, "{sent} datagrams");
        pair.transfer(Side::Client, 200_000, 20 * round_trip);
    }
}

/// The first datagram of a second path, which has reached nobody yet.
fn first_of_a_second_path(pair: &mut Pair) -> Vec<u8> {
    let (now, addrs) = (pair.now, other(pair));
    pair.client.mute = true;
    let before = pair.client.sent.len();
    assert_eq!(pair.client.conn().open_path(now, addrs), Ok(SECOND));
    pair.run_for(Duration::from_millis(1));
    pair.client.mute = false;
    pair.client.sent[before].clone()
}

#[test]
fn no_path_leads_to_a_loopback_address_from_elsewhere() {
    // RFC 9000 §21.5.6.
    for (from, is_followed) in
        [("127.0.0.1:1000", false), ("127.9.9.9:443", false), ("[::1]:53", false), (OTHER, true)]
    {
        let mut pair = connected();
        let first = first_of_a_second_path(&mut pair);
        let sent = pair.server.sent.len();
        pair.inject(Side::Server, from.parse().unwrap(), first);
        assert_eq!(pair.server.conn().paths().count(), 1 + usize::from(is_followed), "{from}");
        assert_eq!(pair.server.sent.len() > sent, is_followed, "{from}: nobody there is sent anything");
        // The client asks again, from where it is.
        pair.run_for(Duration::from_secs(1));
        assert!(pair.server.conn().paths().nth(1).is_some_and(|path| path.validated), "{from}");
    }
}

#[test]
fn between_loopback_addresses_paths_are_opened() {
    let mut pair = Setup { client: config(), server: config(), ..Setup::default() }.dial();
    let first = "127.0.0.1:1000".parse().unwrap();
    pair.client.addr = first;
    pair.client.more_addrs = vec!["127.0.0.2:1000".parse().unwrap()];
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.server.conn().remote_address(), first);
    let (now, addrs) = (pair.now, other(&pair));
    assert_eq!(pair.client.conn().open_path(now, addrs), Ok(SECOND));
    pair.run_for(Duration::from_millis(100));
    assert!(pair.server.conn().paths().nth(1).is_some_and(|path| path.validated));
}

#[test]
fn without_multipath_at_both_ends_no_path_is_opened() {
    for (client, server) in [(config(), TransportConfig::default()), (TransportConfig::default(), config())] {
        let mut pair = Setup { client, server, ..Setup::default() }.connect();
        let (now, addrs) = (pair.now, FourTuple::new(pair.server.addr, None));
        assert!(!pair.client.conn().is_multipath() && !pair.server.conn().is_multipath());
        assert_eq!(pair.client.conn().open_path(now, addrs), Err(OpenPathError::NotNegotiated));
        pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
    }
}

#[test]
fn data_takes_both_paths_and_arrives() {
    for from in [Side::Client, Side::Server] {
        let mut pair = Pair::with_two_paths();
        pair.transfer(from, 5_000_000, Duration::from_secs(20));
        let windows: Vec<_> = pair.end(from).conn().path_stats().map(|path| path.cwnd).collect();
        // A window grows only by what is acknowledged.
        assert!(windows.iter().all(|window| *window > 20_000), "{from:?}: {windows:?}");
        pair.close_and_forget();
    }
}

#[test]
fn an_abandoned_path_is_gone_at_both_ends_and_its_id_never_returns() {
    let mut pair = Pair::with_two_paths();
    let (now, addrs) = (pair.now, other(&pair));
    let code = TransportErrorCode::APPLICATION_ABANDON_PATH;
    pair.client.conn().abandon_path(now, SECOND, code).unwrap();
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.server.conn().paths().count(), 1);
    let is_told = |event: &PathEvent| matches!(event, PathEvent::Abandoned { path: SECOND, code, by_peer: true } if code.get() == 0x3e);
    assert!(has_event(&mut pair, Side::Server, is_told));
    let now = pair.now;
    assert_eq!(pair.client.conn().abandon_path(now, SECOND, code), Err(PathError::Unknown));
    assert_eq!(pair.client.conn().abandon_path(now, PathId::ZERO, code), Err(PathError::LastPath));
    assert_eq!(pair.client.conn().open_path(now, addrs), Ok(PathId(2)));
    pair.transfer(Side::Client, 1_000_000, Duration::from_secs(5));
    pair.close_and_forget();
}

/// How long the client takes to send so many bytes over a path that it opens over these addresses, and abandons again.
fn time_over(pair: &mut Pair, addrs: FourTuple, bytes: usize) -> Duration {
    let start = pair.now;
    let id = pair.client.conn().open_path(start, addrs).unwrap();
    pair.run_for(Duration::from_millis(100));
    let begin = pair.now;
    pair.transfer(Side::Client, bytes, Duration::from_secs(5));
    let took = pair.now - begin;
    let now = pair.now;
    let carried = pair.client.conn().path_stats().find(|path| path.path == id).unwrap().bytes_sent;
    assert!(carried > bytes as u64, "the other path is a backup: {carried}");
    pair.client.conn().abandon_path(now, id, TransportErrorCode::NO_ERROR).unwrap();
    pair.run_for(Duration::from_millis(100));
    took
}

#[test]
fn a_path_between_addresses_that_had_one_begins_with_what_that_one_knew() {
    // Packet trains would find the rate of a new path as soon.
    let slow_start =
        TransportConfig { congestion: CongestionControl::Prague(PragueConfig::default()), ..config() };
    let mut pair = Setup { client: slow_start, server: config(), ..Setup::default() }.connect();
    pair.client.more_addrs = vec![OTHER.parse().unwrap(), "10.0.2.1:1000".parse().unwrap()];
    pair.client.conn().set_path_use(PathId::ZERO, PathUse::Backup).unwrap();
    let [known, new] = [0, 1].map(|n| FourTuple::new(pair.server.addr, Some(pair.client.more_addrs[n].ip())));
    let first = time_over(&mut pair, known, 300_000);
    time_over(&mut pair, known, 5_000_000);
    let (again, elsewhere) = (time_over(&mut pair, known, 300_000), time_over(&mut pair, new, 300_000));
    assert!(again <= first * 3 / 4, "{again:?} where a path was, {first:?} before");
    assert!(again <= elsewhere * 3 / 4, "{again:?} where a path was, {elsewhere:?} where none was");
    // What is known of one is kept beside what is known of another.
    time_over(&mut pair, known, 5_000_000);
    time_over(&mut pair, new, 5_000_000);
    let later = time_over(&mut pair, known, 300_000);
    assert!(later <= first * 3 / 4, "{later:?} where a path was before the last one, {first:?} before");
    pair.close_and_forget();
}

#[test]
fn the_first_path_can_be_abandoned() {
    let mut pair = Pair::with_two_paths();
    let now = pair.now;
    pair.client.conn().abandon_path(now, PathId::ZERO, TransportErrorCode::NO_ERROR).unwrap();
    pair.transfer(Side::Client, 1_000_000, Duration::from_secs(5));
    pair.transfer(Side::Server, 1_000_000, Duration::from_secs(5));
    pair.close_and_forget();
}

/// Opens and abandons the paths of these numbers, each by another end than the one before.
fn open_and_abandon(pair: &mut Pair, numbers: RangeInclusive<u32>) {
    for n in numbers {
        let (now, addrs) = (pair.now, other(pair));
        assert_eq!(pair.client.conn().open_path(now, addrs), Ok(PathId(n)));
        pair.run_for(Duration::from_millis(30));
        let now = pair.now;
        let end = pair.end(if n % 2 == 0 { Side::Client } else { Side::Server });
        end.conn().abandon_path(now, PathId(n), TransportErrorCode::NO_ERROR).unwrap();
        pair.run_for(Duration::from_millis(30));
        if n % 100 == 0 {
            pair.transfer(Side::Server, 100_000, Duration::from_secs(5));
        }
        // What the test itself remembers.
        for end in [&mut pair.client, &mut pair.server] {
            (end.events, end.sent, end.dropped) = Default::default();
        }
    }
}

#[test]
fn ten_thousand_paths_come_and_go_and_leave_nothing_behind() {
    let mut pair = connected();
    open_and_abandon(&mut pair, 1..=1_000);
    let kept = allocation_counter::measure(|| open_and_abandon(&mut pair, 1_001..=10_000)).bytes_current;
    // Tables may have grown to their next size: less than two bytes for each path.
    assert!(kept < 16_000, "{kept} bytes were kept of 9,000 paths at both ends");
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
    pair.close_and_forget();
}

#[test]
fn a_path_that_the_peer_wants_as_backup_carries_no_data_while_another_works() {
    let mut pair = Pair::with_two_paths();
    pair.server.conn().set_path_use(SECOND, PathUse::Backup).unwrap();
    pair.run_for(Duration::from_millis(50));
    let is_told =
        |event: &PathEvent| matches!(event, PathEvent::Status { path: SECOND, wanted: PathUse::Backup });
    assert!(has_event(&mut pair, Side::Client, is_told));
    let before = pair.client.conn().path_stats().nth(1).unwrap().cwnd;
    pair.transfer(Side::Client, 1_000_000, Duration::from_secs(5));
    assert_eq!(pair.client.conn().path_stats().nth(1).unwrap().cwnd, before);
}

#[test]
fn a_server_that_wants_no_other_paths_to_its_address_may_have_one_to_another() {
    let server = TransportConfig { migration: false, ..config() };
    let mut pair = Setup { client: config(), server, ..Setup::default() }.connect();
    pair.client.more_addrs = vec![OTHER.parse().unwrap()];
    let (now, mut addrs) = (pair.now, other(&pair));
    assert_eq!(pair.client.conn().open_path(now, addrs), Err(OpenPathError::Disabled));
    addrs.remote = "10.0.9.9:443".parse().unwrap();
    assert_eq!(pair.client.conn().open_path(now, addrs), Ok(SECOND));
}

#[test]
fn a_path_that_never_answers_is_abandoned() {
    let config = TransportConfig { handshake_timeout: Duration::from_secs(10), ..config() };
    let mut pair = Setup { client: config.clone(), server: config, ..Setup::default() }.connect();
    pair.client.more_addrs = vec![OTHER.parse().unwrap()];
    let (now, mut addrs) = (pair.now, other(&pair));
    addrs.remote = "10.0.9.9:443".parse().unwrap();
    pair.client.conn().open_path(now, addrs).unwrap();
    let before = pair.client.sent.len();
    // As long as a handshake.
    pair.run_for(Duration::from_secs(9));
    assert_eq!(pair.client.conn().paths().count(), 2);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.client.conn().paths().count(), 1);
    let sent = pair.client.sent.len() - before;
    assert!(sent < 60, "{sent} datagrams were sent into nothing");
    assert!(has_event(&mut pair, Side::Client, |event| matches!(event, PathEvent::Abandoned { .. })));
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
}

#[test]
fn a_path_that_falls_silent_holds_nothing_up() {
    let mut pair = Pair::with_two_paths();
    let silent = pair.client.more_addrs[0];
    pair.client.wire = Box::new(move |flying| if flying.from == silent { vec![] } else { vec![flying] });
    pair.transfer(Side::Client, 2_000_000, Duration::from_secs(5));
}

#[test]
fn more_paths_than_allowed_are_refused() {
    let mut pair = connected();
    for n in 1..=3 {
        let (now, addrs) = (pair.now, other(&pair));
        assert_eq!(pair.client.conn().open_path(now, addrs), Ok(PathId(n)));
        pair.run_for(Duration::from_millis(50));
    }
    let (now, addrs) = (pair.now, other(&pair));
    assert_eq!(pair.client.conn().open_path(now, addrs), Err(OpenPathError::Limit));
    pair.transfer(Side::Client, 1_000_000, Duration::from_secs(5));
    pair.close_and_forget();
}

#[test]
fn what_lies_on_a_path_that_falls_silent_under_load_arrives_over_the_other_at_once() {
    for silent in 0..2 {
        let mut pair = Pair::with_two_paths();
        let silent = [pair.client.addr, pair.client.more_addrs[0]][silent];
        let mut carried = 0;
        pair.client.wire = Box::new(move |flying| {
            carried += usize::from(flying.from == silent);
            if flying.from == silent && carried > 100 { vec![] } else { vec![flying] }
        });
        let before = pair.now;
        pair.transfer(Side::Client, 5_000_000, Duration::from_secs(60));
        let elapsed = pair.now - before;
        assert!(elapsed < Duration::from_millis(500), "{silent}: {elapsed:?}");
    }
}
