//! Finds the connection of a datagram, and answers datagrams that belong to none.
//!
//! Owns the tables from connection IDs and reset tokens to connections, the attempts that wait to be accepted,
//! and the stateless answers: Version Negotiation, Retry and Stateless Reset. It does not own the connections: the
//! caller does, under a [`ConnectionHandle`].
//!
//! RFC 8999; RFC 9000 §5.2 (matching packets to connections), §6 (version negotiation), §8.1 (address validation),
//! §10.3 (stateless reset).

mod early;
mod incoming;
mod reset_limit;
mod stateless;
mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;

use fulmar_base::{HashKey, Instant, KeyedMap, Rng};
use fulmar_wire::{
    ConnectionId, HeaderError, PreferredAddress, ProtectedKind, ProtectedPacket, ResetToken, Side,
    TransportErrorCode, Version, read_packet,
};
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use slab::Slab;
use thiserror::Error;

pub use incoming::Incoming;
use incoming::{AddressProof, FirstPacket, WaitingRoom};
use reset_limit::ResetLimit;
pub(crate) use stateless::trailing_token;
pub(crate) use tokens::TokenIssuer;
use tokens::{TokenJudge, TokenVerdict};

use crate::config::{ClientConfig, EndpointConfig, RetryPolicy, ServerConfig};
use crate::connection::{Admission, Connection, ConnectionSetup, random_cid};
use crate::crypto::TlsError;
use crate::datagram::{Datagram, Ecn, FourTuple, Transmit, TransmitBatch};
use crate::events::{EndpointEvent, EndpointEventInner};
use crate::sessions::{ServerKey, SessionView};
use crate::streams::SendMemory;

/// The name of a connection within its endpoint. It is reused after the connection has drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionHandle(pub usize);

/// What is to be done with a datagram.
#[derive(Debug)]
pub enum Route {
    /// It belongs to this connection: give it to [`Connection::handle_datagram`].
    Connection(ConnectionHandle, Datagram),
    /// A peer wants to connect: accept, refuse or ignore it.
    Incoming(Incoming),
    /// Send this answer, whose bytes are in the batch.
    Reply(Transmit),
    /// Nothing.
    Dropped(DropReason),
}

/// Why a datagram was dropped. Dropping is no error: anyone can send anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// It is not a QUIC packet.
    Malformed,
    /// It is long enough neither to be what it says nor to be answered.
    TooShort,
    /// It belongs to no connection and cannot start one.
    UnknownConnection,
    /// It starts a connection, but this endpoint is no server.
    NotAServer,
    /// It starts a connection, but its protection is broken.
    Unauthenticated,
    /// Too many attempts, or too many bytes of one attempt, are waiting.
    Overloaded,
    /// It belongs to an attempt that is waiting and was kept for it.
    Buffered,
}

/// Why a connection could not be started.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum ConnectError {
    /// The server's name is not a DNS name or an IP address.
    #[error("{0:?} is not a valid server name")]
    InvalidServerName(String),
    /// The TLS configuration cannot be used.
    #[error("{0}")]
    Tls(TlsError),
    /// The endpoint uses no connection IDs, and has a connection to this address already.
    #[error("without connection IDs there can be one connection to an address only")]
    AddressInUse,
}

/// Why a connection could not be accepted.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum AcceptError {
    /// The endpoint has no server configuration any more.
    #[error("this endpoint is no server")]
    NotAServer,
    /// The TLS configuration cannot be used.
    #[error("{0}")]
    Tls(TlsError),
    /// The endpoint uses no connection IDs, and has a connection to this address already.
    #[error("without connection IDs there can be one connection to an address only")]
    AddressInUse,
}

/// The client has followed a Retry already, and would follow no other (RFC 9000 §17.2.5.2). The attempt is given
/// back.
#[derive(Debug, Error)]
#[error("the client has followed a Retry already")]
pub struct RetryError(pub Box<Incoming>);

/// What the endpoint remembers of a connection, to forget it completely.
#[derive(Debug, Default)]
struct Registered {
    cids: Vec<ConnectionId>,
    reset_tokens: Vec<ResetToken>,
    /// Where the peer is, if the connection has no connection IDs.
    remote: Option<SocketAddr>,
    /// Whether it was accepted from an address that is not validated yet.
    half_open: bool,
}

