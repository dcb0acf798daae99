//! The round trip after a loss. No more leaves than arrives, which is the conservative bound of proportional rate reduction
//! (RFC 9937); and what still arrives shows how much the path holds, which is our own addition.
//!
//! A start that ends with losses has put up to twice as much on the path as it holds, or far more where a policer let
//! the first packets pass at any rate. A fixed part of such a window may still be too much, and would cost another
//! flight.

use std::time::Duration;

use fulmar_base::Instant;

use super::units::{rate, volume};
use super::{AckEvent, CongestionEvent};

/// The rate is measured over this many packets at least.
const MEASURED_PACKETS: u64 = 8;

/// The rate is measured over so many times the latest unevenness of the round-trip times at least: of a flight that a radio has held up
/// several times, the spacing shows its stops.
const JITTER_FACTOR: u32 = 2;

/// A flight of which less than this part was lost says nothing: the usual reaction has taken as much, and how densely the rest
/// arrives may only show how it left.
const LOST_DIVISOR: u64 = 4;

/// What the round has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown {
    /// Bytes that the path holds without a queue.
    pub(super) pipe: u64,
    /// Bytes that it held, those in the queue included.
    pub(super) held: u64,
}

/// The round that follows a reaction to losses.
#[derive(Debug, Clone, Default)]
pub(super) struct LossRound {
    /// On the heap, since it is rarely there.
    under_way: Option<Box<Arrivals>>,
}

/// What arrives of the flight that was under way at the reaction.
#[derive(Debug, Clone)]
struct Arrivals {
    since: Instant,
    until: Instant,
    bytes: u64,
    /// Bytes of it that were lost.
    lost: u64,
    /// The largest round-trip time of it.
    rtt: Duration,
    /// The longest time without an acknowledgement, and what came after it.
    silence: Duration,
    after_silence: u64,
    /// Whether the flight was the last one of a rise: the bottleneck was never idle while it came through.
    judges: bool,
}

impl Arrivals {
    fn take(&mut self, now: Instant, ack: &AckEvent<'_>) {
        let silence = now.saturating_since(self.until);
        if silence > self.silence {
            (self.silence, self.after_silence) = (silence, ack.acked_bytes);
        }
        self.bytes += ack.acked_bytes;
        self.until = now;
        self.rtt = self.rtt.max(ack.rtt_sample.unwrap_or_default());
    }

    /// What has arrived, and in which time, but for the longest silence and what ended it. Where acknowledgements come evenly that
    /// changes nothing; where a radio link has stopped, the silence shows how long it did so.
    fn without_silence(&self) -> (u64, Duration) {
        let time = self.until.saturating_since(self.since);
        (self.bytes - self.after_silence, time.saturating_sub(self.silence))
    }
}

impl LossRound {
    /// Begins with the reaction. `judges` says whether the round shall show the rate of the path.
    pub(super) fn begin(&mut self, now: Instant, judges: bool) {
        self.under_way = Some(Box::new(Arrivals {
            since: now,
            until: now,
            bytes: 0,
            lost: 0,
            rtt: Duration::ZERO,
            silence: Duration::ZERO,
            after_silence: 0,
            judges,
        }));
    }

    /// Something else ends the round.
    pub(super) fn end(&mut self) {
        self.under_way = None;
    }

    /// Takes losses, those that began the round included.
    pub(super) fn on_lost(&mut self, event: &CongestionEvent) {
        let arrivals = self.under_way.as_mut().filter(|it| event.largest_sent_time <= it.since);
        if let Some(arrivals) = arrivals {
            arrivals.lost += event.lost_bytes;
        }
    }

    /// Whether no more may leave than arrives.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Takes an ACK frame. Returns what the path holds if the round ends with it and was to show that.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>, packet: u64) -> Option<Shown> {
        let arrivals = self.under_way.as_mut()?;
        if ack.largest_sent_time <= arrivals.since {
            arrivals.take(now, ack);
            return None;
        }
        let arrivals = self.under_way.take()?;
        let too_large = arrivals.lost > (arrivals.bytes + arrivals.lost) / LOST_DIVISOR;
        let (bytes, time) = arrivals.without_silence();
        let is_measured = arrivals.judges
            && too_large
            && bytes >= MEASURED_PACKETS * packet
            && time >= ack.rtt.jitter() * JITTER_FACTOR;
        let rate = rate(bytes, time);
        let pipe = volume(rate, ack.rtt.min());
        is_measured.then_some(Shown { pipe, held: volume(rate, arrivals.rtt).max(pipe) })
    }
}

#[cfg(test)]
mod tests;
