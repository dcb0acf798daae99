//! The client beside servers that have UDP, TCP or both.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body as AxumBody;
use axum::routing::{get, post};
use bytes::Bytes;
use fulmar::{Endpoint, SessionStore, tls};
use fulmar_h3::{ALPN, Client, ConnectionInfo, Error, Server};
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Barrier;

/// A certificate for the address of this machine.
struct Identity {
    cert: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        Self { cert: made.cert.der().clone(), key: made.signing_key.serialize_der() }
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.cert.clone()).unwrap();
        roots
    }

    fn key(&self) -> PrivatePkcs8KeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.clone())
    }

    /// An endpoint for HTTP/3.
    fn endpoint(&self, port: u16) -> Endpoint {
        let tls = tls::server_config(vec![self.cert.clone()], self.key().into(), &[ALPN]).unwrap();
        Endpoint::server(tls.with_early_data(true), (Ipv4Addr::LOCALHOST, port).into()).unwrap()
    }

    /// Serves HTTP/3, and returns the port.
    fn serve_udp(&self, app: Router, port: u16) -> u16 {
        let endpoint = self.endpoint(port);
        let port = endpoint.local_addr().unwrap().port();
        tokio::spawn(async move { Server::new(endpoint).serve(app).await });
        port
    }

    /// Serves the protocols of `alpn` over TCP.
    fn serve_tcp(&self, app: Router, listener: TcpListener, alpn: &[&[u8]]) {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.cert.clone()], self.key().into())
            .unwrap();
        tls.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, app) = (acceptor.clone(), app.clone());
                tokio::spawn(async move {
                    let stream = TokioIo::new(acceptor.accept(stream).await.unwrap());
                    let service = TowerToHyperService::new(app);
                    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(stream, service).await;
                });
            }
        });
    }
}

/// A TCP port whose UDP side is silent, as behind a firewall that drops datagrams.
async fn silent_udp() -> (TcpListener, UdpSocket) {
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        if let Ok(udp) = UdpSocket::bind(listener.local_addr().unwrap()).await {
            return (listener, udp);
        }
    }
}

fn port(listener: &TcpListener) -> u16 {
    listener.local_addr().unwrap().port()
}

fn uri(port: u16, path: &str) -> String {
    format!("https://127.0.0.1:{port}{path}")
}

fn info(response: &Response<fulmar_h3::Body>) -> ConnectionInfo {
    *response.extensions().get().unwrap()
}

async fn text(response: Response<fulmar_h3::Body>) -> String {
    String::from_utf8(response.into_body().bytes(1 << 20).await.unwrap().to_vec()).unwrap()
}

fn hello() -> Router {
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/echo", post(|body: AxumBody| async move { body }))
        .route("/used", get(|headers: http::HeaderMap| async move { used(&headers) }))
        .route("/host", get(|request: Request<AxumBody>| async move { host(&request) }))
        .route("/close", get(|| async { ([("connection", "close")], "bye") }))
}

/// Which alternative service a request says that it came to.
fn used(headers: &http::HeaderMap) -> String {
    headers.get("alt-used").map_or("none", |used| used.to_str().unwrap()).to_owned()
}

