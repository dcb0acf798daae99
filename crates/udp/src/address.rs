//! Canonical addresses inside, the family of the socket outside.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The form of `addr` that the rest of the stack compares: IPv4-mapped IPv6 becomes IPv4, and the flow
/// label, which differs between what is dialled and what arrives, is cleared.
pub fn canonical(addr: SocketAddr) -> SocketAddr {
    match addr {
        SocketAddr::V4(_) => addr,
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(ip) => SocketAddr::new(ip.into(), v6.port()),
            None => SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into(),
        },
    }
}

/// The canonical form of an address at a socket: what is bound to one link reaches and hears addresses of that link alone, so that
/// they are the same with and without its zone (RFC 4007 §11), which who dials need not name.
pub(crate) fn canonical_at(addr: SocketAddr, is_of_one_link: bool) -> SocketAddr {
    match canonical(addr) {
        SocketAddr::V6(v6) if is_of_one_link => SocketAddr::new((*v6.ip()).into(), v6.port()),
        addr => addr,
    }
}

/// The form of a canonical `addr` that a socket understands: an IPv6 socket takes IPv4 peers as mapped addresses.
pub(crate) fn for_socket(addr: SocketAddr, socket_is_ipv6: bool) -> SocketAddr {
    match addr {
        SocketAddr::V4(v4) if socket_is_ipv6 => SocketAddr::new(mapped(*v4.ip()), v4.port()),
        _ => addr,
    }
}

/// The same for a source address.
pub(crate) fn ip_for_socket(ip: IpAddr, socket_is_ipv6: bool) -> IpAddr {
    match ip {
        IpAddr::V4(v4) if socket_is_ipv6 => mapped(v4),
        _ => ip,
    }
}

fn mapped(ip: std::net::Ipv4Addr) -> IpAddr {
    Ipv6Addr::from(ip.to_ipv6_mapped().octets()).into()
}

#[cfg(test)]
mod tests;
