//! What an endpoint does for others while TLS works on an attempt to connect.

mod common;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{ALPN, Endpoints, Identity, loopback, run_threaded, within};
use fulmar::{
    AcceptError, ClientConfig, Connection, ConnectionError, Endpoint, ServerConfig, TransportConfig, VarInt,
};
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::runtime::{Builder, Handle};

/// The name for which the server looks long.
const SLOW: &str = "slow.localhost";
/// The name for which it panics.
const BROKEN: &str = "broken.localhost";
/// How long the server looks if nobody tells it to stop: far longer than anybody waits.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long others wait for a served request.
const SOON: Duration = Duration::from_secs(5);

/// Finds the certificate when the test says so.
#[derive(Debug)]
struct Resolver {
    certified: Arc<CertifiedKey>,
    asked: Mutex<Sender<()>>,
    go_on: Mutex<Receiver<()>>,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        match hello.server_name() {
            Some(SLOW) => {
                self.asked.lock().unwrap().send(()).unwrap();
                // The runtime gets another thread meanwhile: it does not see by itself that the one which waits for sockets and timers is kept.
                let wait = || self.go_on.lock().unwrap().recv_timeout(PATIENCE);
                let _ = tokio::task::block_in_place(wait);
            }
            Some(BROKEN) => panic!("this is what the test wants"),
            _ => {}
        }
        Some(self.certified.clone())
    }
}

/// A server whose certificates come from the resolver, and a client.
struct Scene {
    endpoints: Endpoints,
    /// The resolver was asked for the slow name.
    asked: Receiver<()>,
    go_on: Sender<()>,
}

impl Scene {
    fn new() -> Self {
        Self::with_worker_in(Handle::current())
    }

    /// The server's worker lives in this runtime.
    fn with_worker_in(runtime: Handle) -> Self {
        let names = ["localhost", SLOW, BROKEN].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let identity = Identity { cert: made.cert.der().clone(), key: key.into() };
        let signing = aws_lc_rs::sign::any_supported_type(&identity.key).unwrap();
        let certified = Arc::new(CertifiedKey::new(vec![identity.cert.clone()], signing));
        let ((asked, is_asked), (go_on, may_go_on)) = (channel(), channel());
        let resolver = Resolver { certified, asked: Mutex::new(asked), go_on: Mutex::new(may_go_on) };

        let server = Endpoint::builder().server_config(server_config(resolver)).runtimes(vec![runtime]);
        let server = server.bind(loopback()).unwrap();
        let client = Endpoint::client(loopback()).unwrap();
        client.set_default_client_config(client_config(&identity));
        let addr = server.local_addr().unwrap();
        Self { endpoints: Endpoints { server, client, addr }, asked: is_asked, go_on }
    }

    /// Accepts whatever comes, each attempt in a task, and echoes on every stream.
    fn serve(&self) {
        let server = self.endpoints.server.clone();
        tokio::spawn(async move {
            while let Some(incoming) = server.accept().await {
                tokio::spawn(async move {
                    let connection = incoming.await.unwrap();
                    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                        tokio::io::copy(&mut recv, &mut send).await.unwrap();
                        send.finish().unwrap();
                    }
                });
            }
        });
    }

    async fn connect(&self, name: &str) -> Result<Connection, ConnectionError> {
        self.endpoints.client.connect(self.endpoints.addr, name).unwrap().await
    }
}

fn server_config(resolver: Resolver) -> ServerConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    tls.alpn_protocols = vec![ALPN.to_vec()];
    ServerConfig::new(Arc::new(tls))
}

/// Its ClientHello fits one datagram, so that TLS can answer as soon as that is there.
fn client_config(identity: &Identity) -> ClientConfig {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
    let mut roots = RootCertStore::empty();
    roots.add(identity.cert.clone()).unwrap();
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    ClientConfig::new(Arc::new(tls)).with_transport(Arc::new(TransportConfig::default())).unwrap()
}

async fn echo(connection: &Connection) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(b"are you there?").await.unwrap();
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(100).await.unwrap(), b"are you there?");
}

/// Waits for the resolver without keeping the runtime's thread.
async fn until_asked(asked: Receiver<()>) -> Receiver<()> {
    tokio::task::spawn_blocking(move || {
        asked.recv_timeout(PATIENCE).unwrap();
        asked
    })
    .await
    .unwrap()
}

