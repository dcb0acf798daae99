//! Receives several messages at a time on Linux, with room for all that the kernel tells of each.
//!
//! `quinn-udp` has room for 96 bytes of control messages. Of datagrams that were coalesced the kernel tells when they came, the size
//! of each, and which address they went to; their ECN bits, which it tells last, are cut off then.

use std::io::{self, IoSliceMut};
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::Duration;

use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, UdpSocketState};

use crate::control::{messages, space};
use crate::registered::Socket;

/// Room for the time of arrival, the size of a segment, an IPv6 address with its interface, and the traffic class.
const CONTROL_LEN: usize = space(16) + space(4) + space(20) + space(4);

/// What the kernel writes beside the payloads: who has sent each message, and its control messages.
#[derive(Debug)]
pub(super) struct Messages {
    names: [Name; BATCH_SIZE],
    controls: [Control; BATCH_SIZE],
}

/// An address of a socket (`struct sockaddr_storage`).
#[derive(Debug, Clone, Copy)]
#[repr(C, align(8))]
struct Name([u8; size_of::<libc::sockaddr_storage>()]);

#[derive(Debug, Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_LEN]);

impl Messages {
    pub(super) const fn new() -> Self {
        let name = Name([0; size_of::<libc::sockaddr_storage>()]);
        Self { names: [name; BATCH_SIZE], controls: [Control([0; CONTROL_LEN]); BATCH_SIZE] }
    }

    /// Receives up to one message for each of `buffers`, and tells of each in `meta`. Returns their number.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(super) fn receive(
        &mut self,
        _: &UdpSocketState,
        socket: &Socket,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta; BATCH_SIZE],
    ) -> io::Result<usize> {
        let count = buffers.len().min(BATCH_SIZE);
        let (headers, filled) = self.call(socket, &mut buffers[..count])?;
        let names = self.names.iter().zip(&self.controls);
        for ((meta, header), (name, control)) in meta.iter_mut().zip(&headers[..filled]).zip(names) {
            let len = header.msg_len as usize;
            // The C libraries have different types for it.
            let told = control.0.get(..header.msg_hdr.msg_controllen as _).unwrap_or_default();
            *meta = described(len, told);
            meta.addr = address(&name.0).ok_or(io::ErrorKind::InvalidData)?;
        }
        Ok(filled)
    }

    #[expect(unsafe_code, reason = "there is no safe interface to recvmmsg(2)")]
    fn call(
        &mut self,
        socket: &Socket,
        buffers: &mut [IoSliceMut<'_>],
    ) -> io::Result<([libc::mmsghdr; BATCH_SIZE], usize)> {
        // SAFETY: all of it are numbers and pointers, which may be zero.
        let mut headers: [libc::mmsghdr; BATCH_SIZE] = unsafe { mem::zeroed() };
        let places = self.names.iter_mut().zip(&mut self.controls);
        for ((header, (name, control)), buffer) in headers.iter_mut().zip(places).zip(buffers.iter_mut()) {
            let header = &mut header.msg_hdr;
            header.msg_name = ptr::from_mut(&mut name.0).cast();
            header.msg_namelen = size_of::<Name>() as libc::socklen_t;
            // The standard library promises that this is the same as `struct iovec`.
            header.msg_iov = ptr::from_mut(buffer).cast();
            header.msg_iovlen = 1;
            header.msg_control = ptr::from_mut(&mut control.0).cast();
            header.msg_controllen = CONTROL_LEN as _;
        }
        loop {
            // SAFETY: as many headers as there are buffers point to those, and to a name and a control buffer of their own. All are
            // initialised, as long as told, borrowed by this function, and written to by nobody else meanwhile.
            let filled = unsafe {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    headers.as_mut_ptr(),
                    buffers.len() as _,
                    0,
                    ptr::null_mut(),
                )
            };
            match usize::try_from(filled) {
                Ok(filled) => return Ok((headers, filled)),
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
    }
}

/// What the control messages tell of a message of `len` bytes.
fn described(len: usize, control: &[u8]) -> RecvMeta {
    let mut meta = RecvMeta::default();
    (meta.len, meta.stride) = (len, len);
    for message in messages(control) {
        let data = message.data;
        match (message.level, message.kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => meta.timestamp = time(data),
            (libc::SOL_UDP, libc::UDP_GRO) => {
                let stride = data.first_chunk().map(|size| libc::c_int::from_ne_bytes(*size));
                meta.stride = stride.and_then(|size| usize::try_from(size).ok()).unwrap_or(len);
            }
            // The interface, an address that only matters for answers, and the one in the IP header.
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let ip = data.get(8..).and_then(<[u8]>::first_chunk::<4>);
                meta.dst_ip = ip.map(|ip| IpAddr::from(Ipv4Addr::from(*ip)));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                meta.dst_ip = data.first_chunk::<16>().map(|ip| IpAddr::from(Ipv6Addr::from(*ip)));
            }
            // A byte, or a number, of which the lowest byte counts.
            (libc::IPPROTO_IP, libc::IP_TOS) => {
                meta.ecn = data.first().and_then(|byte| EcnCodepoint::from_bits(byte & 0b11));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                let class = data.first_chunk().map(|class| libc::c_int::from_ne_bytes(*class));
                meta.ecn = class.and_then(|class| EcnCodepoint::from_bits((class & 0b11) as u8));
            }
            _ => {}
        }
    }
    meta
}

/// The time since 1970 in a `struct timespec` of the kernel: seconds and nanoseconds, two numbers of the same size, which is that of a
/// pointer.
fn time(data: &[u8]) -> Option<Duration> {
    let (secs, rest) = data.split_first_chunk()?;
    let (secs, nanos) = (isize::from_ne_bytes(*secs), isize::from_ne_bytes(*rest.first_chunk()?));
    Some(Duration::new(u64::try_from(secs).ok()?, u32::try_from(nanos).ok()?))
}

/// The address in a `struct sockaddr_in` or `struct sockaddr_in6`: family, port, then either the address or a flow label, the address
/// and a scope.
fn address(name: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = name.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let port = u16::from_be_bytes(*port);
    match libc::c_int::from(libc::sa_family_t::from_ne_bytes(*family)) {
        libc::AF_INET => Some(SocketAddr::new(Ipv4Addr::from(*rest.first_chunk::<4>()?).into(), port)),
        libc::AF_INET6 => {
            let ip = Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?);
            let scope = u32::from_ne_bytes(*rest.get(20..)?.first_chunk()?);
            Some(SocketAddrV6::new(ip, port, 0, scope).into())
        }
        _ => None,
    }
}
