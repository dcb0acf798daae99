//! Connections one of whose paths is dead or gone.

mod pair;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::{
    ConnectionError, Dir, Event, FourTuple, OpenPathError, PathEvent, PathId, PathUse, Side, TransportConfig,
    TransportErrorCode, VarInt,
};
use pair::{OTHER, Pair, SECOND, Setup, multipath_config};

#[test]
fn a_connection_that_is_kept_alive_lives_as_long_as_one_path_works() {
    let lively = TransportConfig {
        keep_alive_interval: Some(Duration::from_secs(2)),
        max_idle_timeout: Some(Duration::from_secs(10)),
        ..multipath_config()
    };
    for (dies_in_use, dead) in [(false, 0), (true, 0), (false, 1), (true, 1)] {
        let mut pair = Pair::with_two_paths_and(&lively);
        let dead = [pair.client.addr, pair.client.more_addrs[0]][dead];
        pair.client.wire = Box::new(move |it| if it.from == dead { vec![] } else { vec![it] });
        if dies_in_use {
            pair.transfer(Side::Client, 500_000, Duration::from_secs(10));
        }
        pair.run_for(Duration::from_secs(60));
        assert_eq!((pair.lost(Side::Client), pair.lost(Side::Server)), (None, None), "{dead}");
        pair.transfer(Side::Client, 50_000, Duration::from_secs(5));
    }
}

#[test]
fn datagrams_of_the_largest_size_arrive_over_any_path() {
    let mut pair =
        Setup { client: multipath_config(), server: multipath_config(), ..Setup::default() }.connect();
    // The first path has found that it takes longer datagrams.
    pair.transfer(Side::Client, 1_000_000, Duration::from_secs(5));
    assert!(pair.client.conn().max_datagram_size() > Some(1_300));
    pair.open_second();
    pair.client.conn().set_path_use(PathId::ZERO, PathUse::Backup).unwrap();
    pair.run_for(Duration::from_millis(100));
    for _ in 0..3 {
        let len = pair.client.conn().max_datagram_size().unwrap();
        for n in 0..20 {
            pair.client.conn().send_datagram(Bytes::from(vec![n; len]), false).unwrap();
        }
        pair.run_for(Duration::from_millis(500));
        let mut read = 0;
        while let Some(datagram) = pair.server.conn().read_datagram() {
            assert_eq!(datagram.len(), len);
            read += 1;
        }
        assert_eq!(read, 20);
    }
}

#[test]
fn ends_that_abandon_each_others_last_path_learn_of_it() {
    let mut pair = Pair::with_two_paths();
    let now = pair.now;
    pair.client.conn().abandon_path(now, PathId::ZERO, TransportErrorCode::NO_ERROR).unwrap();
    pair.server.conn().abandon_path(now, SECOND, TransportErrorCode::NO_ERROR).unwrap();
    pair.run_for(Duration::from_secs(1));
    for side in [Side::Client, Side::Server] {
        // RFC 10069 §3.4.
        let lost = pair.lost(side).expect("the connection is over");
        assert!(!matches!(lost, ConnectionError::TimedOut), "{side:?}: {lost}");
    }
}

#[test]
fn what_was_under_way_to_an_end_that_abandons_the_path_is_read() {
    let mut pair = Pair::with_two_paths();
    pair.server.conn().set_path_use(PathId::ZERO, PathUse::Backup).unwrap();
    pair.run_for(Duration::from_millis(100));
    let payload = Bytes::from_static(&[7; 500]);
    for _ in 0..10 {
        pair.server.conn().send_datagram(payload.clone(), false).unwrap();
    }
    pair.run_for(Duration::from_millis(1));
    let now = pair.now;
    pair.client.conn().abandon_path(now, SECOND, TransportErrorCode::NO_ERROR).unwrap();
    pair.run_for(Duration::from_millis(200));
    let mut read = 0;
    while let Some(datagram) = pair.client.conn().read_datagram() {
        assert_eq!(datagram, payload);
        read += 1;
    }
    assert_eq!(read, 10);
    assert_eq!((pair.lost(Side::Client), pair.lost(Side::Server)), (None, None));
    pair.transfer(Side::Server, 100_000, Duration::from_secs(5));
}

#[test]
fn who_closes_is_heard_over_the_path_that_works() {
    let mut pair = Pair::with_two_paths();
    let dead = pair.client.addr;
    pair.client.wire = Box::new(move |it| if it.from == dead { vec![] } else { vec![it] });
    pair.transfer(Side::Client, 500_000, Duration::from_secs(10));
    let now = pair.now;
    pair.client.conn().close(now, VarInt::from_u32(7), Bytes::from_static(b"bye"));
    pair.run_for(Duration::from_millis(100));
    let lost = pair.lost(Side::Server);
    assert!(matches!(lost, Some(ConnectionError::ApplicationClosed { .. })), "{lost:?}");
}

