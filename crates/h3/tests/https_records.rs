//! The client beside a name server with HTTPS records. The names end in `test`, which no name server of the world knows (RFC 6761): all
//! addresses come from the records.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use fulmar::{Endpoint, tls};
use fulmar_h3::{ALPN, Client, ClientBuilder, ConnectionInfo, Error, Server};
use http::{Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, UdpSocket};

const HTTPS: u16 = 65;

/// A record as it is on the wire (RFC 9460 §2.2).
fn record(priority: u16, target: &str, params: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut out = priority.to_be_bytes().to_vec();
    for label in target.split('.').filter(|label| !label.is_empty()) {
        out.push(label.len() as u8);
        out.extend_from_slice(label.as_bytes());
    }
    out.push(0);
    for (key, value) in params {
        out.extend_from_slice(&key.to_be_bytes());
        out.extend_from_slice(&(value.len() as u16).to_be_bytes());
        out.extend_from_slice(value);
    }
    out
}

fn alpn(names: &[&str]) -> (u16, Vec<u8>) {
    let of = |name: &&str| [&[name.len() as u8], name.as_bytes()].concat();
    (1, names.iter().flat_map(of).collect())
}

fn port(port: u16) -> (u16, Vec<u8>) {
    (3, port.to_be_bytes().to_vec())
}

fn loopback() -> (u16, Vec<u8>) {
    (4, vec![127, 0, 0, 1])
}

/// A name server: what was asked, and what it answers by name.
struct NameServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl NameServer {
    async fn start(zone: &[(&str, Vec<Vec<u8>>)]) -> Self {
        let zone: BTreeMap<String, Vec<Vec<u8>>> =
            zone.iter().map(|(name, records)| ((*name).to_owned(), records.clone())).collect();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut buffer = [0; 2_048];
            loop {
                let Ok((len, from)) = socket.recv_from(&mut buffer).await else { return };
                let (name, question) = question(&buffer[..len]);
                heard.lock().unwrap().push(name.clone());
                let answer = answer(&buffer[..2], question, zone.get(&name));
                let _ = socket.send_to(&answer, from).await;
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// The name of the question, in lower case, and the question as it is on the wire.
fn question(query: &[u8]) -> (String, &[u8]) {
    let (mut at, mut labels) = (12, Vec::new());
    while query[at] > 0 {
        let label = &query[at + 1..=at + usize::from(query[at])];
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += 1 + label.len();
    }
    (labels.join("."), &query[12..at + 5])
}

fn answer(id: &[u8], question: &[u8], records: Option<&Vec<Vec<u8>>>) -> Vec<u8> {
    let asks_https = question[question.len() - 4..][..2] == HTTPS.to_be_bytes();
    let records = records.filter(|_| asks_https).map_or(&[][..], Vec::as_slice);
    let mut out = id.to_vec();
    // A response, recursion desired and available; no such name where there is nothing.
    out.extend_from_slice(&[
        0x81,
        if records.is_empty() { 0x83 } else { 0x80 },
        0,
        1,
        0,
        records.len() as u8,
        0,
        0,
        0,
        0,
    ]);
    out.extend_from_slice(question);
    for data in records {
        // The name of the question, the type, the class IN, 60 seconds.
        out.extend_from_slice(&[0xc0, 12, 0, HTTPS as u8, 0, 1, 0, 0, 0, 60]);
        out.extend_from_slice(&(data.len() as u16).to_be_bytes());
        out.extend_from_slice(data);
    }
    out
}

struct Identity {
    cert: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["one.test".to_owned()]).unwrap();
        Self { cert: made.cert.der().clone(), key: made.signing_key.serialize_der() }
    }

    fn client(&self, dns: &NameServer) -> Client {
        self.builder(dns).build().unwrap()
    }

    fn builder(&self, dns: &NameServer) -> ClientBuilder {
        let mut roots = RootCertStore::empty();
        roots.add(self.cert.clone()).unwrap();
        Client::builder().roots(roots).name_servers(vec![dns.address])
    }

    fn key(&self) -> PrivatePkcs8KeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.clone())
    }

    /// Serves HTTP/3, and returns the port.
    fn serve_udp(&self) -> u16 {
        let tls = tls::server_config(vec![self.cert.clone()], self.key().into(), &[ALPN]).unwrap();
        let endpoint = Endpoint::server(tls, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let port = endpoint.local_addr().unwrap().port();
        tokio::spawn(async move { Server::new(endpoint).serve(hello()).await });
        port
    }

    /// Serves HTTP/2.
    fn serve_tcp(&self, listener: TcpListener) {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let tls = tls.unwrap().with_no_client_auth();
        let mut tls = tls.with_single_cert(vec![self.cert.clone()], self.key().into()).unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let stream = TokioIo::new(acceptor.accept(stream).await.unwrap());
                    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(stream, TowerToHyperService::new(hello())).await;
                });
            }
        });
    }
}

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

fn remote(response: &Response<fulmar_h3::Body>) -> SocketAddr {
    response.extensions().get::<ConnectionInfo>().unwrap().remote
}

