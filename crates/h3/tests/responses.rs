//! What the server adds to responses and leaves out of them.

mod common;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use common::Identity;
use http::{HeaderValue, Response};

#[tokio::test]
async fn a_status_without_a_body_has_none_whatever_the_service_gives() {
    let answer = |status| async move {
        Response::builder().status(status).header("content-length", 4).body(Body::from("body")).unwrap()
    };
    let app = Router::new().route("/204", get(move || answer(204))).route("/304", get(move || answer(304)));
    let identity = Identity::new();
    let (serving, client) = (identity.serve(app), identity.client());
    // That of what has not changed is the length that it would have (RFC 9110 §8.6).
    for (path, length) in [("/204", None), ("/304", Some(&HeaderValue::from(4)))] {
        let response = client.get(serving.uri(path)).await.unwrap();
        assert_eq!(response.status().as_str(), &path[1..]);
        assert_eq!(response.headers().get("content-length"), length);
        assert_eq!(common::text(response).await.unwrap(), "");
    }
}
