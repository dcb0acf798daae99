//! From the first packet to the last: the states of a connection (RFC 9000 §10).

use fulmar_base::{Instant, Timer};
use fulmar_wire::PathId;

use super::close::Close;
use crate::rtt::GRANULARITY;

/// Where a connection stands. Only this file changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Keys are being agreed.
    Handshaking,
    /// The handshake is complete.
    Established,
    /// This end has closed: it answers what still comes with CONNECTION_CLOSE (RFC 9000 §10.2.1).
    Closing,
    /// The peer has closed, or is gone: nothing is sent any more (RFC 9000 §10.2.2).
    Draining,
    /// Nothing is left to be done.
    Drained,
}

/// The state and the time at which the connection is forgotten.
#[derive(Debug)]
pub(super) struct Lifecycle {
    state: State,
    end: Timer,
    /// What this end says when it closes.
    close: Option<Box<Close>>,
}

impl Lifecycle {
    pub(super) fn new() -> Self {
        Self { state: State::Handshaking, end: Timer::new(), close: None }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Whether frames are exchanged: the connection is neither closed nor closing.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Handshaking | State::Established)
    }

    pub(super) fn is_drained(&self) -> bool {
        self.state == State::Drained
    }

    /// The CONNECTION_CLOSE of this end.
    pub(super) fn close(&self) -> Option<&Close> {
        self.close.as_deref()
    }

    /// It was sent in every space that has keys, in this datagram.
    pub(super) fn on_close_sent(&mut self, datagram: &[u8]) {
        if let Some(close) = &mut self.close {
            close.on_sent(datagram);
        }
    }

    /// A datagram came over a path, or one that is gone, although this end has closed.
    pub(super) fn on_datagram_while_closing(&mut self, path: Option<PathId>) {
        if let Some(close) = &mut self.close {
            close.on_datagram(path);
        }
    }

    /// When the connection can be forgotten, after it has ended.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.end.deadline()
    }

    pub(super) fn move_to_established(&mut self) {
        debug_assert_eq!(self.state, State::Handshaking);
        self.state = State::Established;
    }

    /// This end closes; packets that still arrive are answered until `end`.
    pub(super) fn move_to_closing(&mut self, end: Instant, close: Close) {
        debug_assert!(self.is_open());
        self.state = State::Closing;
        self.close = Some(Box::new(close));
        self.end.set(end);
    }

    /// The peer has closed; packets that still arrive are ignored until `end`.
    pub(super) fn move_to_draining(&mut self, end: Instant) {
        debug_assert!(self.is_open() || self.state == State::Closing);
        // RFC 9000 §10.2.2: the time to drain does not start anew when the peer closes as well.
        self.state = State::Draining;
        self.end.set_earlier(end);
    }

    /// Until when packets that still arrive are to be ignored, if this end need do nothing else.
    pub(super) fn draining_until(&self) -> Option<Instant> {
        self.end.deadline().filter(|_| self.state == State::Draining)
    }

    /// Until when what still arrives is to be answered, and with which datagram, if this end has closed and has nothing else to do.
    pub(super) fn take_closing(&mut self) -> Option<(Instant, Box<[u8]>)> {
        let until = self.end.deadline().filter(|_| self.state == State::Closing)?;
        Some((until, self.close.as_deref_mut()?.take_sent()?))
    }

    pub(super) fn move_to_drained(&mut self) {
        self.state = State::Drained;
        self.end.cancel();
    }

    /// Returns true if the connection became forgettable at `now`.
    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        if !self.end.take_expired(now) {
            return false;
        }
        if self.state == State::Closing && self.close.as_deref_mut().is_some_and(Close::on_end) {
            self.end.set(now + GRANULARITY);
            return false;
        }
        self.move_to_drained();
        true
    }
}
