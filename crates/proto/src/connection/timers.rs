//! When something has to happen next, and why (RFC 9002 appendix A.8, RFC 9000 §10).

use fulmar_base::Instant;

use super::Connection;
use super::handshake::HandshakeSpaces;
use super::reinjection::works;
use crate::events::{ConnectionError, EndpointEventInner};
use crate::ids::SpaceId;
use crate::log::{ConnectionState, LogEvent};
use crate::path::{Path, Paths, Pending};

/// Why a connection wants to be woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerReason {
    /// A packet will be taken for lost.
    Loss,
    /// An acknowledgement is overdue, and a probe will be sent, or what tells a client of a flight.
    Probe,
    /// An acknowledgement of this end is due.
    Ack,
    /// An unreliable datagram will be of no use any more.
    Datagram,
    /// Repair symbols are to be sent.
    Repair,
    /// The pacer lets the next packets leave.
    Pacing,
    /// Old keys are discarded.
    Keys,
    /// A challenge will be repeated, or an address has failed.
    Path,
    /// A flow of packets from the server has stopped.
    Watchdog,
    /// A PING will keep the connection alive.
    KeepAlive,
    /// The handshake takes too long.
    Handshake,
    /// Nothing was heard for too long.
    Idle,
    /// A closed connection can be forgotten.
    Drained,
}

impl Connection {
    /// When [`Connection::handle_timeout`] wants to be called, and why; `None`: not before something else
    /// happens.
    pub fn poll_timeout(&self) -> Option<(Instant, TimerReason)> {
        if !self.lifecycle.is_open() {
            return self.lifecycle.deadline().map(|at| (at, TimerReason::Drained));
        }
        let keys = self.handshake.keys.one_rtt().and_then(|keys| keys.next_timeout());
        let pacing = self.paths.iter().filter_map(|path| path.pacing.deadline()).min();
        let validation = self.paths.iter().filter_map(Path::validation_deadline).min();
        let deadlines = [
            (loss_deadline(&self.paths, &self.handshake.spaces), TimerReason::Loss),
            (self.pto_deadline().map(|(at, ..)| at), TimerReason::Probe),
            (
                self.handshake.underway.as_ref().and_then(|underway| underway.reminders.deadline()),
                TimerReason::Probe,
            ),
            (ack_deadline(&self.paths, &self.handshake.spaces), TimerReason::Ack),
            (self.datagrams.next_timeout(), TimerReason::Datagram),
            (self.extensions.fec.as_ref().and_then(|fec| fec.next_timeout()), TimerReason::Repair),
            (pacing, TimerReason::Pacing),
            (keys, TimerReason::Keys),
            (validation, TimerReason::Path),
            (
                self.paths.multipath.as_ref().and_then(|multipath| multipath.abandoned.next_timeout()),
                TimerReason::Path,
            ),
            (self.liveness.watchdog.deadline(), TimerReason::Watchdog),
            (self.liveness.idle.keep_alive_deadline(), TimerReason::KeepAlive),
            (self.handshake.tls.deadline(), TimerReason::Handshake),
            (self.liveness.idle.deadline(), TimerReason::Idle),
        ];
        // The reasons stand in their order, so that of two at the same time the first counts.
        let mut earliest: Option<(Instant, TimerReason)> = None;
        for (at, reason) in deadlines {
            if let Some(at) = at
                && earliest.is_none_or(|(earliest, _)| at < earliest)
            {
                earliest = Some((at, reason));
            }
        }
        earliest
    }