#[test]
fn who_asks_over_a_path_is_answered_there_that_the_connection_is_over() {
    let mut pair = Pair::with_two_paths();
    pair.client.conn().set_path_use(PathId::ZERO, PathUse::Backup).unwrap();
    pair.run_for(Duration::from_millis(100));
    // The server has nothing under way that could show that the first path is dead.
    let short = pair.server.sent.iter().find(|datagram| datagram[0] & 0x80 == 0).unwrap();
    let first_cid = short[1..9].to_vec();
    pair.server.wire = Box::new(move |it| if it.payload[1..9] == first_cid { vec![] } else { vec![it] });
    let now = pair.now;
    pair.server.conn().close(now, VarInt::from_u32(7), Bytes::new());
    pair.run_for(Duration::from_millis(20));
    assert_eq!(pair.lost(Side::Client), None, "it has not heard of it");
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    pair.client.conn().streams().send(id).write(&[7; 100]).unwrap();
    pair.run_for(Duration::from_millis(50));
    let lost = pair.lost(Side::Client);
    assert!(matches!(lost, Some(ConnectionError::ApplicationClosed { .. })), "{lost:?}");
}

#[test]
fn a_server_is_left_alone_where_the_handshake_was_when_that_path_is_gone() {
    let server = TransportConfig { migration: false, ..multipath_config() };
    let mut pair = Setup { client: multipath_config(), server, ..Setup::default() }.connect();
    pair.client.more_addrs = vec![OTHER.parse().unwrap()];
    let elsewhere = "10.0.9.9:443".parse().unwrap();
    pair.server.more_addrs = vec![elsewhere];
    let (now, ip) = (pair.now, Some(pair.client.more_addrs[0].ip()));
    let addrs = FourTuple::new(elsewhere, ip);
    assert_eq!(pair.client.conn().open_path(now, addrs), Ok(SECOND));
    pair.run_for(Duration::from_millis(200));
    assert!(pair.client.conn().paths().nth(1).is_some_and(|path| path.validated));
    let (now, of_handshake) = (pair.now, pair.server.addr);
    pair.client.conn().abandon_path(now, PathId::ZERO, TransportErrorCode::NO_ERROR).unwrap();
    pair.run_for(Duration::from_millis(500));
    let now = pair.now;
    let open = pair.client.conn().open_path(now, FourTuple::new(of_handshake, ip));
    assert_eq!(open, Err(OpenPathError::Disabled));
    assert!(pair.client.conn().open_path(now, addrs).is_ok());
}

#[test]
fn all_paths_over_a_socket_that_was_replaced_move() {
    let mut pair = Pair::with_two_paths();
    let now = pair.now;
    pair.client.conn().follow_socket(now, &|_| true).unwrap();
    pair.run_for(Duration::from_millis(200));
    for path in [PathId::ZERO, SECOND] {
        let moved =
            |event: &Event| matches!(event, Event::Path(PathEvent::Moved { path: of, .. }) if *of == path);
        assert!(pair.client.events.iter().any(moved), "{path:?}");
    }
    assert!(pair.client.conn().paths().nth(1).is_some_and(|path| path.addrs.local_ip.is_some()));
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
}

#[test]
fn a_path_whose_address_another_socket_has_stays_where_an_earlier_one_moves() {
    let config = multipath_config();
    let client_ip = Some(pair::CLIENT.parse::<SocketAddr>().unwrap().ip());
    let mut pair = Setup { client: config.clone(), server: config, client_ip, ..Setup::default() }.connect();
    pair.open_second();
    let (now, other) = (pair.now, pair.client.more_addrs[0].ip());
    pair.client.conn().follow_socket(now, &|ip| ip == other).unwrap();
    pair.run_for(Duration::from_millis(200));
    let paths: Vec<_> = pair.client.conn().paths().map(|path| (path.id, path.addrs.local_ip)).collect();
    assert_eq!(paths, [(PathId::ZERO, None), (SECOND, Some(other))]);
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
}

/// The client's socket is replaced by one that has none of the addresses of its paths.
fn one_is_left_over_another_socket(pair: &mut Pair) {
    let now = pair.now;
    pair.client.conn().follow_socket(now, &|_| false).unwrap();
    pair.run_for(Duration::from_millis(200));
    let paths: Vec<_> = pair.client.conn().paths().map(|path| (path.id, path.addrs.local_ip)).collect();
    assert_eq!(paths, [(PathId::ZERO, None)]);
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
}

#[test]
fn a_path_to_which_an_earlier_one_comes_over_another_socket_is_abandoned() {
    let mut pair =
        Setup { client: multipath_config(), server: multipath_config(), ..Setup::default() }.connect();
    pair.client.more_addrs = vec![OTHER.parse().unwrap()];
    let (now, other, remote) = (pair.now, pair.client.more_addrs[0].ip(), pair.server.addr);
    pair.client.conn().migrate(now, Some(other)).unwrap();
    pair.run_for(Duration::from_millis(200));
    let now = pair.now;
    assert_eq!(pair.client.conn().open_path(now, FourTuple::new(remote, None)), Ok(SECOND));
    pair.run_for(Duration::from_millis(200));
    one_is_left_over_another_socket(&mut pair);
}

#[test]
fn of_paths_that_are_the_same_over_another_socket_one_stays() {
    let mut pair = Pair::with_two_paths();
    one_is_left_over_another_socket(&mut pair);
}
