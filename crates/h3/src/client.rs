//! The client: requests by URI, over connections that are kept.

mod alt_svc;
mod builder;
mod closing;
mod connection;
mod dial;
mod dns;
mod info;
mod network;
mod origin;
mod quic;
mod race;
mod service;
mod tcp;
mod tcp_local;
mod zone;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use fulmar::{ConnectionError, Endpoint};
use fulmar_h3_proto::{Config, SendError};
use http::header::HOST;
use http::uri::{Authority, Scheme};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::Empty;
use rustls::RootCertStore;
use tokio::sync::OwnedSemaphorePermit;
use tower_service::Service;

pub use self::alt_svc::{ALT_SVC_BYTES_MAX, ALTERNATIVES_MAX, AltSvc, Alternative};
pub use self::builder::ClientBuilder;
pub use self::connection::ClientConnection;
use self::dns::{Given, Names};
pub use self::info::ConnectionInfo;
use self::origin::{Origin, Route, TCP_REQUESTS_MAX, Transports, has_arrived};
use self::quic::Quic;
use self::tcp::{AnyBody, TcpConnection, Unserved, with_any_body};
pub use self::tcp_local::TcpLocal;
use crate::body::{Body, TcpIncoming};
use crate::error::{BoxError, Error};

/// How many servers a client remembers a connection of. Beyond it one that no request waits for is forgotten; its connection is closed
/// when what it still carries is over.
pub const SERVERS_MAX: usize = 256;

/// How often a request is tried that nobody has worked on, or that may be worked on twice, over another connection each time: the one
/// that was there can have ended.
const ATTEMPTS_MAX: usize = 3;

/// The same over TCP, where a server may serve some requests on a connection and leave out the others again and again. If it serves one on
/// each connection, it is the turn of the last of those that are under way at once after so many.
const TCP_ATTEMPTS_MAX: usize = TCP_REQUESTS_MAX;

/// A client of HTTP/3, and of HTTP/2 and HTTP/1.1 where UDP does not come through.
///
/// It keeps connections for each server, on which requests run side by side. Clones share them. QUIC is tried first; if it has not connected
/// after 200 ms TCP is tried beside it, and what connects first is used. That QUIC did not get through is remembered for some minutes,
/// and longer each time. Servers may say in the field `Alt-Svc` (RFC 7838) where else they are found by HTTP/3.
///
/// When the last clone is dropped its connections are closed, each once the bodies of its responses were read or dropped.
#[derive(Clone)]
pub struct Client {
    transports: Arc<Transports>,
    origins: Arc<Mutex<BTreeMap<String, Arc<Origin>>>>,
}

impl Client {
    /// Sets up a client.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client with a socket of its own that trusts these certificate authorities.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`].
    pub fn with_roots(roots: RootCertStore) -> Result<Self, Error> {
        Self::builder().roots(roots).build()
    }

