//! Where this machine is in the network, as far as it matters to what is remembered of a server: by which of its own addresses it would
//! be reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The addresses of this end from which packets to a server would leave, one of each family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Vantage {
    ipv4: Option<IpAddr>,
    ipv6: Option<IpAddr>,
}

impl Vantage {
    /// As the routes are now. Nothing is sent.
    pub(super) fn towards(servers: &[SocketAddr]) -> Self {
        let first = |is_ipv4: bool| servers.iter().find(|server| server.is_ipv4() == is_ipv4).copied();
        Self { ipv4: first(true).and_then(source), ipv6: first(false).and_then(source) }
    }

    /// Whether this is another network than `before`: packets leave from another address. That there is no way just now says nothing.
    pub(super) fn is_elsewhere(self, before: Self) -> bool {
        let differs = |now: Option<IpAddr>, before| now.is_some() && now != before;
        differs(self.ipv4, before.ipv4) || differs(self.ipv6, before.ipv6)
    }

    /// What is known with this and `before`, which is of the same network.
    pub(super) fn or(self, before: Self) -> Self {
        Self { ipv4: self.ipv4.or(before.ipv4), ipv6: self.ipv6.or(before.ipv6) }
    }
}

/// From where the system would send to this address.
fn source(server: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(server).ok()?;
    Some(socket.local_addr().ok()?.ip())
}
