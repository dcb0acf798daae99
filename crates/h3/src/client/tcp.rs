//! HTTP/2 and HTTP/1.1 over TCP, for where UDP does not come through.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes};
use fulmar::{TransportConfig, happy_eyeballs};
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::copy_of;
use super::tcp_local::{self, TcpLocal};
use crate::error::{BoxError, Error};

/// How long TCP and TLS have to connect to an address.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// After so much silence on a connection of HTTP/2 with requests the server is asked for a sign of life.
const ASK_AFTER: Duration = Duration::from_secs(20);

/// How many connections of HTTP/1.1 to a server are kept.
const HTTP1_KEPT_MAX: usize = 8;

/// The windows of HTTP/2, in bytes: that of a stream and that of a connection. Smaller ones would hold back long paths.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// The largest window that HTTP/2 knows (RFC 9113 §6.9.1).
const WINDOW_MAX: u32 = (1 << 31) - 1;

/// How much a server may send by HTTP/2 before it is read, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windows {
    stream: u32,
    connection: u32,
}

impl Windows {
    /// Those above, where those of QUIC do not say that streams get less, or that all together get more.
    pub(super) fn like(quic: &TransportConfig) -> Self {
        let bytes = |window: u64| u32::try_from(window).unwrap_or(WINDOW_MAX).min(WINDOW_MAX);
        Self {
            stream: STREAM_WINDOW.min(bytes(quic.stream_receive_window_max)),
            connection: CONNECTION_WINDOW.max(bytes(quic.receive_window)),
        }
    }
}

/// The body of a request, of any type.
pub(super) type AnyBody = UnsyncBoxBody<Bytes, BoxError>;

/// What connections over TCP begin with.
#[derive(Clone)]
pub(super) struct Tcp {
    tls: TlsConnector,
    /// From where they leave; from wherever the system chooses, if there are none.
    locals: Arc<[TcpLocal]>,
    windows: Windows,
    /// How many fields the head of a response over HTTP/1.1 may have.
    fields_max: usize,
}

/// A connection that takes requests.
#[derive(Debug)]
pub(super) struct TcpConnection {
    sender: Sender,
    pub(super) remote: SocketAddr,
    /// Whether it takes no more requests, for all who share it.
    is_going_away: Arc<AtomicBool>,
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<AnyBody>),
    Http2(http2::SendRequest<AnyBody>),
}

/// A request that was not answered.
#[derive(Debug)]
pub(super) struct Unserved {
    pub(super) error: Error,
    /// The request, where it can be made again: nobody has worked on it.
    pub(super) back: Option<Box<Request<AnyBody>>>,
    /// Whether it is the server that says so.
    pub(super) was_left_out: bool,
}

/// The connections to a server.
#[derive(Debug, Default)]
pub(super) struct Pool {
    http2: Option<TcpConnection>,
    /// Those that have served a request, or still do.
    http1: Vec<TcpConnection>,
}

impl Tcp {
    /// With the trust of a TLS configuration, for HTTP/2 and HTTP/1.1.
    pub(super) fn new(
        mut tls: rustls::ClientConfig,
        locals: Vec<TcpLocal>,
        windows: Windows,
        fields_max: usize,
    ) -> Self {
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { tls: TlsConnector::from(Arc::new(tls)), locals: locals.into(), windows, fields_max }
    }

    /// Connects to the first of these addresses that answers and proves to be `name`, from the first place from which it does.
    pub(super) async fn connect(&self, name: &str, addresses: &[SocketAddr]) -> Result<TcpConnection, Error> {
        let server = ServerName::try_from(name.to_owned()).map_err(Error::tcp)?;
        let pairs = tcp_local::pairs(&self.locals, addresses).map_err(Error::tcp)?;
        let attempts = happy_eyeballs::first(&pairs, |(local, remote)| {
            let (tcp, server) = (self.clone(), server.clone());
            Ok(async move {
                let begun = tokio::time::timeout(HANDSHAKE_MAX, tcp.begin(server, (local, remote)));
                begun.await.unwrap_or_else(|late| Err(Error::tcp(late)))
            })
        });
        attempts.await.map_err(Error::of_attempts)
    }

