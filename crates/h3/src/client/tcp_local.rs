//! From where connections over TCP leave.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use tokio::net::{TcpSocket, TcpStream};

/// An address or an interface of this machine from which connections over TCP leave: see
/// [`ClientBuilder::tcp_locals`](super::ClientBuilder::tcp_locals).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TcpLocal {
    /// An address. One of IPv4 reaches no server over IPv6, and the other way round; `[::]` stands for any address of either.
    Ip(IpAddr),
    /// The name of an interface, whatever the routes say. On other systems than Linux to connect fails with
    /// [`ErrorKind::Unsupported`].
    Interface(String),
}

impl TcpLocal {
    fn reaches(&self, remote: SocketAddr) -> bool {
        match self {
            Self::Ip(ip) => self.is_any() || ip.is_ipv4() == remote.is_ipv4(),
            Self::Interface(_) => true,
        }
    }

    /// Whether it stands for both families.
    fn is_any(&self) -> bool {
        *self == Self::Ip(Ipv6Addr::UNSPECIFIED.into())
    }
}

impl std::fmt::Display for TcpLocal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Interface(name) => name.fmt(f),
        }
    }
}

/// A place, by its index among those that were named, if any were, and an address that it reaches.
pub(super) type Pair = (Option<usize>, SocketAddr);

/// Each of the addresses from each of `locals` that reaches it; from wherever the system chooses if there are none.
///
/// # Errors
/// None of them reaches any address.
pub(super) fn pairs(locals: &[TcpLocal], addresses: &[SocketAddr]) -> io::Result<Vec<Pair>> {
    if locals.is_empty() {
        return Ok(addresses.iter().map(|address| (None, *address)).collect());
    }
    let mut pairs = Vec::new();
    for &address in addresses {
        let reaching = locals.iter().enumerate().filter(|(_, local)| local.reaches(address));
        pairs.extend(reaching.map(|(index, _)| (Some(index), address)));
    }
    match addresses.first() {
        Some(address) if pairs.is_empty() => {
            let locals: Vec<_> = locals.iter().map(ToString::to_string).collect();
            let why = format!("cannot send from {} to {}", locals.join(" or "), address.ip());
            Err(io::Error::new(ErrorKind::AddrNotAvailable, why))
        }
        _ => Ok(pairs),
    }
}

/// Connects to an address, from a place that reaches it.
pub(super) async fn connect(local: Option<&TcpLocal>, remote: SocketAddr) -> io::Result<TcpStream> {
    let Some(local) = local.filter(|local| !local.is_any()) else { return TcpStream::connect(remote).await };
    let socket = if remote.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    let bound = match local {
        TcpLocal::Ip(ip) => socket.bind((*ip, 0).into()),
        TcpLocal::Interface(name) => bind_to_interface(&socket, name),
    };
    bound.map_err(|error| io::Error::new(error.kind(), format!("cannot send from {local}: {error}")))?;
    socket.connect(remote).await
}

#[cfg(target_os = "linux")]
fn bind_to_interface(socket: &TcpSocket, name: &str) -> io::Result<()> {
    socket.bind_device(Some(name.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn bind_to_interface(_: &TcpSocket, _: &str) -> io::Result<()> {
    Err(io::Error::new(ErrorKind::Unsupported, "sockets are bound to interfaces on Linux alone"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_another_family_is_left_out_and_nothing_else() {
        let ip = |text: &str| TcpLocal::Ip(text.parse().unwrap());
        let addresses: [SocketAddr; 2] =
            ["[2001:db8::1]:443".parse().unwrap(), "192.0.2.1:443".parse().unwrap()];
        let locals = [ip("192.0.2.9"), ip("::"), TcpLocal::Interface("eth0".to_owned())];
        let found = pairs(&locals, &addresses).unwrap();
        let [old, any, interface] = [0, 1, 2].map(Some);
        let [ipv6, ipv4] = addresses;
        assert_eq!(found, [(any, ipv6), (interface, ipv6), (old, ipv4), (any, ipv4), (interface, ipv4)]);
        assert_eq!(pairs(&[], &addresses).unwrap(), [(None, ipv6), (None, ipv4)]);
        let error = pairs(&[ip("192.0.2.9")], &addresses[..1]).unwrap_err();
        assert_eq!(error.to_string(), "cannot send from 192.0.2.9 to 2001:db8::1");
    }
}
