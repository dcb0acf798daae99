//! A server of HTTP/3 that sends the beginning of a file over a connection, and nothing more.

use std::convert::Infallible;
use std::fs;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use fulmar::{Endpoint, tls};
use fulmar_h3::{ALPN, Server};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tower_service::Service;

use crate::run::{content, finish, fulmar};
use crate::test_dir::TestDir;

const LEN: usize = 1_000_000;

/// So much is sent before the silence.
const BEGINNING: usize = LEN / 10;

/// Sends the beginning of the file to who asks for all of it, and the rest to who asks for that.
#[derive(Clone)]
struct Stuck;

/// These bytes, and no end if there should be more.
struct Sent(Option<Bytes>, bool);

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None if self.1 => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

impl<B: Send + 'static> Service<Request<B>> for Stuck {
    type Response = Response<Sent>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(async move { Ok(answer(request.headers())) })
    }
}

fn answer(asked: &HeaderMap) -> Response<Sent> {
    let all = Bytes::from(content(LEN, 1));
    let begun = Response::builder().header("etag", "\"one\"");
    let Some(range) = asked.get("range").and_then(|range| range.to_str().ok()) else {
        let begun = begun.header("content-length", LEN);
        return begun.body(Sent(Some(all.slice(..BEGINNING)), true)).expect("a response");
    };
    let first = range.strip_prefix("bytes=").and_then(|range| range.strip_suffix('-'));
    let first: usize = first.expect("the rest").parse().expect("a number");
    let part = format!("bytes {first}-{}/{LEN}", LEN - 1);
    let begun = begun.status(206).header("content-range", part).header("content-length", LEN - first);
    begun.body(Sent(Some(all.slice(first..)), false)).expect("a response")
}

fn start() -> SocketAddr {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let made =
                rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
            let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
            let tls = tls::server_config(vec![made.cert.der().clone()], key.into(), &[ALPN]);
            let endpoint =
                Endpoint::server(tls.expect("a server"), (Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
            tell.send(endpoint.local_addr().expect("its address")).expect("someone listens");
            Server::new(endpoint).serve(Stuck).await;
        });
    });
    told.recv().expect("the server starts")
}

#[test]
fn the_rest_of_a_file_of_which_nothing_more_comes_is_fetched_over_another_connection() {
    let (server, out) = (start(), TestDir::new("web-stuck"));
    let mut get = fulmar(&["get", "--insecure", "--http3-only", "-o", out.path().to_str().expect("a path")]);
    get.args(["a", "b"].map(|name| format!("https://{server}/{name}")));
    let begun = std::time::Instant::now();
    let finished = finish(get);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(finished.stderr().contains("another connection"), "{}", finished.stderr());
    for name in ["a", "b"] {
        assert_eq!(fs::read(out.path().join(name)).expect("the file"), content(LEN, 1));
    }
    assert_eq!(out.names().len(), 2, "{:?}", out.names());
}
