//! The address that a server prefers (RFC 9000 §9.6), and those that no client goes to.

mod pair;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::{EmptyCids, PathEvent, Side, TransportConfig};
use pair::{CLIENT, Pair, Setup, addr};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_client_moves_to_the_address_that_its_server_prefers() {
    let preferred = addr("10.0.0.200:443");
    let mut pair = Setup { preferred: Some(preferred), ..Setup::default() }.connect();
    pair.run_for(200 * MS);
    assert_eq!(pair.client.conn().remote_address(), preferred);
    let first = pair.path_events(Side::Server)[0];
    assert!(
        matches!(first, PathEvent::Validated { addrs, .. } if addrs.local_ip == Some(preferred.ip())),
        "a server proves the path from its preferred address before it uses it (RFC 9000 §9.6.2): {first:?}"
    );
    assert_eq!(pair.server.conn().local_ip(), Some(preferred.ip()));
    for side in [Side::Client, Side::Server] {
        assert_eq!(pair.end(side).conn().stats().migrations, 1, "{side:?}");
        pair.transfer(side, 50_000, Duration::from_secs(2));
    }
}

/// RFC 9000 §18.2: what it refuses is migration from where the handshake was.
#[test]
fn at_the_address_that_it_prefers_a_server_takes_part_in_migration() {
    let server = TransportConfig { migration: false, ..TransportConfig::default() };
    let preferred = Some(addr("10.0.0.200:443"));
    let mut pair = Setup { server, preferred, ..Setup::default() }.connect();
    pair.run_for(200 * MS);
    assert_eq!(Some(pair.client.conn().remote_address()), preferred);
    let now = pair.now;
    assert_eq!(pair.client.conn().migrate(now, Some(addr(CLIENT).ip())), Ok(()));
    pair.transfer(Side::Client, 50_000, Duration::from_secs(2));
}

#[test]
fn what_comes_from_the_first_address_of_a_server_that_prefers_another_is_taken() {
    let mut pair = Setup { preferred: Some(addr("10.0.0.200:443")), ..Setup::default() }.connect();
    pair.transfer(Side::Client, 50_000, Duration::from_secs(2));
    pair.run_for(Duration::from_secs(4));
    pair.server.conn().send_datagram(Bytes::from_static(b"late"), false).unwrap();
    pair.server.mute = true;
    pair.run_for(MS);
    let packet = pair.server.sent.last().expect("the datagram has left").clone();
    pair.inject(Side::Client, addr(pair::SERVER), packet);
    assert_eq!(pair.client.conn().read_datagram().as_deref(), Some(&b"late"[..]));
}

#[test]
fn a_client_stays_where_the_preferred_address_is_out_of_reach_or_not_wanted() {
    let config = TransportConfig { follow_preferred_address: false, ..TransportConfig::default() };
    for (client, reachable) in [(TransportConfig::default(), false), (config, true)] {
        let mut pair = Setup { client, preferred: Some(addr("10.0.0.200:443")), ..Setup::default() }.dial();
        if !reachable {
            pair.server.more_addrs.clear();
        }
        pair.run_for(Duration::from_secs(4));
        assert_eq!(pair.client.conn().remote_address(), addr(pair::SERVER));
        assert_eq!(pair.client.conn().stats().paths_failed, u64::from(!reachable));
        pair.transfer(Side::Client, 50_000, Duration::from_secs(2));
    }
}

#[test]
fn a_client_without_connection_ids_stays_where_it_is() {
    let preferred = Some(addr("10.0.0.200:443"));
    let mut pair = Setup { client_cids: Arc::new(EmptyCids), preferred, ..Setup::default() }.connect();
    pair.run_for(Duration::from_secs(4));
    assert_eq!(pair.client.conn().remote_address(), addr(pair::SERVER));
    let stats = pair.client.conn().stats();
    assert_eq!((stats.paths_validated, stats.paths_failed), (0, 0), "it has not tried either");
    pair.transfer(Side::Server, 50_000, Duration::from_secs(2));
}

/// RFC 9000 §9.6.3: a server may name an address of the other family. No socket sends from an IPv4 address to an IPv6 one.
#[test]
fn a_client_that_moves_to_the_other_family_leaves_its_own_address_to_the_socket() {
    let preferred = addr("[2001:db8::2]:443");
    let client_ip = Some(addr(CLIENT).ip());
    let mut pair = Setup { preferred: Some(preferred), client_ip, ..Setup::default() }.dial();
    pair.client.more_addrs.push(addr(CLIENT));
    // What the socket takes where the connection asks for none.
    pair.client.addr = addr("[2001:db8::1]:1000");
    pair.run_for(200 * MS);
    assert_eq!(pair.client.conn().remote_address(), preferred);
    assert_eq!(pair.server.conn().remote_address(), pair.client.addr);
    pair.transfer(Side::Client, 50_000, Duration::from_secs(2));
}

/// RFC 9000 §21.5.3: a server must not make its clients send to everybody or to nobody. One that prefers the address in use has named none.
#[test]
fn an_address_that_nobody_can_prefer_is_not_tried() {
    for preferred in ["224.0.0.1:443", "255.255.255.255:443", "10.0.0.200:0", pair::SERVER] {
        let mut pair = Setup { preferred: Some(addr(preferred)), ..Setup::default() }.connect();
        pair.run_for(Duration::from_secs(4));
        assert_eq!(pair.client.conn().remote_address(), addr(pair::SERVER), "{preferred}");
        let stats = pair.client.conn().stats();
        assert_eq!((stats.paths_validated, stats.paths_failed), (0, 0), "{preferred}");
    }
}

#[test]
fn nobody_is_led_to_a_loopback_address_from_elsewhere() {
    // RFC 9000 §21.5.6. That a service stands at the private address of a network that both ends are in is usual.
    for (preferred, followed) in
        [("127.0.0.1:443", false), ("127.9.9.9:443", false), ("192.168.1.1:443", true)]
    {
        let mut pair = Setup { preferred: Some(addr(preferred)), ..Setup::default() }.connect();
        pair.transfer(Side::Client, 10_000, Duration::from_secs(5));
        let remote = pair.client.conn().remote_address();
        assert_eq!(remote == addr(preferred), followed, "{preferred}");
        assert_eq!(pair.client.conn().stats().paths_validated > 0, followed, "{preferred}");
        pair.run_for(Duration::from_secs(4));
        assert_eq!(pair.client.conn().stats().paths_failed, 0, "{preferred} is not even tried");
    }
    // A client that seems to have moved there has not.
    let mut pair = Pair::connected();
    pair.run_for(Duration::from_secs(2));
    pair.client.conn().ping();
    pair.client.mute = true;
    pair.run_for(Duration::from_millis(1));
    let ping = pair.client.sent.last().unwrap().clone();
    let before = pair.server.sent.len();
    pair.inject(Side::Server, addr("127.0.0.1:1000"), ping);
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.server.sent.len(), before, "not even an answer");
    assert_eq!(pair.server.conn().remote_address(), addr(CLIENT));
    pair.client.mute = false;
    pair.transfer(Side::Client, 10_000, Duration::from_secs(5));
}
