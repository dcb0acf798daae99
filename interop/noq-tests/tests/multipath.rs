//! Several paths between Fulmar and noq, in both roles, over loopback: each end opens, uses, sets aside and abandons them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use fulmar::{Endpoint, Local, MultipathConfig, OpenPathError, PathEvent, PathUse, TransportConfig, tls};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

const ALPN: &[u8] = b"noq-tests";
const FIRST: Ipv4Addr = Ipv4Addr::LOCALHOST;
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const SIZE: usize = 2_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// A certificate for "localhost", and who trusts it.
struct Identity {
    cert: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
        Self { cert: made.cert.der().clone(), key }
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.cert.clone()).unwrap();
        roots
    }

    fn fulmar_server(&self) -> Endpoint {
        let config = tls::server_config(vec![self.cert.clone()], self.key.clone_key(), &[ALPN]).unwrap();
        let config = config.with_transport(fulmar_transport()).unwrap();
        Endpoint::server(config, (Ipv4Addr::UNSPECIFIED, 0).into()).unwrap()
    }

    fn fulmar_client(&self) -> Endpoint {
        let config = tls::client_config(self.roots(), &[ALPN]).unwrap();
        let client = Endpoint::client((FIRST, 0).into()).unwrap();
        client.set_default_client_config(config.with_transport(fulmar_transport()).unwrap());
        client
    }

    fn noq_server(&self) -> noq::Endpoint {
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.cert.clone()], self.key.clone_key())
            .unwrap();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        let crypto = noq::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
        let mut config = noq::ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(noq_transport());
        noq::Endpoint::server(config, (Ipv4Addr::UNSPECIFIED, 0).into()).unwrap()
    }

    fn noq_client(&self) -> noq::Endpoint {
        let mut tls = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(self.roots())
            .with_no_client_auth();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        let crypto = noq::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
        let mut config = noq::ClientConfig::new(Arc::new(crypto));
        config.transport_config(noq_transport());
        let client = noq::Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
        client.set_default_client_config(config);
        client
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn fulmar_transport() -> Arc<TransportConfig> {
    Arc::new(TransportConfig { multipath: Some(MultipathConfig::default()), ..TransportConfig::default() })
}

fn noq_transport() -> Arc<noq::TransportConfig> {
    let mut config = noq::TransportConfig::default();
    config.max_concurrent_multipath_paths(4);
    Arc::new(config)
}

fn at(port: u16) -> SocketAddr {
    (FIRST, port).into()
}

/// A client of Fulmar at a server of noq.
async fn fulmar_to_noq() -> (Endpoint, fulmar::Connection, noq::Connection, SocketAddr) {
    let identity = Identity::new();
    let (server, client) = (identity.noq_server(), identity.fulmar_client());
    let addr = at(server.local_addr().unwrap().port());
    let accept = async { server.accept().await.unwrap().await.unwrap() };
    let connect = async { client.connect(addr, "localhost").unwrap().await.unwrap() };
    let (ours, theirs) = tokio::join!(connect, accept);
    assert!(theirs.is_multipath_enabled() && ours.is_multipath());
    (client, ours, theirs, addr)
}

/// A client of noq at a server of Fulmar.
async fn noq_to_fulmar() -> (noq::Connection, fulmar::Connection, SocketAddr) {
    let identity = Identity::new();
    let (server, client) = (identity.fulmar_server(), identity.noq_client());
    let addr = at(server.local_addr().unwrap().port());
    let accept = async { server.accept().await.unwrap().await.unwrap() };
    let connect = async { client.connect(addr, "localhost").unwrap().await.unwrap() };
    let (theirs, ours) = tokio::join!(connect, accept);
    assert!(theirs.is_multipath_enabled() && ours.is_multipath());
    (theirs, ours, addr)
}

async fn from_fulmar(from: &fulmar::Connection, to: &noq::Connection) {
    let send = async {
        let mut stream = from.open_uni().await.unwrap();
        stream.write_all(&vec![7; SIZE]).await.unwrap();
        stream.finish().unwrap();
    };
    let receive = async { to.accept_uni().await.unwrap().read_to_end(SIZE).await.unwrap().len() };
    assert_eq!(tokio::join!(send, receive).1, SIZE);
}

async fn from_noq(from: &noq::Connection, to: &fulmar::Connection) {
    let send = async {
        let mut stream = from.open_uni().await.unwrap();
        stream.write_all(&vec![7; SIZE]).await.unwrap();
        stream.finish().unwrap();
    };
    let receive = async { to.accept_uni().await.unwrap().read_to_end(SIZE).await.unwrap().len() };
    assert_eq!(tokio::join!(send, receive).1, SIZE);
}

/// Opens a second path from a socket at [`SECOND`].
async fn open(client: &Endpoint, connection: &fulmar::Connection, addr: SocketAddr) -> fulmar::Path {
    let socket = UdpSocket::bind((SECOND, 0)).unwrap();
    let local = Local::Socket(client.add_socket(socket).unwrap());
    loop {
        match connection.open_path(local, addr) {
            Ok(path) => {
                path.validated().await.unwrap();
                return path;
            }
            Err(OpenPathError::NotConfirmed | OpenPathError::NoConnectionId) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The same by noq, as soon as Fulmar has given a connection ID for it.
async fn open_by_noq(connection: &noq::Connection, addr: SocketAddr) -> noq::Path {
    let second = noq::FourTuple::new(addr, Some(IpAddr::V4(SECOND)));
    loop {
        match connection.open_path(second, noq::PathStatus::Available).await {
            Ok(path) => return path,
            Err(noq::PathError::RemoteCidsExhausted) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The next event of a path that is no observed address.
async fn event(connection: &fulmar::Connection) -> PathEvent {
    loop {
        match connection.path_event().await.unwrap() {
            PathEvent::Observed { .. } => {}
            event => return event,
        }
    }
}

/// Waits until something is so.
async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("done in time") });
}

#[test]
fn a_path_that_fulmar_opens_carries_data_and_is_abandoned_by_fulmar() {
    run(async {
        let (client, ours, theirs, addr) = fulmar_to_noq().await;
        let path = open(&client, &ours, addr).await;
        // Which of two equal paths carries how much is up to the machine: the first one has to stand aside.
        ours.paths()[0].set_status(PathUse::Backup).unwrap();
        from_fulmar(&ours, &theirs).await;
        from_noq(&theirs, &ours).await;
        let stats = path.stats().unwrap();
        assert!(stats.bytes_sent > 1_000_000, "{stats:?}");
        path.set_status(PathUse::Backup).unwrap();
        from_fulmar(&ours, &theirs).await;
        path.abandon().unwrap();
        from_fulmar(&ours, &theirs).await;
        from_noq(&theirs, &ours).await;
        let id = noq::PathId::from(path.id().0);
        until(|| theirs.path(id).is_none_or(|path| path.status().is_err())).await;
    });
}

#[test]
fn a_path_that_fulmar_opens_is_set_aside_and_abandoned_by_noq() {
    run(async {
        let (client, ours, theirs, addr) = fulmar_to_noq().await;
        let path = open(&client, &ours, addr).await;
        assert!(matches!(event(&ours).await, PathEvent::Opened { .. }));
        assert!(matches!(event(&ours).await, PathEvent::Validated { .. }));
        let id = noq::PathId::from(path.id().0);
        until(|| theirs.path(id).is_some()).await;
        let their_path = theirs.path(id).unwrap();
        their_path.set_status(noq::PathStatus::Backup).unwrap();
        let told = loop {
            if let PathEvent::Status { path, wanted: PathUse::Backup } = event(&ours).await {
                break path;
            }
        };
        assert_eq!(told, path.id());
        their_path.close().unwrap();
        let told = loop {
            if let PathEvent::Abandoned { path, by_peer: true, .. } = event(&ours).await {
                break path;
            }
        };
        assert_eq!(told, path.id());
        from_fulmar(&ours, &theirs).await;
        from_noq(&theirs, &ours).await;
    });
}

#[test]
fn a_path_that_noq_opens_carries_data_and_ends() {
    run(async {
        let (theirs, ours, addr) = noq_to_fulmar().await;
        let path = open_by_noq(&theirs, addr).await;
        until(|| ours.paths().len() == 2).await;
        from_noq(&theirs, &ours).await;
        from_fulmar(&ours, &theirs).await;
        ours.paths()[0].set_status(PathUse::Backup).unwrap();
        ours.paths()[1].validated().await.unwrap();
        let before = ours.paths()[1].stats().unwrap().bytes_sent;
        from_fulmar(&ours, &theirs).await;
        let used = ours.paths()[1].stats().unwrap().bytes_sent - before;
        assert!(used > 1_000_000, "{used}");
        path.set_status(noq::PathStatus::Backup).unwrap();
        loop {
            if let PathEvent::Status { wanted: PathUse::Backup, .. } = event(&ours).await {
                break;
            }
        }
        ours.paths()[1].abandon().unwrap();
        from_noq(&theirs, &ours).await;
        from_fulmar(&ours, &theirs).await;
        assert_eq!(ours.paths().len(), 1);
    });
}

#[test]
fn noq_abandons_a_path_that_it_has_opened() {
    run(async {
        let (theirs, ours, addr) = noq_to_fulmar().await;
        let path = open_by_noq(&theirs, addr).await;
        until(|| ours.paths().len() == 2).await;
        path.close().unwrap();
        until(|| ours.paths().len() == 1).await;
        from_noq(&theirs, &ours).await;
        from_fulmar(&ours, &theirs).await;
    });
}

#[test]
fn what_fulmar_sends_goes_on_over_the_other_path_when_one_is_gone_without_a_word() {
    run(async {
        let (client, ours, theirs, addr) = fulmar_to_noq().await;
        let path = open(&client, &ours, addr).await;
        from_fulmar(&ours, &theirs).await;
        assert!(client.remove_socket(path.info().unwrap().addrs.socket));
        from_fulmar(&ours, &theirs).await;
    });
}