/// The server that a request names, and in how many ways.
fn host(request: &Request<AxumBody>) -> String {
    let field = request.headers().get("host").map(|host| host.to_str().unwrap());
    let authority = request.uri().authority().map(http::uri::Authority::as_str);
    [field, authority].into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

const HTTP2: &[&[u8]] = &[b"h2", b"http/1.1"];
const HTTP1: &[&[u8]] = &[b"http/1.1"];

#[tokio::test]
async fn http2_is_spoken_where_udp_is_blocked() {
    let identity = Identity::new();
    let (listener, _udp) = silent_udp().await;
    let port = port(&listener);
    identity.serve_tcp(hello(), listener, HTTP2);
    let client = Client::with_roots(identity.roots()).unwrap();
    let response = client.get(uri(port, "/")).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    let first = info(&response);
    assert_eq!(first.remote, SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    assert!(first.connected_in >= Duration::from_millis(200), "{first:?}");
    // The goal is 300 ms; a machine that is busy with other tests has longer.
    assert!(first.connected_in < Duration::from_secs(2), "{first:?}");
    assert_eq!(text(response).await, "hello");

    let body = Bytes::from(vec![7; 3_000_000]);
    let request = Request::post(uri(port, "/echo")).body(Full::new(body.clone())).unwrap();
    let response = client.request(request).await.unwrap();
    assert!(info(&response).is_reused);
    assert!(response.into_body().collect().await.unwrap().to_bytes() == body);
}

#[tokio::test]
async fn a_host_of_ones_own_choice_is_the_authority() {
    let identity = Identity::new();
    let mut ports = vec![(identity.serve_udp(hello(), 0), Version::HTTP_3)];
    for (alpn, version) in [(HTTP2, Version::HTTP_2), (HTTP1, Version::HTTP_11)] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        ports.push((port(&listener), version));
        identity.serve_tcp(hello(), listener, alpn);
    }
    let client = Client::with_roots(identity.roots()).unwrap();
    for (port, version) in ports {
        for (given, expected) in
            [(None, format!("127.0.0.1:{port}")), (Some("other.example"), "other.example".to_owned())]
        {
            let mut request = Request::get(uri(port, "/host"));
            if let Some(host) = given {
                request = request.header("host", host);
            }
            let response = client.request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
            assert_eq!(response.version(), version);
            assert_eq!(text(response).await, expected, "{version:?}");
        }
    }
}

#[tokio::test]
async fn that_udp_is_blocked_is_remembered() {
    let identity = Identity::new();
    let (listener, _udp) = silent_udp().await;
    let port = port(&listener);
    identity.serve_tcp(hello(), listener, HTTP1);
    let client = Client::builder()
        .roots(identity.roots())
        .transport(Arc::new(fulmar::TransportConfig {
            handshake_timeout: Duration::from_millis(500),
            ..Default::default()
        }))
        .build()
        .unwrap();
    for _ in 0..3 {
        let response = client.get(uri(port, "/close")).await.unwrap();
        assert_eq!(response.version(), Version::HTTP_11);
        assert_eq!(text(response).await, "bye");
    }
    // Also after QUIC was given up.
    tokio::time::sleep(Duration::from_millis(1000)).await;
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let response = client.get(uri(port, "/close")).await.unwrap();
        assert!(!info(&response).is_reused);
        fastest = fastest.min(info(&response).connected_in);
        text(response).await;
    }
    assert!(fastest < Duration::from_millis(200), "{fastest:?}");
}

#[tokio::test]
async fn http1_connections_are_used_again() {
    let identity = Identity::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = port(&listener);
    identity.serve_tcp(hello(), listener, HTTP1);
    let client = Client::with_roots(identity.roots()).unwrap();
    assert_eq!(text(client.get(uri(port, "/")).await.unwrap()).await, "hello");
    let mut is_reused = false;
    // The end of a body comes to the connection a moment later.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let response = client.get(uri(port, "/")).await.unwrap();
        is_reused |= info(&response).is_reused;
        assert_eq!(text(response).await, "hello");
    }
    assert!(is_reused);
}

#[tokio::test]
async fn connections_that_requests_do_not_share_are_made_side_by_side() {
    let identity = Identity::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = port(&listener);
    // All connections but the first are let in together, and none is free before all requests have come.
    let (inner, all) =
        (TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap(), Arc::new(Barrier::new(4)));
    let address = inner.local_addr().unwrap();
    let wait = move || async move { all.wait().await.is_leader().to_string() };
    identity.serve_tcp(Router::new().route("/", get(wait)), inner, HTTP1);
    let others = Arc::new(Barrier::new(3));
    tokio::spawn(async move {
        for number in 0.. {
            let (mut outer, _) = listener.accept().await.unwrap();
            let others = Arc::clone(&others);
            tokio::spawn(async move {
                if number > 0 {
                    others.wait().await;
                }
                let mut inner = TcpStream::connect(address).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
            });
        }
    });
    let client = Client::with_roots(identity.roots()).unwrap();
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let client = client.clone();
        requests.spawn(async move { client.get(uri(port, "/")).await.is_ok() });
    }
    let answered = tokio::time::timeout(Duration::from_secs(5), requests.join_all()).await;
    let answered = answered.expect("none waits for the connection of another");
    assert_eq!(answered, [true; 4]);
}

