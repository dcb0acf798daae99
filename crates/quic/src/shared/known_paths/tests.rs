use std::net::Ipv4Addr;
use std::time::Duration;

use super::*;

fn path(host: u8, window: u64) -> SavedPath {
    SavedPath {
        remote: IpAddr::from([192, 0, 2, host]),
        local: None,
        window,
        full: true,
        rtt: Duration::from_millis(100),
        lifetime: Duration::from_secs(60),
    }
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

#[test]
fn a_path_is_known_once_and_for_a_time() {
    let paths = KnownPaths::new(8);
    paths.keep(at(1), path(1, 1_000));
    paths.keep(at(2), path(1, 2_000));
    // Both forms of an address are one.
    let mapped = IpAddr::from(Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped());
    let found = paths.take(at(12), mapped).expect("it is known");
    assert_eq!((found.window, found.lifetime), (2_000, Duration::from_secs(50)));
    assert_eq!(paths.take(at(12), mapped), None, "another connection has it");
    paths.keep(at(20), path(2, 1_000));
    assert_eq!(paths.take(at(80), path(2, 0).remote), None, "it is too old");
}

#[test]
fn the_oldest_is_forgotten_where_there_are_too_many() {
    let paths = KnownPaths::new(2);
    for (seconds, host) in [(1, 1), (2, 2), (3, 1), (4, 3)] {
        paths.keep(at(seconds), path(host, 1_000));
    }
    let known = [1, 2, 3].map(|host| paths.take(at(5), path(host, 0).remote).is_some());
    assert_eq!(known, [true, false, true]);
    let none = KnownPaths::new(0);
    none.keep(at(1), path(1, 1_000));
    assert_eq!(none.take(at(1), path(1, 0).remote), None);
}
