//! Addresses that change, or are made to look so (RFC 9000 §9, §21.5).

mod pair;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fulmar_proto::congestion::{CongestionControl, CubicConfig};
use fulmar_proto::{EmptyCids, MigrateError, PathEvent, Side, TransportConfig};
use pair::{CLIENT, Flying, Pair, Setup, addr, appear_at, lose_first_at};

const MS: Duration = Duration::from_millis(1);

#[test]
fn the_server_follows_a_client_whose_port_or_address_has_changed() {
    for new in ["10.0.0.1:2000", "10.0.0.77:1000"] {
        let mut pair = Pair::connected();
        let sent = pair.server.sent.len();
        appear_at(&mut pair, Side::Client, new);
        pair.client.conn().ping();
        pair.run_for(100 * MS);
        assert_eq!(pair.server.conn().remote_address(), addr(new));
        let (from, to) = match pair.path_events(Side::Server)[..] {
            [PathEvent::Moved { from, to, .. }, PathEvent::Validated { addrs, .. }] => {
                assert_eq!(addrs, to);
                (from.remote, to.remote)
            }
            ref other => panic!("{other:?}"),
        };
        assert_eq!((from, to), (addr(CLIENT), addr(new)));
        // The first small packet of the client lets the server send three times its size: too little for a full
        // datagram, enough for a challenge. The next challenge proves the size (RFC 9000 §8.2.1).
        let sizes: Vec<usize> = pair.server.sent[sent..].iter().map(Vec::len).collect();
        assert!(sizes.iter().any(|len| *len < 100) && sizes.contains(&1_200), "{sizes:?}");
        pair.transfer(Side::Server, 100_000, Duration::from_secs(2));
        pair.transfer(Side::Client, 100_000, Duration::from_secs(2));
    }
}

#[test]
fn what_was_learned_holds_for_another_port_and_not_for_another_address() {
    // A window that a few packets change little.
    let congestion = CongestionControl::Cubic(CubicConfig::default());
    let server = TransportConfig { congestion, ..TransportConfig::default() };
    for (new, holds) in [("10.0.0.1:2000", true), ("10.0.0.77:1000", false)] {
        let mut pair = Setup { server: server.clone(), ..Setup::default() }.connect();
        pair.transfer(Side::Server, 2_000_000, Duration::from_secs(10));
        let before = pair.server.conn().stats();
        assert!(before.cwnd > 20_000 && before.mtu > 1_200);
        appear_at(&mut pair, Side::Client, new);
        pair.client.conn().ping();
        pair.run_for(12 * MS);
        let after = pair.server.conn().stats();
        assert_eq!(after.migrations, 1);
        assert_eq!(after.cwnd >= before.cwnd && after.mtu == before.mtu && after.rtt == before.rtt, holds);
        assert!(after.cwnd_max >= before.cwnd_max, "the largest window of the connection is forgotten");
        // What lies between them is searched for anew, once there is something to send.
        pair.transfer(Side::Server, 1_000_000, Duration::from_secs(10));
        assert_eq!(pair.server.conn().stats().mtu, before.mtu);
    }
}

#[test]
fn a_client_moves_under_a_fresh_connection_id_and_retires_the_old_one() {
    let mut pair = Pair::connected();
    let dst = |payload: &[u8]| payload[1..9].to_vec();
    pair.client.conn().ping();
    pair.run_for(50 * MS);
    let old = dst(pair.client.sent.last().unwrap());
    let server_old = dst(pair.server.sent.last().unwrap());
    appear_at(&mut pair, Side::Client, "10.0.0.9:99");
    let (now, sent, server_sent) = (pair.now, pair.client.sent.len(), pair.server.sent.len());
    pair.client.conn().migrate(now, None).unwrap();
    pair.run_for(100 * MS);
    assert!(pair.client.sent[sent..].iter().all(|payload| dst(payload) != old), "RFC 9000 §9.5");
    assert_eq!(pair.client.sent[sent].len(), 1_200, "the challenge fills its datagram");
    let new_ids = pair.server.sent[server_sent..].iter().filter(|payload| dst(payload) != server_old);
    assert!(new_ids.count() > 0, "the server goes over to another ID as well");
    for side in [Side::Client, Side::Server] {
        let stats = pair.end(side).conn().stats();
        assert_eq!((stats.migrations, stats.paths_validated, stats.paths_failed), (1, 1, 0), "{side:?}");
    }
    pair.transfer(Side::Client, 100_000, Duration::from_secs(2));
}

