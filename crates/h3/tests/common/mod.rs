//! Servers and clients on loopback, with certificates made for the test.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use fulmar::{Connection, Endpoint, RecvStream, SendStream, TransportConfig, VarInt, tls};
use fulmar_h3::{ALPN, Client, ClientBuilder, Config, Error, Server};
use http::Response;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::task::JoinHandle;

/// A certificate for the address of this machine.
pub(crate) struct Identity {
    pub(crate) cert: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    pub(crate) fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        Self { cert: made.cert.der().clone(), key: made.signing_key.serialize_der() }
    }

    pub(crate) fn key(&self) -> PrivatePkcs8KeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.clone())
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        self.endpoint_with(TransportConfig::default())
    }

    pub(crate) fn endpoint_with(&self, transport: TransportConfig) -> Endpoint {
        let tls = tls::server_config(vec![self.cert.clone()], self.key().into(), &[ALPN]).unwrap();
        let tls = tls.with_transport(Arc::new(transport)).unwrap();
        Endpoint::server(tls, (Ipv4Addr::LOCALHOST, 0).into()).unwrap()
    }

    /// Serves an app.
    pub(crate) fn serve(&self, app: Router) -> Serving {
        Serving::on(self.endpoint(), app)
    }

    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.cert.clone()).unwrap();
        roots
    }

    /// A client that speaks HTTP/3 alone.
    pub(crate) fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    /// A connection for frames that are written by hand.
    pub(crate) async fn connect(&self, serving: &Serving, transport: Arc<TransportConfig>) -> Connection {
        let tls = tls::client_config(self.roots(), &[ALPN]).unwrap().with_transport(transport).unwrap();
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = (Ipv4Addr::LOCALHOST, serving.port).into();
        endpoint.connect_with(tls, address, "127.0.0.1").unwrap().await.unwrap()
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        Client::builder().roots(self.roots()).http3_only(true)
    }
}

/// A server at work.
pub(crate) struct Serving {
    pub(crate) server: Arc<Server>,
    pub(crate) task: JoinHandle<()>,
    port: u16,
}

impl Serving {
    pub(crate) fn on(endpoint: Endpoint, app: Router) -> Self {
        Self::with_config(endpoint, app, Config::default())
    }

    pub(crate) fn with_config(endpoint: Endpoint, app: Router, config: Config) -> Self {
        let port = endpoint.local_addr().unwrap().port();
        let server = Arc::new(Server::with_config(endpoint, config));
        let task = tokio::spawn({
            let server = Arc::clone(&server);
            async move { server.serve(app).await }
        });
        Self { server, task, port }
    }

    pub(crate) fn uri(&self, path: &str) -> String {
        uri((Ipv4Addr::LOCALHOST, self.port).into(), path)
    }

    /// Waits until it has no connection.
    pub(crate) async fn abandoned(&self) {
        while self.server.endpoint().stats().open_connections > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A server at work, and a client that trusts it.
pub(crate) struct Running {
    pub(crate) client: Client,
    pub(crate) client_endpoint: Endpoint,
    pub(crate) server: Arc<Server>,
    pub(crate) serving: JoinHandle<()>,
    pub(crate) address: SocketAddr,
}

impl Running {
    pub(crate) fn uri(&self, path: &str) -> String {
        uri(self.address, path)
    }
}

pub(crate) fn start(app: Router) -> Running {
    start_with(app, Config::default())
}

pub(crate) fn start_with(app: Router, config: Config) -> Running {
    let identity = Identity::new();
    let endpoint = identity.endpoint();
    let address = endpoint.local_addr().unwrap();
    let Serving { server, task: serving, .. } = Serving::with_config(endpoint, app, config);
    let client_endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
    client_endpoint.set_default_client_config(tls::client_config(identity.roots(), &[ALPN]).unwrap());
    Running { client: Client::new(client_endpoint.clone()), client_endpoint, server, serving, address }
}

pub(crate) fn uri(address: SocketAddr, path: &str) -> String {
    format!("https://127.0.0.1:{}{path}", address.port())
}

/// Fails if the future takes longer than some seconds.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(5), future).await.expect("done in time")
}

pub(crate) async fn get(client: &Client, uri: &str) -> Result<String, Error> {
    text(client.get(uri).await?).await
}

pub(crate) async fn text(response: Response<fulmar_h3::Body>) -> Result<String, Error> {
    let bytes = response.into_body().bytes(1 << 20).await?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

/// The next client of a server that writes its frames by hand.
pub(crate) async fn next_client(endpoint: &Endpoint) -> Connection {
    soon(async {
        loop {
            // An attempt without the early data that it was for is given up.
            if let Ok(connection) = endpoint.accept().await.unwrap().await {
                return connection;
            }
        }
    })
    .await
}

/// Its next request.
pub(crate) async fn next_request(connection: &Connection) -> (SendStream, RecvStream) {
    soon(connection.accept_bi()).await.unwrap()
}

/// Answers with status 200 alone: HEADERS with the entry of QPACK's static table.
pub(crate) async fn answer(mut send: SendStream) {
    send.write_all(&[1, 3, 0, 0, 0xd9]).await.unwrap();
    send.finish().unwrap();
}

/// Opens a control stream that says that requests from `id` on are not taken (GOAWAY).
pub(crate) async fn go_away(connection: &Connection, id: u8) -> SendStream {
    let mut control = connection.open_uni().await.unwrap();
    control.write_all(&[0, 4, 0, 7, 1, id]).await.unwrap();
    control
}

pub(crate) fn code(code: u32) -> VarInt {
    VarInt::from_u32(code)
}
