//! Sends on Linux, with control messages of this crate.
//!
//! The code point and the ECN bits share a byte of the IP header, which the kernel takes from a control message of each
//! datagram, and only without one from the options of the socket. `quinn-udp` always writes that message, from the ECN
//! bits alone. And it takes any datagram that the kernel refuses for a sign of an old kernel, or of a device that cannot segment,
//! also where its address was the reason, such as port 0, from which anybody can send something that is answered: it neither
//! segments nor, over IPv4, marks anything from then on.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};

use socket2::{MsgHdr, SockAddr, SockRef};

use crate::address::canonical;
use crate::control::{Control, space};

/// Room for a traffic class, a segment size and an IPv6 source address.
const CONTROL_LEN: usize = 2 * space(4) + space(20);

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
    let mut control = Control::<CONTROL_LEN>::new();
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
    let message = MsgHdr::new().with_addr(&address).with_buffers(&buffers).with_control(control.bytes());
    loop {
        match socket.sendmsg(&message, 0) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
