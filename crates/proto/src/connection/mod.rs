//! A connection: the components it is composed of and how they meet.
//!
//! | file | what it owns |
//! |---|---|
//! | `mod` | struct [`Connection`]: construction and its public methods |
//! | `lifecycle` | handshaking, established, closing, draining, drained |
//! | `handshake`, `crypto_stream` | TLS, keys |
//! | `versions`, `early_data` | which version is spoken; what is sent before the handshake is complete |
//! | `address_tokens` | tokens for later connections |
//! | `parameters` | the transport parameters of both ends |
//! | `spaces` | the packet number spaces of the handshake; probes |
//! | `receive`, `opening`, `undecryptable` | a datagram in; its packets opened, or kept for later |
//! | `retry` | a client that has to prove its address first |
//! | `dispatch` | **the list** frame -> owner |
//! | `transmit` | datagrams out, in trains |
//! | `slot` | what the next datagram may be used for, and why none may be sent |
//! | `build` | one datagram: its packets, sealed and recorded |
//! | `elsewhere` | datagrams over a tuple that is not in use |
//! | `write_order` | **the list** of writers in the order of their priority |
//! | `delivery` | **the list** token -> owner, on acknowledgement and on loss |
//! | `migration` | which addresses are used, and whether they work |
//! | `recovery` | acknowledgements, losses, probe timeouts |
//! | `repetition` | flights of a handshake that are repeated before a timeout |
//! | `timers` | when to wake, and why |
//! | `idle`, `vigil`, `close` | silence and the end |
//! | `stats`, `log` | figures; what is noted in the log |
//!
//! It must not know sockets, clocks or threads, and no component may know it: components get values and give
//! values back.

mod address_tokens;
mod build;
mod close;
mod crypto_stream;
mod delivery;
mod dispatch;
mod early_data;
mod elsewhere;
mod handshake;
mod idle;
mod lifecycle;
mod log;
mod migration;
mod opening;
mod parameters;
mod receive;
mod recovery;
mod repetition;
mod resume;
mod retry;
mod slot;
mod spaces;
mod stats;
mod timers;
mod transmit;
mod undecryptable;
mod versions;
mod vigil;
mod write_order;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fulmar_base::{Instant, Rng, Timer};
use fulmar_wire::{
    CloseCode, ConnectionId, Dialect, FrameType, PreferredAddress, Side, TransportParameters, VarInt, Version,
};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};

pub use self::early_data::EarlyData;
pub use self::migration::MigrateError;
pub use self::spaces::SpaceId;
pub use self::stats::ConnectionStats;
pub use self::timers::TimerReason;

use self::address_tokens::AddressTokens;
use self::close::Close;
use self::early_data::RememberedLimits;
use self::handshake::{Handshake, Progress};
use self::idle::Idle;
use self::lifecycle::Lifecycle;
use self::parameters::{OfServer, local_parameters};
use self::repetition::Repetition;
use self::spaces::{EarlySpaces, Probes};
use self::stats::Counters;
use self::undecryptable::Undecryptable;
use self::versions::{ClientVersions, FirstFlight, ServerVersions};
pub(crate) use self::versions::{random_cid, reserved};
use self::vigil::Vigil;
use crate::config::{EndpointConfig, TransportConfig};
use crate::crypto::{AeadBackend, Session, TlsError};
use crate::datagram::FourTuple;
use crate::datagrams::{
    DatagramEvent, DatagramId, DatagramOptions, Datagrams, DroppedDatagram, SendDatagramError,
};
use crate::endpoint::TokenIssuer;
use crate::error::TransportError;
use crate::events::{ConnectionError, EndpointEvent, EndpointEventInner, Event};
use crate::ext::{AckFrequency, AddressDiscovery, QuicBit, Timestamps};
use crate::log::{ConnectionLog, ConnectionState, LogEvent};
use crate::path::{AddressCredit, Path, Tuple, TupleId};
use crate::sessions::SessionView;
use crate::space::{AckOutcome, AckPolicy, NumberSpace, PtoBackoff};
use crate::streams::{SendMemory, Streams};

