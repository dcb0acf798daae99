//! A connection: the components it is composed of and how they meet.
//!
//! | file | what it owns |
//! |---|---|
//! | `mod` | struct [`Connection`] and its public methods |
//! | `setup`, `parameters` | what it is made from, construction; the transport parameters of both ends |
//! | `lifecycle`, `close`, `close_answers` | handshaking, established, closing, draining, drained; CONNECTION_CLOSE |
//! | `handshake` | TLS, keys, Initial and Handshake spaces, version, early data |
//! | `progress`, `retry` | what follows when the handshake moves on; a Retry |
//! | `receive`, `opening` | a datagram in; its packets opened, or kept for later |
//! | `payload` | its frames handed to their owners |
//! | `dispatch` | **the list** frame -> owner |
//! | `transmit` | datagrams out, in batches |
//! | `slot` | what the next datagram may be used for, and why none may be sent |
//! | `datagram_builder` | one datagram: its packets, sealed and recorded |
//! | `write_order` | **the list** of writers in the order of their priority |
//! | `turns`, `protected_frames` | whether datagrams or streams come first; what forward erasure correction protects |
//! | `spare_capacity` | **the list** of writers that use what nothing else needs |
//! | `delivery` | **the list** token -> owner, on acknowledgement and on loss |
//! | `recovery`, `marked_packets` | acknowledgements, losses, marks of congestion |
//! | `discarding` | what was sent means nothing any more, nor does its packet number space |
//! | `reinjection` | what lies on a slow or silent path is said again on another one |
//! | `probing` | the probe timeout, and what is sent then |
//! | `migration`, `active_migration` | which addresses are used, and whether they work; this end moves |
//! | `off_path_arrival`, `path_validation` | datagrams that did not take the tuple in use; how often a validation asks and how long it waits |
//! | `multipath`, `path_choice` | several paths: they come and go; which one the next packets take |
//! | `ack_elsewhere`, `coupling` | acknowledgements over another path; how the windows of paths grow together |
//! | `timers` | when to wake, and why |
//! | `liveness`, `idle`, `watchdog` | silence: the idle timeout, keep-alive, a steady flow that stops |
//! | `rest` | memory that is given back while nothing is sent or received |
//! | `extensions` | the extensions in use |
//! | `address_tokens`, `resume` | tokens for later connections; what is known of the path for them |
//! | `unreliable` | unreliable datagrams |
//! | `outbox`, `telemetry`, `stats` | events; counters and the log |
//!
//! It must not know sockets, clocks or threads, and no component may know it: components get values and give
//! values back.

mod ack_elsewhere;
mod active_migration;
mod address_tokens;
mod close;
mod close_answers;
mod coupling;
mod datagram_builder;
mod delivery;
mod discarding;
mod dispatch;
mod extensions;
mod handshake;
mod idle;
mod lifecycle;
mod liveness;
mod marked_packets;
mod migration;
mod multipath;
mod off_path_arrival;
mod opening;
mod outbox;
mod parameters;
mod path_choice;
mod path_validation;
mod payload;
mod probing;
mod progress;
mod protected_frames;
mod receive;
mod recovery;
mod reinjection;
mod rest;
mod resume;
mod retry;
mod setup;
mod slot;
mod spare_capacity;
mod stats;
mod telemetry;
mod timers;
mod transmit;
mod turns;
mod unreliable;
mod watchdog;
mod write_order;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fulmar_base::Rng;
use fulmar_wire::{ConnectionId, Side, TransportParameters, Version};
use rustls::pki_types::CertificateDer;

pub use self::active_migration::MigrateError;
pub(crate) use self::close_answers::CloseAnswers;
pub use self::handshake::EarlyData;
pub use self::multipath::{OpenPathError, PathError, PathInfo};
pub use self::rest::Resting;
pub(crate) use self::setup::{Admission, ConnectionSetup};
pub use self::stats::{ConnectionStats, PathStats};
pub use self::timers::TimerReason;

use self::address_tokens::AddressTokens;
use self::close::Unsent;
use self::extensions::Extensions;
use self::handshake::HandshakeState;
use self::lifecycle::Lifecycle;
use self::liveness::Liveness;
use self::outbox::Outbox;
use self::recovery::pto_base;
use self::telemetry::Telemetry;
use crate::config::TransportConfig;
use crate::crypto::TlsError;
use crate::datagrams::{DatagramEvent, Datagrams};
use crate::events::{EndpointEvent, Event};
use crate::path::{Paths, Pending};
use crate::sessions::SessionView;
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
    config: Arc<TransportConfig>,
    rng: Rng,
    lifecycle: Lifecycle,
    handshake: HandshakeState,
    paths: Paths,
    streams: Streams,
    datagrams: Datagrams,
    extensions: Extensions,
    /// Tokens that a server gives for later connections.
    address_tokens: AddressTokens,
    /// What is remembered of the server, and will be (clients only).
    sessions: Option<Arc<SessionView>>,
    liveness: Liveness,
    unsent: Option<Unsent>,
    outbox: Outbox,
    telemetry: Telemetry,
}

impl Connection {
    /// The next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.outbox.poll() {
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
        self.outbox.poll_endpoint().map(EndpointEvent)
    }

    /// The streams.
    pub fn streams(&mut self) -> &mut Streams {
        self.paths.raise(Pending::STREAMS);
        &mut self.streams
    }

    /// Bytes of streams that were received and that the application has not read. What comes while there are more than
    /// [`UNREAD_SHARED_MAX`](crate::UNREAD_SHARED_MAX) is copied.
    pub fn unread(&self) -> u64 {
        self.streams.unread()
    }

    /// Whether a frame of streams waits to be sent. After something was read nothing else can be new that comes out.
    pub fn has_stream_frames(&self) -> bool {
        self.streams.wants_to_send()
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
        if let Some(keys) = self.handshake.keys.one_rtt_mut() {
            keys.demand_update();
            self.ping();
        }
    }

    /// Asks the peer for an acknowledgement, to see whether it is there.
    pub fn ping(&mut self) {
        self.paths.primary_mut().space.probes.demand_one();
    }

    /// The end of the connection that this is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The connection ID to which the client sent its first packet, which both ends know.
    pub fn original_cid(&self) -> ConnectionId {
        self.handshake.tls.cids.original_dcid
    }

    /// The QUIC version.
    pub fn version(&self) -> Version {
        self.handshake.versions.current
    }

    /// The peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        self.paths.primary().tuple.addrs.remote
    }

    /// The address of this end, where the socket tells.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.paths.primary().tuple.addrs.local_ip
    }

    /// The address of this end as the peer sees it, on the network path in use. `None` until the peer has told, or if it was
    /// not asked to (see [`TransportConfig::address_discovery`](crate::TransportConfig::address_discovery)). The
    /// peer may be mistaken, or lie.
    pub fn observed_address(&self) -> Option<SocketAddr> {
        self.paths.primary().tuple.observation.observed()
    }

    /// The time after which an acknowledgement is overdue (RFC 9002 §6.2.1), without backoff.
    pub fn probe_timeout(&self) -> Duration {
        pto_base(self.paths.primary(), &self.handshake, &self.extensions)
    }

    /// The smoothed round-trip time, or the assumed one before the first measurement.
    pub fn rtt(&self) -> Duration {
        self.paths.primary().tuple.rtt.smoothed()
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

    /// The peer's transport parameters, once they are known. They are kept as the peer wrote them, and read with each call.
    pub fn peer_transport_parameters(&self) -> Option<TransportParameters> {
        self.handshake.all_peer_parameters()
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

#[cfg(test)]
mod tests;