/// What makes an endpoint a server.
#[derive(Debug)]
struct Serving {
    config: Arc<ServerConfig>,
    issuer: Arc<TokenIssuer>,
    judge: TokenJudge,
}

impl Serving {
    fn new(endpoint: &EndpointConfig, config: Arc<ServerConfig>) -> Self {
        let validation = &config.validation;
        let issuer = Arc::new(TokenIssuer::new(endpoint, validation));
        Self { issuer, judge: TokenJudge::new(validation), config }
    }
}

/// The room of all connections of one socket, for both roles.
#[derive(Debug)]
pub struct Endpoint {
    config: Arc<EndpointConfig>,
    server: Option<Serving>,
    rng: Rng,
    connections: Slab<Registered>,
    /// Connections whose peer's address is not validated.
    half_open: usize,
    by_cid: KeyedMap<ConnectionId, ConnectionHandle>,
    by_reset_token: KeyedMap<ResetToken, ConnectionHandle>,
    /// The connections without connection IDs, by the address of the peer.
    by_remote: KeyedMap<SocketAddr, ConnectionHandle>,
    reset_limit: ResetLimit,
    waiting: WaitingRoom,
    /// Shared with the connections.
    send_memory: Arc<SendMemory>,
}

impl Endpoint {
    /// An endpoint; with a server configuration it takes connections. `seed` decides all of its randomness:
    /// on a real network it must come from the operating system.
    pub fn new(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>, seed: [u8; 32]) -> Self {
        let mut rng = Rng::new(seed);
        let key = HashKey::new(&mut rng);
        Self {
            waiting: WaitingRoom::new(&config, key),
            reset_limit: ResetLimit::new(config.max_stateless_resets),
            server: server.map(|server| Serving::new(&config, server)),
            send_memory: SendMemory::new(config.send_memory),
            config,
            connections: Slab::new(),
            half_open: 0,
            by_cid: KeyedMap::new(key),
            by_reset_token: KeyedMap::new(key),
            by_remote: KeyedMap::new(key),
            rng,
        }
    }

    /// Starts or stops taking connections, or takes them in another way; those that exist live on. Which tokens
    /// were used is remembered.
    pub fn set_server_config(&mut self, server: Option<Arc<ServerConfig>>) {
        let before = self.server.take();
        self.server = server.map(|server| {
            let mut serving = Serving::new(&self.config, server);
            if let Some(before) = before {
                serving.judge = before.judge;
            }
            serving
        });
    }

    /// How many attempts to connect are half open: they wait to be accepted or were accepted, and nothing proves
    /// yet that their address is not forged.
    pub fn half_open(&self) -> usize {
        self.waiting.half_open() + self.half_open
    }

    /// How many connections have not drained yet.
    pub fn open_connections(&self) -> usize {
        self.connections.len()
    }

    /// Bytes of [`EndpointConfig::send_memory`] that connections have reserved.
    pub fn send_memory_reserved(&self) -> u64 {
        self.send_memory.reserved()
    }

    /// The connection that a datagram names by its connection ID, or by its address where there are no connection IDs. This
    /// costs next to nothing. Whatever else it may be - an attempt to connect, a stateless reset, noise - is given back, for
    /// [`handle_datagram`](Self::handle_datagram), where strangers can make an endpoint work.
    ///
    /// # Errors
    /// The datagram itself, if it names none.
    pub fn recognize(&self, datagram: Datagram) -> Result<(ConnectionHandle, Datagram), Datagram> {
        let packet = read_packet(&datagram.payload, self.config.cid_generator.cid_len());
        match packet.ok().and_then(|packet| self.known(&packet, datagram.addrs.remote)) {
            Some(handle) => Ok((handle, datagram)),
            None => Err(datagram),
        }
    }

    /// The connection that a packet names. It knows by itself which values of the QUIC bit it has announced to take.
    fn known(&self, packet: &ProtectedPacket, remote: SocketAddr) -> Option<ConnectionHandle> {
        match packet.dst.is_empty() {
            true => self.by_remote.get(&remote).copied(),
            false => self.by_cid.get(&packet.dst).copied(),
        }
    }

