//! A server and a client on real sockets.

mod common;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body as AxumBody;
use axum::extract::{Path, Request as AxumRequest};
use axum::routing::{get, post};
use bytes::Bytes;
use common::{start, start_with};
use fulmar::{ReadError, VarInt};
use fulmar_h3::{Config, Error, RemoteAddress};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::sync::{mpsc, oneshot};

/// A body of what is sent through a channel.
struct ChannelBody(mpsc::Receiver<Frame<Bytes>>);

impl http_body::Body for ChannelBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

async fn text(response: Response<fulmar_h3::Body>) -> String {
    common::text(response).await.unwrap()
}

#[tokio::test]
async fn an_axum_app_is_served_unchanged() {
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/hello/{name}", get(|Path(name): Path<String>| async move { format!("hello, {name}") }))
        .route(
            "/address",
            get(|request: AxumRequest| async move {
                request.extensions().get::<RemoteAddress>().unwrap().0.ip().to_string()
            }),
        );
    let running = start(app);
    let response = running.client.get(running.uri("/")).await.unwrap();
    assert_eq!((response.status(), response.version()), (StatusCode::OK, http::Version::HTTP_3));
    assert_eq!(response.headers()["content-length"], "5");
    assert_eq!(text(response).await, "hello");
    assert_eq!(text(running.client.get(running.uri("/hello/axum")).await.unwrap()).await, "hello, axum");
    assert_eq!(text(running.client.get(running.uri("/address")).await.unwrap()).await, "127.0.0.1");
    let response = running.client.get(running.uri("/nothing")).await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let head = Request::head(running.uri("/")).body(Full::<Bytes>::default()).unwrap();
    let response = running.client.request(head).await.unwrap();
    assert_eq!(response.headers()["content-length"], "5");
    assert_eq!(text(response).await, "");
    running.client.close().await;
}

#[tokio::test]
async fn requests_share_a_connection() {
    let app = Router::new().route("/{n}", get(|Path(n): Path<usize>| async move { "x".repeat(n) }));
    let running = start(app);
    let requests = (0..200).map(|n| {
        let (client, uri) = (running.client.clone(), running.uri(&format!("/{}", n * 100)));
        tokio::spawn(async move { text(client.get(uri).await.unwrap()).await.len() })
    });
    for (n, request) in requests.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(request.await.unwrap(), n * 100);
    }
    assert_eq!(running.server.endpoint().stats().open_connections, 1);
}

#[tokio::test]
async fn bodies_stream_both_ways_with_trailers() {
    let app = Router::new().route("/echo", post(|body: AxumBody| async move { AxumBody::new(body) }));
    let running = start(app);
    let (sender, receiver) = mpsc::channel(1);
    let request = Request::post(running.uri("/echo")).body(ChannelBody(receiver)).unwrap();
    // The response begins before the request ends.
    let mut response = running.client.request(request).await.unwrap();
    for n in 0..10 {
        let part = Bytes::from(format!("part {n}"));
        sender.send(Frame::data(part.clone())).await.unwrap();
        assert_eq!(response.body_mut().data().await.unwrap(), Some(part));
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("7"));
    sender.send(Frame::trailers(trailers.clone())).await.unwrap();
    drop(sender);
    assert_eq!(response.body_mut().data().await.unwrap(), None);
    assert_eq!(response.body().trailers(), Some(&trailers));
}

#[tokio::test]
async fn large_bodies_arrive_whole() {
    let body: Bytes = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect::<Vec<_>>().into();
    let app = Router::new().route("/echo", post(|body: AxumBody| async move { body }));
    let running = start(app);
    let request = Request::post(running.uri("/echo")).body(Full::new(body.clone())).unwrap();
    let response = running.client.request(request).await.unwrap();
    let echoed = response.into_body().collect().await.unwrap().to_bytes();
    assert!(echoed == body, "{} bytes", echoed.len());
}

