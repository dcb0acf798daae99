use super::*;
use crate::Ecn;

fn endpoint(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], port))
}

const OUTSIDE: u8 = 99;

/// Where a packet of the inside host seems to come from.
fn out(nat: &mut Nat, now: Instant, to: SocketAddr) -> SocketAddr {
    let mut packet = Packet::new(endpoint(1, 5_000), to, Ecn::NotEct, Vec::new());
    assert!(nat.translate(now, &mut packet));
    assert_eq!(packet.destination, to);
    packet.source
}

/// Whether a packet from outside reaches the inside host.
fn comes_in(nat: &mut Nat, now: Instant, from: SocketAddr, to: SocketAddr) -> bool {
    let mut packet = Packet::new(from, to, Ecn::NotEct, Vec::new());
    let passes = nat.translate(now, &mut packet);
    assert!(!passes || (packet.source == from && packet.destination == endpoint(1, 5_000)));
    passes
}

fn nat(config: impl FnOnce(IpAddr) -> NatConfig) -> Nat {
    Nat::new(config(endpoint(OUTSIDE, 0).ip()))
}

/// A constructor of a configuration.
type Kind = fn(IpAddr) -> NatConfig;

#[test]
fn each_kind_lets_in_whom_it_should() {
    let kinds: [(Kind, [bool; 3]); 4] = [
        (NatConfig::full_cone, [true, true, true]),
        (NatConfig::restricted_cone, [true, true, false]),
        (NatConfig::port_restricted_cone, [true, false, false]),
        (NatConfig::symmetric, [true, false, false]),
    ];
    for (kind, wanted) in kinds {
        let mut nat = nat(kind);
        let now = Instant::ZERO;
        let mapped = out(&mut nat, now, endpoint(2, 443));
        let remotes = [endpoint(2, 443), endpoint(2, 444), endpoint(3, 443)];
        assert_eq!(remotes.map(|remote| comes_in(&mut nat, now, remote, mapped)), wanted);
        assert!(!comes_in(&mut nat, now, endpoint(2, 443), endpoint(OUTSIDE, 1)), "no mapping");
    }
}

#[test]
fn only_a_symmetric_nat_maps_each_destination_anew() {
    let mut cone = nat(NatConfig::port_restricted_cone);
    let mut symmetric = nat(NatConfig::symmetric);
    for (nat, same) in [(&mut cone, true), (&mut symmetric, false)] {
        let first = out(nat, Instant::ZERO, endpoint(2, 443));
        assert_eq!(out(nat, Instant::ZERO, endpoint(2, 443)), first);
        assert_eq!(out(nat, Instant::ZERO, endpoint(3, 443)) == first, same);
    }
}

#[test]
fn a_mapping_expires_and_the_next_one_is_another() {
    let mut nat =
        nat(|address| NatConfig { timeout: Duration::from_millis(30), ..NatConfig::full_cone(address) });
    let server = endpoint(2, 443);
    let first = out(&mut nat, Instant::ZERO, server);
    assert_eq!(out(&mut nat, Instant::from_millis(29), server), first);
    assert!(comes_in(&mut nat, Instant::from_millis(58), server, first));
    // What comes in does not keep it alive.
    assert!(!comes_in(&mut nat, Instant::from_millis(59), server, first));
    assert_ne!(out(&mut nat, Instant::from_millis(59), server), first);
}

#[test]
fn packets_from_outside_may_refresh() {
    let mut nat = nat(|address| NatConfig {
        timeout: Duration::from_millis(30),
        inbound_refreshes: true,
        ..NatConfig::full_cone(address)
    });
    let server = endpoint(2, 443);
    let first = out(&mut nat, Instant::ZERO, server);
    assert!(comes_in(&mut nat, Instant::from_millis(29), server, first));
    assert!(comes_in(&mut nat, Instant::from_millis(58), server, first));
}

#[test]
fn the_table_is_bounded_and_expired_mappings_make_room() {
    let mut nat =
        nat(|address| NatConfig { timeout: Duration::from_millis(10), ..NatConfig::symmetric(address) });
    for port in 0..MAPPINGS_MAX as u16 {
        out(&mut nat, Instant::ZERO, endpoint(2, port));
    }
    let mut packet = Packet::new(endpoint(1, 5_000), endpoint(3, 1), Ecn::NotEct, Vec::new());
    assert!(!nat.translate(Instant::from_millis(9), &mut packet));
    assert_eq!(nat.stats().packets_without_mapping, 1);
    assert!(nat.translate(Instant::from_millis(10), &mut packet));
    assert_eq!((nat.mappings.len(), nat.by_outside.len()), (1, 1));
}

#[test]
fn ports_are_given_out_again() {
    let mut nat = nat(NatConfig::symmetric);
    let first = out(&mut nat, Instant::ZERO, endpoint(2, 443));
    nat.next_port = u16::MAX;
    let last = out(&mut nat, Instant::ZERO, endpoint(2, 444));
    let next = out(&mut nat, Instant::ZERO, endpoint(2, 445));
    assert_eq!([first.port(), last.port(), next.port()], [PORT_MIN, u16::MAX, PORT_MIN + 1]);
}

#[test]
fn a_family_without_an_outside_address_is_not_translated() {
    let mut nat = nat(NatConfig::full_cone);
    let [inside, outside] =
        ["[2001:db8::1]:5000", "[2001:db8::2]:443"].map(|text| text.parse().expect("valid"));
    let mut packet = Packet::new(inside, outside, Ecn::NotEct, Vec::new());
    assert!(!nat.translate(Instant::ZERO, &mut packet));
}
