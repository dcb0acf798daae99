//! The ways in which a connection ends, and what is said when this end closes it (RFC 9000 §10).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_wire::{CloseCode, ConnectionClose, Frame, FrameType, PathId, TransportErrorCode, VarInt};

use super::Connection;
use super::close_answers::CloseAnswers;
use super::lifecycle::State;
use crate::config::MTU_MIN;
use crate::error::TransportError;
use crate::events::{ConnectionError, EndpointEventInner};
use crate::log::{ConnectionState, LogEvent};

/// The longest reason that is sent, in bytes, so that the frame fits any packet.
const REASON_MAX: usize = 256;

/// A closed connection is remembered for so many probe timeouts (RFC 9000 §10.2).
const DRAINING_PTOS: u32 = 3;

/// Where more is in flight than this many full packets (an initial window, RFC 9002 §7.2), CONNECTION_CLOSE may be lost in a buffer
/// that is full of it, and whoever works that off may be away from its processor for longer than some short round trips. The
/// connection is remembered for [`CLOSING_MIN`] at least then, and who has said anything meanwhile is answered once more at the end.
const FLIGHT_PACKETS: u64 = 10;
const CLOSING_MIN: Duration = Duration::from_millis(200);

/// A longer datagram with CONNECTION_CLOSE has an Initial packet, for which it is padded: it is not kept to be sent again.
const KEPT_MAX: usize = 600;

/// The CONNECTION_CLOSE of this end, and when it is repeated.
#[derive(Debug)]
pub(super) struct Close {
    code: CloseCode,
    reason: Bytes,
    pending: bool,
    answers: CloseAnswers,
    /// Over which path the last of them came.
    asked_over: Option<PathId>,
    /// Whether what came is answered once more when the connection is forgotten.
    answers_last: bool,
    /// The last datagram with the frame.
    sent: Option<Box<[u8]>>,
}

impl Close {
    pub(super) fn new(code: CloseCode, reason: Bytes, answers_last: bool) -> Self {
        let len = reason.len().min(REASON_MAX);
        Self {
            code,
            reason: reason.slice(..len),
            pending: true,
            answers: CloseAnswers::new(),
            asked_over: None,
            answers_last,
            sent: None,
        }
    }

    /// The connection is about to be forgotten; returns whether the frame is to be sent a last time.
    pub(super) fn on_end(&mut self) -> bool {
        let is_due = std::mem::take(&mut self.answers_last) && self.answers.are_doubtful();
        self.pending |= is_due;
        is_due
    }

    /// Whether the frame should be sent.
    pub(super) fn is_pending(&self) -> bool {
        self.pending
    }

    /// A datagram came although the connection is closed.
    pub(super) fn on_datagram(&mut self, path: Option<PathId>) {
        self.asked_over = path;
        match self.answers.is_due() {
            true => {
                self.answers.on_answered();
                self.pending = true;
            }
            false => self.answers.on_ignored(),
        }
    }

    /// The path over which it is asked whether the connection is over.
    pub(super) fn asked_over(&self) -> Option<PathId> {
        self.asked_over
    }

    /// The frame was sent in every space that has keys, in this datagram; it is empty if there are no keys at all.
    pub(super) fn on_sent(&mut self, datagram: &[u8]) {
        self.pending = false;
        self.sent = (1..=KEPT_MAX).contains(&datagram.len()).then(|| datagram.into());
    }

    /// The datagram with the frame, if sending it again is all that is left to do.
    pub(super) fn take_sent(&mut self) -> Option<Box<[u8]>> {
        if self.pending || self.answers_last { None } else { self.sent.take() }
    }

    /// The frame for an Initial or Handshake packet (`of_handshake`) or a 1-RTT packet.
    pub(super) fn frame(&self, of_handshake: bool) -> Frame<'_> {
        let hidden =
            CloseCode::Transport { code: TransportErrorCode::APPLICATION_ERROR, frame: FrameType::PADDING };
        // RFC 9000 §10.2.3: an application's code and words could reveal its state before the handshake has
        // proven who listens.
        let (code, reason): (_, &[u8]) = match self.code {
            CloseCode::Application(_) if of_handshake => (hidden, &[]),
            code => (code, &self.reason),
        };
        Frame::ConnectionClose(ConnectionClose { code, reason })
    }
}

/// What the operating system of this end has refused to send before anything was heard of the peer, and why it did so last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unsent {
    /// An attempt to connect sends some dozens.
    datagrams: u16,
    reason: Refusal,
}