/// What a connection is made from.
pub(crate) struct ConnectionSetup {
    pub(crate) side: Side,
    pub(crate) version: Version,
    /// The connection ID of this end in the handshake.
    pub(crate) local_cid: ConnectionId,
    /// Where the first packet goes: made up by a client, the client's own ID for a server.
    pub(crate) remote_cid: ConnectionId,
    /// Where a server asks its client to move to.
    pub(crate) preferred_address: Option<PreferredAddress>,
    pub(crate) addrs: FourTuple,
    pub(crate) endpoint: Arc<EndpointConfig>,
    pub(crate) transport: Arc<TransportConfig>,
    /// What all connections of the endpoint may buffer for sending.
    pub(crate) send_memory: Arc<SendMemory>,
    pub(crate) aead: AeadBackend,
    pub(crate) rng: Rng,
    pub(crate) now: Instant,
}

/// How a server came to accept a connection.
pub(crate) struct Admission {
    /// Where the client sent the packet that was accepted: its Initial keys are made of it.
    pub(crate) first_dcid: ConnectionId,
    /// Where the client sent its very first packet; another ID if it has followed a Retry.
    pub(crate) original_dcid: ConnectionId,
    /// The ID that the Retry gave it, if it has.
    pub(crate) retry_scid: Option<ConnectionId>,
    /// Whether the address is proven.
    pub(crate) validated: bool,
    /// Makes the tokens for the client's later connections.
    pub(crate) issuer: Arc<TokenIssuer>,
}

/// A QUIC connection as a state machine without I/O.
///
/// In: [`Connection::handle_datagram`], [`Connection::handle_timeout`] and the calls of the application. Out:
/// [`Connection::poll_transmit`], [`Connection::poll_timeout`], [`Connection::poll_event`] and
/// [`Connection::poll_endpoint_event`].
///
/// After every call that goes in, the caller drains what comes out: all transmissions, endpoint events and
/// events, and arms its timer. `now` never goes back. The same inputs give the same outputs.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    version: Version,
    /// The version of the client's first packets.
    original_version: Version,
    /// All that this end knows, the best first.
    known_versions: Vec<Version>,
    client_versions: Option<ClientVersions>,
    /// What a client begins anew with, until it has heard of the server.
    first_flight: Option<Box<FirstFlight>>,
    early_data: EarlyData,
    remembered: Option<RememberedLimits>,
    /// The source connection ID of long headers.
    local_cid: ConnectionId,
    /// How frames are encoded; multipath would change it.
    dialect: Dialect,
    config: Arc<TransportConfig>,
    rng: Rng,

    lifecycle: Lifecycle,
    handshake: Handshake,
    spaces: EarlySpaces,
    path: Path,
    streams: Streams,
    datagrams: Datagrams,
    ack_frequency: Option<AckFrequency>,
    address_discovery: Option<AddressDiscovery>,
    quic_bit: Option<QuicBit>,
    timestamps: Option<Timestamps>,
    address_tokens: AddressTokens,
    /// Makes tokens for the client (servers only).
    issuer: Option<Arc<TokenIssuer>>,
    /// What is remembered of the server, and will be (clients only).
    sessions: Option<Arc<SessionView>>,
    idle: Idle,
    vigil: Vigil,
    close: Option<Close>,
    undecryptable: Undecryptable,

    /// Probe timeouts in a row, common to all spaces.
    pto: PtoBackoff,
    /// When the probe timeout was last started anew.
    pto_base_time: Instant,
    probes: Probes,
    repetition: Repetition,
    /// Whether a Handshake packet of this end was acknowledged.
    handshake_acked: bool,
    /// The address that the server prefers, while it is being tried.
    preferred: Option<SocketAddr>,
    pacing: Timer,
    /// The datagram at hand arrived where this end sends from no more.
    ignores_challenges: bool,
    /// The memory of the last ACK's outcome, reused.
    outcome: AckOutcome,

    events: VecDeque<Event>,
    endpoint_events: VecDeque<EndpointEventInner>,
    stats: Counters,
    log: Option<Box<ConnectionLog>>,
}

