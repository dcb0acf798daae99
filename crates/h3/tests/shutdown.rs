//! Servers that stop, and their clients.

mod common;

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use common::{Identity, soon};
use fulmar::ConnectionError;
use fulmar_h3::Error;

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" })).route(
        "/slow",
        get(|| async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            "done"
        }),
    )
}

#[tokio::test]
async fn a_server_that_is_dropped_closes_its_connections() {
    let identity = Identity::new();
    let serving = identity.serve(hello());
    let (client, uri) = (identity.client(), serving.uri("/"));
    assert_eq!(common::get(&client, &uri).await.unwrap(), "hello");
    let slow = tokio::spawn({
        let (client, uri) = (client.clone(), serving.uri("/slow"));
        async move { common::get(&client, &uri).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    // As where it is served beside a signal, in `select!`.
    serving.task.abort();
    let error = soon(slow).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Connection(_)), "{error:?}");
}
