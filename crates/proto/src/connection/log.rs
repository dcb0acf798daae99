//! What is noted in the connection's log, if it has one: few calls, each one line where it is made.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{CloseCode, PacketKind, ProtectedKind, TransportParameters, Version};

use super::Connection;
use super::early_data::EarlyData;
use super::slot::Blocked;
use crate::datagram::FourTuple;
use crate::events::ConnectionError;
use crate::ids::SpaceId;
use crate::log::{
    ACK_DELAY_EXPONENT, BlockedReason, CloseCause, ConnectionLog, Figures, LogEvent, MigrationState,
    PacketDropReason, TextKind, octets,
};
use crate::space::recovery_parameters;

impl Connection {
    /// The log, if `TransportConfig::log_entries` asks for one.
    pub fn log(&self) -> Option<&ConnectionLog> {
        self.log.as_deref()
    }

    /// The log, to move its entries elsewhere.
    pub fn log_mut(&mut self) -> Option<&mut ConnectionLog> {
        self.log.as_deref_mut()
    }

    /// Notes an event.
    #[inline]
    pub(super) fn note(&mut self, now: Instant, event: LogEvent) {
        if let Some(log) = &mut self.log {
            log.push(now, event);
        }
    }

    /// Notes which figures of the path are different. `blocked` says why no more is sent, if that is known.
    #[inline]
    pub(super) fn note_figures(&mut self, now: Instant, blocked: Option<Blocked>) {
        // Taken out for the call, so that the figures can be borrowed.
        if let Some(mut log) = self.log.take() {
            log.push_figures(now, &self.figures(blocked));
            self.log = Some(log);
        }
    }

    /// Notes what the connection begins with. `parameters` are this end's.
    pub(super) fn note_start(&mut self, now: Instant, parameters: &TransportParameters) {
        let Some(log) = &mut self.log else { return };
        log.push_start(now, &self.path.tuple.addrs);
        log.push_versions(now, self.side.is_server(), &self.versions.known);
        log.push(now, LogEvent::VersionChosen(Some(self.versions.current)));
        log.push_parameters(now, false, parameters);
        let tuple = &self.path.tuple;
        let (window, datagram) = (tuple.congestion.controller().window(), tuple.mtu());
        log.push(now, recovery_parameters(self.config.initial_rtt, window, datagram));
    }

    /// Notes that the server knows other versions than the one that the client began with.
    pub(super) fn note_refused_version(
        &mut self,
        now: Instant,
        offered: &[Version],
        chosen: Option<Version>,
    ) {
        if let Some(log) = &mut self.log {
            log.push_versions(now, true, offered);
            log.push(now, LogEvent::VersionChosen(chosen));
        }
    }

    pub(super) fn note_peer_parameters(&mut self, now: Instant, parameters: &TransportParameters) {
        if let Some(log) = &mut self.log {
            log.push_parameters(now, true, parameters);
        }
    }

    /// Notes that TLS has given keys.
    pub(super) fn note_keys(&mut self, now: Instant) {
        let Some(log) = &mut self.log else { return };
        if self.handshake.early_keys().is_some() {
            log.push_keys(now, PacketKind::ZeroRtt);
        }
        if self.handshake.handshake_keys().is_some() {
            log.push_keys(now, PacketKind::Handshake);
        }
        if self.handshake.one_rtt_keys().is_some() {
            log.push_keys(now, PacketKind::OneRtt);
        }
    }

    /// Notes an update of the keys before the first packet for which it counts. Returns the number of updates.
    pub(super) fn note_generation(&mut self, now: Instant) -> u64 {
        let generation = self.handshake.one_rtt_keys().map_or(0, |keys| keys.generation());
        if let Some(log) = &mut self.log {
            log.push_key_generation(now, generation);
        }
        generation
    }

    /// Notes what the TLS handshake has come to.
    pub(super) fn note_established(&mut self, now: Instant) {
        let Some(log) = &mut self.log else { return };
        let session = self.handshake.session();
        if let Some(suite) = session.suite() {
            let (resumed, early) = (session.is_resumed(), self.early_data != EarlyData::Unused);
            log.push(now, LogEvent::Tls { suite, resumed, early });
        }
        if let Some(alpn) = session.alpn() {
            log.push_text(now, TextKind::Alpn, alpn);
        }
    }

    /// Notes a packet, or what cannot be read as one, that was dropped.
    pub(super) fn note_dropped(
        &mut self,
        now: Instant,
        reason: PacketDropReason,
        kind: Option<PacketKind>,
        len: usize,
    ) {
        self.note(
            now,
            LogEvent::PacketDropped { reason, kind, size: u16::try_from(len).unwrap_or(u16::MAX) },
        );
    }

    /// The exponent that the peer scales the delays in its ACK frames with.
    pub(super) fn peer_ack_delay_exponent(&self, space: SpaceId) -> u8 {
        // RFC 9000 §18.2: before the parameters are known, the default holds.
        let peer = self.handshake.peer_parameters().filter(|_| space.is_data());
        peer.map_or(ACK_DELAY_EXPONENT, |parameters| parameters.ack_delay_exponent)
    }

