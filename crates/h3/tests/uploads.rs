//! Requests whose bodies fail, or are of no use any more.

mod common;

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use common::{Identity, soon};
use fulmar_h3::Error;
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::{Full, StreamBody};

/// A stream of what an iterator gives.
struct Iter<I>(I);

impl<I: Iterator + Unpin> futures_core::Stream for Iter<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
        Poll::Ready(self.0.next())
    }
}

fn app() -> Router {
    Router::new()
        .route("/read", post(|body: Bytes| async move { body.len().to_string() }))
        .route("/wait", post(|_: axum::body::Body| async { std::future::pending::<&str>().await }))
        .route("/at-once", post(|| async { "enough" }))
}

#[tokio::test]
async fn a_body_that_fails_is_the_error_of_its_request() {
    let identity = Identity::new();
    let (serving, client) = (identity.serve(app()), identity.client());
    // Whether or not the server would find out.
    for path in ["/read", "/wait"] {
        let parts =
            [Ok(Frame::data(Bytes::from_static(b"12345"))), Err(io::Error::other("the disk is full"))];
        let body = StreamBody::new(Iter(parts.into_iter()));
        let error =
            soon(client.request(Request::post(serving.uri(path)).body(body).unwrap())).await.unwrap_err();
        assert!(matches!(error, Error::Body(_)), "{error:?}");
        assert!(error.to_string().contains("the disk is full"), "{error}");
    }
    // Too long, and too short.
    for length in ["3", "30"] {
        let request = Request::post(serving.uri("/read")).header("content-length", length);
        let body = Full::new(Bytes::from_static(b"12345"));
        let error = soon(client.request(request.body(body).unwrap())).await.unwrap_err();
        assert!(error.to_string().contains("Content-Length"), "{error:?}");
    }
    let request = Request::post(serving.uri("/read")).body(Full::new(Bytes::from_static(b"12345"))).unwrap();
    assert_eq!(common::text(client.request(request).await.unwrap()).await.unwrap(), "5");
}

/// A body that gives one part, and then neither more nor its end.
struct Stalls {
    is_begun: bool,
    _dropped: tokio::sync::oneshot::Sender<()>,
}

impl http_body::Body for Stalls {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match std::mem::replace(&mut self.is_begun, true) {
            true => Poll::Pending,
            false => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"one part"))))),
        }
    }
}

#[tokio::test]
async fn an_upload_ends_when_the_server_wants_no_more_of_it() {
    let identity = Identity::new();
    let (serving, client) = (identity.serve(app()), identity.client());
    let (sender, dropped) = tokio::sync::oneshot::channel();
    let body = Stalls { is_begun: false, _dropped: sender };
    let request = Request::post(serving.uri("/at-once")).body(body).unwrap();
    let response = soon(client.request(request)).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(soon(common::text(response)).await.unwrap(), "enough");
    assert!(soon(dropped).await.is_err());
}
