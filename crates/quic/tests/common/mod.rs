//! A server and a client on loopback, with certificates made for the test.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fulmar::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, tls};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The application protocol of the tests.
pub(crate) const ALPN: &[u8] = b"fulmar-test";

/// How long a test may take before it counts as hung.
const DEADLINE: Duration = Duration::from_secs(30);

/// Runs a test with a deadline on a runtime of one thread.
pub(crate) fn run<F: Future<Output = ()>>(test: F) {
    runtime(tokio::runtime::Builder::new_current_thread(), test);
}

/// The same on a runtime of several threads, where handles and worker run at the same time.
pub(crate) fn run_threaded<F: Future<Output = ()>>(test: F) {
    runtime(tokio::runtime::Builder::new_multi_thread(), test);
}

fn runtime<F: Future<Output = ()>>(mut builder: tokio::runtime::Builder, test: F) {
    let runtime = builder.worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async { within(DEADLINE, test).await });
}

/// Fails if the future takes longer than `limit`.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(limit, future).await.expect("done in time")
}

/// A certificate for "localhost" and its key.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) cert: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Identity {
    pub(crate) fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Self { cert: made.cert.der().clone(), key: key.into() }
    }

    pub(crate) fn server_config(&self, transport: TransportConfig, alpn: &[u8]) -> ServerConfig {
        tls::server_config(vec![self.cert.clone()], self.key.clone_key(), &[alpn])
            .expect("a key that fits")
            .with_transport(Arc::new(transport))
            .expect("a valid configuration")
    }

    /// A client that trusts this certificate only.
    pub(crate) fn client_config(&self, transport: TransportConfig, alpn: &[u8]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.cert.clone()).expect("a valid certificate");
        tls::client_config(roots, &[alpn])
            .expect("TLS 1.3")
            .with_transport(Arc::new(transport))
            .expect("a valid configuration")
    }
}

pub(crate) fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Two endpoints that have not met yet.
pub(crate) struct Endpoints {
    pub(crate) server: Endpoint,
    pub(crate) client: Endpoint,
    pub(crate) addr: SocketAddr,
}

impl Endpoints {
    pub(crate) fn new() -> Self {
        Self::with(TransportConfig::default(), TransportConfig::default())
    }

    pub(crate) fn with(server: TransportConfig, client: TransportConfig) -> Self {
        let identity = Identity::new();
        let server =
            Endpoint::server(identity.server_config(server, ALPN), loopback()).expect("a server endpoint");
        let client_endpoint = Endpoint::client(loopback()).expect("a client endpoint");
        client_endpoint.set_default_client_config(identity.client_config(client, ALPN));
        let addr = server.local_addr().expect("a bound socket");
        Self { server, client: client_endpoint, addr }
    }

    /// Connects the two.
    pub(crate) async fn connect(self) -> Pair {
        let accept = async {
            let incoming = self.server.accept().await.expect("an open endpoint");
            incoming.await.expect("a handshake")
        };
        let connect = async {
            let connecting = self.client.connect(self.addr, "localhost").expect("a valid address");
            connecting.await.expect("a handshake")
        };
        let (server, client) = tokio::join!(accept, connect);
        Pair { server, client, endpoints: self }
    }
}

/// A connection, seen from both ends.
pub(crate) struct Pair {
    pub(crate) server: Connection,
    pub(crate) client: Connection,
    pub(crate) endpoints: Endpoints,
}

impl Pair {
    pub(crate) async fn new() -> Self {
        Endpoints::new().connect().await
    }

    pub(crate) async fn with(server: TransportConfig, client: TransportConfig) -> Self {
        Endpoints::with(server, client).connect().await
    }
}

/// Bytes in which every position is recognisable.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| ((index * 31) ^ (index >> 8) ^ (index >> 17)) as u8).collect()
}
