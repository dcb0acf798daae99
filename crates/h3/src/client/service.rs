//! What DNS says of a server beside its addresses: HTTPS records (RFC 9460), as they are understood here. The asking is in `dns`.

use std::net::{IpAddr, SocketAddr};

use fulmar::happy_eyeballs::ADDRESSES_MAX;

/// How many records of a name are looked at, the most wanted first.
pub(super) const RECORDS_MAX: usize = 8;

/// How many addresses of a record are taken.
const HINTS_MAX: usize = 8;

/// A record as it stands in DNS, with the parameters that mean something here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Record {
    /// 0 says that this is an alias; of others the smallest is the most wanted.
    pub(super) priority: u16,
    /// The name that it leads to, without a dot at the end; empty stands for the name that has the record.
    pub(super) target: String,
    pub(super) alpn: Vec<Vec<u8>>,
    /// HTTP/1.1 is not among the protocols unless `alpn` names it.
    pub(super) has_no_default_alpn: bool,
    pub(super) port: Option<u16>,
    pub(super) hints: Vec<IpAddr>,
    /// It needs to be understood in a way that is not known here (RFC 9460 §8).
    pub(super) is_beyond: bool,
}

/// What the records of a name say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// Nothing that is of use.
    Nothing,
    /// Ask at another name (AliasMode).
    Alias(String),
    /// Where it is found, the most wanted place first.
    Services(Vec<Service>),
}

/// A place where a server is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Service {
    /// Its name; empty if it is that of the records.
    pub(super) target: String,
    /// Its port, if it has one of its own.
    pub(super) port: Option<u16>,
    /// Addresses that need no further question.
    pub(super) hints: Vec<IpAddr>,
    pub(super) has_http3: bool,
    /// HTTP/2 or HTTP/1.1.
    pub(super) has_tcp: bool,
}

/// Understands the records of a name.
pub(super) fn understand(mut records: Vec<Record>) -> Said {
    // RFC 9460 §2.4.1: where there is an alias, the other records of the name do not count.
    if let Some(alias) = records.iter().find(|record| record.priority == 0) {
        // One to itself says that there is no service (RFC 9460 §2.5.1).
        return if alias.target.is_empty() { Said::Nothing } else { Said::Alias(alias.target.clone()) };
    }
    records.sort_by_key(|record| record.priority);
    let services: Vec<Service> = records.into_iter().take(RECORDS_MAX).filter_map(Service::of).collect();
    if services.is_empty() { Said::Nothing } else { Said::Services(services) }
}

impl Service {
    fn of(record: Record) -> Option<Self> {
        let has = |name: &[u8]| record.alpn.iter().any(|protocol| protocol == name);
        let has_http3 = has(b"h3");
        let has_tcp = has(b"h2") || has(b"http/1.1") || !record.has_no_default_alpn;
        let is_of_use = !record.is_beyond && record.port != Some(0) && (has_http3 || has_tcp);
        is_of_use.then(|| Self {
            target: record.target,
            port: record.port,
            hints: record.hints.into_iter().take(HINTS_MAX).collect(),
            has_http3,
            has_tcp,
        })
    }
}

/// A service with its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Located {
    pub(super) addresses: Vec<SocketAddr>,
    /// It is at the addresses of the server itself, by this port.
    pub(super) at_own: Option<u16>,
    pub(super) has_http3: bool,
    pub(super) has_tcp: bool,
}

/// Where to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Found {
    /// By QUIC; nothing, if DNS says that the server does not speak HTTP/3.
    pub(super) quic: Vec<SocketAddr>,
    pub(super) tcp: Vec<SocketAddr>,
}

impl Found {
    /// Where to try QUIC if nothing else is left, whatever DNS says.
    pub(super) fn quic_at_last(&self) -> &[SocketAddr] {
        if self.quic.is_empty() { &self.tcp } else { &self.quic }
    }

    /// What the addresses of the server itself and its services come to. Services stand first; the server itself is the way out where
    /// they cannot be reached (RFC 9460 §3.1).
    pub(super) fn of(own: &[SocketAddr], services: &[Located]) -> Self {
        let list = |is_wanted: fn(&Located) -> bool| {
            let mut all: Vec<SocketAddr> = Vec::new();
            for service in services.iter().filter(|service| is_wanted(service)) {
                let at_own = service
                    .at_own
                    .map(|port| own.iter().map(move |address| SocketAddr::new(address.ip(), port)));
                for address in service.addresses.iter().copied().chain(at_own.into_iter().flatten()) {
                    if all.len() < ADDRESSES_MAX && !all.contains(&address) {
                        all.push(address);
                    }
                }
            }
            for address in own {
                if !all.contains(address) {
                    all.push(*address);
                }
            }
            all
        };
        let speaks_http3 = services.is_empty() || services.iter().any(|service| service.has_http3);
        Self {
            quic: if speaks_http3 { list(|service| service.has_http3) } else { Vec::new() },
            tcp: list(|service| service.has_tcp),
        }
    }
}

/// The name at which the records of a server are (RFC 9460 §9.1).
pub(super) fn name_of(host: &str, port: u16) -> String {
    if port == 443 { host.to_owned() } else { format!("_{port}._https.{host}") }
}

/// Whether DNS can have a record for a host: it is no address, and no name that is known by other means (RFC 6761, RFC 6762).
pub(super) fn may_have_records(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    let is_local = |suffix: &str| host == suffix || host.ends_with(&format!(".{suffix}"));
    // What has a zone is an address.
    host.parse::<IpAddr>().is_err()
        && !host.contains('%')
        && host.contains('.')
        && !is_local("localhost")
        && !is_local("local")
}

#[cfg(test)]
mod tests;
