//! Addresses that are tried before, or without, being used (RFC 9000 §9.1).

mod pair;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use fulmar_proto::{AddressDiscovery, PathEvent, Side, TransportConfig};
use pair::{CLIENT, Flying, Pair, Setup, addr, appear_at, lose_first_at};

/// Another address of the client.
const ELSEWHERE: &str = "10.0.0.5:1000";

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_path_is_probed_without_moving_and_taken_at_once_later() {
    let mut pair = Pair::connected();
    let second = addr("10.0.0.5:1000");
    pair.client.more_addrs.push(second);
    let now = pair.now;
    pair.client.conn().probe_path(now, Some(second.ip())).unwrap();
    pair.run_for(50 * MS);
    let events = pair.path_events(Side::Client);
    assert!(
        matches!(events[..], [PathEvent::Validated { addrs, .. }] if addrs.local_ip == Some(second.ip()))
    );
    assert_eq!(pair.server.conn().remote_address(), addr(CLIENT), "a probe moves nothing");
    let server_events = pair.path_events(Side::Server);
    assert!(matches!(server_events[..], [PathEvent::Validated { addrs, .. }] if addrs.remote == second));
    assert_eq!(pair.server.conn().stats().migrations, 0);
    let now = pair.now;
    pair.client.conn().migrate(now, Some(second.ip())).unwrap();
    pair.run_for(20 * MS);
    assert_eq!(pair.server.conn().remote_address(), second);
    pair.transfer(Side::Server, 50_000, Duration::from_secs(2));
}

/// A client that also receives at [`ELSEWHERE`], and has probed that.
fn probed_elsewhere() -> Pair {
    let mut pair = Pair::connected();
    pair.client.more_addrs.push(addr(ELSEWHERE));
    probe_elsewhere(&mut pair);
    pair
}

fn probe_elsewhere(pair: &mut Pair) {
    let now = pair.now;
    pair.client.conn().probe_path(now, Some(addr(ELSEWHERE).ip())).unwrap();
    pair.run_for(50 * MS);
}

/// Nothing that the client sends from [`ELSEWHERE`] arrives any more.
fn cut_elsewhere(pair: &mut Pair) {
    pair.client.wire =
        Box::new(|flying: Flying| if flying.from == addr(ELSEWHERE) { vec![] } else { vec![flying] });
}

#[test]
fn each_probe_has_its_answer() {
    let mut pair = probed_elsewhere();
    probe_elsewhere(&mut pair);
    let events = pair.path_events(Side::Client);
    assert!(matches!(events[..], [PathEvent::Validated { .. }, PathEvent::Validated { .. }]), "{events:?}");
    cut_elsewhere(&mut pair);
    probe_elsewhere(&mut pair);
    assert_eq!(pair.path_events(Side::Client).len(), 2);
    pair.run_for(Duration::from_secs(4));
    let events = pair.path_events(Side::Client);
    assert!(
        matches!(events[2..], [PathEvent::Failed { addrs, .. }] if addrs.local_ip == Some(addr(ELSEWHERE).ip())),
        "{events:?}"
    );
    // It may be asked again.
    pair.client.wire = Box::new(|flying| vec![flying]);
    probe_elsewhere(&mut pair);
    assert!(matches!(pair.path_events(Side::Client)[3..], [PathEvent::Validated { .. }]));
    pair.transfer(Side::Client, 50_000, Duration::from_secs(2));
}

#[test]
fn a_client_returns_from_an_address_that_was_proven_before_and_leads_nowhere_now() {
    let mut pair = probed_elsewhere();
    pair.run_for(Duration::from_secs(5));
    cut_elsewhere(&mut pair);
    let now = pair.now;
    pair.client.conn().migrate(now, Some(addr(ELSEWHERE).ip())).unwrap();
    pair.transfer(Side::Client, 50_000, Duration::from_secs(4));
    let events = pair.path_events(Side::Client);
    assert!(
        matches!(
            events[1..],
            [PathEvent::Moved { .. }, PathEvent::Failed { .. }, PathEvent::Moved { to, .. }] if to.local_ip.is_none()
        ),
        "{events:?}"
    );
}

#[test]
fn a_challenge_is_answered_from_the_address_that_it_came_to_where_the_kernel_chooses_the_one_in_use() {
    let mut pair = Pair::connected();
    let second = addr("10.0.0.5:1000");
    pair.client.more_addrs.push(second);
    // RFC 9000 §8.2.1, §8.2.2: datagrams with challenges and answers are padded, and nothing else here is.
    let padded = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&padded);
    pair.client.wire = Box::new(move |flying| {
        if flying.payload.len() >= 1_200 {
            seen.borrow_mut().push(flying.from);
        }
        vec![flying]
    });
    let now = pair.now;
    pair.client.conn().probe_path(now, Some(second.ip())).unwrap();
    pair.run_for(50 * MS);
    assert_eq!(padded.borrow()[..], [second, second], "a challenge, and the answer to the server's");
}

