//! How the program sets up the crate `fulmar`: what listens, what dials, and the figures of a connection.

mod binds;
mod dialer;
mod figures;
mod interfaces;
pub(crate) mod narration;
mod transport;
mod workers;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fulmar::{
    AddressValidation, ClientConfig, ConfigError, Connecting, Connection, Endpoint, EndpointConfig, Incoming,
    ReadError, RecvStream, ResetKey, ServerConfig, SessionStore, TokenKeys, VarInt,
};
use tokio::runtime::{Handle, Runtime};
use tokio::time::timeout;

pub(crate) use self::binds::{Bind, Binds, Family, PathFigures};
pub(crate) use self::dialer::{Dialer, resolve};
pub(crate) use self::figures::{ConnectionFigures, FecFigures, Figures};
pub(crate) use self::interfaces::for_host;
pub(crate) use self::transport::Transport;
pub(crate) use self::workers::Workers;
use crate::args::{Cipher, TrustArgs};
use crate::authority::ListenAddr;
use crate::descriptors;
use crate::failure::Failure;
use crate::get::{HttpArgs, Resolved};
use crate::report::Listening;
use crate::tls::{self, Identity, Refusal};

/// The application error code of a connection that ends because all is done.
pub(crate) const CLOSE_DONE: VarInt = VarInt::from_u32(0);

/// How many TLS sessions a server remembers, each of some hundred bytes.
const SESSIONS_MAX: usize = 10_000;
/// How long the end of the program may be put off to tell the peers of it.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

/// The file descriptors of a runtime: two of epoll, one to wake it, three for signals, and one to spare for a socket.
const DESCRIPTORS: usize = 7;

/// How many chunks are taken from a stream at once. Each is a datagram's share, so together they are what a batch of
/// the socket brings.
const CHUNKS_MAX: usize = 64;

/// A runtime with one thread for everything but files and names.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    // Without the descriptors that it needs for signals tokio panics.
    descriptors::have(DESCRIPTORS).map_err(Failure::io(format!(
        "cannot start: this needs {DESCRIPTORS} more files that may be open (ulimit -n)"
    )))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::io("cannot start the runtime"))
}

fn unusable(error: ConfigError) -> Failure {
    Failure::Usage(format!("the transport cannot be configured so: {error}"))
}

/// What a server needs to listen.
pub(crate) struct Listen<'a> {
    pub(crate) addr: ListenAddr,
    pub(crate) identity: &'a Identity,
    /// What is spoken, the preferred one first.
    pub(crate) protocols: &'a [&'a str],
    pub(crate) transport: &'a Transport,
    /// The key of stateless resets, if it is given; else it comes from the identity.
    pub(crate) reset_key: Option<[u8; 32]>,
    pub(crate) validation: AddressValidation,
    /// Keys with which TLS sessions are sealed, instead of being kept.
    pub(crate) sealed_tickets: Option<TokenKeys>,
    /// Whether early data is taken.
    pub(crate) early_data: bool,
    /// The runtimes of its workers; with none there is one worker, in the runtime in which this is bound.
    pub(crate) workers: Vec<Handle>,
}

impl Listen<'_> {
    /// How connections are taken.
    pub(crate) fn config(&self) -> Result<ServerConfig, Failure> {
        let tls = tls::server_config(self.identity, self.protocols)?;
        let config =
            ServerConfig::new(tls).with_stored_sessions(SESSIONS_MAX).with_early_data(self.early_data);
        match &self.sealed_tickets {
            Some(keys) => config.with_sealed_tickets(keys.clone()),
            None => config,
        }
        .with_aead(self.transport.aead)
        .with_transport(self.transport.config.clone())
        .and_then(|config| config.with_address_validation(self.validation.clone()))
        .map_err(unusable)
    }

    /// The TLS of the same server over TCP.
    pub(crate) fn tcp_config(&self) -> Result<Arc<rustls::ServerConfig>, Failure> {
        tls::server_config(self.identity, &["h2", "http/1.1", "http/1.0"])
    }

    /// The key of stateless resets for the server at `addr`, the same after a restart. Servers that run side by side have keys of
    /// their own: with the same one each would give away the reset tokens of the others (RFC 9000 §21.11).
    fn kept_reset_key(&self, addr: SocketAddr) -> Option<[u8; 32]> {
        let secret = self.identity.reset_secret?;
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
        let tag = ring::hmac::sign(&key, format!("stateless reset {addr}").as_bytes());
        // A port that the system picks is another one next time.
        tag.as_ref().try_into().ok().filter(|_| addr.port() != 0)
    }

    /// Binds the socket, and tells the address it really has. Needs a runtime.
    pub(crate) fn bind(&self) -> Result<(Endpoint, Listening), Failure> {
        let config = self.config()?;
        let bind = |addr: SocketAddr| {
            let mut builder = self.transport.endpoint().server_config(config.clone());
            if !self.workers.is_empty() {
                builder = builder.runtimes(self.workers.clone());
            }
            match self.reset_key.or_else(|| self.kept_reset_key(addr)) {
                Some(key) => builder.config(EndpointConfig::new(ResetKey::new(&key))).bind(addr),
                None => builder.bind(addr),
            }
        };
        let endpoint = match self.addr {
            ListenAddr::One(addr) => bind(addr).map_err(Failure::io(format!("cannot listen on {addr}")))?,
            // Without IPv6 on the machine, IPv4 has to do.
            ListenAddr::All(port) => bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))
                .or_else(|_| bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))))
                .map_err(Failure::io(format!("cannot listen on port {port}")))?,
        };
        let listening =
            endpoint.local_addr().map_err(Failure::io("cannot tell the address of the socket"))?;
        Ok((endpoint, Listening::new(listening, self.identity.fingerprint().to_string())))
    }
}