#[tokio::test]
async fn a_record_leads_to_http3_at_another_port() {
    let identity = Identity::new();
    let served = identity.serve_udp();
    let records = vec![record(1, "", &[alpn(&["h3", "h2"]), port(served), loopback()])];
    let dns = NameServer::start(&[("one.test", records)]).await;
    let client = identity.client(&dns);
    let response = client.get("https://one.test/").await.unwrap();
    assert_eq!((response.version(), remote(&response).port()), (Version::HTTP_3, served));
    assert_eq!(response.into_body().bytes(100).await.unwrap(), "hello");
    client.close().await;
    assert!(dns.asked().contains(&"one.test".to_owned()), "{:?}", dns.asked());
}

#[tokio::test]
async fn addresses_that_are_given_go_before_those_of_dns() {
    let identity = Identity::new();
    let served = identity.serve_udp();
    // Nobody is there.
    let records = vec![record(1, "", &[alpn(&["h3"]), port(1), loopback()])];
    let name = format!("_{served}._https.one.test");
    let dns = NameServer::start(&[(&name, records)]).await;
    let given = identity.builder(&dns).resolve("One.test", served, vec![Ipv4Addr::LOCALHOST.into()]);
    let client = given.build().unwrap();
    let response = client.get(format!("https://one.test:{served}/")).await.unwrap();
    assert_eq!((response.version(), remote(&response).port()), (Version::HTTP_3, served));
    client.close().await;
    assert!(dns.asked().is_empty(), "{:?}", dns.asked());
}

#[tokio::test]
async fn servers_at_other_ports_have_records_of_their_own() {
    let identity = Identity::new();
    let served = identity.serve_udp();
    let records = vec![record(1, "one.test", &[alpn(&["h3"]), port(served), loopback()])];
    let dns = NameServer::start(&[("_8443._https.one.test", records)]).await;
    let client = identity.client(&dns);
    let response = client.get("https://one.test:8443/").await.unwrap();
    assert_eq!((response.version(), remote(&response).port()), (Version::HTTP_3, served));
    client.close().await;
}

#[tokio::test]
async fn aliases_are_followed_and_the_most_wanted_record_is_taken() {
    let identity = Identity::new();
    let served = identity.serve_udp();
    let zone = [
        ("one.test", vec![record(0, "two.test", &[])]),
        ("two.test", vec![record(0, "pool.test", &[])]),
        (
            "pool.test",
            vec![
                // Nobody is there.
                record(20, "", &[alpn(&["h3"]), port(1), loopback()]),
                record(10, "", &[alpn(&["h3"]), port(served), loopback()]),
                // It cannot be understood: a key that nobody knows is mandatory.
                record(
                    1,
                    "",
                    &[(0, vec![0x7f, 0x00]), alpn(&["h3"]), port(1), loopback(), (0x7f00, vec![1])],
                ),
            ],
        ),
    ];
    let dns = NameServer::start(&zone).await;
    let client = identity.client(&dns);
    let response = client.get("https://one.test/").await.unwrap();
    assert_eq!((response.version(), remote(&response).port()), (Version::HTTP_3, served));
    client.close().await;
    for name in ["one.test", "two.test", "pool.test"] {
        assert!(dns.asked().contains(&name.to_owned()), "{:?}", dns.asked());
    }
}

#[tokio::test]
async fn aliases_that_lead_in_a_circle_end() {
    let zone =
        [("one.test", vec![record(0, "two.test", &[])]), ("two.test", vec![record(0, "one.test", &[])])];
    let dns = NameServer::start(&zone).await;
    let client = Identity::new().client(&dns);
    let result =
        tokio::time::timeout(Duration::from_secs(60), client.get("https://one.test/")).await.unwrap();
    assert!(matches!(result, Err(Error::Resolve(_))), "{result:?}");
    assert!(dns.asked().len() <= 10, "{:?}", dns.asked());
}

#[tokio::test]
async fn a_server_that_does_not_name_http3_is_reached_over_tcp_at_once() {
    let identity = Identity::new();
    let (listener, udp) = loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        if let Ok(udp) = UdpSocket::bind(listener.local_addr().unwrap()).await {
            break (listener, udp);
        }
    };
    let served = listener.local_addr().unwrap().port();
    identity.serve_tcp(listener);
    let records = vec![record(1, "", &[alpn(&["h2"]), port(served), loopback()])];
    let dns = NameServer::start(&[("one.test", records)]).await;
    let client = identity.client(&dns);
    let response = client.get("https://one.test/").await.unwrap();
    assert_eq!((response.version(), remote(&response).port()), (Version::HTTP_2, served));
    let nothing = tokio::time::timeout(Duration::from_millis(50), udp.recv_from(&mut [0; 2_000])).await;
    assert!(nothing.is_err(), "QUIC was tried");
}

#[tokio::test]
async fn records_are_not_asked_for_if_nobody_wants_them() {
    let dns = NameServer::start(&[]).await;
    let mut roots = RootCertStore::empty();
    roots.add(Identity::new().cert).unwrap();
    let builder = Client::builder().roots(roots).name_servers(vec![dns.address]);
    let client = builder.https_records(false).build().unwrap();
    let result =
        tokio::time::timeout(Duration::from_secs(60), client.get("https://one.test/")).await.unwrap();
    assert!(matches!(result, Err(Error::Resolve(_))), "{result:?}");
    assert_eq!(dns.asked(), Vec::<String>::new());
}