/// Why the operating system has refused a datagram.
#[derive(Debug, Clone, Copy)]
enum Refusal {
    /// It is larger than the interface carries.
    Size,
    Other(io::ErrorKind),
}

impl Refusal {
    fn error(self) -> ConnectionError {
        match self {
            Self::Size => ConnectionError::DatagramsTooLarge,
            Self::Other(reason) => ConnectionError::Unsent(reason),
        }
    }
}

/// Whether the system says that it cannot send to the address, or from the one of this end. A TCP connection would not begin either.
fn has_no_way(reason: io::ErrorKind) -> bool {
    use io::ErrorKind::{AddrNotAvailable, HostUnreachable, InvalidInput, NetworkDown, NetworkUnreachable};
    matches!(reason, NetworkUnreachable | HostUnreachable | NetworkDown | AddrNotAvailable | InvalidInput)
}

impl Connection {
    /// Closes the connection with a code and words for the peer's application. Whatever was not delivered is
    /// lost. A second call changes nothing.
    pub fn close(&mut self, now: Instant, code: VarInt, reason: Bytes) {
        if self.lifecycle.is_open() {
            self.start_closing(now, CloseCode::Application(code), reason);
            self.outbox.end(&mut self.streams, ConnectionError::LocallyClosed);
            self.let_go_if_over();
        }
    }

    /// The network says that nobody listens at `remote`, to which this end has sent. Anyone can say so who knows the ports, so
    /// it is a hint: it ends a client's attempt to connect there of which nothing was ever answered, with
    /// [`ConnectionError::Refused`], and nothing else. An address that the client has left does not count.
    pub fn on_refused(&mut self, now: Instant, remote: SocketAddr) {
        if self.is_unanswered() && self.paths.primary().tuple.addrs.remote == remote {
            self.abandon(now, ConnectionError::Refused);
        }
    }

    /// The operating system of this end has refused to send so many datagrams, and has lost them. Where it has refused all that a client has
    /// wanted to send, and nothing was ever heard of the server, the attempt to connect ends with [`ConnectionError::Unsent`]: at once, if
    /// there is no way to the address; at its timeout, if the reason may pass, as that of a firewall or a full buffer may.
    pub fn on_unsent(&mut self, now: Instant, datagrams: usize, reason: io::ErrorKind) {
        self.count_unsent(now, datagrams, Refusal::Other(reason), has_no_way(reason));
    }

    /// The operating system of this end has dropped so many datagrams of `size` bytes because the interface by which they would leave carries
    /// none so large. Where that is all that a client has wanted to send, and datagrams of the least size that QUIC works with
    /// are among it, the attempt to connect ends at once with [`ConnectionError::DatagramsTooLarge`].
    pub fn on_too_large(&mut self, now: Instant, datagrams: usize, size: usize) {
        self.count_unsent(now, datagrams, Refusal::Size, size <= usize::from(MTU_MIN));
    }

    fn count_unsent(&mut self, now: Instant, datagrams: usize, reason: Refusal, is_for_good: bool) {
        if !self.is_unanswered() {
            return;
        }
        let before = self.unsent.map_or(0, |unsent| unsent.datagrams);
        let datagrams = before.saturating_add(u16::try_from(datagrams).unwrap_or(u16::MAX));
        self.unsent = Some(Unsent { datagrams, reason });
        if let Some(error) = self.unsent_error().filter(|_| is_for_good) {
            self.abandon(now, error);
        }
    }

    /// The end of an attempt of which nothing has left this end.
    pub(super) fn unsent_error(&self) -> Option<ConnectionError> {
        let all =
            self.unsent.filter(|unsent| u64::from(unsent.datagrams) == self.telemetry.stats.datagrams_sent);
        all.map(|unsent| unsent.reason.error())
    }

    /// Whether it is a client's attempt of which nothing was ever heard.
    fn is_unanswered(&self) -> bool {
        self.side.is_client() && self.lifecycle.is_open() && self.telemetry.stats.datagrams_received == 0
    }

    /// The peer broke the protocol: say so and end.
    pub(super) fn close_on_error(&mut self, now: Instant, error: TransportError) {
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
        self.outbox.end(&mut self.streams, reason);
    }

