//! How sockets are made.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

/// The size asked of the kernel for each direction's socket buffer, in bytes: 20 ms at 1.6 Gbit/s. The kernel may give less.
pub const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// Binds a socket for [`UdpSocket::from_std`](crate::UdpSocket::from_std) as [`UdpSocket::bind`](crate::UdpSocket::bind)
/// does, and to a network interface, so that what it sends leaves there whatever the routes say, if one is named.
///
/// # Errors
/// Those of the operating system: there is no such address or interface. `Unsupported` for interfaces on other systems than
/// Linux.
pub fn open_socket(addr: SocketAddr, interface: Option<&str>) -> io::Result<std::net::UdpSocket> {
    open(addr, |socket| match interface {
        None => Ok(()),
        #[cfg(target_os = "linux")]
        Some(name) => socket.bind_device(Some(name.as_bytes())),
        #[cfg(not(target_os = "linux"))]
        Some(_) => {
            let _ = socket;
            let reason = "sockets are bound to interfaces on Linux alone";
            Err(io::Error::new(io::ErrorKind::Unsupported, reason))
        }
    })
}

/// Binds a socket, to which `prepare` does something before.
pub(crate) fn open(
    addr: SocketAddr,
    prepare: impl FnOnce(&Socket) -> io::Result<()>,
) -> io::Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    if addr.ip() == Ipv6Addr::UNSPECIFIED {
        // A kernel without IPv4-mapped addresses still serves IPv6.
        if let Err(error) = socket.set_only_v6(false) {
            tracing::debug!(%error, "this socket serves IPv6 only");
        }
    }
    for result in
        [socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES), socket.set_send_buffer_size(SOCKET_BUFFER_BYTES)]
    {
        if let Err(error) = result {
            tracing::debug!(%error, "the socket keeps its default buffer");
        }
    }
    prepare(&socket)?;
    socket.bind(&addr.into())?;
    Ok(socket.into())
}
