//! A connection: the components it is composed of and how they meet.
//!
//! | file | what it owns |
//! |---|---|
//! | `mod` | struct [`Connection`] and its public methods |
//! | `setup` | what it is made from, and construction |
//! | `lifecycle` | handshaking, established, closing, draining, drained |
//! | `handshake`, `crypto_stream`, `initial_keys`, `progress` | TLS, keys; what follows when the handshake moves on |
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
//! | `migration`, `moving` | which addresses are used, and whether they work; this end moves |
//! | `recovery` | acknowledgements, losses |
//! | `probing` | the probe timeout, and what is sent then |
//! | `repetition` | flights of a handshake that are repeated before a timeout |
//! | `timers` | when to wake, and why |
//! | `idle`, `vigil`, `close` | silence and the end |
//! | `unreliable` | unreliable datagrams |
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
mod initial_keys;
mod lifecycle;
mod log;
mod migration;
mod moving;
mod opening;
mod parameters;
mod preemptive_repeat;
mod probing;
mod progress;
mod receive;
mod recovery;
mod repetition;
mod resume;
mod retry;
mod setup;
mod slot;
mod spaces;
mod stats;
mod timers;
mod transmit;
mod undecryptable;
mod unreliable;
mod versions;
mod vigil;
mod write_order;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fulmar_base::{Instant, Rng, Timer};
use fulmar_wire::{ConnectionId, Dialect, Side, TransportParameters, Version};
use rustls::pki_types::CertificateDer;

pub use self::early_data::EarlyData;
pub use self::moving::MigrateError;
pub(crate) use self::setup::{Admission, ConnectionSetup};
pub use self::stats::ConnectionStats;
pub use self::timers::TimerReason;

use self::address_tokens::AddressTokens;
use self::close::Close;
use self::early_data::RememberedLimits;
use self::handshake::Handshake;
use self::idle::Idle;
use self::lifecycle::Lifecycle;
use self::repetition::Repetition;
use self::spaces::{EarlySpaces, Probes};
use self::stats::Counters;
use self::undecryptable::Undecryptable;
use self::versions::Versions;
use self::vigil::Vigil;
use crate::config::TransportConfig;
use crate::crypto::TlsError;
use crate::datagrams::{DatagramEvent, Datagrams};
use crate::events::{EndpointEvent, EndpointEventInner, Event};
use crate::ext::{AckFrequency, AddressDiscovery, QuicBit, Timestamps};
use crate::ids::SpaceId;
use crate::log::ConnectionLog;
use crate::path::Path;
use crate::sessions::SessionView;
use crate::space::{AckOutcome, NumberSpace, PtoBackoff};
use crate::streams::Streams;

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
    versions: Versions,
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
        self.versions.current
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
        self.path.tuple.observation.observed()
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
}

#[cfg(test)]
mod tests;
