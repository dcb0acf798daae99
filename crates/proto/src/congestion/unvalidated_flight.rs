//! The first flight that leaves at a rate which packet trains have shown. Nothing of it was acknowledged yet, so the rate is
//! not validated: the words are those of careful resume (RFC 9959), and so is the idea of the safe retreat.
//!
//! A train shows how fast the bottleneck sends, not that it will go on so. A policer lets a short train pass at any rate,
//! and drops later what exceeds its own. On a long path the sender hears of that a round trip later, with many times too much
//! under way. Half of such a window would lose the next flights as well. So the flight itself shows what to retreat to: the
//! rate at which packets still arrive while others are lost.

use fulmar_base::Instant;

use super::units::{rate, volume};
use super::{AckEvent, CongestionEvent};
use crate::packed::packed;
use crate::rtt::Rtt;

/// The rate is wrong if more is lost than arrives, and this many packets at least.
const REFUTING_PACKETS: u64 = 16;

/// The rate of what still arrives is measured over this many packets at least.
const MEASURED_PACKETS: u64 = 4;

/// The flight, and what has become of it.
#[derive(Debug, Clone)]
pub(super) struct UnvalidatedFlight {
    since: Instant,
    last_sent: Instant,
    /// Whether a packet of it was acknowledged. What leaves after that is no part of the flight.
    answered: bool,
    arrived: u64,
    lost: u64,
    /// What has arrived since the first loss was found.
    after_loss: Option<AfterLoss>,
    is_refuted: bool,
}

packed!(UnvalidatedFlight { since, last_sent, answered, arrived, lost, after_loss, is_refuted });

#[derive(Debug, Clone, Copy)]
struct AfterLoss {
    start: Instant,
    end: Instant,
    bytes: u64,
}

packed!(AfterLoss { start, end, bytes });

/// Where to retreat to, as a flight shows whose rate was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SafeRetreat {
    /// The bytes of the flight that have arrived until now.
    Arrived(u64),
    /// The rate at which the path delivers, in bytes per second. Known once the whole flight was acknowledged or lost.
    Delivers(u64),
}

impl SafeRetreat {
    /// The window in bytes that suits the path. Twice the unevenness of its samples has room beside the smallest round-trip time: where a
    /// radio holds most packets up, a window for the luckiest ones would be a fraction of what the path carries.
    pub(super) fn window(self, rtt: &Rtt) -> u64 {
        match self {
            Self::Arrived(bytes) => bytes,
            Self::Delivers(rate) => volume(rate, rtt.min() + 2 * rtt.jitter()),
        }
    }
}

impl UnvalidatedFlight {
    /// The flight that begins now.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            since: now,
            last_sent: now,
            answered: false,
            arrived: 0,
            lost: 0,
            after_loss: None,
            is_refuted: false,
        }
    }

    /// A packet left.
    pub(super) fn on_sent(&mut self, now: Instant) {
        if !self.answered {
            self.last_sent = now;
        }
    }

    /// Whether more of it was lost than has arrived: the rate was wrong.
    pub(super) fn is_refuted(&self) -> bool {
        self.is_refuted
    }

    /// The bytes that have arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Whether an ACK frame whose newest packet left at `sent` ends the flight. The losses that it shows are reported
    /// after it, so it takes a later packet, unless enough losses are known already.
    pub(super) fn is_over(&self, sent: Instant) -> bool {
        self.answered && (sent > self.last_sent || self.is_refuted && sent == self.last_sent)
    }

    /// Takes an acknowledgement.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>) {
        let sent = ack.largest_sent_time;
        if sent < self.since || sent > self.last_sent {
            return;
        }
        self.answered = true;
        self.arrived += ack.acked_bytes;
        if let Some(after_loss) = &mut self.after_loss {
            after_loss.bytes += ack.acked_bytes;
            after_loss.end = now;
        }
    }

    /// Takes losses, after the acknowledgement that showed them.
    pub(super) fn on_lost(&mut self, now: Instant, event: &CongestionEvent, packet: u64) {
        if event.largest_sent_time < self.since || event.largest_sent_time > self.last_sent {
            return;
        }
        self.lost += event.lost_bytes;
        // What had filled a bucket of tokens has passed before the first loss, and says nothing about the rate.
        self.after_loss.get_or_insert(AfterLoss { start: now, end: now, bytes: 0 });
        self.is_refuted |= self.lost > self.arrived && self.lost >= REFUTING_PACKETS * packet;
    }

    /// Where to retreat to, if the rate was wrong. `is_over` says whether the whole flight was acknowledged or lost.
    pub(super) fn retreat(&self, is_over: bool, packet: u64) -> Option<SafeRetreat> {
        let measured = self.after_loss.filter(|after_loss| {
            is_over && after_loss.bytes >= MEASURED_PACKETS * packet && after_loss.end > after_loss.start
        });
        let delivers =
            |after_loss: AfterLoss| rate(after_loss.bytes, after_loss.end.saturating_since(after_loss.start));
        let retreat =
            measured.map_or(SafeRetreat::Arrived(self.arrived), |it| SafeRetreat::Delivers(delivers(it)));
        self.is_refuted.then_some(retreat)
    }
}

#[cfg(test)]
mod tests;
