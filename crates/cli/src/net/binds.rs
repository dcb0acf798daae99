//! From where connections leave: addresses and interfaces of this machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulmar::{Endpoint, FourTuple, Local, PathStats, open_socket};
use fulmar_h3::TcpLocal;
use serde::Serialize;

use super::interfaces::Interface;
use crate::failure::Failure;

/// The longest name of an interface that Linux has.
const NAME_MAX: usize = 15;

/// An address or an interface of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bind {
    Ip(IpAddr),
    Interface(String),
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(ip) = text.parse() {
            return Ok(Self::Ip(ip));
        }
        let is_name = !text.is_empty() && text.len() <= NAME_MAX && !text.contains(['/', ':', ' ']);
        is_name.then(|| Self::Interface(text.to_owned())).ok_or_else(|| {
            format!("{text} is neither an address of this machine nor the name of an interface")
        })
    }
}

impl std::fmt::Display for Bind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Interface(name) => name.fmt(f),
        }
    }
}

/// The sockets of an endpoint, each for one of the addresses and interfaces that were named or found. Clones have the same.
#[derive(Debug, Clone)]
pub(crate) struct Binds {
    /// What was named. If anything was, nothing leaves from elsewhere.
    wanted: Arc<[Bind]>,
    sockets: Arc<Mutex<Vec<(Bind, Local)>>>,
}

/// Which addresses a socket is to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
    Both,
}

impl Binds {
    /// What was named, for TCP alone.
    pub(crate) fn without_sockets(wanted: &[Bind]) -> Self {
        Self { wanted: wanted.into(), sockets: Arc::default() }
    }

    /// Gives `endpoint` a socket for each of `wanted` that reaches addresses of `family`.
    pub(crate) fn open(endpoint: &Endpoint, wanted: &[Bind], family: Family) -> Result<Self, Failure> {
        let binds = Self::without_sockets(wanted);
        for bind in wanted {
            let other = if family == Family::V4 { Family::V6 } else { Family::V4 };
            if matches!(bind, Bind::Ip(ip) if family != Family::Both && ip.is_ipv4() == (other == Family::V4))
            {
                continue;
            }
            let socket = bind.socket(family).and_then(|socket| endpoint.add_socket(socket));
            let socket = socket.map_err(Failure::io(format!("cannot send from {bind}")))?;
            binds.list().push((bind.clone(), Local::Socket(socket)));
        }
        Ok(binds)
    }

    /// Gives `endpoint` a socket for each of these interfaces that has none. Those for which there can be none are left out.
    pub(crate) fn add(&self, endpoint: &Endpoint, interfaces: &[Interface], family: Family) {
        for interface in interfaces {
            if self.list().iter().any(|(bind, _)| bind.is_of(interface)) {
                continue;
            }
            // Some systems bind sockets to addresses alone, and leave it to their routes by which interface packets leave.
            let by_name = Bind::Interface(interface.name.clone());
            let by_ip = Bind::Ip(interface.ip);
            let opened =
                [by_name, by_ip].into_iter().find_map(|bind| Some((bind.socket(family).ok()?, bind)));
            let Some((socket, bind)) = opened else { continue };
            if let Ok(socket) = endpoint.add_socket(socket) {
                self.list().push((bind, Local::Socket(socket)));
            }
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<(Bind, Local)>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where connections may begin: nowhere, if nothing that was named has an address of the family.
    pub(crate) fn locals(&self) -> Vec<Local> {
        let list = self.list();
        match list.is_empty() && self.wanted.is_empty() {
            true => vec![Local::Any],
            false => list.iter().map(|(_, local)| *local).collect(),
        }
    }

    /// From where connections over TCP leave: from what was named, if anything was.
    pub(crate) fn tcp_locals(&self) -> Vec<TcpLocal> {
        let local = |bind: &Bind| match bind {
            Bind::Ip(ip) => TcpLocal::Ip(*ip),
            Bind::Interface(name) => TcpLocal::Interface(name.clone()),
        };
        self.wanted.iter().map(local).collect()
    }

    /// Where paths begin that leave by these interfaces.
    pub(crate) fn locals_at(&self, interfaces: &[Interface]) -> Vec<Local> {
        let list = self.list();
        let of = |interface: &Interface| list.iter().find(|(bind, _)| bind.is_of(interface));
        interfaces.iter().filter_map(|interface| Some(of(interface)?.1)).collect()
    }

    /// Whether a path leaves by an interface that is not among these.
    pub(crate) fn is_gone(&self, addrs: &FourTuple, interfaces: &[Interface]) -> bool {
        let list = self.list();
        let bind = list.iter().find(|(_, local)| *local == Local::Socket(addrs.socket));
        bind.is_some_and(|(bind, _)| !interfaces.iter().any(|interface| bind.is_of(interface)))
    }

    /// The figures of a path of the endpoint.
    pub(crate) fn figures(&self, path: &PathStats) -> PathFigures {
        PathFigures { bind: self.name_of(&path.addrs), ..PathFigures::of(path) }
    }

    fn name_of(&self, addrs: &FourTuple) -> Option<String> {
        let list = self.list();
        let named = list.iter().find(|(_, local)| *local == Local::Socket(addrs.socket));
        named.map(|(bind, _)| bind.to_string())
    }
}

impl Bind {
    fn socket(&self, family: Family) -> io::Result<std::net::UdpSocket> {
        let any = |ip: IpAddr, interface| open_socket(SocketAddr::new(ip, 0), interface);
        match self {
            Self::Ip(ip) => any(*ip, None),
            Self::Interface(name) if family == Family::V4 => any(Ipv4Addr::UNSPECIFIED.into(), Some(name)),
            Self::Interface(name) if family == Family::V6 => any(Ipv6Addr::UNSPECIFIED.into(), Some(name)),
            Self::Interface(name) => any(Ipv6Addr::UNSPECIFIED.into(), Some(name))
                .or_else(|_| any(Ipv4Addr::UNSPECIFIED.into(), Some(name))),
        }
    }
}

/// The figures of a path, for `--json`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PathFigures {
    pub(crate) id: u32,
    /// The address or interface of this end that `--bind` has named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bind: Option<String>,
    pub(crate) remote: SocketAddr,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) rtt_ms: f64,
    pub(crate) window_bytes: u64,
}

impl PathFigures {
    pub(crate) fn of(path: &PathStats) -> Self {
        Self {
            id: path.path.0,
            bind: None,
            remote: path.addrs.remote,
            bytes_sent: path.bytes_sent,
            bytes_received: path.bytes_received,
            rtt_ms: path.rtt.as_secs_f64() * 1_000.0,
            window_bytes: path.cwnd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_an_interface_if_it_can_be_one() {
        assert_eq!("127.0.0.2".parse(), Ok(Bind::Ip([127, 0, 0, 2].into())));
        assert_eq!("::1".parse(), Ok(Bind::Ip(Ipv6Addr::LOCALHOST.into())));
        assert_eq!("wwan0".parse(), Ok(Bind::Interface("wwan0".to_owned())));
        for text in ["", "127.0.0.1:80", "a/b", "a_name_that_is_too_long"] {
            assert!(text.parse::<Bind>().is_err(), "{text}");
        }
    }
}