#[test]
fn a_client_that_probes_the_address_that_it_has_anyway_goes_on_as_before() {
    let mut pair = Pair::connected();
    // Where an end has several addresses, it is told at which one a datagram arrives.
    pair.client.more_addrs.push(addr("10.0.0.5:1000"));
    let (now, ip) = (pair.now, addr(CLIENT).ip());
    pair.client.conn().probe_path(now, Some(ip)).unwrap();
    pair.transfer(Side::Server, 500_000, Duration::from_secs(1));
    let events = pair.path_events(Side::Client);
    assert!(matches!(events[..], [PathEvent::Validated { addrs, .. }] if addrs.local_ip == Some(ip)));
    pair.transfer(Side::Client, 500_000, Duration::from_secs(1));
    assert_eq!(pair.server.conn().stats().migrations, 0);
}

#[test]
fn what_the_peer_sees_of_an_address_that_is_probed_is_told_of_that_one() {
    let config =
        || TransportConfig { address_discovery: Some(AddressDiscovery::Both), ..TransportConfig::default() };
    let mut pair = Setup { client: config(), server: config(), ..Setup::default() }.connect();
    let second = addr("10.0.0.5:1000");
    pair.client.more_addrs.push(second);
    let (now, before) = (pair.now, pair.path_events(Side::Client).len());
    pair.client.conn().probe_path(now, Some(second.ip())).unwrap();
    pair.run_for(50 * MS);
    let events = pair.path_events(Side::Client);
    let told = events[before..].iter().filter_map(|event| match event {
        PathEvent::Observed { addrs, address, .. } => Some((addrs.local_ip, *address)),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [(Some(second.ip()), second)]);
}

#[test]
fn a_second_path_is_probed_beside_one_that_has_proven_itself() {
    let mut pair = Pair::connected();
    for (n, ip) in ["10.0.0.5", "10.0.0.6"].into_iter().enumerate() {
        let ip: std::net::IpAddr = ip.parse().unwrap();
        pair.client.more_addrs.push(SocketAddr::new(ip, 1_000));
        let now = pair.now;
        pair.client.conn().probe_path(now, Some(ip)).unwrap();
        pair.run_for(50 * MS);
        let validated = pair.path_events(Side::Client);
        assert_eq!(validated.len(), n + 1, "{validated:?}");
        assert!(matches!(validated[n], PathEvent::Validated { addrs, .. } if addrs.local_ip == Some(ip)));
    }
}

#[test]
fn an_address_that_the_peer_has_left_is_no_failure_and_one_that_never_answered_is() {
    let mut pair = Pair::connected();
    pair.transfer(Side::Client, 50_000, Duration::from_secs(2));
    // The server asks at the old address, too, in case that somebody else has sent the packet on.
    appear_at(&mut pair, Side::Client, "10.0.0.1:2000");
    pair.client.conn().ping();
    pair.run_for(Duration::from_secs(10));
    let events = pair.path_events(Side::Server);
    assert!(matches!(events[..], [PathEvent::Moved { .. }, PathEvent::Validated { .. }]), "{events:?}");
    assert_eq!(pair.server.conn().stats().paths_failed, 0);

    pair.client.wire = Box::new(|flying: Flying| {
        let away = flying.from.ip() == addr("10.0.0.66:1").ip();
        if away { vec![] } else { vec![flying] }
    });
    let now = pair.now;
    pair.client.conn().probe_path(now, Some(addr("10.0.0.66:1").ip())).unwrap();
    pair.run_for(Duration::from_secs(10));
    let events = pair.path_events(Side::Client);
    assert!(matches!(events[..], [PathEvent::Failed { .. }]), "{events:?}");
    assert_eq!(pair.client.conn().stats().paths_failed, 1);
}

#[test]
fn a_probe_whose_first_challenge_is_lost_is_repeated() {
    let mut pair = Pair::connected();
    let second = addr("10.0.0.5:1000");
    pair.client.more_addrs.push(second);
    pair.client.wire = lose_first_at(second.ip());
    let now = pair.now;
    pair.client.conn().probe_path(now, Some(second.ip())).unwrap();
    pair.run_for(Duration::from_secs(3));
    let events = pair.path_events(Side::Client);
    assert!(matches!(events[..], [PathEvent::Validated { .. }]), "{events:?}");
    assert_eq!(pair.client.conn().stats().paths_failed, 0);
}
