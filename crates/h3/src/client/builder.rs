//! How a client is set up.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use fulmar::{
    CipherSuite, ClientConfig, Endpoint, Local, SessionStore, TransportConfig, aws_lc_without_quic_keys,
    restrict_suites,
};
use fulmar_h3_proto::Config;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls_platform_verifier::BuilderVerifierExt;

use super::dns::{Given, HttpsRecords, Names};
use super::origin::Transports;
use super::quic::Quic;
use super::tcp::{Tcp, Windows};
use super::tcp_local::TcpLocal;
use super::{Client, SERVERS_MAX};
use crate::error::Error;

/// Sets up a [`Client`]. What is not said is as users of the web expect it: the certificates that the system trusts, HTTP/3 with HTTP/2 and
/// HTTP/1.1 as the way out, early data for requests that do no harm.
#[derive(Debug, Default)]
pub struct ClientBuilder {
    tls: Option<rustls::ClientConfig>,
    roots: Option<RootCertStore>,
    quic: Option<ClientConfig>,
    endpoint: Option<Endpoint>,
    transport: Option<Arc<TransportConfig>>,
    locals: Vec<Local>,
    tcp_locals: Vec<TcpLocal>,
    http3: Config,
    is_http3_only: bool,
    is_tcp_only: bool,
    has_no_early_data: bool,
    has_no_https_records: bool,
    name_servers: Vec<SocketAddr>,
    given: Given,
}

impl ClientBuilder {
    /// Trusts these certificate authorities instead of the system's.
    #[must_use]
    pub fn roots(mut self, roots: RootCertStore) -> Self {
        self.roots = Some(roots);
        self
    }

