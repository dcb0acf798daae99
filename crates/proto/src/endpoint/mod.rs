//! Finds the connection of a datagram, and answers datagrams that belong to none.
//!
//! Owns the tables from connection IDs and reset tokens to connections, the attempts that wait to be accepted,
//! and the stateless answers: Version Negotiation, Retry and Stateless Reset. It does not own the connections: the
//! caller does, under a [`ConnectionHandle`].
//!
//! RFC 8999; RFC 9000 §5.2 (matching packets to connections), §6 (version negotiation), §8.1 (address validation),
//! §10.3 (stateless reset).

mod accept;
mod closed;
mod connect;
mod early;
mod error;
mod incoming;
mod initial;
mod registry;
mod reset_limit;
mod reset_tokens;
mod route;
mod shared;
mod stateless;

use std::sync::Arc;

use fulmar_base::{HashKey, Instant, Rng};
use fulmar_wire::{ConnectionId, HeaderError, ProtectedKind, ProtectedPacket, read_packet};

pub use accept::{AcceptProgress, AcceptWork, Accepting};
use closed::ClosedConnections;
pub use error::{AcceptError, ConnectError, RetryError};
pub use incoming::Incoming;
use incoming::WaitingRoom;
use registry::Registry;
use reset_tokens::ResetTokens;
pub use route::{ConnectionHandle, Destination, DropReason, Recognized, Route};
pub use shared::EndpointShared;

use crate::config::{EndpointConfig, ServerConfig};
use crate::crypto::trailing_token;
use crate::datagram::{Datagram, TransmitBatch};
use crate::events::{EndpointEvent, EndpointEventInner};
use crate::tokens::TokenIssuer;

/// What makes an endpoint a server.
#[derive(Debug)]
struct Serving {
    config: Arc<ServerConfig>,
    issuer: Arc<TokenIssuer>,
}

impl Serving {
    fn new(endpoint: &EndpointConfig, config: Arc<ServerConfig>) -> Self {
        let issuer = Arc::new(TokenIssuer::new(endpoint, &config.validation));
        Self { issuer, config }
    }
}

/// The room of all connections of one socket, for both roles.
#[derive(Debug)]
pub struct Endpoint {
    config: Arc<EndpointConfig>,
    server: Option<Serving>,
    rng: Rng,
    connections: Registry,
    closed: ClosedConnections,
    waiting: WaitingRoom,
    /// When there were last so many half-open connections that clients had to prove their addresses.
    wanted_proof: Option<Instant>,
    shared: Arc<EndpointShared>,
}

impl Endpoint {
    /// An endpoint; with a server configuration it takes connections. `seed` decides all of its randomness:
    /// on a real network it must come from the operating system.
    pub fn new(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>, seed: [u8; 32]) -> Self {
        let shared = EndpointShared::new(&config);
        Self::with_shared(shared, config, server, seed)
    }

    /// One of several endpoints that keep `shared` together: another worker's. Each needs a seed of its own, and the same
    /// configuration.
    pub fn with_shared(
        shared: Arc<EndpointShared>,
        config: Arc<EndpointConfig>,
        server: Option<Arc<ServerConfig>>,
        seed: [u8; 32],
    ) -> Self {
        let mut rng = Rng::new(seed);
        let key = HashKey::new(&mut rng);
        Self {
            waiting: WaitingRoom::new(&config, key),
            server: server.map(|server| Serving::new(&config, server)),
            config,
            connections: Registry::new(key, ResetTokens::new(shared.reset_tokens.clone(), key)),
            closed: ClosedConnections::new(key),
            wanted_proof: None,
            shared,
            rng,
        }
    }

    /// Starts or stops taking connections, or takes them in another way; those that exist live on. Which tokens
    /// were used is remembered.
    pub fn set_server_config(&mut self, server: Option<Arc<ServerConfig>>) {
        self.server = server.map(|server| Serving::new(&self.config, server));
    }

    /// What this endpoint keeps together with others, if there are others.
    pub fn shared(&self) -> &Arc<EndpointShared> {
        &self.shared
    }

    /// Which of the endpoints that share this one is: they are numbered from 0 on, in the order in which they were made.
    pub fn number(&self) -> usize {
        self.connections.endpoint()
    }

    /// How many attempts to connect are half open, at all endpoints that share. See [`EndpointShared::half_open`].
    pub fn half_open(&self) -> usize {
        self.shared.half_open()
    }

    /// How many connections are open, or closed by this end and not forgotten yet: their peers may have to be told again.
    pub fn open_connections(&self) -> usize {
        self.connections.len() + self.closed.closing()
    }

    /// How many connections this end has closed and left to the endpoint that are not forgotten yet.
    pub fn closing_connections(&self) -> usize {
        self.closed.closing()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called by whoever waits until there are no
    /// [`open_connections`](Self::open_connections). Nobody else need call it.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.closed.closing_until()
    }