    fn start_closing(&mut self, now: Instant, code: CloseCode, reason: Bytes) {
        self.telemetry.record(now, LogEvent::State(ConnectionState::Closing));
        self.telemetry.record_closing(now, code, &reason);
        let bulk = self.paths.iter().any(|path| {
            path.tuple.congestion.bytes_in_flight() > FLIGHT_PACKETS * u64::from(path.tuple.mtu())
        });
        let least = if bulk { CLOSING_MIN } else { Duration::ZERO };
        let end = now + self.remembered_for().max(least);
        self.lifecycle.move_to_closing(end, Close::new(code, reason, bulk));
        self.stop_components(now);
    }

    /// How long the connection is remembered once it is over. The peer has a say in the probe timeout, by the delays of its
    /// acknowledgements that it announces and that it makes; it may cost this end no more time than a peer that says nothing.
    fn remembered_for(&self) -> Duration {
        let patience = self.config.max_idle_timeout.unwrap_or_default().max(self.config.handshake_timeout);
        (self.probe_timeout_max() * DRAINING_PTOS).min(patience)
    }

    /// The peer has closed, or has forgotten the connection.
    pub(super) fn drain(&mut self, now: Instant, reason: ConnectionError) {
        self.telemetry.record(now, LogEvent::State(ConnectionState::Draining));
        let was_open = self.lifecycle.is_open();
        self.lifecycle.move_to_draining(now + self.remembered_for());
        self.stop_components(now);
        if was_open {
            self.telemetry.record_lost(now, &reason);
            self.outbox.end(&mut self.streams, reason);
        }
    }

    /// Forgets a connection that is over before its time has passed: for those who would have to remember too many. What still
    /// comes for it is treated as what comes for an unknown connection then (RFC 9000 §10.2). Without effect on one that is open.
    pub fn forget(&mut self, now: Instant) {
        if !self.lifecycle.is_open() && !self.lifecycle.is_drained() {
            self.move_to_drained(now, EndpointEventInner::Drained);
        }
    }

    /// Leaves the rest to the endpoint if the peer has closed: until the time of the connection has passed, it knows which packets
    /// belong to it and are to be dropped (RFC 9000 §10.2.2). For that nobody needs the connection itself. Without effect on
    /// another one.
    pub fn leave_to_drain(&mut self, now: Instant) {
        if let Some(until) = self.lifecycle.draining_until() {
            self.move_to_drained(now, EndpointEventInner::Left { until, packet: None });
        }
    }

    /// The same if this end has closed and has said so: until the time of the connection has passed, the endpoint answers what comes
    /// for it with the last datagram (RFC 9000 §10.2.1). Without effect where that is not all that is left to do: where there are
    /// still Initial keys, where the end is told once more because much was in flight, and without connection IDs.
    pub fn leave_to_close(&mut self, now: Instant) {
        let has_cids = self.paths.primary().local_cids.cid_len() > 0;
        if has_cids && let Some((until, packet)) = self.lifecycle.take_closing() {
            self.move_to_drained(now, EndpointEventInner::Left { until, packet: Some(packet) });
        }
    }

    fn move_to_drained(&mut self, now: Instant, event: EndpointEventInner) {
        self.lifecycle.move_to_drained();
        self.telemetry.record(now, LogEvent::State(ConnectionState::Drained));
        self.outbox.push_endpoint(event);
    }

    /// The connection ends without a word, because nobody seems to listen (RFC 9000 §10.1).
    pub(super) fn abandon(&mut self, now: Instant, reason: ConnectionError) {
        self.telemetry.record(now, LogEvent::State(ConnectionState::TimedOut));
        self.telemetry.record_lost(now, &reason);
        self.lifecycle.move_to_drained();
        self.stop_components(now);
        self.outbox.end(&mut self.streams, reason);
        self.outbox.push_endpoint(EndpointEventInner::Drained);
    }

    /// Lets go of what only a connection needs that still says something. RFC 9000 §10.2: whoever ends connections as fast as
    /// they can must not fill the memory with those that are remembered.
    pub(super) fn let_go_if_over(&mut self) {
        match self.lifecycle.state() {
            State::Handshaking | State::Established => {}
            // With its keys and numbers it still says that it is over.
            State::Closing => self.handshake.tls.let_go(),
            State::Draining | State::Drained => self.handshake.let_go(),
        }
    }

    fn stop_components(&mut self, now: Instant) {
        self.remember_path(now);
        self.liveness.stop();
        self.handshake.stop();
        self.paths.iter_mut().for_each(|path| path.pacing.cancel());
    }
}

#[cfg(test)]
mod tests;