#[tokio::test]
async fn more_requests_than_go_over_tcp_at_once_wait_for_their_turn() {
    let identity = Identity::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = port(&listener);
    identity.serve_tcp(hello(), listener, HTTP1);
    let client = Client::with_roots(identity.roots()).unwrap();
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..120 {
        let client = client.clone();
        requests.spawn(async move { text(client.get(uri(port, "/")).await.unwrap()).await });
    }
    let answered = tokio::time::timeout(Duration::from_secs(20), requests.join_all()).await;
    let answered = answered.expect("all have their turn");
    assert!(answered.iter().all(|text| text == "hello"));
}

#[tokio::test]
async fn quic_is_used_where_both_are_there() {
    let identity = Identity::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = port(&listener);
    identity.serve_tcp(hello(), listener, HTTP2);
    identity.serve_udp(hello(), port);
    let client = Client::with_roots(identity.roots()).unwrap();
    for is_reused in [false, true] {
        let response = client.get(uri(port, "/")).await.unwrap();
        assert_eq!(response.version(), Version::HTTP_3);
        assert_eq!(info(&response).is_reused, is_reused);
        assert_eq!(text(response).await, "hello");
    }
    assert_eq!(text(client.get(uri(port, "/used")).await.unwrap()).await, "none");
}

#[tokio::test]
async fn a_server_says_where_else_it_is_found() {
    let identity = Identity::new();
    let quic_port = identity.serve_udp(hello(), 0);
    let (listener, _udp) = silent_udp().await;
    let port = port(&listener);
    let announcing =
        Router::new().route("/", get(move || async move { [("alt-svc", format!("h3=\":{quic_port}\""))] }));
    identity.serve_tcp(announcing, listener, HTTP2);
    let client = Client::with_roots(identity.roots()).unwrap();
    assert_eq!(client.get(uri(port, "/")).await.unwrap().version(), Version::HTTP_2);
    // The first attempt at QUIC, to the silent port, has to end first.
    let mut versions = Vec::new();
    for _ in 0..150 {
        let response = client.get(uri(port, "/")).await.unwrap();
        versions.push(response.version());
        if response.version() == Version::HTTP_3 {
            assert_eq!(info(&response).remote.port(), quic_port);
            assert_eq!(text(response).await, "hello");
            // RFC 7838 §5.
            let used = text(client.get(uri(port, "/used")).await.unwrap()).await;
            assert_eq!(used, format!("127.0.0.1:{quic_port}"));
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{versions:?}");
}

#[tokio::test]
async fn an_alternative_that_is_none_is_forgotten() {
    let identity = Identity::new();
    let misdirected = Arc::new(AtomicUsize::new(0));
    let own_port = Arc::new(std::sync::OnceLock::<u16>::new());
    let elsewhere = Router::new().fallback({
        let (misdirected, own_port) = (Arc::clone(&misdirected), Arc::clone(&own_port));
        move || async move {
            misdirected.fetch_add(1, Ordering::Relaxed);
            let alt_svc = format!("h3=\":{}\"", own_port.get().unwrap());
            (StatusCode::MISDIRECTED_REQUEST, [("alt-svc", alt_svc)])
        }
    });
    let quic_port = identity.serve_udp(elsewhere, 0);
    own_port.set(quic_port).unwrap();
    let (listener, _udp) = silent_udp().await;
    let port = port(&listener);
    let announcing = Router::new()
        .route("/", get(move || async move { [("alt-svc", format!("h3=\":{quic_port}\""))] }))
        .route("/quiet", get(|headers: http::HeaderMap| async move { used(&headers) }));
    identity.serve_tcp(announcing, listener, HTTP2);
    let client = Client::with_roots(identity.roots()).unwrap();
    text(client.get(uri(port, "/")).await.unwrap()).await;
    let ask = async || {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let response = client.get(uri(port, "/quiet")).await.unwrap();
        assert_eq!((response.status(), response.version()), (StatusCode::OK, Version::HTTP_2));
        assert_eq!(text(response).await, "none");
    };
    for _ in 0..300 {
        ask().await;
        if misdirected.load(Ordering::Relaxed) > 0 {
            break;
        }
    }
    // Nor does it count what such a server says of itself.
    for _ in 0..20 {
        ask().await;
    }
    assert_eq!(misdirected.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_request_that_is_made_again_at_the_server_itself_names_no_alternative() {
    let identity = Identity::new();
    let alternative = identity.endpoint(0);
    let quic_port = alternative.local_addr().unwrap().port();
    let is_asked = tokio::spawn(async move {
        let connection = alternative.accept().await.unwrap().await.unwrap();
        let _request = connection.accept_bi().await.unwrap();
        // As a server that stops.
        connection.close(fulmar::VarInt::from_u32(0x100), b"");
        alternative.wait_idle().await;
    });
    let (listener, _udp) = silent_udp().await;
    let port = port(&listener);
    let announcing = move || async move { [("alt-svc", format!("h3=\":{quic_port}\""))] };
    identity.serve_tcp(hello().route("/announce", get(announcing)), listener, HTTP2);
    let client = Client::with_roots(identity.roots()).unwrap();
    text(client.get(uri(port, "/announce")).await.unwrap()).await;
    while !is_asked.is_finished() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let response = client.get(uri(port, "/used")).await.unwrap();
        assert_eq!(response.version(), Version::HTTP_2);
        assert_eq!(text(response).await, "none");
    }
    is_asked.await.unwrap();
}

#[tokio::test]
async fn early_data_does_not_go_to_an_alternative_that_was_taken_back() {
    let identity = Identity::new();
    let app = hello().route("/clear", get(|| async { [("alt-svc", "clear")] }));
    let quic_port = identity.serve_udp(app, 0);
    let (listener, _udp) = silent_udp().await;
    let port = port(&listener);
    let announcing = move || async move {
        [("alt-svc", format!("h3=\":{quic_port}\"")), ("connection", "close".to_owned())]
    };
    identity.serve_tcp(hello().route("/announce", get(announcing)), listener, HTTP1);
    let sessions = SessionStore::new(8);
    let transport =
        fulmar::TransportConfig { max_idle_timeout: Some(Duration::from_millis(300)), ..Default::default() };
    let quic = tls::client_config(identity.roots(), &[ALPN]).unwrap().with_sessions(Arc::clone(&sessions));
    let quic = quic.with_transport(Arc::new(transport)).unwrap();
    let client = Client::builder().roots(identity.roots()).quic(quic).build().unwrap();
    text(client.get(uri(port, "/announce")).await.unwrap()).await;
    let mut remote = 0;
    while remote != quic_port {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let response = client.get(uri(port, "/close")).await.unwrap();
        remote = info(&response).remote.port();
        text(response).await;
    }
    text(client.get(uri(port, "/clear")).await.unwrap()).await;
    while !sessions.has_session("127.0.0.1", quic_port) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Until the connection is over.
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    let response = client.get(uri(port, "/close")).await.unwrap();
    assert_eq!(info(&response).remote.port(), port, "{:?}", info(&response));
}

#[tokio::test]
async fn tcp_is_never_tried_where_it_is_not_wanted() {
    let identity = Identity::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = port(&listener);
    identity.serve_tcp(hello(), listener, HTTP2);
    let transport =
        fulmar::TransportConfig { handshake_timeout: Duration::from_millis(500), ..Default::default() };
    let client = Client::builder()
        .roots(identity.roots())
        .transport(Arc::new(transport))
        .http3_only(true)
        .build()
        .unwrap();
    let result = client.get(uri(port, "/")).await;
    assert!(matches!(result, Err(Error::Connection(_))), "{result:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_of_both() {
    let identity = Identity::new();
    let port = port(&TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap());
    let transport =
        fulmar::TransportConfig { handshake_timeout: Duration::from_millis(500), ..Default::default() };
    let client = Client::builder().roots(identity.roots()).transport(Arc::new(transport)).build().unwrap();
    let error = client.get(uri(port, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn safe_requests_are_early_at_servers_that_were_met_before() {
    let identity = Identity::new();
    let refusals = Arc::new(AtomicUsize::new(0));
    let app = hello().route(
        "/once-too-early",
        get({
            let refusals = Arc::clone(&refusals);
            move || async move {
                match refusals.fetch_add(1, Ordering::Relaxed) {
                    0 => (StatusCode::TOO_EARLY, "too early"),
                    _ => (StatusCode::OK, "hello"),
                }
            }
        }),
    );
    let port = identity.serve_udp(app, 0);
    let sessions = SessionStore::new(8);
    // Each client has connections of its own. TLS resumes a session only with the judge of certificates that it began with.
    let quic = tls::client_config(identity.roots(), &[ALPN]).unwrap().with_sessions(Arc::clone(&sessions));
    let client = || Client::builder().roots(identity.roots()).quic(quic.clone()).build().unwrap();
    let is_early = |response: &Response<fulmar_h3::Body>| info(response).is_early;
    let first = client();
    let response = first.get(uri(port, "/")).await.unwrap();
    assert!(!is_early(&response));
    text(response).await;
    // The ticket comes after the handshake.
    while !sessions.has_session("127.0.0.1", port) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    first.close().await;
    let second = client();
    let response = second.get(uri(port, "/")).await.unwrap();
    assert!(is_early(&response));
    assert_eq!(text(response).await, "hello");
    let response = second.get(uri(port, "/")).await.unwrap();
    assert!(info(&response).is_reused && !is_early(&response));
    text(response).await;
    while !sessions.has_session("127.0.0.1", port) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let response = client().get(uri(port, "/once-too-early")).await.unwrap();
    assert_eq!((response.status(), is_early(&response)), (StatusCode::OK, false));
    assert_eq!(refusals.load(Ordering::Relaxed), 2);
    while !sessions.has_session("127.0.0.1", port) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A request that may do harm waits for the handshake.
    let request = Request::post(uri(port, "/echo")).body(Full::new(Bytes::from_static(b"once"))).unwrap();
    let response = client().request(request).await.unwrap();
    assert!(!is_early(&response));
    assert_eq!(text(response).await, "once");
}

#[tokio::test]
async fn requests_of_early_data_go_over_tcp_where_udp_has_gone() {
    let identity = Identity::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = port(&listener);
    identity.serve_tcp(hello(), listener, HTTP2);
    let endpoint = identity.endpoint(port);
    let server = Server::new(endpoint.clone());
    let serving = tokio::spawn(async move { server.serve(hello()).await });
    let sessions = SessionStore::new(8);
    let quic = tls::client_config(identity.roots(), &[ALPN]).unwrap().with_sessions(Arc::clone(&sessions));
    let client = Client::builder().roots(identity.roots()).quic(quic).build().unwrap();
    let response = client.get(uri(port, "/")).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_3);
    text(response).await;
    while !sessions.has_session("127.0.0.1", port) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    serving.abort();
    endpoint.close(fulmar::VarInt::ZERO, b"");
    endpoint.wait_idle().await;
    drop(endpoint);
    while UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // One leaves as early data, the other waits for its handshake.
    let post = Request::post(uri(port, "/echo")).body(Full::new(Bytes::from_static(b"hello"))).unwrap();
    let (got, posted) = tokio::join!(client.get(uri(port, "/")), client.request(post));
    for response in [got.unwrap(), posted.unwrap()] {
        assert_eq!(response.version(), Version::HTTP_2);
        assert_eq!(text(response).await, "hello");
    }
}

#[tokio::test]
async fn a_body_that_fails_over_tcp_is_an_error() {
    let identity = Identity::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = port(&listener);
    let app = Router::new().route(
        "/",
        get(|| async {
            let body = http_body_util::StreamBody::new(Cut(0));
            Response::builder().header("content-length", "1000").body(AxumBody::new(body)).unwrap()
        }),
    );
    identity.serve_tcp(app, listener, HTTP1);
    let client = Client::with_roots(identity.roots()).unwrap();
    let result = match client.get(uri(port, "/")).await {
        Ok(response) => response.into_body().bytes(10_000).await,
        Err(error) => Err(error),
    };
    assert!(matches!(result, Err(Error::Tcp(_))), "{result:?}");
}

/// A body that ends too early.
struct Cut(u8);

impl futures_core::Stream for Cut {
    type Item = Result<http_body::Frame<Bytes>, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0 += 1;
        let frame = http_body::Frame::data(Bytes::from_static(b"short"));
        std::task::Poll::Ready((self.0 == 1).then_some(Ok(frame)))
    }
}