    /// A client of HTTP/3 alone on an endpoint, whose default client configuration names `h3` (see [`ALPN`](crate::ALPN)).
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self::with_config(endpoint, Config::default())
    }

    /// The same with other limits.
    #[must_use]
    pub fn with_config(endpoint: Endpoint, config: Config) -> Self {
        let quic = Quic {
            endpoint: Ok(endpoint),
            config: None,
            locals: vec![fulmar::Local::Any],
            http3: Arc::new(config),
            closing: Arc::default(),
        };
        let transports =
            Transports { quic, tcp: None, names: Names::new(None, Given::new()), may_be_early: false };
        Self { transports: Arc::new(transports), origins: Arc::default() }
    }

    /// Gets what a URI names. The body of the response comes as it is read.
    ///
    /// # Errors
    ///
    /// See [`request`](Self::request).
    pub async fn get<U>(&self, uri: U) -> Result<Response<Body>, Error>
    where
        U: TryInto<Uri>,
    {
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.uri_mut() = uri.try_into().map_err(|_| Error::Uri)?;
        self.request(request).await
    }

    /// Makes a request, and returns as soon as the head of its response has come; the body of the request is sent beside that. The version
    /// of the response says how it came, and its extensions have a [`ConnectionInfo`].
    ///
    /// The URI says which server is asked; where the request has a field Host, that is the authority that the server is told, in each
    /// version of HTTP. An address of a link has its zone in the URI (`https://[fe80::1%25eth0]/`), of which the server is not told.
    ///
    /// Dropping this future or the body of the response gives up the request.
    ///
    /// A request without a body is made again, up to twice, where the server says that it has not worked on it (GOAWAY,
    /// H3_REQUEST_REJECTED), or where its connection has ended as that of a server which stops or was started anew (H3_NO_ERROR, a
    /// stateless reset) and doing it twice does no harm (an idempotent method, RFC 9110 §9.2.2). So it is, once, where an alternative
    /// service says that it is none of the server (status 421).
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, gives up the request, or breaks a rule. If the body of the request fails
    /// ([`Error::Body`]), or is not as long as its Content-Length says.
    pub async fn request<B>(&self, mut request: Request<B>) -> Result<Response<Body>, Error>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let closed = self.transports.quic.closing.closed();
        let answered = async {
            let origin = self.origin(request.uri())?;
            *request.uri_mut() = zone::without_zone(request.uri())?;
            make_host_the_authority(&mut request)?;
            let response = self.send(&origin, request).await?;
            // RFC 7838 §6: who is not this server does not say where it is found.
            if response.status() != StatusCode::MISDIRECTED_REQUEST {
                origin.learn(response.headers());
            }
            Ok(response)
        };
        tokio::select! {
            biased;
            response = answered => response,
            () = closed => Err(ConnectionError::LocallyClosed.into()),
        }
    }

    async fn send<B>(&self, origin: &Arc<Origin>, mut request: Request<B>) -> Result<Response<Body>, Error>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let is_safe = is_safe(&request);
        let mut error = SendError::GoingAway.into();
        for _ in 0..ATTEMPTS_MAX {
            match origin.route(&self.transports, is_safe).await? {
                Route::Http3(connection, info) => {
                    let is_early = is_safe && connection.is_early();
                    let info = ConnectionInfo { is_early, ..info };
                    if is_early {
                        return self.send_early(origin, &connection, request, info).await;
                    }
                    let again = connection.alternative().and_then(|_| copy_of(&request));
                    match connection.exchange(request).await {
                        Ok(response) if forget_if_misdirected(origin, &connection, &response) => {
                            let Some(again) = again else { return Ok(with_info(response, info)) };
                            let route = origin.route(&self.transports, false).await?;
                            return self.send_by(origin, route, again).await;
                        }
                        Ok(response) => return Ok(with_info(response, info)),
                        Err((why, Some(back))) => (request, error) = (*back, why),
                        Err((why, None)) => return Err(why),
                    }
                }
                Route::Tcp(connection, permit, info) => {
                    let request = with_any_body(request);
                    return self.send_over_tcp(origin, connection, permit, request, info).await;
                }
            }
        }
        Err(error)
    }

    /// Makes a request that does no harm when it arrives twice, before the handshake is complete.
    async fn send_early<B>(
        &self,
        origin: &Arc<Origin>,
        connection: &ClientConnection,
        request: Request<B>,
        info: ConnectionInfo,
    ) -> Result<Response<Body>, Error>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        // It has no body, so it is easily repeated.
        let (parts, _) = request.into_parts();
        let again = || Request::from_parts(parts.clone(), Empty::<Bytes>::new());
        let early = async {
            let response = connection.request(again()).await?;
            if response.status() != StatusCode::TOO_EARLY {
                return Ok(with_info(response, info));
            }
            connection.quic().connected().await?;
            Ok(with_info(connection.request(again()).await?, ConnectionInfo { is_early: false, ..info }))
        };
        let instead = async {
            if has_arrived(connection).await {
                return std::future::pending().await;
            }
            origin.instead_of_early(&self.transports, connection).await
        };
        let route = tokio::select! {
            response = early => match response {
                // Not even the handshake came through, which says so before its time: nobody listens, or it is refused.
                Err(Error::Connection(_)) if connection.quic().handshake_time().is_none() => {
                    origin.instead_of_early(&self.transports, connection).await?
                }
                Ok(response) if forget_if_misdirected(origin, connection, &response) => {
                    origin.route(&self.transports, false).await?
                }
                response => return response,
            },
            route = instead => route?,
        };
        self.send_by(origin, route, with_any_body(again())).await
    }

    /// Makes a request once, where it has come to nothing elsewhere.
    async fn send_by(
        &self,
        origin: &Arc<Origin>,
        route: Route,
        request: Request<AnyBody>,
    ) -> Result<Response<Body>, Error> {
        match route {
            Route::Tcp(connection, permit, info) => {
                self.send_over_tcp(origin, connection, permit, request, info).await
            }
            Route::Http3(connection, info) => send_over_http3(origin, &connection, request, info).await,
        }
    }

    async fn send_over_tcp(
        &self,
        origin: &Arc<Origin>,
        mut connection: TcpConnection,
        permit: OwnedSemaphorePermit,
        mut request: Request<AnyBody>,
        mut info: ConnectionInfo,
    ) -> Result<Response<Body>, Error> {
        let (mut permit, mut attempts) = (Some(permit), 0);
        for _ in 0..TCP_ATTEMPTS_MAX {
            match connection.request(request).await {
                Ok(response) => {
                    origin.keep(connection);
                    let incoming = |body| Body::over_tcp(TcpIncoming { body, _permit: permit.take() });
                    return Ok(with_info(response.map(incoming), info));
                }
                Err(Unserved { error, back, was_left_out }) => {
                    // Otherwise the connection had ended, and nothing was sent.
                    attempts += usize::from(!was_left_out);
                    let Some(back) = back.filter(|_| attempts < ATTEMPTS_MAX) else { return Err(error) };
                    request = *back;
                }
            }
            drop(permit.take());
            match origin.route(&self.transports, false).await? {
                Route::Tcp(other, other_permit, other_info) => {
                    (connection, permit, info) = (other, Some(other_permit), other_info);
                }
                Route::Http3(http3, info) => return send_over_http3(origin, &http3, request, info).await,
            }
        }
        Err(SendError::GoingAway.into())
    }

    /// Closes all connections, and waits until the servers know. Requests that are not complete are lost, those that wait for a connection
    /// included. Other connections of a shared endpoint are none of its business. What is requested later connects anew.
    pub async fn close(&self) {
        let origins = std::mem::take(&mut *self.origins.lock().unwrap_or_else(PoisonError::into_inner));
        self.transports.quic.closing.close().await;
        drop(origins);
    }

    /// The server of a URI.
    fn origin(&self, uri: &Uri) -> Result<Arc<Origin>, Error> {
        if uri.scheme() != Some(&Scheme::HTTPS) {
            return Err(Error::Uri);
        }
        let (host, zone) = zone::host_and_zone(uri)?;
        let port = uri.port_u16().unwrap_or(443);
        let name = format!("{host} {port} {}", zone.as_deref().unwrap_or_default());
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if origins.len() >= SERVERS_MAX && !origins.contains_key(&name) {
            // One that nobody waits at.
            let unused = origins.iter().find(|(_, origin)| Arc::strong_count(origin) == 1);
            if let Some(unused) = unused.map(|(name, _)| name.clone()) {
                origins.remove(&unused);
            }
        }
        Ok(Arc::clone(origins.entry(name).or_insert_with(|| Origin::new(host, zone.as_deref(), port))))
    }
}

