//! Which families of addresses a socket reaches.

use std::io;
use std::net::SocketAddr;

use socket2::SockRef;

use crate::address::canonical;

/// The families of addresses that a socket reaches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    ipv4: bool,
    ipv6: bool,
    /// Whether it is bound to an interface, by name or by an address of its link.
    one_link: bool,
}

impl Reach {
    pub(crate) fn of(socket: &std::net::UdpSocket) -> io::Result<Self> {
        let local = socket.local_addr()?;
        let is_ipv4 = canonical(local).is_ipv4();
        let takes_both = !is_ipv4 && local.ip().is_unspecified() && !SockRef::from(socket).only_v6()?;
        let one_link =
            is_bound_to_device(socket) || matches!(local, SocketAddr::V6(v6) if v6.scope_id() != 0);
        Ok(Self { ipv4: is_ipv4 || takes_both, ipv6: !is_ipv4, one_link })
    }

    pub(crate) fn is_of_one_link(self) -> bool {
        self.one_link
    }

    pub(crate) fn covers(self, remote: SocketAddr) -> bool {
        if canonical(remote).is_ipv4() { self.ipv4 } else { self.ipv6 }
    }
}

/// What the kernel does not tell is no.
#[cfg(target_os = "linux")]
fn is_bound_to_device(socket: &std::net::UdpSocket) -> bool {
    SockRef::from(socket).device().is_ok_and(|device| device.is_some())
}

#[cfg(not(target_os = "linux"))]
fn is_bound_to_device(_: &std::net::UdpSocket) -> bool {
    false
}