    /// Decides what is to be done with a datagram. An answer is written to `reply`.
    pub fn handle_datagram(&mut self, now: Instant, datagram: Datagram, reply: &mut TransmitBatch) -> Route {
        match read_packet(&datagram.payload, self.config.cid_generator.cid_len()) {
            Ok(packet) => self.route(now, packet, datagram, reply),
            Err(HeaderError::UnsupportedVersion(cids)) => {
                self.negotiate(&datagram, cids.dst(&datagram.payload), cids.src(&datagram.payload), reply)
            }
            Err(_) => self.route_reset(datagram).unwrap_or(Route::Dropped(DropReason::Malformed)),
        }
    }

    /// Whether what belongs to no connection may be a packet although its QUIC bit is not set (RFC 9287 §3): a client may
    /// remember that this server takes any value, and a connection that is forgotten here ends with a stateless reset.
    fn takes_any_quic_bit(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.config.transport.grease_quic_bit)
    }

    fn route(
        &mut self,
        now: Instant,
        packet: ProtectedPacket,
        datagram: Datagram,
        reply: &mut TransmitBatch,
    ) -> Route {
        if let Some(handle) = self.known(&packet, datagram.addrs.remote) {
            return Route::Connection(handle, datagram);
        }
        if !packet.quic_bit && !self.takes_any_quic_bit() {
            return self.route_reset(datagram).unwrap_or(Route::Dropped(DropReason::Malformed));
        }
        match packet.kind {
            ProtectedKind::Initial { .. } => self.handle_initial(now, packet, datagram, reply),
            // RFC 9000 §17.2.3: early data may overtake the packet that announces its connection.
            ProtectedKind::ZeroRtt { .. } if self.server.is_some() && packet.dst.len() >= 8 => {
                Route::Dropped(self.waiting.keep_early(packet.dst, datagram))
            }
            ProtectedKind::OneRtt { .. } => match self.route_reset(datagram) {
                Ok(route) => route,
                Err(datagram) => self.reset(now, &packet.dst, &datagram, reply),
            },
            _ => Route::Dropped(DropReason::UnknownConnection),
        }
    }

    /// A datagram that no connection ID claims may be a stateless reset (RFC 9000 §10.3.1).
    fn route_reset(&mut self, datagram: Datagram) -> Result<Route, Datagram> {
        match trailing_token(&datagram.payload).and_then(|token| self.by_reset_token.get(&token)) {
            Some(&handle) => Ok(Route::Connection(handle, datagram)),
            None => Err(datagram),
        }
    }

    fn handle_initial(
        &mut self,
        now: Instant,
        packet: ProtectedPacket,
        datagram: Datagram,
        reply: &mut TransmitBatch,
    ) -> Route {
        if self.waiting.knows(&packet.dst) {
            return Route::Dropped(self.waiting.keep(&packet.dst, datagram));
        }
        let (Some(server), ProtectedKind::Initial { token, .. }) = (&mut self.server, &packet.kind) else {
            return Route::Dropped(DropReason::NotAServer);
        };
        let Some(version) = packet.version else {
            return Route::Dropped(DropReason::Malformed);
        };
        if !self.config.supports(version) {
            return self.negotiate(&datagram, packet.dst.as_bytes(), packet.src.as_bytes(), reply);
        }
        // RFC 9000 §14.1: a client's first datagram is padded; §7.2: its connection ID has at least 8 bytes.
        if datagram.payload.len() < usize::from(crate::config::MTU_MIN) || packet.dst.len() < 8 {
            return Route::Dropped(DropReason::TooShort);
        }
        // Nothing is kept of a datagram that was not made by a client: corruption on the way must not leave
        // a half-open connection behind.
        if !stateless::is_authentic_initial(&packet, version, &datagram.payload, server.config.aead) {
            return Route::Dropped(DropReason::Unauthenticated);
        }
        if self.waiting.is_full() || datagram.payload.len() > self.config.max_incoming_bytes {
            return Route::Dropped(DropReason::Overloaded);
        }
        let first = FirstPacket { addrs: datagram.addrs, version, dst: packet.dst, src: packet.src };
        let (from, token) = ((first.addrs.remote, &first.dst), &datagram.payload[token.clone()]);
        let proof = match server.judge.check(&server.issuer, now, version, from, token) {
            TokenVerdict::Nothing => AddressProof::Missing,
            TokenVerdict::Retried { original_dcid } => AddressProof::Retried { original_dcid },
            TokenVerdict::Known => AddressProof::Known,
            // RFC 9000 §8.1.2.
            TokenVerdict::InvalidRetry => {
                return Route::Reply(self.close_unasked(&first, TransportErrorCode::INVALID_TOKEN, reply));
            }
        };
        if proof == AddressProof::Missing && self.wants_proof() {
            return self.write_retry(now, &first, reply);
        }
        Route::Incoming(self.waiting.admit(first, proof, datagram))
    }

    /// Whether a client that has proven nothing is sent a Retry.
    fn wants_proof(&self) -> bool {
        match self.server.as_ref().map(|server| server.config.validation.retry) {
            Some(RetryPolicy::Always) => true,
            Some(RetryPolicy::Auto { half_open }) => self.half_open() >= half_open,
            Some(RetryPolicy::Never) | None => false,
        }
    }

    /// Asks a client to come back with a token, for which nothing is remembered (RFC 9000 §8.1.2).
    fn write_retry(&mut self, now: Instant, first: &FirstPacket, reply: &mut TransmitBatch) -> Route {
        let Some(server) = &self.server else {
            return Route::Dropped(DropReason::NotAServer);
        };
        let cid = self.config.cid_generator.generate(&mut self.rng);
        let cids = (&first.dst, &cid);
        let (version, remote) = (first.version, first.addrs.remote);
        let token = server.issuer.retry_token(&mut self.rng, now, version, remote, cids);
        let len = stateless::write_retry(&mut self.rng, first, &cid, &token, reply);
        Route::Reply(Transmit { addrs: first.addrs, ecn: Ecn::NotEct, len, segment_size: None })
    }

    /// Turns a client away of which nothing is remembered.
    fn close_unasked(
        &mut self,
        first: &FirstPacket,
        code: TransportErrorCode,
        reply: &mut TransmitBatch,
    ) -> Transmit {
        let local_cid = self.config.cid_generator.generate(&mut self.rng);
        let aead = self.server.as_ref().map(|server| server.config.aead).unwrap_or_default();
        first.write_close(code, local_cid, aead, reply)
    }

    /// Answers a version that is not spoken here, if there is a server (RFC 9000 §6.1).
    fn negotiate(&mut self, datagram: &Datagram, dst: &[u8], src: &[u8], reply: &mut TransmitBatch) -> Route {
        if self.server.is_none() {
            return Route::Dropped(DropReason::NotAServer);
        }
        if datagram.payload.len() < usize::from(crate::config::MTU_MIN) {
            return Route::Dropped(DropReason::TooShort);
        }
        let len = stateless::write_version_negotiation(&mut self.rng, dst, src, &self.config.versions, reply);
        Route::Reply(stateless::answer(datagram, len))
    }

    fn reset(
        &mut self,
        now: Instant,
        dst: &ConnectionId,
        datagram: &Datagram,
        reply: &mut TransmitBatch,
    ) -> Route {
        // Without connection IDs, one token would end the connections of all peers.
        if dst.is_empty() {
            return Route::Dropped(DropReason::UnknownConnection);
        }
        if !self.reset_limit.take(now) {
            return Route::Dropped(DropReason::Overloaded);
        }
        let token = self.config.reset_token(dst);
        match stateless::write_reset(&mut self.rng, token, datagram.payload.len(), reply) {
            Some(len) => Route::Reply(stateless::answer(datagram, len)),
            None => Route::Dropped(DropReason::TooShort),
        }
    }

    /// Starts a connection to a server.
    ///
    /// # Errors
    /// If the name is not valid or the TLS configuration cannot be used.
    pub fn connect(
        &mut self,
        now: Instant,
        config: &ClientConfig,
        addrs: FourTuple,
        server_name: &str,
    ) -> Result<(ConnectionHandle, Connection), ConnectError> {
        let name = ServerName::try_from(server_name)
            .map_err(|_: InvalidDnsNameError| ConnectError::InvalidServerName(server_name.to_owned()))?
            .to_owned();
        let server = ServerKey { name: server_name.to_ascii_lowercase(), port: addrs.remote.port() };
        let setup = ConnectionSetup {
            side: Side::Client,
            version: self.first_version(config, &server),
            local_cid: self.config.cid_generator.generate(&mut self.rng),
            preferred_address: None,
            // RFC 9000 §7.2: at least 8 unpredictable bytes.
            remote_cid: random_cid(&mut self.rng),
            addrs,
            endpoint: self.config.clone(),
            transport: config.transport.clone(),
            send_memory: self.send_memory.clone(),
            aead: config.aead,
            rng: self.rng.fork(),
            now,
        };
        let local_cid = setup.local_cid;
        if local_cid.is_empty() && self.by_remote.contains_key(&addrs.remote) {
            return Err(ConnectError::AddressInUse);
        }
        let sessions = config
            .sessions
            .clone()
            .map(|store| SessionView::new(store, server, self.config.epoch, setup.version));
        let mut connection = Connection::client(setup, &config.tls, name, sessions, config.early_data)
            .map_err(ConnectError::Tls)?;
        match &config.saved_path {
            Some(saved) => connection.resume_congestion(saved.clone()),
            None => connection.resume_remembered(now),
        }
        Ok((self.register(&[local_cid], addrs.remote), connection))
    }

    /// The version of a client's first packets: one in which a session can be resumed, or else the configured one.
    fn first_version(&self, config: &ClientConfig, server: &ServerKey) -> Version {
        let versions = &self.config.versions;
        let resumed = config.sessions.as_ref().and_then(|store| store.version_of_session(server, versions));
        let first = resumed.or(self.config.initial_version).or(versions.first().copied());
        first.unwrap_or(Version::V1)
    }

    /// Accepts a connection. It has already seen the datagrams that arrived so far.
    ///
    /// # Errors
    /// If the endpoint is no server any more or the TLS configuration cannot be used.
    pub fn accept(
        &mut self,
        now: Instant,
        incoming: Incoming,
    ) -> Result<(ConnectionHandle, Connection), AcceptError> {
        let datagrams = self.waiting.leave(&incoming);
        let Some(server) = &self.server else {
            return Err(AcceptError::NotAServer);
        };
        let (config, issuer) = (server.config.clone(), server.issuer.clone());
        let Incoming { first, proof, .. } = incoming;
        let local_cid = self.config.cid_generator.generate(&mut self.rng);
        if local_cid.is_empty() && self.by_remote.contains_key(&first.addrs.remote) {
            return Err(AcceptError::AddressInUse);
        }
        let preferred_address = self.preferred_address(&config);
        let setup = ConnectionSetup {
            side: Side::Server,
            version: first.version,
            local_cid,
            preferred_address,
            remote_cid: first.src,
            addrs: first.addrs,
            endpoint: self.config.clone(),
            transport: config.transport.clone(),
            send_memory: self.send_memory.clone(),
            aead: config.aead,
            rng: self.rng.fork(),
            now,
        };
        let admission = Admission {
            first_dcid: first.dst,
            original_dcid: match proof {
                AddressProof::Retried { original_dcid } => original_dcid,
                AddressProof::Missing | AddressProof::Known => first.dst,
            },
            retry_scid: matches!(proof, AddressProof::Retried { .. }).then_some(first.dst),
            validated: proof != AddressProof::Missing,
            issuer,
        };
        let half_open = !admission.validated;
        let mut connection = Connection::server(setup, &config.tls, admission).map_err(AcceptError::Tls)?;
        let handle = self.register(&[local_cid, first.dst], first.addrs.remote);
        if let Some(preferred) = preferred_address {
            self.add_cid(handle, preferred.cid);
        }
        self.connections[handle.0].half_open = half_open;
        self.half_open += usize::from(half_open);
        for datagram in datagrams {
            connection.handle_datagram(now, datagram);
        }
        Ok((handle, connection))
    }

    /// Turns a connection attempt down with CONNECTION_REFUSED.
    pub fn refuse(&mut self, incoming: Incoming, reply: &mut TransmitBatch) -> Transmit {
        self.waiting.leave(&incoming);
        self.close_unasked(&incoming.first, TransportErrorCode::CONNECTION_REFUSED, reply)
    }

    /// Asks the client of an attempt to prove its address (RFC 9000 §8.1.2). The attempt is forgotten; the client
    /// comes back with another one, which is validated.
    ///
    /// # Errors
    /// If the client did so already, see [`Incoming::may_retry`].
    pub fn retry(
        &mut self,
        now: Instant,
        incoming: Incoming,
        reply: &mut TransmitBatch,
    ) -> Result<Option<Transmit>, RetryError> {
        if !incoming.may_retry() {
            return Err(RetryError(Box::new(incoming)));
        }
        self.waiting.leave(&incoming);
        match self.write_retry(now, &incoming.first, reply) {
            Route::Reply(transmit) => Ok(Some(transmit)),
            _ => Ok(None),
        }
    }

    /// Forgets a connection attempt without an answer.
    pub fn ignore(&mut self, incoming: Incoming) {
        self.waiting.leave(&incoming);
    }

    /// The address where a server would rather be, with a connection ID for it (RFC 9000 §9.6).
    fn preferred_address(&mut self, server: &ServerConfig) -> Option<PreferredAddress> {
        let (v4, v6) = server.preferred;
        if (v4.is_none() && v6.is_none()) || self.config.cid_generator.cid_len() == 0 {
            return None;
        }
        let cid = self.config.cid_generator.generate(&mut self.rng);
        Some(PreferredAddress { v4, v6, cid, reset_token: self.config.reset_token(&cid) })
    }

    fn register(&mut self, cids: &[ConnectionId], remote: SocketAddr) -> ConnectionHandle {
        let mut registered = Registered::default();
        if self.config.cid_generator.cid_len() == 0 {
            registered.remote = Some(remote);
        }
        let by_remote = registered.remote;
        let handle = ConnectionHandle(self.connections.insert(registered));
        if let Some(remote) = by_remote {
            self.by_remote.insert(remote, handle);
        }
        for &cid in cids {
            self.add_cid(handle, cid);
        }
        handle
    }

    fn add_cid(&mut self, handle: ConnectionHandle, cid: ConnectionId) {
        if let Some(registered) = self.connections.get_mut(handle.0).filter(|_| !cid.is_empty()) {
            registered.cids.push(cid);
            self.by_cid.insert(cid, handle);
        }
    }

    /// Takes what a connection told through [`Connection::poll_endpoint_event`].
    pub fn handle_event(&mut self, handle: ConnectionHandle, event: EndpointEvent) {
        match event.0 {
            EndpointEventInner::CidIssued(cid) => self.add_cid(handle, cid),
            EndpointEventInner::CidRetired(cid) => {
                if let Some(registered) = self.connections.get_mut(handle.0) {
                    registered.cids.retain(|c| *c != cid);
                    self.by_cid.remove(&cid);
                }
            }
            EndpointEventInner::ResetTokenLearned(token) => {
                if let Some(registered) = self.connections.get_mut(handle.0) {
                    registered.reset_tokens.push(token);
                    self.by_reset_token.insert(token, handle);
                }
            }
            EndpointEventInner::ResetTokenForgotten(token) => {
                if let Some(registered) = self.connections.get_mut(handle.0) {
                    registered.reset_tokens.retain(|t| *t != token);
                    self.by_reset_token.remove(&token);
                }
            }
            EndpointEventInner::AddressValidated => self.close_half(handle),
            EndpointEventInner::Drained => self.forget(handle),
        }
    }

    /// The connection is half open no more.
    fn close_half(&mut self, handle: ConnectionHandle) {
        if let Some(registered) = self.connections.get_mut(handle.0) {
            self.half_open -= usize::from(std::mem::take(&mut registered.half_open));
        }
    }

    fn forget(&mut self, handle: ConnectionHandle) {
        self.close_half(handle);
        let Some(registered) = self.connections.try_remove(handle.0) else {
            return;
        };
        for cid in registered.cids {
            self.by_cid.remove(&cid);
        }
        if let Some(remote) = registered.remote {
            self.by_remote.remove(&remote);
        }
        for token in registered.reset_tokens {
            self.by_reset_token.remove(&token);
        }
    }
}
