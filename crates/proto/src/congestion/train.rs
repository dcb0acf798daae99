//! The capacity of a long path, estimated from the spacing of the first acknowledgements.
//!
//! On a path over a satellite, doubling the rate in each round trip takes seconds. But the packets of the
//! initial window leave together, the bottleneck spaces them, and their acknowledgements show the spacing: an
//! estimate after one round trip. It may be too high, where acknowledgements are bunched, so half of it is
//! taken for the bandwidth: with the gain of STARTUP that fills the path at most once.

use std::time::Duration;

use fulmar_base::Instant;

use super::units::rate;

/// A train is measured over so many bytes at least, in full packets, and over so many acknowledgements.
const MIN_PACKETS: u64 = 4;
const MIN_ACKS: u32 = 3;

/// Packets that were sent this much after the first one belong to another train.
const MAX_SEND_TIME: Duration = Duration::from_millis(10);

/// Shorter times say more about clocks than about the path.
const MIN_TIME: Duration = Duration::from_micros(50);

/// The train whose acknowledgements come in.
#[derive(Debug, Clone, Default)]
pub(super) struct PacketTrain {
    first: Option<First>,
    bytes: u64,
    acks: u32,
}

/// The acknowledgement with which a train began.
#[derive(Debug, Clone, Copy)]
struct First {
    acked: Instant,
    sent: Instant,
}

impl PacketTrain {
    /// Takes an acknowledgement whose newest packet was sent at `sent`, and returns what rate the train shows
    /// until now, in bytes per second.
    ///
    /// As for samples of the delivery rate, the longer of the times of sending and of acknowledging counts:
    /// no estimate is above the rate of sending.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        acked_bytes: u64,
        packet: u64,
    ) -> Option<u64> {
        let Some(first) = self.first.filter(|first| sent.saturating_since(first.sent) <= MAX_SEND_TIME)
        else {
            // The bytes of the first acknowledgement do not count, only the time from it on.
            *self = Self { first: Some(First { acked: now, sent }), bytes: 0, acks: 0 };
            return None;
        };
        self.bytes += acked_bytes;
        self.acks += 1;
        let time = now.saturating_since(first.acked).max(sent.saturating_since(first.sent));
        if self.bytes < MIN_PACKETS * packet || self.acks < MIN_ACKS || time < MIN_TIME {
            return None;
        }
        Some(rate(self.bytes, time))
    }
}
