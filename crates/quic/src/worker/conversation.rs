//! One datagram comes, one leaves, and so on: how the worker waits for the next one.
//!
//! To sleep and to be woken costs some microseconds, on a virtual machine ten, and as much again at the other end, whose system call
//! has to wake this one. Where answers come sooner than that is worth, the worker keeps looking at its socket instead. A wait in vain
//! is bounded by [`EndpointBuilder::busy_poll`](crate::EndpointBuilder::busy_poll), and after each one twice as many short waits are
//! asked for before the next try, so that it costs next to nothing where it does not help: with both ends on one processor, or with
//! an application that takes its time.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_proto::ConnectionHandle;

/// After so many turns in which one datagram came, and none or one left, it is a conversation.
const TURNS: u32 = 16;
/// So many waits in a row must have been short before the worker keeps looking, at first and at most.
const SHORT_WAITS_MIN: u32 = 16;
const SHORT_WAITS_MAX: u32 = 4_096;

/// What the worker has seen of its latest turns.
pub(super) struct Conversation {
    /// Turns since more than one datagram at a time was received or sent.
    turns: u32,
    /// Whose datagrams they were.
    partner: Option<ConnectionHandle>,
    /// The longest time that the worker keeps looking.
    busy_poll: Duration,
    /// Since when there is nothing to do.
    waits_since: Option<Instant>,
    /// Waits in a row, for datagrams of one connection, that were not longer than `busy_poll`.
    short_waits: u32,
    /// So many are asked for.
    short_waits_min: u32,
}

impl Conversation {
    /// None yet.
    pub(super) fn new(busy_poll: Duration) -> Self {
        Self {
            turns: 0,
            partner: None,
            busy_poll,
            waits_since: None,
            short_waits: 0,
            short_waits_min: SHORT_WAITS_MIN,
        }
    }

    /// Whether datagrams come one by one: see [`UdpSocket::try_recv_lone`](fulmar_udp::UdpSocket::try_recv_lone).
    pub(super) fn is_on(&self) -> bool {
        self.turns >= TURNS
    }

    /// Something was received, a single datagram or more.
    pub(super) fn on_received(&mut self, now: Instant, is_lone: bool) {
        self.turns = if is_lone { self.turns.saturating_add(1) } else { 0 };
        let Some(since) = self.waits_since.take() else { return };
        if now.saturating_since(since) > self.busy_poll {
            self.short_waits = 0;
            return;
        }
        if self.looks() {
            self.short_waits_min = (self.short_waits_min / 2).max(SHORT_WAITS_MIN);
        }
        self.short_waits = self.short_waits.saturating_add(1);
    }

    /// What was received is for this connection. With several there is always one that may come, so that waits are short because
    /// there is much to do.
    pub(super) fn on_delivered(&mut self, to: ConnectionHandle) {
        if self.partner.replace(to) != Some(to) {
            self.short_waits = 0;
        }
    }

    /// A datagram left, or several at once: the wait for what follows begins anew.
    pub(super) fn on_sent(&mut self, is_lone: bool) {
        self.waits_since = None;
        if !is_lone {
            self.turns = 0;
        }
    }

    /// There is something to do before the next datagram.
    pub(super) fn on_work(&mut self) {
        self.waits_since = None;
    }

    /// There is nothing to do. Returns whether to look again at once instead of sleeping.
    pub(super) fn keeps_looking(&mut self, now: Instant) -> bool {
        let since = *self.waits_since.get_or_insert(now);
        if !self.looks() {
            return false;
        }
        let looks = now.saturating_since(since) <= self.busy_poll;
        if !looks {
            self.short_waits = 0;
            self.short_waits_min = (2 * self.short_waits_min).min(SHORT_WAITS_MAX);
        }
        looks
    }

    fn looks(&self) -> bool {
        self.is_on() && self.short_waits >= self.short_waits_min
    }
}

#[cfg(test)]
mod tests;
