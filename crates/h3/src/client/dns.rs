//! Asking DNS where a server is: its addresses, as the system gives them, and its HTTPS records (RFC 9460) beside that.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fulmar::happy_eyeballs::in_turn;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::rdata::svcb::{SVCB, SvcParamKey, SvcParamValue};
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use tokio::time::timeout;

use super::service::{
    Found, Located, RECORDS_MAX, Record, Said, Service, may_have_records, name_of, understand,
};
use crate::error::Error;

/// How long a request waits for HTTPS records when the addresses of its server are known, and for the addresses when records have come
/// that name some.
const BEHIND_MAX: Duration = Duration::from_millis(50);

/// How long it waits for them when the server has no address, before it fails for that.
const ALONE_MAX: Duration = Duration::from_secs(1);

/// How many aliases are followed, one after the other (RFC 9460 §2.4.2 asks for a limit).
const ALIASES_MAX: usize = 8;

/// How long a name server has to answer before it is asked again, and how often that is.
const ANSWER_MAX: Duration = Duration::from_millis(500);
const ATTEMPTS_MAX: usize = 2;

/// How many answers are remembered, for as long as they are good.
const CACHE_MAX: u64 = 512;

/// Finds the addresses of servers.
#[derive(Clone)]
pub(super) struct Names {
    /// Nothing, if DNS is asked for addresses alone.
    records: Option<HttpsRecords>,
    given: Arc<Given>,
}

/// The addresses of some servers, by name and port, whatever DNS says of them.
pub(super) type Given = BTreeMap<(String, u16), Vec<IpAddr>>;

impl Names {
    pub(super) fn new(records: Option<HttpsRecords>, given: Given) -> Self {
        Self { records, given: Arc::new(given) }
    }

    /// The addresses of a name: those that are given, or as the system gives them, the families in turn.
    pub(super) async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
        if let Some(addresses) = self.given(host, port) {
            return Ok(addresses.iter().map(|address| SocketAddr::new(*address, port)).collect());
        }
        let found = tokio::net::lookup_host((host, port)).await.map_err(Error::Resolve)?;
        let addresses = in_turn(found);
        if addresses.is_empty() {
            let none = std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
            return Err(Error::Resolve(none));
        }
        Ok(addresses)
    }

    fn given(&self, host: &str, port: u16) -> Option<&[IpAddr]> {
        if self.given.is_empty() {
            return None;
        }
        self.given.get(&(host.to_ascii_lowercase(), port)).map(Vec::as_slice)
    }

    /// Finds where to connect to. HTTPS records are asked for beside the addresses, and do not put off a request by more than
    /// [`BEHIND_MAX`]; where the system knows no address, by [`ALONE_MAX`]. They are not asked for where addresses are given.
    ///
    /// # Errors
    /// [`Error::Resolve`] if there is neither an address nor a record that leads to one.
    pub(super) async fn find(&self, host: &str, port: u16) -> Result<Found, Error> {
        let may_have = may_have_records(host) && self.given(host, port).is_none();
        let Some(records) = self.records.as_ref().filter(|_| may_have) else {
            return Ok(Found::of(&self.resolve(host, port).await?, &[]));
        };
        join(self.resolve(host, port), self.services(records, host, port)).await
    }

    /// The services of a server, with their addresses; none, if there are no records or they cannot be had.
    async fn services(&self, records: &HttpsRecords, host: &str, port: u16) -> Vec<Located> {
        let (mut name, mut owner) = (name_of(host, port), host.to_owned());
        for _ in 0..=ALIASES_MAX {
            match understand(records.ask(&name).await) {
                Said::Services(services) => return self.locate(services, host, &owner, port).await,
                Said::Alias(target) => (name, owner) = (target.clone(), target),
                // An alias without a service: what the server is, it is at the addresses of that name (RFC 9460 §3).
                Said::Nothing if owner != host => {
                    let addresses = self.resolve(&owner, port).await.unwrap_or_default();
                    let located = Located { addresses, at_own: None, has_http3: true, has_tcp: true };
                    return vec![located];
                }
                Said::Nothing => return Vec::new(),
            }
        }
        tracing::debug!(host, "too many aliases");
        Vec::new()
    }

    /// Gives services their addresses: the hints, or those of the name that the record leads to.
    async fn locate(&self, services: Vec<Service>, host: &str, owner: &str, port: u16) -> Vec<Located> {
        let mut located = Vec::new();
        for service in services {
            let Service { target, port: own_port, hints, has_http3, has_tcp } = service;
            let port = own_port.unwrap_or(port);
            let target = if target.is_empty() { owner } else { &target };
            let addresses: Vec<SocketAddr> = hints.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
            let at_own = target.eq_ignore_ascii_case(host).then_some(port);
            let addresses = if addresses.is_empty() && at_own.is_none() {
                self.resolve(target, port).await.unwrap_or_default()
            } else {
                addresses
            };
            located.push(Located { addresses, at_own, has_http3, has_tcp });
        }
        located
    }
}