#[tokio::test]
async fn a_body_that_is_not_read_holds_the_sender_back() {
    let sent = Arc::new(AtomicUsize::new(0));
    let app = Router::new().route(
        "/",
        get({
            let sent = Arc::clone(&sent);
            move || async move {
                let parts = std::iter::from_fn(move || {
                    sent.fetch_add(1 << 16, Ordering::Relaxed);
                    Some(Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from(vec![0; 1 << 16]))))
                });
                AxumBody::new(StreamBody::new(Iter(parts.take(16 * 1024))))
            }
        }),
    );
    let running = start(app);
    let response = running.client.get(running.uri("/")).await.unwrap();
    let mut before = usize::MAX;
    // Until nothing moves any more.
    while before != sent.load(Ordering::Relaxed) {
        before = sent.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(before < 100 << 20, "{before} bytes of a gigabyte");
    drop(response);
}

/// A stream of what an iterator gives.
struct Iter<I>(I);

impl<I: Iterator + Unpin> futures_core::Stream for Iter<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
        Poll::Ready(self.0.next())
    }
}

#[tokio::test]
async fn a_request_that_is_given_up_ends_its_service() {
    struct Notify(Option<oneshot::Sender<()>>);
    impl Drop for Notify {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }
    let (begun, has_begun) = oneshot::channel();
    let (ended, has_ended) = oneshot::channel();
    let once = Arc::new(std::sync::Mutex::new(Some((begun, Notify(Some(ended))))));
    let app = Router::new().route(
        "/",
        get(move || async move {
            let (begun, _notify) = once.lock().unwrap().take().unwrap();
            begun.send(()).unwrap();
            std::future::pending::<&'static str>().await
        }),
    );
    let running = start(app);
    let uri = running.uri("/");
    let client = running.client.clone();
    let request = tokio::spawn(async move { client.get(uri).await });
    has_begun.await.unwrap();
    request.abort();
    tokio::time::timeout(Duration::from_secs(5), has_ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_service_that_panics_fails_its_own_request_alone() {
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/at-once", get(|| async { if true { panic!("on purpose") } else { "no" } }))
        .route(
            "/later",
            get(|| async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                if true { panic!("on purpose") } else { "no" }
            }),
        );
    let running = start(app);
    for path in ["/at-once", "/later", "/at-once"] {
        assert!(running.client.get(running.uri(path)).await.is_err(), "{path}");
        assert_eq!(text(running.client.get(running.uri("/")).await.unwrap()).await, "hello");
    }
}

/// Works without a pause, as a service that computes does.
#[expect(clippy::disallowed_methods, reason = "this is what holds the task up")]
fn work() {
    std::thread::sleep(Duration::from_millis(2));
}

#[tokio::test]
async fn a_service_that_works_long_does_not_hold_up_other_requests_for_good() {
    let app = Router::new().route("/", get(|| async { "hello" })).route(
        "/busy",
        get(|| async {
            work();
            "done"
        }),
    );
    let running = start(app);
    let ask = |path: &str| {
        let (client, uri) = (running.client.clone(), running.uri(path));
        tokio::spawn(async move { text(client.get(uri).await.unwrap()).await })
    };
    // More than get tasks of their own before it is tried again without.
    for _ in 0..3 {
        let asked: Vec<_> = (0..80).map(|n| ask(if n % 4 == 0 { "/busy" } else { "/" })).collect();
        for (n, response) in asked.into_iter().enumerate() {
            assert_eq!(response.await.unwrap(), if n % 4 == 0 { "done" } else { "hello" });
        }
    }
}

#[tokio::test]
async fn a_request_that_is_a_head_alone_has_no_body_to_wait_for() {
    let app = Router::new().route(
        "/",
        get(|request: AxumRequest| async move {
            let body = request.into_body();
            format!(
                "{} {:?}",
                http_body::Body::is_end_stream(&body),
                http_body::Body::size_hint(&body).exact()
            )
        })
        .post(|request: AxumRequest| async move {
            http_body::Body::is_end_stream(request.body()).to_string()
        }),
    );
    let running = start(app);
    assert_eq!(text(running.client.get(running.uri("/")).await.unwrap()).await, "true Some(0)");
    let request = Request::post(running.uri("/")).body(Full::new(Bytes::from_static(b"body"))).unwrap();
    assert_eq!(text(running.client.request(request).await.unwrap()).await, "false");
}

#[tokio::test]
async fn a_head_that_is_too_large_is_answered() {
    let mut config = Config::default();
    config.decoder.fields_max = 10;
    let running = start_with(Router::new().route("/", get(|| async { "hello" })), config);
    let mut request = Request::get(running.uri("/")).body(Full::<Bytes>::default()).unwrap();
    for n in 0..20 {
        request.headers_mut().append("x", HeaderValue::from(n));
    }
    let response = running.client.request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert!(response.headers().contains_key("date"));
    assert_eq!(text(running.client.get(running.uri("/")).await.unwrap()).await, "hello");
}

#[tokio::test]
async fn a_body_of_the_wrong_length_is_an_error() {
    let app = Router::new().route(
        "/",
        get(|| async {
            Response::builder().header("content-length", "10").body(AxumBody::from("short")).unwrap()
        }),
    );
    let running = start(app);
    // Whether the head comes before the reset is not said.
    let result = match running.client.get(running.uri("/")).await {
        Ok(response) => response.into_body().bytes(100).await,
        Err(error) => Err(error),
    };
    assert!(matches!(result, Err(Error::Reset(_))), "{result:?}");
}

#[tokio::test]
async fn a_request_whose_body_has_the_wrong_length_is_malformed() {
    let running = start(Router::new().route("/", post(|body: Bytes| async move { body })));
    let quic = running.client_endpoint.connect(running.address, "127.0.0.1").unwrap().await.unwrap();
    let mut control = quic.open_uni().await.unwrap();
    control.write_all(&[0, 4, 0]).await.unwrap();
    let (mut send, mut recv) = quic.open_bi().await.unwrap();
    // POST https://a/ with a Content-Length of 10, and five bytes.
    let head = [1, 12, 0, 0, 0xd4, 0xd7, 0xc1, 0x50, 1, b'a', 0x54, 2, b'1', b'0'];
    let body = [0, 5, b'h', b'e', b'l', b'l', b'o'];
    send.finish_with([&head[..], &body].concat().into()).await.unwrap();
    // RFC 9114 §4.1.2: H3_MESSAGE_ERROR.
    let result = tokio::time::timeout(Duration::from_secs(5), recv.read(&mut [0; 100])).await;
    assert_eq!(result.unwrap(), Err(ReadError::Reset(VarInt::from_u32(0x10e))));
}

#[tokio::test]
async fn a_client_that_expects_it_is_told_to_go_on() {
    let running = start(Router::new().route("/", post(|body: Bytes| async move { body })));
    let quic = running.client_endpoint.connect(running.address, "127.0.0.1").unwrap().await.unwrap();
    // However it is written (RFC 9110 §10.1.1).
    for expect in [b"100-continue", b"100-Continue"] {
        let (mut send, mut recv) = quic.open_bi().await.unwrap();
        let head = [&[1, 28, 0, 0, 0xd4, 0xd7, 0xc1, 0x50, 1, b'a', 0x26][..], b"expect", &[12], expect];
        send.write_all(&head.concat()).await.unwrap();
        let read = tokio::time::timeout(Duration::from_secs(5), recv.read_chunk(100, true)).await;
        // HEADERS with the entry of QPACK's static table.
        assert_eq!(read.unwrap().unwrap().unwrap().bytes, [1, 0x40, 4, 0, 0, 0xff, 0][..]);
    }
}

#[tokio::test]
async fn a_body_longer_than_its_reader_takes_is_an_error() {
    let running = start(Router::new().route("/", get(|| async { "hello" })));
    let response = running.client.get(running.uri("/")).await.unwrap();
    assert!(matches!(response.into_body().bytes(4).await, Err(Error::BodyTooLong(4))));
}

#[tokio::test]
async fn only_uris_with_a_host_can_be_got() {
    let running = start(Router::new());
    for uri in ["/", "http://localhost/", "https:///x", "no uri"] {
        assert!(matches!(running.client.get(uri).await, Err(Error::Uri)), "{uri}");
    }
}
