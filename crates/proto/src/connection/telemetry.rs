//! What is remembered of a connection: its counters, and its log if it has one.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{CloseCode, PacketKind, PathId, ProtectedKind, Side, TransportParameters, Version};

use super::Connection;
use super::extensions::Extensions;
use super::handshake::versions::Versions;
use super::handshake::{EarlyData, HandshakeState};
use super::slot::Blocked;
use super::stats::Counters;
use crate::config::TransportConfig;
use crate::datagram::FourTuple;
use crate::datagrams::Datagrams;
use crate::events::ConnectionError;
use crate::log::{
    BlockedReason, CloseCause, ConnectionLog, Figures, LogEvent, MigrationState, PacketDropReason, TextKind,
    Totals, octets,
};
use crate::path::{Path, Tuple};
use crate::space::recovery_parameters;

impl Connection {
    /// The log, if `TransportConfig::log_entries` asks for one.
    pub fn log(&self) -> Option<&ConnectionLog> {
        self.telemetry.log.as_deref()
    }

    /// The log, to move its entries elsewhere.
    pub fn log_mut(&mut self) -> Option<&mut ConnectionLog> {
        self.telemetry.log.as_deref_mut()
    }

    /// Logs which figures of the path, and of the connection, are different. `blocked` says why no more is sent, if that is known.
    #[inline]
    pub(super) fn log_figures(&mut self, now: Instant, path: PathId, blocked: Option<Blocked>) {
        if let Some(log) = &mut self.telemetry.log
            && let Some(Path { tuple, .. }) = self.paths.get(path)
        {
            let totals = totals(&self.datagrams, &self.handshake);
            log.push_figures(now, path, &figures(tuple, &self.extensions, blocked), &totals);
        }
    }
}

/// The counters and the log of a connection.
#[derive(Debug)]
pub(super) struct Telemetry {
    pub(super) stats: Counters,
    pub(super) log: Option<Box<ConnectionLog>>,
}

impl Telemetry {
    /// With a log of so many entries; without one if there are none.
    pub(super) fn new(log_entries: usize) -> Self {
        Self {
            stats: Counters::default(),
            log: (log_entries > 0).then(|| Box::new(ConnectionLog::new(log_entries))),
        }
    }

    /// Logs an event.
    #[inline]
    pub(super) fn record(&mut self, now: Instant, event: LogEvent) {
        if let Some(log) = &mut self.log {
            log.push(now, event);
        }
    }

    /// Logs what the connection begins with. `parameters` are this end's.
    pub(super) fn record_start(
        &mut self,
        now: Instant,
        versions: &Versions,
        tuple: &Tuple,
        config: &TransportConfig,
        (side, parameters): (Side, &TransportParameters),
    ) {
        let Some(log) = &mut self.log else { return };
        log.push_start(now, &tuple.addrs);
        log.push_versions(now, side.is_server(), &versions.known);
        log.push(now, LogEvent::VersionChosen(Some(versions.current)));
        log.push_parameters(now, false, parameters);
        let (window, datagram) = (tuple.congestion.window(), tuple.mtu());
        log.push(now, recovery_parameters(config.initial_rtt, window, datagram));
    }