impl Connection {
    /// A client's connection; its first packets are ready to be sent. `sessions` is what is remembered of the
    /// server.
    pub(crate) fn client(
        mut setup: ConnectionSetup,
        tls: &rustls::ClientConfig,
        name: ServerName<'static>,
        sessions: Option<Arc<SessionView>>,
        early_data: bool,
    ) -> Result<Self, TlsError> {
        let mut tls = tls.clone();
        tls.enable_early_data = early_data;
        // RFC 9369 §5: what rustls would remember by itself is not kept apart by the version of QUIC.
        tls.resumption = match &sessions {
            Some(sessions) => Resumption::store(sessions.clone()),
            None => Resumption::disabled(),
        };
        let parameters = local_parameters(&setup, None);
        let mut first_flight = FirstFlight { tls, name, parameters, aead: setup.aead };
        let known = setup.endpoint.versions.clone();
        let session = first_flight.session(setup.version, &known, &mut setup.rng)?;
        let (original_dcid, version) = (setup.remote_cid, setup.version);
        let mut connection = Self::new(setup, session, original_dcid);
        connection.client_versions = Some(ClientVersions::new(known, version));
        connection.first_flight = Some(Box::new(first_flight));
        if let Some(token) = sessions.as_ref().and_then(|sessions| sessions.take_token()) {
            connection.handshake.set_token(token);
        }
        connection.sessions = sessions;
        connection.handshake.drive();
        connection.offer_early_data();
        Ok(connection)
    }

    /// A server's connection.
    pub(crate) fn server(
        mut setup: ConnectionSetup,
        tls: &Arc<rustls::ServerConfig>,
        admission: Admission,
    ) -> Result<Self, TlsError> {
        let Admission { first_dcid, original_dcid, retry_scid, validated, issuer } = admission;
        let cids = OfServer { original_dcid, retry_scid };
        let mut versions = ServerVersions {
            tls: tls.clone(),
            parameters: local_parameters(&setup, Some(cids)),
            known: setup.endpoint.versions.clone(),
            original: setup.version,
            aead: setup.aead,
            rng: setup.rng.fork(),
        };
        let session = versions.session(setup.version)?;
        let mut connection = Self::new(setup, session, first_dcid);
        connection.handshake.set_negotiation(versions);
        connection.issuer = Some(issuer);
        if validated {
            connection.path.tuple.credit.validate();
        }
        Ok(connection)
    }

    fn new(setup: ConnectionSetup, session: Session, original_dcid: ConnectionId) -> Self {
        let ConnectionSetup {
            side,
            version,
            local_cid,
            remote_cid,
            preferred_address,
            addrs,
            endpoint,
            transport,
            send_memory,
            aead,
            mut rng,
            now,
        } = setup;
        let mut space = |policy| NumberSpace::new(policy, &mut rng);
        let spaces = EarlySpaces {
            initial: Some(space(AckPolicy::IMMEDIATE)),
            handshake: Some(space(AckPolicy::IMMEDIATE)),
        };
        let data = space(AckPolicy { max_ack_delay: transport.max_ack_delay, ..AckPolicy::default() });
        let mut path_rng = rng.fork();
        let credit = AddressCredit::new(side.is_client());
        let mut tuple = Tuple::new(TupleId(0), addrs, credit, &transport, now, &mut path_rng);
        // The handshake proves the address (RFC 9000 §8.1), and before its end there is no other.
        tuple.validated = true;
        let known_versions = endpoint.versions.clone();
        let cids_max = transport.connection_ids;
        let mut path = Path::new(data, local_cid, remote_cid, tuple, cids_max, endpoint, path_rng);
        if let Some(preferred) = preferred_address {
            path.local_cids.add_preferred(preferred.cid);
        }
        let level = (side, version, aead);
        Self {
            side,
            version,
            original_version: version,
            known_versions,
            client_versions: None,
            first_flight: None,
            early_data: EarlyData::Unused,
            remembered: None,
            local_cid,
            dialect: Dialect::SinglePath,
            lifecycle: Lifecycle::new(),
            handshake: Handshake::new(session, level, original_dcid, now, transport.handshake_timeout),
            spaces,
            path,
            streams: Streams::new(side, &transport.streams(), send_memory, &mut rng),
            datagrams: Datagrams::new(transport.datagram_receive_buffer, transport.datagram_send_buffer),
            ack_frequency: None,
            address_discovery: None,
            quic_bit: None,
            timestamps: None,
            address_tokens: AddressTokens::default(),
            issuer: None,
            sessions: None,
            idle: Idle::new(now, transport.max_idle_timeout, transport.keep_alive_interval),
            vigil: Vigil::default(),
            close: None,
            undecryptable: Undecryptable::default(),
            pto: PtoBackoff::new(transport.timers),
            pto_base_time: now,
            probes: Probes::default(),
            repetition: Repetition::default(),
            handshake_acked: false,
            preferred: None,
            ignores_challenges: false,
            pacing: Timer::new(),
            outcome: AckOutcome::default(),
            events: VecDeque::new(),
            endpoint_events: VecDeque::new(),
            stats: Counters::default(),
            log: (transport.log_entries > 0).then(|| Box::new(ConnectionLog::new(transport.log_entries))),
            config: transport,
            rng,
        }
    }