#[test]
fn migration_has_its_conditions() {
    let refused = |pair: &mut Pair, side: Side| {
        let now = pair.now;
        pair.end(side).conn().migrate(now, None).unwrap_err()
    };
    let mut early = Setup::default().dial();
    assert_eq!(refused(&mut early, Side::Client), MigrateError::NotConfirmed);
    let mut pair = Pair::connected();
    assert_eq!(refused(&mut pair, Side::Server), MigrateError::NotAClient);
    let now = pair.now;
    // There are three IDs beside the one in use; each move takes one, before the server has given another.
    for _ in 0..3 {
        pair.client.conn().migrate(now, None).unwrap();
    }
    assert_eq!(refused(&mut pair, Side::Client), MigrateError::NoConnectionId);
    pair.run_for(100 * MS);
    pair.client.conn().migrate(pair.now, None).unwrap();
    pair.client.conn().close(pair.now, 0u32.into(), bytes::Bytes::new());
    assert_eq!(refused(&mut pair, Side::Client), MigrateError::Closed);

    let server = TransportConfig { migration: false, ..TransportConfig::default() };
    let mut pair = Setup { server, ..Setup::default() }.connect();
    assert_eq!(refused(&mut pair, Side::Client), MigrateError::Disabled);
    // A NAT does not ask.
    appear_at(&mut pair, Side::Client, "10.0.0.1:2000");
    pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
}

#[test]
fn a_client_returns_from_an_address_that_leads_nowhere() {
    let mut pair = Pair::connected();
    pair.transfer(Side::Client, 50_000, Duration::from_secs(2));
    pair.client.wire =
        Box::new(
            |flying: Flying| {
                if flying.from.ip() == addr("10.0.0.66:1").ip() { vec![] } else { vec![flying] }
            },
        );
    let now = pair.now;
    pair.client.conn().migrate(now, Some(addr("10.0.0.66:1").ip())).unwrap();
    // RFC 9000 §8.2.4: three probe timeouts of a path of which nothing is known, 3 s.
    pair.transfer(Side::Client, 50_000, Duration::from_secs(4));
    let events = pair.path_events(Side::Client);
    assert!(
        matches!(
            events[..],
            [PathEvent::Moved { .. }, PathEvent::Failed { .. }, PathEvent::Moved { to, .. }] if to.local_ip.is_none()
        ),
        "{events:?}"
    );
    assert_eq!(pair.server.conn().stats().migrations, 0);
}

#[test]
fn an_attacker_who_spoofs_the_address_of_packets_gets_little_and_the_connection_goes_on() {
    // RFC 9000 §9.3.1, §9.3.3: the attacker's copy arrives first, and the original with it is a duplicate.
    let victim = addr("203.0.113.9:53");
    let mut pair = Pair::connected();
    let mut copied = 0;
    pair.client.wire = Box::new(move |flying: Flying| {
        copied += 1;
        if copied % 7 == 3 { vec![Flying { from: victim, ..flying.clone() }, flying] } else { vec![flying] }
    });
    pair.transfer(Side::Client, 500_000, Duration::from_secs(10));
    pair.run_for(Duration::from_secs(3));
    pair.client.wire = Box::new(|flying| vec![flying]);
    pair.transfer(Side::Server, 100_000, Duration::from_secs(10));
    assert_eq!(pair.server.conn().remote_address(), addr(CLIENT));
    assert!(pair.server.conn().stats().migrations > 2);
    assert!(!pair.strays.is_empty());
    assert_eq!((pair.client.lost(), pair.server.lost()), (None, None));
}

#[test]
fn spoofed_addresses_get_at_most_three_times_what_came_from_them() {
    let mut pair = Pair::connected();
    let mut received: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    let mut sent: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    for n in 0..200_u16 {
        // Each spoofed packet is new and authentic: the attacker holds the original back.
        let spoofed = SocketAddr::from(([203, 0, 113, (n % 50) as u8], 1_000 + n % 5));
        pair.client.conn().ping();
        pair.client.mute = true;
        let before = pair.client.sent.len();
        pair.run_for(MS);
        pair.client.mute = false;
        for payload in pair.client.sent.split_off(before) {
            *received.entry(spoofed).or_default() += payload.len();
            pair.inject(Side::Server, spoofed, payload);
        }
        pair.run_for(3 * MS);
        for (to, payload) in pair.stray_addrs.drain(..).zip(pair.strays.drain(..)) {
            *sent.entry(to).or_default() += payload.len();
        }
        for (to, bytes) in &sent {
            let limit = 3 * received.get(to).copied().unwrap_or_default();
            assert!(*bytes <= limit, "{to} got {bytes} bytes and had sent a third of {limit}");
        }
    }
    assert!(!sent.is_empty());
    pair.run_for(Duration::from_secs(2));
    pair.transfer(Side::Client, 50_000, Duration::from_secs(5));
    assert_eq!(pair.server.conn().remote_address(), addr(CLIENT));
}

#[test]
fn a_client_ignores_packets_from_addresses_that_its_server_has_not_named() {
    let mut pair = Pair::connected();
    pair.server.conn().ping();
    pair.server.wire = Box::new(|flying| vec![Flying { from: "10.9.9.9:443".parse().unwrap(), ..flying }]);
    let received = pair.client.conn().stats().packets_received;
    pair.run_for(300 * MS);
    assert_eq!(pair.client.conn().stats().packets_received, received);
    assert!(pair.client.conn().stats().packets_dropped > 0);
}

