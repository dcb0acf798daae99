//! Datagrams with a differentiated services code point (RFC 2474), and with ECN bits where `quinn-udp` writes none.
//!
//! The code point and the ECN bits share a byte of the IP header, which the kernel takes from a control message of each
//! datagram, and only without one from the options of the socket. `quinn-udp` always writes that message, from the ECN
//! bits alone, and over IPv4 no more once the kernel has refused a datagram, as it does with a train that it cannot segment.
//! So a socket with a code point writes its control messages itself, and any socket does after such a refusal.

use std::fmt;

/// A differentiated services code point: the upper six bits of the IPv4 TOS field or the IPv6 traffic class, which tell
/// routers how to treat a packet. 0, the default, is the usual treatment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

impl Dscp {
    /// Expedited forwarding, for what must not wait (RFC 3246).
    pub const EF: Self = Self(46);
    /// Lower effort, for what may wait for all others (RFC 8622).
    pub const LE: Self = Self(1);

    /// A code point; `None` if it is above 63.
    pub const fn new(value: u8) -> Option<Self> {
        if value < 64 { Some(Self(value)) } else { None }
    }

    /// The number, at most 63.
    pub const fn value(self) -> u8 {
        self.0
    }

    /// The whole byte of the IP header, with these ECN bits.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "code points are for Linux"))]
    pub(crate) const fn with_ecn(self, ecn: u8) -> u8 {
        self.0 << 2 | ecn & 0b11
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::send;

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, IoSlice};
    use std::net::{IpAddr, SocketAddr};

    use socket2::{MsgHdr, SockAddr, SockRef};

    use crate::address::canonical;

    /// Lengths of control messages, and where the next one begins, are multiples of this.
    const ALIGNMENT: usize = size_of::<usize>();

    /// The header of a control message: its length, its level and its type (`struct cmsghdr`).
    const HEADER_LEN: usize = ALIGNMENT + 2 * size_of::<libc::c_int>();

    /// Room for a traffic class, a segment size and an IPv6 source address.
    const CONTROL_LEN: usize = 2 * (HEADER_LEN + 8) + HEADER_LEN + 24;

    /// Sends `contents` to `destination` with this byte in the IP header, cut into segments if `segment` says so.
    /// Addresses are as the socket understands them.
    pub(crate) fn send(
        socket: &SockRef<'_>,
        destination: SocketAddr,
        source: Option<IpAddr>,
        traffic_class: u8,
        segment: Option<u16>,
        contents: &[u8],
    ) -> io::Result<()> {
        let mut control = Control { bytes: [0; CONTROL_LEN], len: 0 };
        let class = libc::c_int::from(traffic_class).to_ne_bytes();
        // What goes to a mapped address leaves as IPv4.
        match canonical(destination).is_ipv4() {
            true => control.put(libc::IPPROTO_IP, libc::IP_TOS, &class),
            false => control.put(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class),
        }
        if let Some(segment) = segment {
            control.put(libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes());
        }
        match source {
            // An interface, which the kernel chooses, the source, and an address that only matters on receipt.
            Some(IpAddr::V4(ip)) => {
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&ip.octets());
                control.put(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            Some(IpAddr::V6(ip)) => {
                let mut info = [0; 20];
                info[..16].copy_from_slice(&ip.octets());
                control.put(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            None => {}
        }
        let (address, buffers) = (SockAddr::from(destination), [IoSlice::new(contents)]);
        let message = MsgHdr::new()
            .with_addr(&address)
            .with_buffers(&buffers)
            .with_control(&control.bytes[..control.len]);
        loop {
            match socket.sendmsg(&message, 0) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Control messages as the kernel reads them (cmsg(3)).
    struct Control {
        bytes: [u8; CONTROL_LEN],
        len: usize,
    }

    impl Control {
        fn put(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
            let len = HEADER_LEN + data.len();
            for part in [&len.to_ne_bytes()[..], &level.to_ne_bytes(), &kind.to_ne_bytes(), data] {
                self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
                self.len += part.len();
            }
            self.len = self.len.next_multiple_of(ALIGNMENT);
        }
    }
}

#[cfg(test)]
mod tests;
