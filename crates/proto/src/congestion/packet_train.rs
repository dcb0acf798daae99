//! A packet train: packets that leave together, and whose spacing on arrival shows the capacity of the path.
//!
//! Doubling the rate in each round trip takes seconds on a path over a satellite. The bottleneck spaces the packets of a
//! train, and their acknowledgements show the spacing, so there is an estimate after one round trip. This is packet
//! dispersion, as in C. Dovrolis, P. Ramanathan and D. Moore, "What do packet dispersion techniques measure?"
//! (INFOCOM 2001). The guards against bunched acknowledgements are our own.

use std::time::Duration;

use fulmar_base::Instant;

use super::AckEvent;
use super::units::rate;
use crate::packed::packed;

/// A train is judged by this many full packets at least, and once half of it was acknowledged.
const MIN_PACKETS: u64 = 4;

/// Packets that were sent this much after the first one belong to no train.
const MAX_SEND_TIME: Duration = Duration::from_millis(10);

/// A pause of the sender ends a train: what leaves after it stands in no queue behind what left before, and its spacing on arrival
/// would be that of the pause. Within a train there are only the calls that hand it to the network. Half of [`MIN_TIME`] is the
/// least spacing that is told from none.
const MAX_PAUSE: Duration = Duration::from_micros(250);

/// Shorter times say more about timers and about the slots of a radio than about the path: what comes in less counts as if it had taken
/// so long.
const MIN_TIME: Duration = Duration::from_micros(500);

/// But acknowledgements that are evenly spaced are no bunch, and show the path by times down to this one. Below it the spacing may be
/// that of a receiver at work.
const MIN_EVEN_TIME: Duration = Duration::from_micros(125);

/// Evenly spaced are acknowledgements of which none shows, by the time since the one before it, more than so many times the rate of all.
const EVEN_FACTOR: u64 = 2;

/// Packets that were sent together.
#[derive(Debug, Clone)]
pub(super) struct PacketTrain {
    first_sent: Instant,
    last_sent: Instant,
    bytes: u64,
    acked: u64,
    first_ack: Option<FirstAck>,
    /// Bytes per second; zero until it has shown something.
    rate: u64,
    /// The highest rate that one acknowledgement has shown by the time since the one before it, in kilobytes per second; the largest
    /// number where both came at once.
    fastest: u32,
    /// Whether its acknowledgements came within less than the time that counts: the path may be faster than it shows.
    is_lower_bound: bool,
}

packed!(PacketTrain { first_sent, last_sent, bytes, acked, first_ack, rate, fastest, is_lower_bound });

/// The first acknowledgement of a train.
#[derive(Debug, Clone, Copy)]
struct FirstAck {
    came: Instant,
    /// When the latest one came.
    latest: Instant,
    bytes: u64,
    /// The round-trip time without what the train adds to it.
    base: Duration,
}

packed!(FirstAck { came, latest, bytes, base });

impl PacketTrain {
    /// The train that begins with a packet of `bytes`.
    pub(super) fn new(now: Instant, bytes: u64) -> Self {
        Self {
            first_sent: now,
            last_sent: now,
            bytes,
            acked: 0,
            first_ack: None,
            rate: 0,
            fastest: 0,
            is_lower_bound: false,
        }
    }

    /// Takes a packet that leaves. Returns false if that is too late to belong to the train.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64) -> bool {
        let belongs = now.saturating_since(self.first_sent) <= MAX_SEND_TIME
            && now.saturating_since(self.last_sent) <= MAX_PAUSE;
        if belongs {
            self.last_sent = now;
            self.bytes += bytes;
        }
        belongs
    }

    /// Whether an acknowledgement whose newest packet was sent at `sent` ends the train, or comes after it.
    pub(super) fn is_over(&self, sent: Instant) -> bool {
        self.acked >= self.bytes || sent > self.last_sent
    }

    /// Takes an acknowledgement.
    ///
    /// The rate is what was acknowledged over the longest of three times. That of sending: no estimate is above the
    /// rate of sending. That since the first acknowledgement, whose own bytes do not count then. And the delay beyond
    /// about the smallest round-trip time: acknowledgements that had to wait for something on their way back, or were sent
    /// together, come in a bunch, but then all of them late. So the estimate is rather too low than too high, which
    /// the next train corrects, since it is longer. Where one acknowledgement is all that came, the delay alone says
    /// something, if it is long enough.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>, min_rtt: Duration, packet: u64) {
        // Acknowledgements by several ways show their spacing as if all had come by the shortest, to which the smallest round trip belongs.
        let (now, sent) = (now.saturating_sub(ack.detour), ack.largest_sent_time);
        if sent < self.first_sent {
            return;
        }
        self.acked += ack.acked_bytes;
        self.follow_spacing(now, ack.acked_bytes);
        let first = *self.first_ack.get_or_insert_with(|| {
            // The smallest round-trip time may be that of a small packet; what exceeds it by more came late.
            let base = now.saturating_since(sent).clamp(min_rtt, min_rtt + MIN_TIME);
            FirstAck { came: now, latest: now, bytes: ack.acked_bytes, base }
        });
        if self.is_short(packet) || self.acked < MIN_PACKETS * packet || self.acked < self.bytes / 2 {
            return;
        }
        let sending = sent.saturating_since(self.first_sent);
        let delay = now.saturating_since(self.first_sent + first.base).max(sending);
        let later = self.acked - first.bytes;
        let spacing = now.saturating_since(first.came);
        let least =
            if delay >= MIN_EVEN_TIME && self.is_even(later, spacing) { MIN_EVEN_TIME } else { MIN_TIME };
        if later == 0 && delay < least {
            return;
        }
        self.is_lower_bound |= delay < least;
        let by_delay = rate(self.acked, delay.max(least));
        let by_spacing = if later > 0 { rate(later, spacing.max(least / 2)) } else { u64::MAX };
        self.rate = self.rate.max(by_delay.min(by_spacing));
    }

    fn follow_spacing(&mut self, now: Instant, bytes: u64) {
        let Some(first) = &mut self.first_ack else { return };
        let gap = now.saturating_since(std::mem::replace(&mut first.latest, now));
        let shown = if gap.is_zero() { u64::MAX } else { rate(bytes, gap) / 1_000 };
        self.fastest = self.fastest.max(u32::try_from(shown).unwrap_or(u32::MAX));
    }

    /// Whether the bytes that were acknowledged after the first acknowledgement came evenly over this time.
    fn is_even(&self, later: u64, spacing: Duration) -> bool {
        let limit = rate(later, spacing).saturating_mul(EVEN_FACTOR) / 1_000;
        later > 0 && self.fastest < u32::MAX && u64::from(self.fastest) <= limit
    }

    /// How many bytes have left.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the train has shown, in bytes per second, if it has.
    pub(super) fn rate(&self) -> Option<u64> {
        (self.rate > 0).then_some(self.rate)
    }

    /// Whether the path may be faster than the train could show.
    pub(super) fn is_lower_bound(&self) -> bool {
        self.is_lower_bound
    }

    /// Whether the train is too short to show anything.
    pub(super) fn is_short(&self, packet: u64) -> bool {
        self.bytes < MIN_PACKETS * packet
    }
}

#[cfg(test)]
mod tests;
