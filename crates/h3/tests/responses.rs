//! What the server adds to responses and leaves out of them.

mod common;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use common::{Identity, Serving};
use fulmar_h3::Config;
use http::{HeaderValue, Response};

fn served(app: Router, config: Config) -> (Identity, Serving) {
    let identity = Identity::new();
    let serving = Serving::with_config(identity.endpoint(), app, config);
    (identity, serving)
}

#[tokio::test]
async fn a_status_without_a_body_has_none_whatever_the_service_gives() {
    let answer = |status| async move {
        Response::builder().status(status).header("content-length", 4).body(Body::from("body")).unwrap()
    };
    let app = Router::new().route("/204", get(move || answer(204))).route("/304", get(move || answer(304)));
    let (identity, serving) = served(app, Config::default());
    let client = identity.client();
    // That of what has not changed is the length that it would have (RFC 9110 §8.6).
    for (path, length) in [("/204", None), ("/304", Some(&HeaderValue::from(4)))] {
        let response = client.get(serving.uri(path)).await.unwrap();
        assert_eq!(response.status().as_str(), &path[1..]);
        assert_eq!(response.headers().get("content-length"), length);
        assert_eq!(common::text(response).await.unwrap(), "");
    }
}

#[tokio::test]
async fn responses_say_when_they_were_made() {
    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/own", get(|| async { ([("date", DATE)], "") }));
    let (identity, serving) = served(app.clone(), Config::default());
    let client = identity.client();
    let dates = |response: Response<_>| -> Vec<String> {
        let dates = response.headers().get_all("date").iter();
        dates.map(|date| date.to_str().unwrap().to_owned()).collect()
    };
    for path in ["/", "/nothing"] {
        let made = dates(client.get(serving.uri(path)).await.unwrap());
        assert!(made.len() == 1 && made[0].ends_with(" GMT") && made[0] != DATE, "{path}: {made:?}");
    }
    assert_eq!(dates(client.get(serving.uri("/own")).await.unwrap()), [DATE]);

    let (identity, serving) = served(app, Config { date_header: false, ..Config::default() });
    let client = identity.client();
    assert_eq!(dates(client.get(serving.uri("/")).await.unwrap()), [""; 0]);
}