    /// Forgets connections that were left to the endpoint, as far as their time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.closed.forget_until(now);
    }

    /// Bytes of [`EndpointConfig::send_memory`] that connections have reserved, at all endpoints that share.
    pub fn send_memory_reserved(&self) -> u64 {
        self.shared.send_memory_reserved()
    }

    /// Bytes of [`EndpointConfig::receive_memory`] that connections have reserved, at all endpoints that share.
    pub fn receive_memory_reserved(&self) -> u64 {
        self.shared.receive_memory_reserved()
    }

    /// The connection, and its path, that a datagram names by its connection ID, or by its address where there are no connection IDs. This
    /// costs next to nothing. Whatever else it may be - an attempt to connect, a stateless reset, noise - is given back, for
    /// [`handle_datagram`](Self::handle_datagram), which may cost much more and which anyone can cause.
    pub fn recognize(&mut self, datagram: Datagram) -> Recognized {
        if let Some(destination) = self.connections.find_again(&datagram.payload) {
            return Recognized::Connection(destination, datagram);
        }
        let Ok(packet) = read_packet(&datagram.payload, self.config.cid_generator.cid_len()) else {
            return Recognized::Unknown(datagram);
        };
        match self.connections.find(&packet.dst, &datagram.addrs.remote) {
            Some(destination) => Recognized::Connection(destination, datagram),
            None if self.closed.ignores(&packet.dst) => Recognized::Closed,
            None => Recognized::Unknown(datagram),
        }
    }

    /// Decides what is to be done with a datagram. An answer is written to `reply`.
    pub fn handle_datagram(&mut self, now: Instant, datagram: Datagram, reply: &mut TransmitBatch) -> Route {
        self.handle_late_datagram(now, now, datagram, reply)
    }

    /// The same for a datagram that came at `came`, and has waited since. What is over by `now` may not have been then: a packet of a connection
    /// that was closed meanwhile is none of another one (RFC 9000 §10.2.2), and who came when clients had to prove their addresses has to.
    /// Datagrams that have waited are given in the order in which they came.
    pub fn handle_late_datagram(
        &mut self,
        now: Instant,
        came: Instant,
        datagram: Datagram,
        reply: &mut TransmitBatch,
    ) -> Route {
        let came = came.min(now);
        self.handle_timeout(came);
        if let Some(destination) = self.connections.find_again(&datagram.payload) {
            return Route::Connection(destination.connection, datagram);
        }
        match read_packet(&datagram.payload, self.config.cid_generator.cid_len()) {
            Ok(packet) => self.route((now, came), packet, datagram, reply),
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
        times: (Instant, Instant),
        packet: ProtectedPacket,
        datagram: Datagram,
        reply: &mut TransmitBatch,
    ) -> Route {
        // A connection knows by itself which values of the QUIC bit it has announced to take.
        if let Some(destination) = self.connections.find(&packet.dst, &datagram.addrs.remote) {
            return Route::Connection(destination.connection, datagram);
        }
        if self.closed.knows(&packet.dst) {
            let answer = self.closed.answer(&packet.dst, &datagram, reply);
            return answer.map_or(Route::Dropped(DropReason::ConnectionClosed), |len| {
                Route::Reply(stateless::answer(&datagram, len))
            });
        }
        if !packet.quic_bit && !self.takes_any_quic_bit() {
            return self.route_reset(datagram).unwrap_or(Route::Dropped(DropReason::Malformed));
        }
        match packet.kind {
            ProtectedKind::Initial { .. } => self.handle_initial(times, packet, datagram, reply),
            // RFC 9000 §17.2.3: early data may overtake the packet that announces its connection.
            ProtectedKind::ZeroRtt { .. } if self.server.is_some() && self.may_be_first_dst(&packet.dst) => {
                Route::Dropped(self.waiting.keep_early(packet.dst, datagram))
            }
            ProtectedKind::OneRtt { .. } => match self.route_reset(datagram) {
                Ok(route) => route,
                Err(datagram) => self.reset(times.0, &packet.dst, &datagram, reply),
            },
            _ => Route::Dropped(DropReason::UnknownConnection),
        }
    }

    /// A datagram that no connection ID claims may be a stateless reset (RFC 9000 §10.3.1).
    fn route_reset(&mut self, datagram: Datagram) -> Result<Route, Datagram> {
        match trailing_token(&datagram.payload).and_then(|token| self.connections.find_reset(&token)) {
            Some(handle) => Ok(Route::Connection(handle, datagram)),
            None => Err(datagram),
        }
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
        if !self.shared.take_reset(now) {
            return Route::Dropped(DropReason::Overloaded);
        }
        let token = self.config.reset_token(dst);
        match stateless::write_reset(&mut self.rng, token, datagram.payload.len(), reply) {
            Some(len) => Route::Reply(stateless::answer(datagram, len)),
            None => Route::Dropped(DropReason::TooShort),
        }
    }

    /// Takes an event of [`Connection::poll_endpoint_event`](crate::Connection::poll_endpoint_event).
    pub fn handle_event(&mut self, handle: ConnectionHandle, event: EndpointEvent) {
        let connections = &mut self.connections;
        match event.0 {
            EndpointEventInner::CidIssued(path, cid) => {
                connections.add_cid(Destination { connection: handle, path }, cid)
            }
            EndpointEventInner::CidRetired(cid) => connections.remove_cid(handle, cid),
            EndpointEventInner::ResetTokenLearned(token) => connections.add_reset_token(handle, token),
            EndpointEventInner::ResetTokenForgotten(token) => connections.remove_reset_token(handle, token),
            EndpointEventInner::AddressValidated => connections.close_half(handle),
            EndpointEventInner::Drained => drop(connections.remove(handle)),
            EndpointEventInner::Left { until, packet } => {
                let cids = connections.remove(handle);
                // What names no connection is not answered.
                if !cids.is_empty() {
                    self.closed.add(until, cids, packet);
                }
            }
        }
    }
}
