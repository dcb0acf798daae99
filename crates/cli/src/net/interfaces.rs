//! The interfaces of this machine by which a server can be reached, and how they come and go.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use fulmar::{Connection, Endpoint};
use tokio::time::sleep;

use super::{Bind, Binds, Family};

/// How often the interfaces are looked at. A link that has come back should be in use within two seconds.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// An interface and the address from which it sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) ip: IpAddr,
}

/// The interfaces that are up and have an address of the family of one of these servers, that by which the system would send first,
/// and of several addresses the first. Loopback ones lead to servers of this machine alone; addresses of a link lead nowhere.
pub(crate) fn leading_to(servers: &[SocketAddr]) -> Vec<Interface> {
    let is_local = servers.iter().any(|server| server.ip().is_loopback());
    let reaches = |ip: IpAddr| servers.iter().any(|server| server.is_ipv4() == ip.is_ipv4());
    let mut found = those_that(|ip| ip.is_loopback() == is_local && reaches(ip));
    let favourite = servers.iter().find_map(favourite_source);
    found.sort_by_key(|interface| Some(interface.ip) != favourite);
    found
}

/// The interfaces that are up, for servers whose addresses are not known yet: those that lead to others, or to this machine.
pub(crate) fn for_host(host: &str) -> Vec<Interface> {
    let is_local = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    those_that(|ip| ip.is_loopback() == is_local)
}

/// The interfaces that are up and have such an address, of several the first.
fn those_that(fit: impl Fn(IpAddr) -> bool) -> Vec<Interface> {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    let mut found: Vec<Interface> = Vec::new();
    for interface in all.into_iter().filter(if_addrs::Interface::is_oper_up) {
        let ip = interface.ip();
        let is_known = found.iter().any(|known| known.name == interface.name);
        if fit(ip) && !is_known && !is_of_link(ip) {
            found.push(Interface { name: interface.name, ip });
        }
    }
    found
}

/// Whether an address means something on its link alone.
fn is_of_link(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// From where the system would send to this address. Nothing is sent.
fn favourite_source(server: &SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = if server.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(server).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Keeps the paths of a connection to where the interfaces are: one that comes up gets a path, that of one that is gone is abandoned.
/// Goes on until the connection is over.
pub(crate) async fn follow(endpoint: Endpoint, connection: Connection, binds: Binds, family: Family) {
    let server = connection.remote_address();
    let mut known = leading_to(&[server]);
    loop {
        tokio::select! {
            _ = connection.closed() => return,
            () = sleep(LOOK_EVERY) => {}
        }
        let now = leading_to(&[server]);
        if now == known || now.is_empty() {
            continue;
        }
        known = now;
        binds.add(&endpoint, &known, family);
        let locals = binds.locals_at(&known);
        for path in connection.paths() {
            let Some(info) = path.info() else { continue };
            if binds.is_gone(&info.addrs, &known) {
                // The last path stays: it may come back.
                let _ = path.abandon();
            }
        }
        endpoint.keep_paths(&connection, &locals);
    }
}

impl Bind {
    /// The interface, or its address where sockets cannot be bound to interfaces.
    pub(super) fn is_of(&self, interface: &Interface) -> bool {
        match self {
            Self::Interface(name) => *name == interface.name,
            Self::Ip(ip) => *ip == interface.ip,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_leads_to_this_machine_and_nowhere_else() {
        let here = leading_to(&[([127, 0, 0, 1], 443).into()]);
        assert!(here.iter().any(|interface| interface.ip.is_loopback()), "{here:?}");
        let elsewhere = leading_to(&[([192, 0, 2, 1], 443).into()]);
        assert!(elsewhere.iter().all(|interface| !interface.ip.is_loopback()), "{elsewhere:?}");
        assert!(elsewhere.iter().all(|interface| interface.ip.is_ipv4()), "{elsewhere:?}");
    }

    #[test]
    fn addresses_of_a_link_lead_nowhere() {
        assert!(is_of_link("fe80::1".parse().unwrap()) && is_of_link("169.254.1.1".parse().unwrap()));
        assert!(!is_of_link("2001:db8::1".parse().unwrap()) && !is_of_link("10.0.0.1".parse().unwrap()));
    }
}