    /// Notes what becomes of a network path.
    pub(super) fn note_migration(&mut self, now: Instant, state: MigrationState, addrs: &FourTuple) {
        if let Some(log) = &mut self.log {
            let (ip, port) = log.push_local(now, addrs);
            log.push(now, LogEvent::Migration { state, ip, port });
        }
    }

    /// Notes that this end closes.
    pub(super) fn note_closing(&mut self, now: Instant, code: CloseCode, reason: &[u8]) {
        let (cause, code) = match code {
            CloseCode::Application(code) => (CloseCause::Application, code.get()),
            CloseCode::Transport { code, .. } => (CloseCause::Transport, code.0),
        };
        self.note_end(now, reason, LogEvent::Closed { local: true, cause, code });
    }

    /// Notes why the connection is over, where this end does not close.
    pub(super) fn note_lost(&mut self, now: Instant, error: &ConnectionError) {
        let by_peer = |cause, code| LogEvent::Closed { local: false, cause, code };
        let by_this_end = |cause| LogEvent::Closed { local: true, cause, code: 0 };
        let (reason, end): (&[u8], _) = match error {
            ConnectionError::ConnectionClosed { code, reason, .. } => {
                (reason, by_peer(CloseCause::Transport, code.0))
            }
            ConnectionError::ApplicationClosed { code, reason } => {
                (reason, by_peer(CloseCause::Application, code.get()))
            }
            ConnectionError::Reset => (&[], by_peer(CloseCause::StatelessReset, 0)),
            ConnectionError::VersionMismatch => (&[], by_this_end(CloseCause::VersionMismatch)),
            ConnectionError::TimedOut => (&[], by_this_end(CloseCause::IdleTimeout)),
            ConnectionError::HandshakeTimedOut => (&[], by_this_end(CloseCause::HandshakeTimeout)),
            // Where this end closes, `note_closing` has told it.
            ConnectionError::Transport(_) | ConnectionError::Tls(_) | ConnectionError::LocallyClosed => {
                return;
            }
        };
        self.note_end(now, reason, end);
    }

    fn note_end(&mut self, now: Instant, reason: &[u8], end: LogEvent) {
        if let Some(log) = &mut self.log {
            if !reason.is_empty() {
                log.push_text(now, TextKind::Reason, reason);
            }
            log.push(now, end);
        }
    }

    fn figures(&self, blocked: Option<Blocked>) -> Figures {
        let (tuple, datagrams) = (&self.path.tuple, self.datagrams.stats());
        let (controller, rtt) = (tuple.congestion.controller(), &tuple.rtt);
        let measured = |duration: Duration| if rtt.has_sample() { duration.as_nanos() as u64 } else { 0 };
        Figures {
            window: (controller.window(), tuple.congestion.bytes_in_flight()),
            ssthresh: controller.ssthresh(),
            rates: (tuple.congestion.pacing_rate(), tuple.congestion.delivery_rate()),
            rtt: (measured(rtt.latest()), measured(rtt.smoothed())),
            rtt_bounds: (measured(rtt.min()), measured(rtt.variance())),
            queues: self.timestamps.as_ref().and_then(|extension| extension.delays(tuple.id)).map(|delays| {
                (delays.forward_queue.as_nanos() as u64, delays.return_queue.as_nanos() as u64)
            }),
            phase: controller.state(),
            mtu: tuple.mtu(),
            ecn: Some(tuple.ecn.state()),
            key_generation: self.handshake.one_rtt_keys().map_or(0, |keys| keys.generation()),
            peer: Some((octets(tuple.addrs.remote.ip()), tuple.addrs.remote.port())),
            blocked: blocked.map(BlockedReason::from),
            datagrams_dropped: (datagrams.late, datagrams.dropped_outgoing),
        }
    }
}

/// What a packet looks like; `None`: it is of a kind without a number.
pub(super) fn kind_for_log(kind: &ProtectedKind) -> Option<PacketKind> {
    match kind {
        ProtectedKind::Initial { .. } => Some(PacketKind::Initial),
        ProtectedKind::ZeroRtt { .. } => Some(PacketKind::ZeroRtt),
        ProtectedKind::Handshake { .. } => Some(PacketKind::Handshake),
        ProtectedKind::OneRtt { .. } => Some(PacketKind::OneRtt),
        ProtectedKind::Retry { .. } | ProtectedKind::VersionNegotiation { .. } => None,
    }
}

impl From<Blocked> for BlockedReason {
    fn from(blocked: Blocked) -> Self {
        match blocked {
            Blocked::NothingToSend => Self::NothingToSend,
            Blocked::Window => Self::Window,
            Blocked::Pacer => Self::Pacer,
            Blocked::Credit => Self::AmplificationLimit,
        }
    }
}
