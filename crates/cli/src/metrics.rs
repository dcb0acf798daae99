//! The figures of a server, for Prometheus: `fulmar serve --metrics ADDR`.
//!
//! HTTP is spoken by hyper, over TCP, on an address of its own. It is meant for the machine itself or a network that is
//! trusted: it needs no password and names the addresses of clients.

mod text;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fulmar::Endpoint;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::failure::Failure;

/// Scrapers at once; further ones wait.
const SCRAPERS_MAX: usize = 8;
/// How long a scraper may take for all of its requests.
const SCRAPE_MAX: Duration = Duration::from_secs(30);
/// How long to wait when the machine has no more sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The text format, version 0.0.4.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Figures of what is served, in the same format.
pub(crate) type More = Arc<dyn Fn() -> String + Send + Sync>;

/// Listens on `addr`, and answers with the figures of `endpoint` and with `more` from now on. Returns the address it really has.
pub(crate) async fn start(addr: SocketAddr, endpoint: Endpoint, more: More) -> Result<SocketAddr, Failure> {
    let cannot = || Failure::io(format!("cannot listen for metrics on {addr}"));
    let listener = TcpListener::bind(addr).await.map_err(cannot())?;
    let local = listener.local_addr().map_err(cannot())?;
    tokio::spawn(serve(listener, endpoint, more));
    Ok(local)
}

async fn serve(listener: TcpListener, endpoint: Endpoint, more: More) {
    let scrapers = Arc::new(Semaphore::new(SCRAPERS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = scrapers.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (endpoint, more) = (endpoint.clone(), more.clone());
                tokio::spawn(async move {
                    answer_all(stream, endpoint, more).await;
                    drop(permit);
                });
            }
            Err(error) => {
                debug!(%error, "no scraper could be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn answer_all(stream: TcpStream, endpoint: Endpoint, more: More) {
    let service = service_fn(move |request| {
        let response = answer(&request, &endpoint, &more);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Ok(Err(error)) = timeout(SCRAPE_MAX, connection).await {
        debug!(%error, "a scraper was not answered");
    }
}

fn answer(request: &Request<Incoming>, endpoint: &Endpoint, more: &More) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    } else if request.uri().path() == "/metrics" {
        response.headers_mut().insert(CONTENT_TYPE, TEXT);
        *response.body_mut() = Full::from(text::of(&endpoint.metrics()) + &more());
    } else {
        *response.status_mut() = StatusCode::NOT_FOUND;
        *response.body_mut() = Full::from("the figures are at /metrics\n");
    }
    response
}
