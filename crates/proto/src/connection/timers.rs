//! When something has to happen next, and why (RFC 9002 appendix A.8, RFC 9000 §10).

use fulmar_base::Instant;

use super::Connection;
use crate::events::ConnectionError;
use crate::ids::SpaceId;
use crate::log::{ConnectionState, LogEvent};

/// Why a connection wants to be woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerReason {
    /// A packet will be taken for lost.
    Loss,
    /// An acknowledgement is overdue, and a probe will be sent.
    Probe,
    /// An acknowledgement of this end is due.
    Ack,
    /// An unreliable datagram will be of no use any more.
    Datagram,
    /// The pacer lets the next packets leave.
    Pacing,
    /// Old keys are discarded.
    Keys,
    /// A challenge will be repeated, or an address has failed.
    Path,
    /// A flow of packets from the server has stopped.
    Vigil,
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
        let keys = self.handshake.one_rtt_keys().and_then(|keys| keys.next_timeout());
        [
            (self.loss_deadline(), TimerReason::Loss),
            (self.pto_deadline().map(|(at, _)| at), TimerReason::Probe),
            (self.ack_deadline(), TimerReason::Ack),
            (self.datagrams.next_timeout(), TimerReason::Datagram),
            (self.pacing.deadline(), TimerReason::Pacing),
            (keys, TimerReason::Keys),
            (self.path_deadline(), TimerReason::Path),
            (self.vigil.deadline(), TimerReason::Vigil),
            (self.idle.keep_alive_deadline(), TimerReason::KeepAlive),
            (self.handshake.deadline(), TimerReason::Handshake),
            (self.idle.deadline(), TimerReason::Idle),
        ]
        .into_iter()
        .filter_map(|(at, reason)| Some((at?, reason)))
        .min()
    }

    /// Does what is due at `now`. Calling it too early or too often does no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        if !self.lifecycle.is_open() {
            if self.lifecycle.on_timeout(now) {
                self.note(now, LogEvent::State(ConnectionState::Drained));
                self.on_drained();
            }
            return;
        }
        if self.idle.on_timeout(now) {
            return self.abandon(now, ConnectionError::TimedOut);
        }
        if self.handshake.on_timeout(now) {
            return self.abandon(now, ConnectionError::HandshakeTimedOut);
        }
        // What is in flight asks the peer already, and its probes go on asking; a PING would only add to it.
        let asked = self.path.tuple.congestion.bytes_in_flight() > 0;
        if self.idle.on_keep_alive(now) && self.handshake.is_confirmed() && !asked {
            self.probes.demand_one(SpaceId::DATA);
        }
        // Where no stream is open, nothing more is expected.
        if self.vigil.on_timeout(now) && self.open_streams() > 0 {
            // What is in flight may have been answered where this end cannot be reached any more: then its probe has to be
            // the question.
            self.vigil.ask();
            if !asked {
                self.probes.demand_one(SpaceId::DATA);
            }
        }
        self.datagrams.on_timeout(now);
        self.pacing.take_expired(now);
        if self.path_deadline().is_some_and(|at| at <= now) {
            self.on_path_timeout(now);
        }
        if self.loss_deadline().is_some_and(|at| at <= now) {
            self.note(now, LogEvent::LossTimeout);
            self.on_loss_timeout(now);
        } else if let Some((_, space)) = self.pto_deadline().filter(|(at, _)| *at <= now) {
            self.on_pto(now, space);
        }
        // Acknowledgements and keys are looked after when packets are built.
    }

    fn ack_deadline(&self) -> Option<Instant> {
        // Where nothing may be sent, the peer's next datagram brings the occasion.
        if !self.has_credit() {
            return None;
        }
        SpaceId::ALL.into_iter().filter_map(|id| self.space(id)?.ack_deadline()).min()
    }
}