#[test]
fn others_are_served_while_a_server_looks_for_a_certificate() {
    run_threaded(async {
        let mut scene = Scene::new();
        scene.serve();
        let other = scene.connect("localhost").await.unwrap();
        let connecting = scene.endpoints.client.connect(scene.endpoints.addr, SLOW).unwrap();
        let slow = tokio::spawn(connecting);
        scene.asked = until_asked(scene.asked).await;

        // The client of the slow one repeats its first packets meanwhile: they are kept for it.
        for _ in 0..5 {
            within(SOON, echo(&other)).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        within(SOON, scene.connect("localhost")).await.unwrap();

        scene.go_on.send(()).unwrap();
        let slow = within(SOON, slow).await.unwrap().unwrap();
        within(SOON, echo(&slow)).await;
    });
}

#[test]
fn an_endpoint_that_is_closed_meanwhile_closes_what_it_accepts() {
    run_threaded(async {
        let mut scene = Scene::new();
        let server = scene.endpoints.server.clone();
        let accepted = tokio::spawn(async move { server.accept().await.unwrap().accept().unwrap().await });
        let connecting = scene.endpoints.client.connect(scene.endpoints.addr, SLOW).unwrap();
        let slow = tokio::spawn(connecting);
        scene.asked = until_asked(scene.asked).await;

        scene.endpoints.server.close(VarInt::from_u32(7), b"over");
        let idle = tokio::time::timeout(Duration::from_millis(100), scene.endpoints.server.wait_idle());
        assert!(idle.await.is_err(), "an attempt is being accepted");
        scene.go_on.send(()).unwrap();
        assert!(matches!(accepted.await.unwrap(), Err(ConnectionError::LocallyClosed)));
        assert!(within(SOON, slow).await.unwrap().is_err(), "the client is told");
        within(SOON, scene.endpoints.server.wait_idle()).await;
    });
}

#[test]
fn who_waits_for_an_endpoint_whose_runtime_ends_meanwhile_waits_no_longer_than_tls_works() {
    let of_worker = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    run_threaded(async {
        let mut scene = Scene::with_worker_in(of_worker.handle().clone());
        let server = scene.endpoints.server.clone();
        let accepted = tokio::spawn(async move { server.accept().await.unwrap().accept().map(drop) });
        let connecting = scene.endpoints.client.connect(scene.endpoints.addr, SLOW).unwrap();
        let slow = tokio::spawn(connecting);
        scene.asked = until_asked(scene.asked).await;

        of_worker.shutdown_background();
        assert!(within(SOON, scene.endpoints.server.accept()).await.is_none(), "the endpoint is gone");
        let server = scene.endpoints.server.clone();
        let mut idle = tokio::spawn(async move { server.wait_idle().await });
        let early = tokio::time::timeout(Duration::from_millis(100), &mut idle).await;
        assert!(early.is_err(), "an attempt is being accepted");
        scene.go_on.send(()).unwrap();
        assert_eq!(accepted.await.unwrap(), Err(AcceptError::EndpointClosed));
        within(SOON, idle).await.unwrap();
        slow.abort();
    });
}

#[test]
fn an_attempt_whose_certificate_panics_leaves_nothing_behind() {
    run_threaded(async {
        let scene = Scene::new();
        scene.serve();
        let broken = scene.endpoints.client.connect(scene.endpoints.addr, BROKEN).unwrap();
        let broken = tokio::spawn(broken);
        let other = within(SOON, scene.connect("localhost")).await.unwrap();
        within(SOON, echo(&other)).await;
        other.close(VarInt::ZERO, b"");
        within(SOON, scene.endpoints.server.wait_idle()).await;
        broken.abort();
    });
}

#[test]
fn each_client_can_be_accepted_with_a_configuration_of_its_own() {
    run_threaded(async {
        let (usual, other) = (Identity::new(), Identity::new());
        let server =
            Endpoint::server(usual.server_config(TransportConfig::default(), ALPN), loopback()).unwrap();
        let addr = server.local_addr().unwrap();
        let narrow = TransportConfig { max_concurrent_uni_streams: 1, ..TransportConfig::default() };
        let for_others = Arc::new(other.server_config(narrow, b"other"));
        let clients = [
            usual.client_config(TransportConfig::default(), ALPN),
            other.client_config(TransportConfig::default(), b"other"),
        ];
        let mut seen = Vec::new();
        for (index, config) in clients.into_iter().enumerate() {
            let client = Endpoint::client(loopback()).unwrap();
            let accept = async {
                let incoming = server.accept().await.unwrap();
                let connecting = match index {
                    0 => incoming.accept(),
                    _ => incoming.accept_with(for_others.clone()),
                };
                connecting.unwrap().await.unwrap()
            };
            let connect = async { client.connect_with(config, addr, "localhost").unwrap().await.unwrap() };
            let (_accepted, connection) = tokio::join!(accept, connect);
            let streams = std::iter::from_fn(|| connection.try_open_uni().unwrap()).count();
            seen.push((connection.alpn().unwrap(), streams, connection.peer_certificates().unwrap()));
        }
        assert_eq!(seen[0], (ALPN.to_vec(), 128, vec![usual.cert.clone()]));
        assert_eq!(seen[1], (b"other".to_vec(), 1, vec![other.cert.clone()]));
    });
}