/// What connections need that begin here. Why a certificate was refused can be read from the `Refusal`.
pub(crate) fn client_config(
    trust: &TrustArgs,
    cipher: Option<Cipher>,
    protocol: &'static str,
    transport: Transport,
) -> Result<(ClientConfig, Refusal), Failure> {
    let (tls, refusal) = tls::client_config(trust, cipher, protocol)?;
    let config = ClientConfig::new(tls).with_transport(transport.config.clone()).map_err(unusable)?;
    Ok((config.with_aead(transport.aead), refusal))
}

/// The socket of a client of the web, for IPv6 and IPv4.
pub(crate) fn web_endpoint(transport: &Transport) -> io::Result<Endpoint> {
    let any = |ip: std::net::IpAddr| transport.endpoint().bind((ip, 0).into());
    any(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| any(Ipv4Addr::UNSPECIFIED.into()))
}

/// A client of the web, over TCP alone where there is no endpoint. Why a certificate was refused can be read from the `Refusal`.
pub(crate) fn web_client(
    trust: &TrustArgs,
    cipher: Option<Cipher>,
    transport: &Transport,
    (endpoint, binds): (Option<Endpoint>, &Binds),
    sessions: Arc<SessionStore>,
    http: &HttpArgs,
) -> Result<(fulmar_h3::Client, Refusal), Failure> {
    let (tls, refusal) = tls::web_config(trust, cipher)?;
    let mut for_quic = tls.clone();
    for_quic.alpn_protocols = vec![fulmar_h3::ALPN.to_vec()];
    let quic = ClientConfig::new(Arc::new(for_quic))
        .with_transport(transport.config.clone())
        .map_err(unusable)?
        .with_aead(transport.aead)
        .with_sessions(sessions);
    let builder = fulmar_h3::Client::builder().tls(tls).quic(quic);
    let builder = match endpoint {
        Some(endpoint) => builder.endpoint(endpoint),
        None => builder.tcp_only(true),
    };
    let builder = builder.locals(binds.locals()).tcp_locals(binds.tcp_locals());
    let builder = http.resolve.iter().fold(builder, |builder, Resolved { server, addresses }| {
        builder.resolve(&server.host, server.port, addresses.clone())
    });
    let client = builder.http3_only(http.http3_only).build();
    Ok((client.map_err(|error| Failure::Tls(error.to_string()))?, refusal))
}

/// Completes the handshake with a client.
pub(crate) async fn accept(incoming: Incoming) -> Result<Connection, Failure> {
    let peer = incoming.remote_address().to_string();
    begin(incoming)?.await.map_err(Failure::connection(&peer))
}

/// Takes a client's connection at once, so that its early data is answered without waiting for the end of the handshake.
/// What is asked may have been asked before by the same client: this is for servers that do no harm by answering twice.
pub(crate) async fn accept_early(incoming: Incoming) -> Result<Connection, Failure> {
    let peer = incoming.remote_address().to_string();
    match begin(incoming)?.into_0rtt() {
        Ok(connection) => Ok(connection),
        Err(connecting) => connecting.await.map_err(Failure::connection(&peer)),
    }
}

fn begin(incoming: Incoming) -> Result<Connecting, Failure> {
    let peer = incoming.remote_address().to_string();
    incoming.accept().map_err(|error| Failure::Accept { peer, error })
}

/// Gives `endpoint` a moment to tell the peers that their connections are closed.
pub(crate) async fn farewell(endpoint: &Endpoint) {
    let _ = timeout(FAREWELL_MAX, endpoint.wait_idle()).await;
}

/// Takes what a stream has, many chunks at a time and without copying.
#[derive(Debug)]
pub(crate) struct Inbox([Bytes; CHUNKS_MAX]);

impl Inbox {
    pub(crate) fn new() -> Self {
        Self([const { Bytes::new() }; CHUNKS_MAX])
    }

    /// Waits for bytes and hands over those that are there; false at the end of the stream.
    pub(crate) async fn take(
        &mut self,
        recv: &mut RecvStream,
        mut each: impl FnMut(Bytes),
    ) -> Result<bool, ReadError> {
        let Some(count) = recv.read_chunks(&mut self.0).await? else { return Ok(false) };
        // Taken out and not just looked at: a chunk that is kept would keep its receive buffer from being reused.
        self.0[..count].iter_mut().map(std::mem::take).for_each(&mut each);
        Ok(true)
    }
}
