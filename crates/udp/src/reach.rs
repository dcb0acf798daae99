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
}

impl Reach {
    pub(crate) fn of(socket: &std::net::UdpSocket) -> io::Result<Self> {
        let local = socket.local_addr()?;
        let is_ipv4 = canonical(local).is_ipv4();
        let takes_both = !is_ipv4 && local.ip().is_unspecified() && !SockRef::from(socket).only_v6()?;
        Ok(Self { ipv4: is_ipv4 || takes_both, ipv6: !is_ipv4 })
    }

    pub(crate) fn covers(self, remote: SocketAddr) -> bool {
        if canonical(remote).is_ipv4() { self.ipv4 } else { self.ipv6 }
    }
}
