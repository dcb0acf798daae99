//! The client: requests by URI, over connections that are kept.

mod connection;
mod dial;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fulmar::Endpoint;
use fulmar_h3_proto::{Config, ErrorCode, SendError};
use http::uri::Scheme;
use http::{Request, Response, Uri};
use http_body_util::Empty;
use rustls::RootCertStore;

pub use self::connection::ClientConnection;
use self::dial::dial;
use crate::error::Error;
use crate::incoming::Body;

/// How many servers a client remembers a connection of. Beyond it one that is not in use is forgotten; it ends when it is idle.
pub const SERVERS_MAX: usize = 256;

/// A client of HTTP/3.
///
/// It keeps a connection for each server, on which requests run side by side. Clones share them.
#[derive(Debug, Clone)]
pub struct Client {
    endpoint: Endpoint,
    config: Arc<Config>,
    servers: Arc<Mutex<BTreeMap<String, Arc<Place>>>>,
}

/// The connection to a server, which one task at a time makes.
type Place = tokio::sync::Mutex<Option<ClientConnection>>;

impl Client {
    /// A client with a socket of its own that trusts these certificate authorities.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`].
    pub fn with_roots(roots: RootCertStore) -> Result<Self, Error> {
        let setup = |error: std::io::Error| Error::Setup(error.into());
        let endpoint = Endpoint::client((Ipv6Addr::UNSPECIFIED, 0).into())
            .or_else(|_| Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()))
            .map_err(setup)?;
        let tls = fulmar::tls::client_config(roots, &[crate::ALPN]);
        endpoint.set_default_client_config(tls.map_err(|error| Error::Setup(error.into()))?);
        Ok(Self::new(endpoint))
    }

    /// A client on an endpoint, whose default client configuration names `h3` (see [`ALPN`](crate::ALPN)).
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self::with_config(endpoint, Config::default())
    }

    /// A client with other limits.
    #[must_use]
    pub fn with_config(endpoint: Endpoint, config: Config) -> Self {
        Self { endpoint, config: Arc::new(config), servers: Arc::default() }
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

    /// Makes a request, and returns as soon as the head of its response has come; the body of the request is sent beside that.
    ///
    /// Dropping this future or the body of the response gives up the request.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, gives up the request, or breaks a rule.
    pub async fn request<B>(&self, request: Request<B>) -> Result<Response<Body>, Error>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut request = request;
        // A connection can have begun to go away since it was taken. Nothing of the request was sent then.
        for _ in 0..2 {
            let connection = self.connection(request.uri()).await?;
            match connection.begin(request).await {
                Err((Error::Send(SendError::GoingAway), back)) => request = *back,
                Err((error, _)) => return Err(error),
                Ok(begun) => return begun.response().await,
            }
        }
        Err(SendError::GoingAway.into())
    }

    /// Closes all connections. Requests that are not complete are lost.
    pub async fn close(&self) {
        let servers = std::mem::take(&mut *self.servers.lock().unwrap_or_else(PoisonError::into_inner));
        for place in servers.into_values() {
            if let Some(connection) = place.lock().await.take() {
                connection.close(ErrorCode::NoError);
            }
        }
        self.endpoint.wait_idle().await;
    }

    /// The connection to the server of a URI, which is made if there is none.
    async fn connection(&self, uri: &Uri) -> Result<ClientConnection, Error> {
        let host = uri.host().filter(|_| uri.scheme() == Some(&Scheme::HTTPS)).ok_or(Error::Uri)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(443);
        let place = self.place(format!("{host} {port}"));
        let mut place = place.lock().await;
        if let Some(connection) = &*place
            && connection.is_open()
        {
            return Ok(connection.clone());
        }
        let quic = dial(&self.endpoint, host, port).await?;
        Ok(place.insert(ClientConnection::new(quic, Arc::clone(&self.config))).clone())
    }

    fn place(&self, server: String) -> Arc<Place> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if servers.len() >= SERVERS_MAX && !servers.contains_key(&server) {
            // One that nobody waits at.
            let unused = servers.iter().find(|(_, place)| Arc::strong_count(place) == 1);
            if let Some(unused) = unused.map(|(server, _)| server.clone()) {
                servers.remove(&unused);
            }
        }
        Arc::clone(servers.entry(server).or_default())
    }
}
