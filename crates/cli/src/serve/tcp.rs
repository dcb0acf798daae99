//! HTTP/1.1 and HTTP/2 over TCP, for clients that do not know yet that there is HTTP/3.

mod pulse;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fulmar_h3::RemoteAddress;
use http::StatusCode;
use http::header::{ALT_SVC, EXPECT, HeaderValue};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;
use tracing::{debug, info};

use self::pulse::{Beating, Pulse};
use super::phase::{Phase, reached};
use super::told::Asked;
use super::transfers::Transfers;
use super::web::{Web, WebBody};
use crate::descriptors;

/// How many connections over TCP are served at once; further ones wait. They may have half of the file descriptors of the process at most:
/// the others are for files, also those that clients of HTTP/3 ask for.
const CONNECTIONS_MAX: usize = 1024;
const SHARE_OF_DESCRIPTORS: usize = 2;
/// How long a client may take for the handshake of TLS.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// How long it may take for the head of a request, and how long a connection may be idle before it is ended.
const HEAD_MAX: Duration = Duration::from_secs(30);
/// How long nothing may be asked for, and nothing be taken of the responses, before a connection is dropped with all that is under way: a
/// browser lets a video wait that is paused, and then asks for the rest anew.
const STILL_MAX: Duration = Duration::from_secs(300);
/// How often it is asked whether a client of HTTP/2 is there, and how long it may take to answer.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_MAX: Duration = Duration::from_secs(10);
/// How many requests of a connection of HTTP/2 are answered at a time.
const STREAMS_MAX: u32 = 100;
/// What of a response may wait in memory for a client that does not take it, in bytes.
const SEND_BUFFER: usize = 128 << 10;
/// How large the head of a request may be, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How much of the content of a request is taken that nobody wants, in bytes, and for how long: many clients first send all, and then look
/// for a response. One that is left with a part of it hears of a broken connection instead.
const UNWANTED_BYTES_MAX: usize = 8 << 20;
const UNWANTED_MAX: Duration = Duration::from_secs(5);
/// How long to wait when the machine has no more sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long clients may do nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Without a request.
    idle: Duration,
    /// Whatever is under way.
    still: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { idle: HEAD_MAX, still: STILL_MAX }
    }
}

/// How connections over TCP are served.
pub(super) struct Tcp {
    pub(super) tls: Arc<rustls::ServerConfig>,
    pub(super) web: Web,
    /// Where the same is served over HTTP/3.
    pub(super) alternative: HeaderValue,
    /// The runtimes that take turns.
    pub(super) runtimes: Vec<Handle>,
    /// Connections that are open, for a server that is to stop.
    pub(super) open: Transfers,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) patience: Patience,
}

/// The field that tells of HTTP/3 at `port` (RFC 7838), for a day.
pub(super) fn alternative(port: u16) -> HeaderValue {
    HeaderValue::from_str(&format!("h3=\":{port}\"; ma=86400")).unwrap_or(HeaderValue::from_static("clear"))
}