/// Asks for HTTPS records.
#[derive(Clone)]
pub(super) struct HttpsRecords(Arc<TokioResolver>);

impl HttpsRecords {
    /// By the name servers of the system, or those that are given. Nothing, if the system names none.
    pub(super) fn new(servers: &[SocketAddr]) -> Option<Self> {
        let builder = if servers.is_empty() {
            TokioResolver::builder_tokio()
        } else {
            let config =
                ResolverConfig::from_parts(None, Vec::new(), servers.iter().map(name_server).collect());
            Ok(TokioResolver::builder_with_config(config, TokioRuntimeProvider::default()))
        };
        let mut builder =
            builder.inspect_err(|error| tracing::debug!(%error, "no name server is known")).ok()?;
        let options = builder.options_mut();
        (options.timeout, options.attempts, options.cache_size) = (ANSWER_MAX, ATTEMPTS_MAX, CACHE_MAX);
        let resolver = builder.build();
        let resolver =
            resolver.inspect_err(|error| tracing::debug!(%error, "HTTPS records are not asked for"));
        Some(Self(Arc::new(resolver.ok()?)))
    }

    async fn ask(&self, name: &str) -> Vec<Record> {
        let Ok(mut full) = Name::from_utf8(name) else { return Vec::new() };
        // Without the domains that the system would try behind it.
        full.set_fqdn(true);
        let found = match self.0.lookup(full, RecordType::HTTPS).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, name, "no HTTPS records");
                return Vec::new();
            }
        };
        let records = found.answers().iter().filter_map(|record| match &record.data {
            RData::HTTPS(https) => Some(record_of(&https.0)),
            _ => None,
        });
        // Sorted before some are left out, so that which ones is not by chance.
        let mut records: Vec<Record> = records.collect();
        records.sort_by_key(|record| record.priority);
        records.truncate(RECORDS_MAX);
        records
    }
}

/// Waits for addresses and records as long as is worth while, and says what they come to.
async fn join(
    own: impl Future<Output = Result<Vec<SocketAddr>, Error>>,
    services: impl Future<Output = Vec<Located>>,
) -> Result<Found, Error> {
    let (mut own, mut services) = (pin!(own), pin!(services));
    let (own, services) = tokio::select! {
        own = &mut own => {
            let left = if own.is_ok() { BEHIND_MAX } else { ALONE_MAX };
            (own, timeout(left, services).await.unwrap_or_default())
        }
        services = &mut services => {
            let own = if services.iter().any(|service| !service.addresses.is_empty()) {
                timeout(BEHIND_MAX, own).await.unwrap_or_else(|_| Ok(Vec::new()))
            } else {
                own.await
            };
            (own, services)
        }
    };
    let found = Found::of(own.as_deref().unwrap_or_default(), &services);
    match own {
        Err(error) if found.quic.is_empty() && found.tcp.is_empty() => Err(error),
        _ => Ok(found),
    }
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let with_port = |mut connection: ConnectionConfig| {
        connection.port = address.port();
        connection
    };
    let connections = vec![with_port(ConnectionConfig::udp()), with_port(ConnectionConfig::tcp())];
    NameServerConfig::new(address.ip(), true, connections)
}

/// What a record says of what is understood here.
fn record_of(svcb: &SVCB) -> Record {
    let target = svcb.target_name.to_ascii();
    let mut record = Record {
        priority: svcb.svc_priority,
        target: target.trim_end_matches('.').to_ascii_lowercase(),
        ..Record::default()
    };
    for (key, value) in &svcb.svc_params {
        match value {
            SvcParamValue::Alpn(names) => {
                record.alpn = names.0.iter().map(|name| name.as_bytes().to_vec()).collect();
            }
            SvcParamValue::NoDefaultAlpn => record.has_no_default_alpn = true,
            SvcParamValue::Port(port) => record.port = Some(*port),
            SvcParamValue::Ipv4Hint(hints) => {
                record.hints.extend(hints.0.iter().map(|one| IpAddr::V4(one.0)))
            }
            SvcParamValue::Ipv6Hint(hints) => {
                record.hints.extend(hints.0.iter().map(|one| IpAddr::V6(one.0)))
            }
            SvcParamValue::Mandatory(keys) => record.is_beyond = !keys.0.iter().all(is_understood),
            _ => tracing::trace!(?key, "a parameter that means nothing here"),
        }
    }
    record
}

fn is_understood(key: &SvcParamKey) -> bool {
    use SvcParamKey::{Alpn, Ipv4Hint, Ipv6Hint, NoDefaultAlpn, Port};
    matches!(key, Alpn | NoDefaultAlpn | Port | Ipv4Hint | Ipv6Hint)
}

#[cfg(test)]
mod tests;