    /// Does what is due at `now`. Calling it too early or too often does no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        if !self.lifecycle.is_open() {
            if self.lifecycle.on_timeout(now) {
                self.telemetry.record(now, LogEvent::State(ConnectionState::Drained));
                self.outbox.push_endpoint(EndpointEventInner::Drained);
            }
            return;
        }
        if self.liveness.idle.on_timeout(now) {
            return self.abandon(now, ConnectionError::TimedOut);
        }
        if self.handshake.tls.on_timeout(now) {
            let error = self.unsent_error().unwrap_or(ConnectionError::HandshakeTimedOut);
            return self.abandon(now, error);
        }
        self.paths.raise(Pending::ALL);
        self.ask_for_signs_of_life(now);
        self.datagrams.on_timeout(now);
        for path in self.paths.iter_mut() {
            path.pacing.take_expired(now);
        }
        let mut last = None;
        while let Some(path) = self.paths.next_id(last) {
            last = Some(path);
            if self.paths.get(path).and_then(Path::validation_deadline).is_some_and(|at| at <= now) {
                self.on_validation_timeout(now, path);
            }
        }
        if let Some(multipath) = &mut self.paths.multipath {
            let over = multipath.abandoned.on_timeout(now, &mut self.outbox.endpoint_events);
            self.forget_keys_of(over);
        }
        if loss_deadline(&self.paths, &self.handshake.spaces).is_some_and(|at| at <= now) {
            self.telemetry.record(now, LogEvent::LossTimeout);
            self.on_loss_timeout(now);
        } else if let Some((_, path, space)) = self.pto_deadline().filter(|(at, ..)| *at <= now) {
            self.on_pto(now, path, space);
        }
        if let Some(underway) = &mut self.handshake.underway {
            underway.reminders.on_timeout(now);
        }
        if let Some(sender) = self.extensions.fec_sender() {
            sender.on_timeout(now);
            self.resend_released(now);
        }
        // Acknowledgements and keys are looked after when packets are built.
    }

    /// Keeps the connection alive, and asks where a steady flow has stopped.
    fn ask_for_signs_of_life(&mut self, now: Instant) {
        // What is in flight asks the peer already, and its probes go on asking; a PING would only add to it. Where a path has
        // fallen silent while another one works, nothing is heard of what asks there.
        let one_works = self.paths.iter().any(works);
        let mut that_may_answer = self.paths.iter().filter(|path| works(path) || !one_works);
        let asked = that_may_answer.any(|path| path.tuple.congestion.bytes_in_flight() > 0);
        if self.liveness.idle.on_keep_alive(now) && self.handshake.is_confirmed() && !asked {
            self.ping_all();
        }
        // Where no stream is open, nothing more is expected.
        if self.liveness.watchdog.on_timeout(now) && self.open_streams() > 0 {
            // What is in flight may have been answered where this end cannot be reached any more: then its probe has to be
            // the question.
            self.liveness.watchdog.ask(now);
            if !asked {
                self.ping_all();
            }
        }
    }

    /// Asks on every path that has proven itself, so that none is forgotten by the NATs on its way. What is in flight on a path asks
    /// there already.
    fn ping_all(&mut self) {
        let first = self.paths.primary().id;
        for path in self.paths.iter_mut().filter(|path| path.tuple.validated || path.id == first) {
            if path.tuple.congestion.bytes_in_flight() == 0 {
                path.space.probes.demand_one();
            }
        }
    }

    /// The loss timer of a space has rung.
    fn on_loss_timeout(&mut self, now: Instant) {
        for space in SpaceId::OF_HANDSHAKE {
            let deadline = self.handshake.spaces.get(space).and_then(|numbers| numbers.loss_deadline());
            if deadline.is_some_and(|at| at <= now) {
                self.recovery(now).on_loss_timeout(space);
                self.log_figures(now, space.path(), None);
            }
        }
        let mut last = None;
        while let Some(path) = self.paths.next_id(last) {
            last = Some(path);
            let deadline = self.paths.get(path).and_then(|path| path.space.loss_deadline());
            if deadline.is_some_and(|at| at <= now) {
                self.recovery(now).on_loss_timeout(SpaceId::Data(path));
                self.log_figures(now, path, None);
            }
        }
    }
}

/// When an acknowledgement of this end is due.
fn ack_deadline(paths: &Paths, of_handshake: &HandshakeSpaces) -> Option<Instant> {
    // Where nothing may be sent, the peer's next datagram brings the occasion.
    let may_send = |path: &&Path| path.tuple.may_send_datagram();
    let of_data = paths.iter().filter(may_send).filter_map(|path| path.space.ack_deadline());
    if of_handshake.are_discarded() {
        return of_data.min();
    }
    let of_handshake = of_handshake.iter().filter_map(|(_, numbers)| numbers.ack_deadline());
    of_handshake.filter(|_| may_send(&paths.primary())).chain(of_data).min()
}

/// When a packet will be lost by the time threshold.
fn loss_deadline(paths: &Paths, of_handshake: &HandshakeSpaces) -> Option<Instant> {
    let of_handshake = of_handshake.iter().filter_map(|(_, numbers)| numbers.loss_deadline());
    of_handshake.chain(paths.iter().filter_map(|path| path.space.loss_deadline())).min()
}
