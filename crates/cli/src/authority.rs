//! The `HOST:PORT` by which a server is named.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// The longest name that DNS can hold, in characters (RFC 1035 §3.1, without the root's dot).
const NAME_MAX: usize = 253;

/// A host, by name or address, and a port. The host is in lower case and without brackets; an address of a link has its zone,
/// `fe80::1%eth0`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Authority {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Authority {
    /// Parses `host:port`, `192.0.2.1:port`, `[2001:db8::1]:port` or `[fe80::1%eth0]:port`; where the port is missing, it is
    /// `default_port`.
    pub(crate) fn parse(text: &str, default_port: Option<u16>) -> Result<Self, String> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(bracketed) => {
                let (address, rest) =
                    bracketed.split_once(']').ok_or_else(|| format!("`{text}` lacks a closing bracket"))?;
                (parse_ipv6(address)?, rest)
            }
            None if text.matches(':').count() > 1 => {
                return Err(format!("`{text}` is no HOST:PORT (an IPv6 address needs brackets)"));
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                let (host, rest) = text.split_at(end);
                (check_name(host)?, rest)
            }
        };
        Ok(Self { host, port: parse_port(text, rest, default_port)? })
    }

    /// The host without its zone: what its certificate names, and what it is told.
    pub(crate) fn name(&self) -> &str {
        self.host.split('%').next().unwrap_or(&self.host)
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListenAddr {
    /// All addresses of the machine, at this port.
    All(u16),
    One(SocketAddr),
}

impl ListenAddr {
    /// The port, 0 for one that the system picks.
    pub(crate) fn port(self) -> u16 {
        match self {
            Self::One(addr) => addr.port(),
            Self::All(port) => port,
        }
    }
}

/// Parses `4433`, `:4433`, `192.0.2.1:4433`, `[::]:4433`, `[fe80::1%eth0]:4433` or `localhost:4433`. A name is looked up, and its first
/// address taken.
pub(crate) fn parse_listen(text: &str) -> Result<ListenAddr, String> {
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
        return Ok(ListenAddr::All(port));
    }
    if let Ok(address) = text.parse() {
        return Ok(ListenAddr::One(address));
    }
    let malformed =
        || format!("`{text}` is no address to listen on: write PORT, :PORT, HOST:PORT or [IPV6]:PORT");
    let (host, port) = text.rsplit_once(':').ok_or_else(malformed)?;
    let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        // The zone has a name, which the system knows.
        Some(address) => parse_ipv6(address),
        None => check_name(host),
    };
    let host = host.map_err(|_| malformed())?;
    let port: u16 = port.parse().map_err(|_| malformed())?;
    let mut found = (host.as_str(), port)
        .to_socket_addrs()
        .map_err(|error| format!("`{host}` has no address: {error}"))?;
    found.next().map(ListenAddr::One).ok_or_else(|| format!("`{host}` has no address"))
}

/// An IPv6 address with its zone, if it has one, which URIs write after `%25` (RFC 6874), and people after `%` (RFC 9844).
fn parse_ipv6(text: &str) -> Result<String, String> {
    let no_address = || format!("`{text}` is no IPv6 address");
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    let address: Ipv6Addr = address.parse().map_err(|_| no_address())?;
    let Some(zone) = zone else { return Ok(address.to_string()) };
    let zone = zone.strip_prefix("25").filter(|rest| !rest.is_empty()).unwrap_or(zone);
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    if zone.is_empty() || !zone.bytes().all(legal) {
        return Err(no_address());
    }
    Ok(format!("{address}%{zone}"))
}

fn parse_port(text: &str, rest: &str, default_port: Option<u16>) -> Result<u16, String> {
    if rest.is_empty() {
        return default_port.ok_or_else(|| format!("`{text}` lacks a port: write HOST:PORT"));
    }
    let digits = rest.strip_prefix(':').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let port = digits.and_then(|digits| digits.parse().ok()).filter(|port| *port != 0);
    port.ok_or_else(|| format!("`{text}` has no valid port"))
}

/// A host name or IPv4 address, in lower case. One of other letters than ASCII has is written as DNS knows it (UTS #46).
fn check_name(name: &str) -> Result<String, String> {
    let host = match name.is_ascii() {
        true => name.to_owned(),
        false => idna::domain_to_ascii(name).map_err(|_| format!("`{name}` is no host name"))?,
    };
    let host = host.as_str();
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if host.is_empty() || host.len() > NAME_MAX || !host.bytes().all(legal) {
        return Err(format!("`{host}` is no host name"));
    }
    // What ends in a number is an address or nothing (RFC 3986 §7.4 warns of the old forms with fewer parts).
    // A dot at the end says that a name is complete (RFC 3986 §3.2.2).
    let name = host.strip_suffix('.').unwrap_or(host);
    let last = name.rsplit('.').next().unwrap_or(name);
    if last.bytes().all(|byte| byte.is_ascii_digit()) && host.parse::<Ipv4Addr>().is_err() {
        return Err(format!("`{host}` is no IPv4 address"));
    }
    Ok(host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
