//! Servers that stop, and their clients.

mod common;

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use common::{Identity, soon};
use fulmar::ConnectionError;
use fulmar_h3::Error;
use http::Request;
use http_body_util::Empty;

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" })).route("/slow", get(slow).post(slow))
}

async fn slow() -> &'static str {
    tokio::time::sleep(Duration::from_secs(2)).await;
    "done"
}

#[tokio::test]
async fn a_server_that_is_dropped_closes_its_connections() {
    let identity = Identity::new();
    let serving = identity.serve(hello());
    let client = identity.client();
    assert_eq!(common::get(&client, &serving.uri("/")).await.unwrap(), "hello");
    let slow = tokio::spawn({
        // Not one that can be made again over another connection.
        let request = Request::post(serving.uri("/slow")).body(Empty::<Bytes>::new()).unwrap();
        let client = client.clone();
        async move { client.request(request).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    // As where it is served beside a signal, in `select!`.
    serving.task.abort();
    let error = soon(slow).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Connection(_)), "{error:?}");
}

#[tokio::test]
async fn clients_are_refused_while_a_server_comes_to_its_end() {
    let identity = Identity::new();
    let serving = identity.serve(hello());
    let slow = tokio::spawn({
        let (client, uri) = (identity.client(), serving.uri("/slow"));
        async move { common::get(&client, &uri).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    serving.server.shutdown();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let error = soon(common::get(&identity.client(), &serving.uri("/"))).await.unwrap_err();
    let is_refused = matches!(&error, Error::Connection(ConnectionError::ConnectionClosed { .. }));
    assert!(is_refused && error.to_string().contains("CONNECTION_REFUSED"), "{error:?}");
    assert_eq!(slow.await.unwrap().unwrap(), "done");
    soon(serving.task).await.unwrap();
}