impl Tcp {
    /// Accepts connections until the server is to stop.
    pub(super) async fn serve(self, listener: TcpListener) {
        let this = Arc::new(self);
        let connections_max = CONNECTIONS_MAX.min(descriptors::limit() / SHARE_OF_DESCRIPTORS).max(1);
        let connections = Arc::new(Semaphore::new(connections_max));
        let mut runtimes = this.runtimes.iter().cycle();
        let mut phase = this.phase.clone();
        loop {
            // The semaphore is never closed.
            let Ok(permit) = connections.clone().acquire_owned().await else { return };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = reached(&mut phase, Phase::Stopping) => return,
            };
            let (stream, remote) =
                match accepted.and_then(|(stream, remote)| Ok((stream.into_std()?, remote))) {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        debug!(%error, "no connection could be accepted");
                        sleep(ACCEPT_PAUSE).await;
                        continue;
                    }
                };
            // Over QUIC, too, an address of IPv4 is none of IPv6.
            let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
            let connection = this.clone();
            let task = async move {
                let open = connection.open.begin();
                connection.serve_connection(stream, remote).await;
                drop((open, permit));
            };
            match runtimes.next() {
                Some(runtime) => drop(runtime.spawn(task)),
                None => drop(tokio::spawn(task)),
            }
        }
    }

    async fn serve_connection(&self, stream: std::net::TcpStream, remote: SocketAddr) {
        let Ok(stream) = TcpStream::from_std(stream) else { return };
        // Small responses shall not wait for the acknowledgement of those before them.
        let _ = stream.set_nodelay(true);
        let mut phase = self.phase.clone();
        let handshake = tokio::select! {
            handshake = timeout(HANDSHAKE_MAX, TlsAcceptor::from(self.tls.clone()).accept(stream)) => handshake,
            // Nothing was asked for yet.
            () = reached(&mut phase, Phase::Stopping) => return,
        };
        let stream = match handshake {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return info!(%remote, "no connection over TCP: {error}"),
            Err(_) => return info!(%remote, "no connection over TCP: the handshake took too long"),
        };
        self.serve_http(stream, remote).await;
    }

    /// Serves requests until one end has enough.
    async fn serve_http(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        remote: SocketAddr,
    ) {
        let (pulse, mut phase, mut is_over) =
            (Arc::<Pulse>::default(), self.phase.clone(), self.phase.clone());
        let builder = self.builder();
        let service = service_fn(|request| self.answer(request, remote, &pulse));
        let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
        let served = async {
            tokio::select! {
                result = connection.as_mut() => return result,
                // Also while it cannot be told yet which version is spoken: there nothing else bounds the time.
                () = pulse.idle(self.patience.idle) => {}
                () = reached(&mut phase, Phase::Stopping) => {}
            }
            connection.as_mut().graceful_shutdown();
            connection.await
        };
        let result = tokio::select! {
            result = served => result,
            () = reached(&mut is_over, Phase::Over) => return,
            () = pulse.still(self.patience.still) => {
                return debug!(%remote, "a connection over TCP has stood still for too long");
            }
        };
        if let Err(error) = result {
            debug!(%remote, "a connection over TCP failed: {error}");
            if let Some(status) = refusal(&*error) {
                self.web.tell_refused(Asked::unread(remote, "HTTP/1.1"), status);
            }
        }
    }

    fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.patience.idle)
            .max_buf_size(HEAD_BYTES_MAX);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_MAX)
            .max_concurrent_streams(STREAMS_MAX)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(HEAD_BYTES_MAX as u32);
        builder
    }

    fn answer(
        &self,
        request: http::Request<Incoming>,
        remote: SocketAddr,
        pulse: &Arc<Pulse>,
    ) -> impl Future<Output = Result<http::Response<Beating<WebBody>>, Infallible>> + use<> {
        let beat = pulse.begin();
        let (mut head, content) = request.into_parts();
        head.extensions.insert(RemoteAddress(remote));
        // Who waits to be asked for the content is not asked.
        if !content.is_end_stream() && !head.headers.contains_key(EXPECT) {
            tokio::spawn(take_unwanted(content));
        }
        let request = http::Request::from_parts(head, ());
        let (response, alternative) = (self.web.clone().call(request), self.alternative.clone());
        async move {
            let mut response = response.await?;
            response.headers_mut().insert(ALT_SVC, alternative);
            Ok(response.map(|body| beat.with(body)))
        }
    }
}

/// The status with which a request was refused because it is none of HTTP/1.1, if it was.
fn refusal(error: &(dyn std::error::Error + 'static)) -> Option<StatusCode> {
    let error = error.downcast_ref::<hyper::Error>().filter(|error| error.is_parse())?;
    Some(match error.is_parse_too_large() {
        true => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        false => StatusCode::BAD_REQUEST,
    })
}

/// Takes content that nobody wants, within limits.
async fn take_unwanted(mut content: Incoming) {
    let mut left = UNWANTED_BYTES_MAX;
    let all = async {
        while let Some(Ok(frame)) = content.frame().await {
            let len = frame.data_ref().map_or(0, |data| data.len());
            match left.checked_sub(len) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    let _ = timeout(UNWANTED_MAX, all).await;
}

#[cfg(test)]
mod tests;
