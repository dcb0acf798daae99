//! The flight that leaves at a rate which trains of packets have shown, before any of it was acknowledged.
//!
//! A train says how fast the bottleneck sends, but not that it will go on so: a policer lets a short train pass at any
//! rate and drops what exceeds its own later. On a long path that is found out a round trip later, when many times too
//! much is under way. To take the usual part of the window then would lose the next flights as well. So the flight itself
//! shows what to go back to: the rate at which packets still arrive while others are lost.

use std::time::Duration;

use fulmar_base::Instant;

use super::units::{rate, volume};
use super::{AckEvent, CongestionEvent};

/// Losses refute the rate if they are more than what arrives, and so many packets at least.
const REFUTING_PACKETS: u64 = 16;

/// What still arrives is measured over so many packets at least.
const MEASURED_PACKETS: u64 = 4;

/// What is known of the flight.
#[derive(Debug, Clone)]
pub(super) struct UnvalidatedFlight {
    since: Instant,
    last_sent: Instant,
    /// Whether a packet of it was acknowledged: what leaves from then on is no part of it.
    answered: bool,
    arrived: u64,
    lost: u64,
    /// What has arrived since the first loss was found.
    after_loss: Option<AfterLoss>,
    is_refuted: bool,
}

#[derive(Debug, Clone, Copy)]
struct AfterLoss {
    start: Instant,
    end: Instant,
    bytes: u64,
}

/// What a refuted flight shows of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SafeRetreat {
    /// So many bytes of it have arrived until now.
    Arrived(u64),
    /// All of it was judged. In bytes per second, what the path delivers.
    Delivers(u64),
}

impl SafeRetreat {
    /// The window in bytes that suits the path, where `min_rtt` is its smallest round-trip time.
    pub(super) fn window(self, min_rtt: Duration) -> u64 {
        match self {
            Self::Arrived(bytes) => bytes,
            Self::Delivers(rate) => volume(rate, min_rtt),
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

    /// Whether most of what was judged is lost.
    pub(super) fn is_refuted(&self) -> bool {
        self.is_refuted
    }

    /// The bytes that have arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Whether an acknowledgement whose newest packet left at `sent` ends the flight. Losses that it shows are found after
    /// it: unless there were enough of them before, those of the last packets are waited for.
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
        if event.largest_sent_time < self.since {
            return;
        }
        self.lost += event.lost_bytes;
        // What had filled a bucket of tokens has passed before the first loss, and says nothing about the rate.
        self.after_loss.get_or_insert(AfterLoss { start: now, end: now, bytes: 0 });
        self.is_refuted |= self.lost > self.arrived && self.lost >= REFUTING_PACKETS * packet;
    }

    /// What the flight shows, if it was refuted; `is_over` says whether all of it was judged.
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