    /// The next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if !self.lifecycle.is_open() {
            return None;
        }
        if let Some(event) = self.streams.poll_event() {
            return Some(Event::Stream(event));
        }
        self.datagrams.poll_event().map(|event| match event {
            DatagramEvent::Received => Event::DatagramReceived,
            DatagramEvent::Unblocked => Event::DatagramsUnblocked,
            DatagramEvent::Dropped => Event::DatagramsDropped,
        })
    }

    /// The next event for the endpoint: hand it to [`Endpoint::handle_event`](crate::Endpoint::handle_event).
    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        self.endpoint_events.pop_front().map(EndpointEvent)
    }

    /// Closes the connection with a code and words for the peer's application. Whatever was not delivered is
    /// lost. A second call changes nothing.
    pub fn close(&mut self, now: Instant, code: VarInt, reason: Bytes) {
        if self.lifecycle.is_open() {
            self.start_closing(now, CloseCode::Application(code), reason);
            self.events.push_back(Event::ConnectionLost { reason: ConnectionError::LocallyClosed });
        }
    }

    /// The streams.
    pub fn streams(&mut self) -> &mut Streams {
        &mut self.streams
    }

    /// How many streams have state: those that are not over for both ends and this end's application.
    pub fn open_streams(&self) -> usize {
        self.streams.count()
    }

    /// Bytes of stream data that are buffered for sending: those that the peer has not acknowledged.
    pub fn send_buffered(&self) -> u64 {
        self.streams.send_buffered()
    }

    /// Queues an unreliable datagram (RFC 9221). When the queue is full, the oldest one is dropped for it if
    /// `drop_oldest`.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram(&mut self, data: Bytes, drop_oldest: bool) -> Result<(), SendDatagramError> {
        let options = DatagramOptions { makes_room: drop_oldest, ..DatagramOptions::default() };
        self.send_datagram_with(data, &options).map(|_| ())
    }

    /// Queues an unreliable datagram (RFC 9221) with a priority and a deadline, and names it. If it is dropped before
    /// it is sent, [`Connection::dropped_datagram`] tells so.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram_with(
        &mut self,
        data: Bytes,
        options: &DatagramOptions,
    ) -> Result<DatagramId, SendDatagramError> {
        let room = self.datagram_room();
        self.path.tuple.mtud.want();
        self.datagrams.send(data, options, room)
    }

    /// The next unreliable datagram that was queued and dropped before it was sent. Up to 1024 wait to be asked for; of
    /// more the oldest are forgotten, which [`DatagramStats::notices_lost`](crate::DatagramStats::notices_lost)
    /// counts.
    pub fn dropped_datagram(&mut self) -> Option<DroppedDatagram> {
        self.datagrams.dropped()
    }

    /// The oldest unreliable datagram that was received and not read.
    pub fn read_datagram(&mut self) -> Option<Bytes> {
        self.datagrams.receive()
    }

    /// The largest unreliable datagram that can be sent now; `None` if the peer takes none. It may change with
    /// the path.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.datagrams.max_len(self.datagram_room())
    }

    /// The payload of the largest 1-RTT packet.
    pub(super) fn datagram_room(&self) -> usize {
        let overhead = 1 + self.path.remote_cids.active().len() + 4 + crate::crypto::TAG_LEN;
        usize::from(self.path.tuple.mtu()) - overhead
    }

    /// Changes the keys of application data as soon as the protocol allows it: when the handshake is confirmed and the last
    /// change was acknowledged a while ago (RFC 9001 §6).
    pub fn update_keys(&mut self) {
        if let Some(keys) = self.handshake.one_rtt_keys_mut() {
            keys.demand_update();
            self.ping();
        }
    }

    /// Whether the QUIC bit of the next packet is set.
    fn next_quic_bit(&mut self) -> bool {
        self.quic_bit.as_mut().is_none_or(QuicBit::next)
    }

    /// Asks the peer for an acknowledgement, to see whether it is there.
    pub fn ping(&mut self) {
        self.probes.demand_one(SpaceId::DATA);
    }

    /// The end of the connection that this is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The connection ID to which the client sent its first packet, which both ends know.
    pub fn original_cid(&self) -> ConnectionId {
        self.handshake.cids.original_dcid
    }

    /// The QUIC version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        self.path.tuple.addrs.remote
    }

    /// The address of this end, where the socket tells.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.path.tuple.addrs.local_ip
    }

    /// The address of this end as the peer sees it, on the network path in use. `None` until the peer has told, or if it was
    /// not asked to (see [`TransportConfig::address_discovery`](crate::TransportConfig::address_discovery)). The
    /// peer may be mistaken, or lie.
    pub fn observed_address(&self) -> Option<SocketAddr> {
        self.path.tuple.observation.told()
    }

    /// The time after which an acknowledgement is overdue (RFC 9002 §6.2.1), without backoff.
    pub fn probe_timeout(&self) -> Duration {
        self.pto_base()
    }

    /// The smoothed round-trip time, or the assumed one before the first measurement.
    pub fn rtt(&self) -> Duration {
        self.path.tuple.rtt.smoothed()
    }

    /// Whether the TLS handshake is not complete.
    pub fn is_handshaking(&self) -> bool {
        !self.handshake.is_complete()
    }

    /// Whether the connection is over, although packets may still be answered.
    pub fn is_closed(&self) -> bool {
        !self.lifecycle.is_open()
    }

    /// Whether nothing is left to be done: the connection can be dropped.
    pub fn is_drained(&self) -> bool {
        self.lifecycle.is_drained()
    }

    /// The application protocol, once it is negotiated.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.handshake.session().alpn()
    }

    /// The name that a client asked for; known to servers.
    pub fn server_name(&self) -> Option<&str> {
        self.handshake.session().server_name()
    }

    /// The peer's certificates, its own first.
    pub fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.handshake.session().peer_certificates()
    }

    /// The peer's transport parameters, once they are known.
    pub fn peer_transport_parameters(&self) -> Option<&TransportParameters> {
        self.handshake.peer_parameters()
    }

    /// Fills `output` with bytes that both ends derive from the handshake (RFC 5705).
    ///
    /// # Errors
    /// Before the handshake is complete, or if `output` is too long.
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), TlsError> {
        self.handshake.session().export_keying_material(output, label, context)
    }
}

