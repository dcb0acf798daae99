use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use super::*;

fn addr(text: &str) -> SocketAddr {
    text.parse().expect("a literal address")
}

#[test]
fn mapped_addresses_become_ipv4_and_return() {
    assert_eq!(canonical(addr("[::ffff:192.0.2.1]:443")), addr("192.0.2.1:443"));
    assert_eq!(for_socket(addr("192.0.2.1:443"), true), addr("[::ffff:192.0.2.1]:443"));
    assert_eq!(for_socket(addr("192.0.2.1:443"), false), addr("192.0.2.1:443"));
    let ip: IpAddr = [192, 0, 2, 1].into();
    assert_eq!(ip_for_socket(ip, true).to_string(), "::ffff:192.0.2.1");
    assert_eq!(ip_for_socket(ip, false), ip);
}

#[test]
fn ipv6_keeps_its_scope_and_loses_its_flow_label() {
    let labelled = SocketAddrV6::new("fe80::1".parse().expect("a literal"), 9, 77, 3);
    assert_eq!(canonical(labelled.into()), SocketAddrV6::new(*labelled.ip(), 9, 0, 3).into());
    assert_eq!(for_socket(addr("[2001:db8::1]:1"), true), addr("[2001:db8::1]:1"));
}

#[test]
fn at_a_socket_of_one_link_addresses_have_no_zone() {
    let of_link = SocketAddr::from(SocketAddrV6::new("fe80::1".parse().expect("a literal"), 9, 0, 3));
    assert_eq!(canonical_at(of_link, true), addr("[fe80::1]:9"));
    assert_eq!(canonical_at(of_link, false), of_link);
    assert_eq!(canonical_at(addr("[::ffff:192.0.2.1]:443"), true), addr("192.0.2.1:443"));
}