    /// Uses a TLS configuration of one's own, for QUIC and for TCP; its ALPN protocols are replaced. It must allow TLS 1.3.
    #[must_use]
    pub fn tls(mut self, tls: rustls::ClientConfig) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sends from this endpoint instead of a socket of its own. It should reach IPv4 and IPv6.
    #[must_use]
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = Some(endpoint);
        self
    }

    /// Where connections of QUIC begin, the preferred place first: sockets and addresses of the endpoint. The first from which the server
    /// can be reached is used, and where both ends have multipath (`TransportConfig::multipath`) a path is kept from each. Without
    /// this it is the endpoint's first socket. Connections over TCP have [`tcp_locals`](Self::tcp_locals).
    #[must_use]
    pub fn locals(mut self, locals: Vec<Local>) -> Self {
        self.locals = locals;
        self
    }

    /// From where connections over TCP leave, the preferred place first: the first from which the server can be reached is used. They
    /// fail where none of these reaches it. Without this the system chooses.
    #[must_use]
    pub fn tcp_locals(mut self, tcp_locals: Vec<TcpLocal>) -> Self {
        self.tcp_locals = tcp_locals;
        self
    }

    /// Uses this configuration for connections of QUIC, which names `h3` (see [`ALPN`](crate::ALPN)), instead of one that is made from
    /// the others. Early data needs a session store in it.
    #[must_use]
    pub fn quic(mut self, quic: ClientConfig) -> Self {
        self.quic = Some(quic);
        self
    }

    /// Uses another configuration of the transport. Of its windows those of HTTP/2 take what is smaller for a stream
    /// (`stream_receive_window_max`, 4 MiB otherwise) and larger for a connection (`receive_window`, 16 MiB otherwise).
    #[must_use]
    pub fn transport(mut self, transport: Arc<TransportConfig>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Uses other limits and offers of HTTP/3.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.http3 = config;
        self
    }

    /// Whether TCP is never tried. Default: false.
    #[must_use]
    pub fn http3_only(mut self, http3_only: bool) -> Self {
        self.is_http3_only = http3_only;
        self
    }

    /// Whether QUIC is never tried: no UDP socket is opened. Default: false. [`http3_only`](Self::http3_only) goes before it.
    #[must_use]
    pub fn tcp_only(mut self, tcp_only: bool) -> Self {
        self.is_tcp_only = tcp_only;
        self
    }

    /// Whether requests that do no harm when they arrive twice (GET, HEAD, OPTIONS and TRACE without a body) may leave before the
    /// handshake is complete, with servers that were met before (0-RTT, RFC 8470). One that the server finds too early (425) is repeated
    /// after the handshake. Default: true.
    #[must_use]
    pub fn early_data(mut self, early_data: bool) -> Self {
        self.has_no_early_data = !early_data;
        self
    }

    /// Whether DNS is asked for HTTPS records (RFC 9460) of servers beside their addresses. They say whether a server speaks HTTP/3,
    /// and by which port and name. Default: true.
    #[must_use]
    pub fn https_records(mut self, https_records: bool) -> Self {
        self.has_no_https_records = !https_records;
        self
    }

    /// Asks these name servers for HTTPS records instead of the system's. Addresses are the system's to find.
    #[must_use]
    pub fn name_servers(mut self, name_servers: Vec<SocketAddr>) -> Self {
        self.name_servers = name_servers;
        self
    }

    /// Finds a server at these addresses instead of those that DNS has; its HTTPS records are not asked for then. The server has to prove
    /// its own name there all the same. Where no address is given, none is found.
    #[must_use]
    pub fn resolve(mut self, host: &str, port: u16, addresses: Vec<IpAddr>) -> Self {
        self.given.insert((host.to_ascii_lowercase(), port), addresses);
        self
    }

    /// The client, with a socket of its own if no endpoint was given. Where this machine gives none, requests go over TCP.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`]: the TLS or transport configuration cannot be used, or no socket can be opened and the client is to speak HTTP/3 alone.
    pub fn build(self) -> Result<Client, Error> {
        let tls = match self.tls {
            Some(tls) => tls,
            None => tls_for(self.roots)?,
        };
        let quic = match self.quic {
            Some(quic) => quic,
            None => {
                let mut tls = tls.clone();
                tls.alpn_protocols = vec![crate::ALPN.to_vec()];
                let sessions = SessionStore::new(SERVERS_MAX);
                let config = ClientConfig::new(Arc::new(tls)).with_sessions(sessions);
                config.with_transport(self.transport.unwrap_or_default()).map_err(setup)?
            }
        };
        let endpoint = match self.endpoint {
            _ if self.is_tcp_only && !self.is_http3_only => Err("it is not wanted".into()),
            Some(endpoint) => Ok(endpoint),
            None => match own_endpoint() {
                Err(error) if self.is_http3_only => return Err(setup(error)),
                Err(error) => Err(format!("no UDP socket can be opened: {error}").into()),
                Ok(endpoint) => Ok(endpoint),
            },
        };
        let windows = Windows::like(quic.transport());
        let fields_max = self.http3.decoder.fields_max;
        let locals = if self.locals.is_empty() { vec![Local::Any] } else { self.locals };
        let records = (!self.has_no_https_records).then(|| HttpsRecords::new(&self.name_servers)).flatten();
        let transports = Transports {
            quic: Quic {
                endpoint,
                config: Some(quic),
                locals,
                http3: Arc::new(self.http3),
                closing: Arc::default(),
            },
            tcp: (!self.is_http3_only).then(|| Tcp::new(tls, self.tcp_locals, windows, fields_max)),
            names: Names::new(records, self.given),
            may_be_early: !self.has_no_early_data,
        };
        Ok(Client { transports: Arc::new(transports), origins: Arc::new(Mutex::new(BTreeMap::new())) })
    }
}

/// An endpoint for IPv6 and IPv4, or for what the machine has of them.
fn own_endpoint() -> io::Result<Endpoint> {
    Endpoint::client((Ipv6Addr::UNSPECIFIED, 0).into())
        .or_else(|_| Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()))
}

fn setup(error: impl Into<crate::error::BoxError>) -> Error {
    Error::Setup(error.into())
}

/// Trusts these authorities, or whom the system trusts.
fn tls_for(roots: Option<RootCertStore>) -> Result<rustls::ClientConfig, Error> {
    let provider = CryptoProvider::get_default().cloned().unwrap_or_else(|| {
        let provider = aws_lc_without_quic_keys();
        Arc::new(with_tls12(&provider, &restrict_suites(&provider, &CipherSuite::fastest_first())))
    });
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(setup)?;
    let builder = match roots {
        Some(roots) => builder.with_root_certificates(roots),
        None => builder.with_platform_verifier().map_err(setup)?,
    };
    Ok(builder.with_no_client_auth())
}

/// The suites of TLS 1.3 that QUIC can use, and those of TLS 1.2, which some servers have over TCP.
fn with_tls12(all: &CryptoProvider, for_quic: &CryptoProvider) -> CryptoProvider {
    let tls12 = all.cipher_suites.iter().filter(|suite| suite.tls13().is_none());
    let cipher_suites = for_quic.cipher_suites.iter().chain(tls12).copied().collect();
    CryptoProvider { cipher_suites, ..for_quic.clone() }
}