/// What the components share.
impl Connection {
    fn space(&self, space: SpaceId) -> Option<&NumberSpace> {
        match space {
            SpaceId::Initial => self.spaces.initial.as_ref(),
            SpaceId::Handshake => self.spaces.handshake.as_ref(),
            SpaceId::Data(path) => (path == self.path.id).then_some(&self.path.space),
        }
    }

    fn space_mut(&mut self, space: SpaceId) -> Option<&mut NumberSpace> {
        match space {
            SpaceId::Initial => self.spaces.initial.as_mut(),
            SpaceId::Handshake => self.spaces.handshake.as_mut(),
            SpaceId::Data(path) => (path == self.path.id).then_some(&mut self.path.space),
        }
    }

    /// The handshake has moved on.
    fn on_handshake_progress(&mut self, now: Instant, progress: Progress) -> Result<(), TransportError> {
        if let Some(version) = progress.version {
            self.on_version(version);
        }
        if progress.parameters {
            self.on_peer_parameters(now)?;
        }
        if progress.complete {
            self.handshake.on_complete(now);
            self.handshake.set_key_update(self.config.key_update);
            self.lifecycle.move_to_established();
            self.note(now, LogEvent::State(ConnectionState::Established));
            self.idle.on_established(now, self.pto_base());
            self.events.push_back(Event::Connected);
            if self.side.is_server() {
                self.give_address_tokens(now);
                self.on_handshake_confirmed(now);
            }
        }
        self.open_waiting(now);
        Ok(())
    }