    async fn begin(
        &self,
        server: ServerName<'static>,
        (local, remote): tcp_local::Pair,
    ) -> Result<TcpConnection, Error> {
        let local = local.and_then(|index| self.locals.get(index));
        let stream = tcp_local::connect(local, remote).await.map_err(Error::tcp)?;
        let _ = stream.set_nodelay(true);
        let stream = self.tls.connect(server, stream).await.map_err(Error::tcp)?;
        let session = stream.get_ref().1;
        let is_http2 = session.alpn_protocol() == Some(b"h2");
        let suite = session.negotiated_cipher_suite().map(|suite| suite.suite());
        tracing::info!(%remote, is_http2, version = ?session.protocol_version(), ?suite, "connected over TCP");
        let stream = TokioIo::new(stream);
        let sender = if is_http2 {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .timer(TokioTimer::new())
                .keep_alive_interval(ASK_AFTER)
                .initial_stream_window_size(self.windows.stream)
                .initial_connection_window_size(self.windows.connection);
            let (sender, connection) = builder.handshake(stream).await.map_err(Error::tcp)?;
            tokio::spawn(async move { log_end(connection.await) });
            Sender::Http2(sender)
        } else {
            let mut builder = http1::Builder::new();
            // RFC 9112 §5.2: who receives folded fields unfolds them.
            builder.max_headers(self.fields_max).allow_obsolete_multiline_headers_in_responses(true);
            let (sender, connection) = builder.handshake(stream).await.map_err(Error::tcp)?;
            tokio::spawn(async move { log_end(connection.await) });
            Sender::Http1(sender)
        };
        Ok(TcpConnection { sender, remote, is_going_away: Arc::default() })
    }
}

fn log_end(result: Result<(), hyper::Error>) {
    if let Err(error) = result {
        tracing::debug!(%error, "a connection over TCP is over");
    }
}

impl Pool {
    /// A connection that takes a request at once.
    pub(super) fn take(&mut self) -> Option<TcpConnection> {
        self.http2.take_if(|connection| !connection.is_open());
        if let Some(connection) = &self.http2 {
            return connection.share();
        }
        self.http1.retain(TcpConnection::is_open);
        let ready = self.http1.iter().position(TcpConnection::is_ready)?;
        Some(self.http1.swap_remove(ready))
    }

    /// Keeps a connection for other requests. One of HTTP/1.1 that is too many ends with its request.
    pub(super) fn keep(&mut self, connection: TcpConnection) {
        match connection.sender {
            Sender::Http2(_) => self.http2 = Some(connection),
            Sender::Http1(_) if self.http1.len() < HTTP1_KEPT_MAX => self.http1.push(connection),
            Sender::Http1(_) => {}
        }
    }
}

impl TcpConnection {
    /// Another handle, if several requests share a connection.
    pub(super) fn share(&self) -> Option<Self> {
        match &self.sender {
            Sender::Http2(sender) => Some(Self {
                sender: Sender::Http2(sender.clone()),
                remote: self.remote,
                is_going_away: Arc::clone(&self.is_going_away),
            }),
            Sender::Http1(_) => None,
        }
    }

    fn is_open(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => !sender.is_closed(),
            Sender::Http2(sender) => !sender.is_closed() && !self.is_going_away.load(Ordering::Relaxed),
        }
    }

    fn is_ready(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_ready(),
            Sender::Http2(sender) => sender.is_ready(),
        }
    }

    /// Makes a request. It is given back if nothing of it was sent, because the connection had ended meanwhile, and if it is a head alone of
    /// which the server says that it has not worked on it.
    pub(super) async fn request(
        &mut self,
        request: Request<AnyBody>,
    ) -> Result<Response<Incoming>, Unserved> {
        let uri = request.uri().clone();
        let again = copy_of(&request);
        let sent = match &mut self.sender {
            Sender::Http2(sender) => sender.try_send_request(request).await,
            Sender::Http1(sender) => sender.try_send_request(in_origin_form(request)).await,
        };
        sent.map_err(|mut error: TrySendError<Request<AnyBody>>| {
            let unsent = error.take_message().map(|mut request| {
                *request.uri_mut() = uri;
                Box::new(request)
            });
            let error = error.into_error();
            let was_left_out = was_left_out(&error);
            if was_left_out || unsent.is_some() {
                self.is_going_away.store(true, Ordering::Relaxed);
            }
            let back = unsent.or(again.filter(|_| was_left_out).map(Box::new));
            Unserved { error: Error::tcp(error), back, was_left_out }
        })
    }
}

/// Whether a server of HTTP/2 says that it has not worked on a request: it takes no more on this connection (GOAWAY, RFC 9113 §6.8; those
/// that it has begun go on), or not this one (REFUSED_STREAM, §8.7).
fn was_left_out(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.filter(|cause| cause.is_remote()).is_some_and(|cause| match cause.reason() {
        Some(h2::Reason::NO_ERROR) => cause.is_go_away(),
        Some(h2::Reason::REFUSED_STREAM) => cause.is_reset(),
        _ => false,
    })
}

/// The request as HTTP/1.1 writes it: the path alone, and the host as a field (RFC 9112 §3.2.1).
fn in_origin_form(mut request: Request<AnyBody>) -> Request<AnyBody> {
    let uri = std::mem::take(request.uri_mut());
    let host = uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    if let Some(host) = host {
        request.headers_mut().entry(header::HOST).or_insert(host);
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse::<Uri>().unwrap_or_default();
    request
}

/// A request with a body of any type.
pub(super) fn with_any_body<B>(request: Request<B>) -> Request<AnyBody>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    request.map(|body| {
        body.map_frame(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())))
            .map_err(Into::into)
            .boxed_unsync()
    })
}