    /// Logs that the server knows other versions than the one that the client began with.
    pub(super) fn record_refused_version(
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

    pub(super) fn record_peer_parameters(&mut self, now: Instant, parameters: &TransportParameters) {
        if let Some(log) = &mut self.log {
            log.push_parameters(now, true, parameters);
        }
    }

    /// Logs that TLS has given keys.
    pub(super) fn record_keys(&mut self, now: Instant, handshake: &HandshakeState) {
        let Some(log) = &mut self.log else { return };
        if handshake.keys.zero_rtt().is_some() {
            log.push_keys(now, PacketKind::ZeroRtt);
        }
        if handshake.keys.handshake().is_some() {
            log.push_keys(now, PacketKind::Handshake);
        }
        if handshake.keys.one_rtt().is_some() {
            log.push_keys(now, PacketKind::OneRtt);
        }
    }

    /// Logs an update of the keys before the first packet for which it counts. Returns the number of updates.
    pub(super) fn record_generation(&mut self, now: Instant, handshake: &HandshakeState) -> u64 {
        let generation = handshake.keys.generation();
        if let Some(log) = &mut self.log {
            log.push_key_generation(now, generation);
        }
        generation
    }

    /// Logs what the TLS handshake has come to.
    pub(super) fn record_established(&mut self, now: Instant, handshake: &HandshakeState) {
        let Some(log) = &mut self.log else { return };
        let session = handshake.session();
        if let Some(suite) = session.suite() {
            let (resumed, early) = (session.is_resumed(), handshake.early_data != EarlyData::Unused);
            log.push(now, LogEvent::Tls { suite, resumed, early });
        }
        if let Some(alpn) = session.alpn() {
            log.push_text(now, TextKind::Alpn, alpn);
        }
    }

    /// Logs a packet, or what cannot be read as one, that was dropped.
    pub(super) fn record_dropped(
        &mut self,
        now: Instant,
        reason: PacketDropReason,
        kind: Option<PacketKind>,
        len: usize,
    ) {
        match reason {
            PacketDropReason::Unauthenticated => self.stats.packets_unauthenticated += 1,
            _ => self.stats.packets_dropped += 1,
        }
        let size = u16::try_from(len).unwrap_or(u16::MAX);
        self.record(now, LogEvent::PacketDropped { reason, kind, size });
    }

    /// Logs what becomes of a network path.
    pub(super) fn record_migration(&mut self, now: Instant, state: MigrationState, addrs: &FourTuple) {
        if let Some(log) = &mut self.log {
            let (ip, port) = log.push_local(now, addrs);
            log.push(now, LogEvent::Migration { state, ip, port });
        }
    }

    /// Logs that this end closes.
    pub(super) fn record_closing(&mut self, now: Instant, code: CloseCode, reason: &[u8]) {
        let (cause, code) = match code {
            CloseCode::Application(code) => (CloseCause::Application, code.get()),
            CloseCode::Transport { code, .. } => (CloseCause::Transport, code.0),
        };
        self.record_end(now, reason, LogEvent::Closed { local: true, cause, code });
    }

    /// Logs why the connection is over, where this end does not close.
    pub(super) fn record_lost(&mut self, now: Instant, error: &ConnectionError) {
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
            ConnectionError::Refused => (&[], by_this_end(CloseCause::Refused)),
            ConnectionError::Unsent(_) => (&[], by_this_end(CloseCause::Unsent)),
            ConnectionError::DatagramsTooLarge => (&[], by_this_end(CloseCause::DatagramsTooLarge)),
            ConnectionError::HandshakeTimedOut => (&[], by_this_end(CloseCause::HandshakeTimeout)),
            // Where this end closes, `record_closing` has said so.
            ConnectionError::Transport(_) | ConnectionError::Tls(_) | ConnectionError::LocallyClosed => {
                return;
            }
        };
        self.record_end(now, reason, end);
    }

    fn record_end(&mut self, now: Instant, reason: &[u8], end: LogEvent) {
        if let Some(log) = &mut self.log {
            if !reason.is_empty() {
                log.push_text(now, TextKind::Reason, reason);
            }
            log.push(now, end);
        }
    }
}

fn figures(tuple: &Tuple, extensions: &Extensions, blocked: Option<Blocked>) -> Figures {
    let (controller, rtt) = (tuple.congestion.controller(), &tuple.rtt);
    let measured = |duration: Duration| if rtt.has_sample() { duration.as_nanos() as u64 } else { 0 };
    let delays = extensions.timestamps.as_ref().and_then(|extension| extension.delays(tuple.id));
    Figures {
        window: (tuple.congestion.window(), tuple.congestion.bytes_in_flight()),
        ssthresh: controller.ssthresh(),
        rates: (tuple.congestion.pacing_rate(), tuple.congestion.delivery_rate()),
        rtt: (measured(rtt.latest()), measured(rtt.smoothed())),
        rtt_bounds: (measured(rtt.min()), measured(rtt.variance())),
        queues: delays
            .map(|delays| (delays.forward_queue.as_nanos() as u64, delays.return_queue.as_nanos() as u64)),
        phase: controller.state(),
        mtu: tuple.mtu(),
        ecn: Some(tuple.ecn.state()),
        peer: Some((octets(tuple.addrs.remote.ip()), tuple.addrs.remote.port())),
        blocked: blocked.map(BlockedReason::from),
    }
}

fn totals(datagrams: &Datagrams, handshake: &HandshakeState) -> Totals {
    let datagrams = datagrams.stats();
    Totals {
        key_generation: handshake.keys.generation(),
        datagrams_dropped: (datagrams.late, datagrams.dropped_outgoing),
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
            Blocked::AmplificationLimit => Self::AmplificationLimit,
        }
    }
}