    /// The peer has proven that it receives what is sent to its address.
    fn on_address_validated(&mut self) {
        if !self.path.tuple.credit.is_validated() {
            self.path.tuple.credit.validate();
            self.endpoint_events.push_back(EndpointEventInner::AddressValidated);
        }
    }

    /// Gives the client tokens with which it can prove its address in later connections (RFC 9000 §8.1.3).
    fn give_address_tokens(&mut self, now: Instant) {
        let Some(issuer) = &self.issuer else { return };
        let host = self.path.tuple.addrs.remote.ip();
        self.address_tokens.note_host(host);
        for _ in 0..issuer.per_connection() {
            self.address_tokens.give(issuer.new_token(&mut self.rng, now, self.version, host));
        }
    }

    /// The client has moved, and has proven its address. Its tokens are for the one that it had
    /// (RFC 9000 §8.1.3, §9.3).
    fn renew_address_token(&mut self, now: Instant) {
        let Some(issuer) = self.issuer.as_ref().filter(|issuer| issuer.per_connection() > 0) else { return };
        let host = self.path.tuple.addrs.remote.ip();
        if self.address_tokens.note_host(host) {
            self.address_tokens.give(issuer.new_token(&mut self.rng, now, self.version, host));
        }
    }

    /// Another version than that of the first packets is spoken from now on.
    fn on_version(&mut self, version: Version) {
        self.version = version;
        if let Some(sessions) = &self.sessions {
            sessions.set_version(version);
        }
    }

    fn on_handshake_confirmed(&mut self, now: Instant) {
        self.note(now, LogEvent::State(ConnectionState::Confirmed));
        self.on_address_validated();
        self.discard_space(now, SpaceId::Initial);
        self.discard_space(now, SpaceId::Handshake);
        self.events.push_back(Event::HandshakeConfirmed);
        self.try_preferred_address(now);
    }

    /// The peer broke the protocol: say so and end.
    fn close_on_error(&mut self, now: Instant, error: TransportError) {
        if !self.lifecycle.is_open() {
            return;
        }
        let code =
            CloseCode::Transport { code: error.code, frame: error.frame.unwrap_or(FrameType::PADDING) };
        self.start_closing(now, code, Bytes::copy_from_slice(error.reason.as_bytes()));
        let reason = match self.handshake.session().error() {
            Some(tls) => ConnectionError::Tls(tls.clone()),
            None => ConnectionError::Transport(error),
        };
        self.events.push_back(Event::ConnectionLost { reason });
    }

    fn start_closing(&mut self, now: Instant, code: CloseCode, reason: Bytes) {
        self.note(now, LogEvent::State(ConnectionState::Closing));
        self.close = Some(Close::new(code, reason));
        self.lifecycle.move_to_closing(now + self.pto_base() * DRAINING_PTOS);
        self.stop_components(now);
    }

    /// The peer has closed, or has forgotten the connection.
    fn drain(&mut self, now: Instant, reason: ConnectionError) {
        self.note(now, LogEvent::State(ConnectionState::Draining));
        let was_open = self.lifecycle.is_open();
        self.lifecycle.move_to_draining(now + self.pto_base() * DRAINING_PTOS);
        self.stop_components(now);
        if was_open {
            self.events.push_back(Event::ConnectionLost { reason });
        }
    }

    /// The connection ends without a word, because nobody seems to listen (RFC 9000 §10.1).
    fn abandon(&mut self, now: Instant, reason: ConnectionError) {
        self.note(now, LogEvent::State(ConnectionState::TimedOut));
        self.lifecycle.move_to_drained();
        self.stop_components(now);
        self.events.push_back(Event::ConnectionLost { reason });
        self.on_drained();
    }

    fn stop_components(&mut self, now: Instant) {
        self.remember_path(now);
        self.idle.stop();
        self.vigil.stop();
        self.handshake.stop();
        self.pacing.cancel();
        self.undecryptable.clear();
    }

    fn on_drained(&mut self) {
        self.endpoint_events.push_back(EndpointEventInner::Drained);
    }
}

/// A closed connection is remembered for so many probe timeouts (RFC 9000 §10.2).
const DRAINING_PTOS: u32 = 3;

#[cfg(test)]
mod tests;
