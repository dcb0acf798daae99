//! How long the connections of a client last.

mod common;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use common::{Identity, soon};
use fulmar::TransportConfig;

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