#[test]
fn ends_without_connection_ids_are_told_apart_by_their_addresses() {
    let empty = || Arc::new(EmptyCids);
    let mut pair = Setup { client_cids: empty(), ..Setup::default() }.connect();
    pair.transfer(Side::Server, 50_000, Duration::from_secs(2));
    // The client needs no ID for its server to follow it.
    appear_at(&mut pair, Side::Client, "10.0.0.1:2000");
    pair.transfer(Side::Client, 50_000, Duration::from_secs(2));
    let now = pair.now;
    pair.client.conn().migrate(now, None).unwrap();
    pair.transfer(Side::Client, 50_000, Duration::from_secs(2));
    pair.close_and_forget();

    let mut pair = Setup { client_cids: empty(), server_cids: empty(), ..Setup::default() }.connect();
    pair.transfer(Side::Client, 50_000, Duration::from_secs(2));
    pair.transfer(Side::Server, 50_000, Duration::from_secs(2));
    pair.close_and_forget();
}

#[test]
fn a_client_moves_to_a_network_with_a_round_trip_time_of_up_to_three_seconds() {
    for round_trip in [700, 900, 1_500, 2_500].map(Duration::from_millis) {
        let mut pair = Pair::connected();
        pair.transfer(Side::Client, 50_000, Duration::from_secs(2));
        let far = addr("10.0.0.66:1000");
        pair.client.more_addrs.push(far);
        let late = move |flying: Flying| vec![Flying { at: flying.at + round_trip / 2, ..flying }];
        pair.client.wire = Box::new(move |it| if it.from == far { late(it) } else { vec![] });
        pair.server.wire = Box::new(late);
        let now = pair.now;
        pair.client.conn().migrate(now, Some(far.ip())).unwrap();
        pair.transfer(Side::Client, 50_000, 8 * round_trip);
        let events = pair.path_events(Side::Client);
        assert!(matches!(events[..], [PathEvent::Moved { .. }, PathEvent::Validated { .. }]), "{events:?}");
    }
}

#[test]
fn an_address_that_is_known_to_be_far_away_has_as_long_to_answer_as_it_took_before() {
    let mut pair = Pair::connected();
    let far = addr("10.0.0.66:1000");
    pair.client.more_addrs.push(far);
    let distance = Rc::new(Cell::new(2_500 * MS));
    let later = Rc::clone(&distance);
    pair.client.wire = Box::new(move |it| match it.from == far {
        true => vec![Flying { at: it.at + later.get(), ..it }],
        false => vec![it],
    });
    for local_ip in [Some(far.ip()), None] {
        let now = pair.now;
        pair.client.conn().migrate(now, local_ip).unwrap();
        pair.run_for(20 * Duration::from_secs(1));
    }
    distance.set(Duration::from_secs(4));
    let (now, before) = (pair.now, pair.path_events(Side::Client).len());
    pair.client.conn().probe_path(now, Some(far.ip())).unwrap();
    pair.run_for(20 * Duration::from_secs(1));
    let events = pair.path_events(Side::Client);
    assert!(matches!(events[before..], [PathEvent::Validated { .. }]), "{events:?}");
}

#[test]
fn a_server_whose_first_challenge_is_lost_asks_again_where_its_client_is_now() {
    let mut pair = Pair::connected();
    pair.server.wire = lose_first_at(pair.server.addr.ip());
    appear_at(&mut pair, Side::Client, "10.0.0.77:1000");
    pair.client.conn().ping();
    pair.run_for(Duration::from_secs(3));
    let events = pair.path_events(Side::Server);
    assert!(matches!(events[..], [PathEvent::Moved { .. }, PathEvent::Validated { .. }]), "{events:?}");
    assert_eq!(pair.server.conn().remote_address(), addr("10.0.0.77:1000"));
}

#[test]
fn a_client_is_followed_though_the_connection_ids_that_its_server_needs_for_that_are_lost() {
    let server = TransportConfig { connection_ids: 2, ..TransportConfig::default() };
    let mut pair = Setup { server, ..Setup::default() }.connect();
    let lost = [Rc::new(Cell::new(false)), Rc::new(Cell::new(false))];
    for (side, lost) in [Side::Client, Side::Server].into_iter().zip(&lost) {
        let lost = Rc::clone(lost);
        pair.end(side).wire = Box::new(move |flying: Flying| if lost.get() { vec![] } else { vec![flying] });
    }
    // The server uses its only spare ID for the first new address, and the client does not hear of that. At the second
    // one it announces others, in the first packets, which are lost.
    for (new, [client, server]) in [("10.0.0.66:1000", [false, true]), ("10.0.0.77:1000", [true, false])] {
        lost[0].set(client);
        lost[1].set(server);
        let now = pair.now;
        pair.client.conn().migrate(now, None).unwrap();
        appear_at(&mut pair, Side::Client, new);
        pair.client.conn().ping();
        pair.run_for(20 * MS);
    }
    lost[0].set(false);
    pair.transfer(Side::Client, 100_000, Duration::from_secs(10));
    assert_eq!(pair.server.conn().remote_address(), addr("10.0.0.77:1000"));
}