/// A client is a `tower` service as well: for what is built on such, as the clients of gRPC that `tonic` makes are.
impl<B> Service<Request<B>> for Client
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let client = self.clone();
        Box::pin(async move { client.request(request).await })
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.transports.quic.endpoint).finish_non_exhaustive()
    }
}

/// Of Host and another authority a server would refuse one (RFC 9114 §4.3.1).
fn make_host_the_authority<B>(request: &mut Request<B>) -> Result<(), Error> {
    let Some(host) = request.headers_mut().remove(HOST) else { return Ok(()) };
    let mut parts = request.uri().clone().into_parts();
    parts.authority = Some(Authority::try_from(host.as_bytes()).map_err(|_| Error::Uri)?);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| Error::Uri)?;
    Ok(())
}

/// Whether a request does no harm when it arrives twice (RFC 9110 §9.2.1), and can be made twice.
fn is_safe<B: http_body::Body>(request: &Request<B>) -> bool {
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE);
    is_safe && request.body().is_end_stream()
}

/// The request once more, if all of it is its head.
fn copy_of<B: http_body::Body>(request: &Request<B>) -> Option<Request<AnyBody>> {
    if !request.body().is_end_stream() {
        return None;
    }
    let mut copy = with_any_body(Request::new(Empty::<Bytes>::new()));
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

async fn send_over_http3(
    origin: &Origin,
    connection: &ClientConnection,
    request: Request<AnyBody>,
    info: ConnectionInfo,
) -> Result<Response<Body>, Error> {
    let response = connection.request(request).await?;
    forget_if_misdirected(origin, connection, &response);
    Ok(with_info(response, info))
}

/// Forgets the alternative service that a response comes from, if it says that it is none of this server, and returns whether it does.
fn forget_if_misdirected(origin: &Origin, connection: &ClientConnection, response: &Response<Body>) -> bool {
    response.status() == StatusCode::MISDIRECTED_REQUEST && origin.on_misdirected(connection)
}

fn with_info(mut response: Response<Body>, info: ConnectionInfo) -> Response<Body> {
    response.extensions_mut().insert(info);
    response
}
