//! Where else a server says that it is found (Alt-Svc, RFC 7838).

mod common;
mod origin;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use fulmar::{SessionStore, tls};
use fulmar_h3::{ALPN, Client};
use http::{StatusCode, Version};

use origin::*;

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
    let alternative = identity.endpoint_at(0);
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
