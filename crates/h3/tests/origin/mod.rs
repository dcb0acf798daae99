//! Servers on loopback that have UDP, TCP or both.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body as AxumBody;
use axum::routing::{get, post};
use fulmar::{Endpoint, tls};
use fulmar_h3::{ALPN, ConnectionInfo, Server};
use http::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub(crate) use crate::common::Identity;

impl Identity {
    /// An endpoint for HTTP/3 that takes early data.
    pub(crate) fn endpoint_at(&self, port: u16) -> Endpoint {
        let tls = tls::server_config(vec![self.cert.clone()], self.key().into(), &[ALPN]).unwrap();
        Endpoint::server(tls.with_early_data(true), (Ipv4Addr::LOCALHOST, port).into()).unwrap()
    }

    /// Serves HTTP/3, and returns the port.
    pub(crate) fn serve_udp(&self, app: Router, port: u16) -> u16 {
        let endpoint = self.endpoint_at(port);
        let port = endpoint.local_addr().unwrap().port();
        tokio::spawn(async move { Server::new(endpoint).serve(app).await });
        port
    }

    /// Serves the protocols of `alpn` over TCP.
    pub(crate) fn serve_tcp(&self, app: Router, listener: TcpListener, alpn: &[&[u8]]) {
        let acceptor = self.acceptor(alpn);
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

    /// Answers the first request of each connection of HTTP/1.1 by these bytes.
    pub(crate) fn answer_tcp(&self, listener: TcpListener, response: String) {
        self.accept_tcp(listener, HTTP1, move |mut stream| {
            let response = response.clone();
            async move {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    stream.read_buf(&mut request).await.unwrap();
                }
                stream.write_all(response.as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
            }
        });
    }

    /// Gives each connection over TCP and TLS to `serve`.
    pub(crate) fn accept_tcp<F>(
        &self,
        listener: TcpListener,
        alpn: &[&[u8]],
        serve: impl Fn(TlsStream<TcpStream>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let acceptor = self.acceptor(alpn);
        tokio::spawn(async move {
            loop {
                let stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
                tokio::spawn(serve(stream));
            }
        });
    }

    fn acceptor(&self, alpn: &[&[u8]]) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.cert.clone()], self.key().into())
            .unwrap();
        tls.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        TlsAcceptor::from(Arc::new(tls))
    }
}

/// A TCP port whose UDP side is silent, as behind a firewall that drops datagrams.
pub(crate) async fn silent_udp() -> (TcpListener, UdpSocket) {
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        if let Ok(udp) = UdpSocket::bind(listener.local_addr().unwrap()).await {
            return (listener, udp);
        }
    }
}

pub(crate) fn port(listener: &TcpListener) -> u16 {
    listener.local_addr().unwrap().port()
}

pub(crate) fn uri(port: u16, path: &str) -> String {
    format!("https://127.0.0.1:{port}{path}")
}

pub(crate) fn info(response: &Response<fulmar_h3::Body>) -> ConnectionInfo {
    *response.extensions().get().unwrap()
}

pub(crate) async fn text(response: Response<fulmar_h3::Body>) -> String {
    String::from_utf8(response.into_body().bytes(1 << 20).await.unwrap().to_vec()).unwrap()
}

pub(crate) fn hello() -> Router {
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/echo", post(|body: AxumBody| async move { body }))
        .route("/used", get(|headers: http::HeaderMap| async move { used(&headers) }))
        .route("/host", get(|request: Request<AxumBody>| async move { host(&request) }))
        .route("/close", get(|| async { ([("connection", "close")], "bye") }))
}

/// Which alternative service a request says that it came to.
pub(crate) fn used(headers: &http::HeaderMap) -> String {
    headers.get("alt-used").map_or("none", |used| used.to_str().unwrap()).to_owned()
}

/// The server that a request names, and in how many ways.
pub(crate) fn host(request: &Request<AxumBody>) -> String {
    let field = request.headers().get("host").map(|host| host.to_str().unwrap());
    let authority = request.uri().authority().map(http::uri::Authority::as_str);
    [field, authority].into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

pub(crate) const HTTP2: &[&[u8]] = &[b"h2", b"http/1.1"];
pub(crate) const HTTP1: &[&[u8]] = &[b"http/1.1"];
