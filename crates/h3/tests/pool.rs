//! How long the connections of a client last.

mod common;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use common::{Identity, soon};
use fulmar::{ConnectionError, TransportConfig};
use fulmar_h3::Error;

const LEN: usize = 4 << 20;

fn app() -> Router {
    Router::new().route("/", get(|| async { "hello" })).route("/long", get(|| async { vec![7; LEN] }))
}

/// A transport whose connections never end by themselves.
fn kept_alive() -> Arc<TransportConfig> {
    Arc::new(TransportConfig { keep_alive_interval: Some(Duration::from_secs(1)), ..Default::default() })
}

#[tokio::test]
async fn the_connections_of_a_client_that_is_dropped_are_closed() {
    let identity = Identity::new();
    let serving = identity.serve(app());
    for _ in 0..3 {
        let client = identity.builder().transport(kept_alive()).build().unwrap();
        assert_eq!(common::get(&client, &serving.uri("/")).await.unwrap(), "hello");
    }
    soon(serving.abandoned()).await;
}

#[tokio::test]
async fn a_response_outlives_its_client() {
    let identity = Identity::new();
    let serving = identity.serve(app());
    let client = identity.builder().transport(kept_alive()).build().unwrap();
    let mut body = client.get(serving.uri("/long")).await.unwrap().into_body();
    drop(client);
    // Longer than an idle connection would stay.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut len = 0;
    while let Some(data) = soon(body.data()).await.unwrap() {
        len += data.len();
    }
    assert_eq!(len, LEN);
    soon(serving.abandoned()).await;
}

#[tokio::test]
async fn closing_a_client_leaves_alone_what_it_shares_an_endpoint_with() {
    let identity = Identity::new();
    let serving = identity.serve(app());
    let endpoint = fulmar::Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
    let client = || identity.builder().transport(kept_alive()).endpoint(endpoint.clone()).build().unwrap();
    let (client, other) = (client(), client());
    for client in [&client, &other] {
        assert_eq!(common::get(client, &serving.uri("/")).await.unwrap(), "hello");
    }
    soon(client.close()).await;
    assert_eq!(endpoint.stats().open_connections, 1, "the servers know when it is closed");
    assert_eq!(common::get(&other, &serving.uri("/")).await.unwrap(), "hello");
    // It can be used again.
    assert_eq!(common::get(&client, &serving.uri("/")).await.unwrap(), "hello");
}

#[tokio::test]
async fn closing_a_client_ends_the_requests_that_wait_for_a_connection() {
    let identity = Identity::new();
    let client = identity.client();
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = common::uri(silent.local_addr().unwrap(), "/");
    let request = tokio::spawn({
        let (client, uri) = (client.clone(), uri.clone());
        async move { client.get(uri).await }
    });
    // One that nobody goes on with.
    let mut abandoned = std::pin::pin!(client.get(uri));
    let waited = tokio::time::timeout(Duration::from_millis(100), &mut abandoned).await;
    assert!(waited.is_err());
    soon(client.close()).await;
    let error = soon(request).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Connection(ConnectionError::LocallyClosed)), "{error:?}");
    assert!(soon(abandoned).await.is_err());
}

#[tokio::test]
async fn a_request_that_is_not_polled_holds_up_no_other_one() {
    let identity = Identity::new();
    let serving = identity.serve(app());
    let client = identity.client();
    let mut first = std::pin::pin!(client.get(serving.uri("/")));
    // It has begun to look for the server.
    assert!(tokio::time::timeout(Duration::ZERO, &mut first).await.is_err());
    assert_eq!(soon(common::get(&client, &serving.uri("/"))).await.unwrap(), "hello");
    let first = soon(first).await.unwrap();
    assert_eq!(common::text(first).await.unwrap(), "hello");
    assert_eq!(serving.server.endpoint().stats().open_connections, 1, "they share one");
}

#[tokio::test]
async fn requests_that_wait_for_one_connection_fail_together() {
    let identity = Identity::new();
    let transport = TransportConfig { handshake_timeout: Duration::from_millis(500), ..Default::default() };
    let client = identity.builder().transport(Arc::new(transport)).build().unwrap();
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = common::uri(silent.local_addr().unwrap(), "/");
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let (client, uri) = (client.clone(), uri.clone());
        requests.spawn(async move { client.get(uri).await.map(drop).unwrap_err().to_string() });
    }
    let errors = soon(requests.join_all()).await;
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    let mut attempts = std::collections::BTreeSet::new();
    let mut packet = [0; 2048];
    while let Ok(Ok(len)) = tokio::time::timeout(Duration::from_millis(50), silent.recv(&mut packet)).await {
        // The connection ID of the server (RFC 8999 §5.1).
        attempts.insert(packet[..len][6..][..usize::from(packet[5])].to_vec());
    }
    assert_eq!(attempts.len(), 1, "none of them has tried for itself");
}

#[tokio::test]
async fn a_server_is_not_looked_for_when_nobody_waits_any_more() {
    let identity = Identity::new();
    let client = identity.client();
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = common::uri(silent.local_addr().unwrap(), "/");
    let waited = tokio::time::timeout(Duration::from_millis(100), client.get(uri)).await;
    assert!(waited.is_err());
    // Packets that had been sent by then are there at once; later ones would follow for seconds.
    let mut packet = [0; 2048];
    while tokio::time::timeout(Duration::from_millis(50), silent.recv(&mut packet)).await.is_ok() {}
    let later = tokio::time::timeout(Duration::from_secs(2), silent.recv(&mut packet)).await;
    assert!(later.is_err(), "{later:?}");
}
