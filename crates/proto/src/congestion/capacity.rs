//! The bytes that a path delivers in a round trip, saved for later connections (RFC 9959 §3.1).

use fulmar_base::Instant;

use super::AckEvent;
use crate::packed::packed;

/// The capacity is the largest of this many rounds.
const ROUNDS: usize = 8;

/// After this many rounds without growth the path is full.
const FULL_ROUNDS: u32 = 3;

/// Measures the bytes that are delivered in a round trip.
///
/// The delay of a queue does not count: what was acknowledged in a round is scaled to the smallest round-trip time.
#[derive(Debug, Clone)]
pub(super) struct Capacity {
    /// When the round began; it ends when a packet sent later is acknowledged.
    start: Instant,
    acked: u64,
    /// Whether the application left a part of the window unused in the round.
    limited: bool,
    rounds: [u64; ROUNDS],
    count: usize,
    /// Rounds in a row that did not bring a quarter more than any before.
    stale_rounds: u32,
}

packed!(Capacity { start, acked, limited, rounds, count, stale_rounds });

impl Capacity {
    pub(super) fn new(now: Instant) -> Self {
        Self { start: now, acked: 0, limited: false, rounds: [0; ROUNDS], count: 0, stale_rounds: 0 }
    }

    pub(super) fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>) {
        self.acked += ack.acked_bytes;
        self.limited |= ack.snapshot.app_limited || ack.app_limited;
        let (elapsed, rtt) = (now.saturating_since(self.start), ack.rtt.min());
        if ack.largest_sent_time < self.start || elapsed < rtt || elapsed.is_zero() {
            return;
        }
        let volume = u128::from(self.acked) * rtt.as_nanos() / elapsed.as_nanos();
        let volume = u64::try_from(volume).unwrap_or(u64::MAX);
        // A round in which less was tried than is known to fit shows nothing.
        if !self.limited || self.get().is_none_or(|known| volume > known) {
            let known = self.get().unwrap_or(0);
            self.stale_rounds =
                if volume > known + known / 4 { 0 } else { self.stale_rounds.saturating_add(1) };
            self.rounds[self.count % ROUNDS] = volume;
            self.count += 1;
        }
        (self.start, self.acked, self.limited) = (now, 0, false);
    }

    /// Whether the path was full: it did not deliver more for some rounds in which more was tried.
    pub(super) fn is_full(&self) -> bool {
        self.stale_rounds >= FULL_ROUNDS
    }

    /// The bytes that the path delivers in a round trip; `None` before the first one.
    pub(super) fn get(&self) -> Option<u64> {
        self.rounds.iter().copied().max().filter(|&bytes| bytes > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::test_path::{ack, rtt};
    use super::*;

    #[test]
    fn a_path_that_delivers_more_and_more_is_not_full() {
        let rtt = rtt(Duration::from_millis(50));
        let (mut capacity, mut now) = (Capacity::new(Instant::ZERO), Instant::ZERO);
        for round in 0..12 {
            let sent = now + Duration::from_nanos(1);
            now += Duration::from_millis(50);
            capacity.on_ack(now, &ack(1_200 << round, sent, &rtt));
        }
        assert!(!capacity.is_full());
        assert_eq!(capacity.get(), Some(1_200 << 11));
    }

    #[test]
    fn a_queue_adds_nothing_and_a_pause_takes_nothing() {
        let rtt = rtt(Duration::from_millis(50));
        let mut capacity = Capacity::new(Instant::ZERO);
        let mut now = Instant::ZERO;
        for _ in 0..20 {
            // 1,200,000 bytes a second, with 30 ms of queue.
            let sent = now + Duration::from_nanos(1);
            now += Duration::from_millis(80);
            capacity.on_ack(now, &ack(96_000, sent, &rtt));
        }
        assert_eq!(capacity.get(), Some(60_000));
        assert!(capacity.is_full());
        for _ in 0..20 {
            let sent = now + Duration::from_nanos(1);
            now += Duration::from_millis(50);
            capacity.on_ack(now, &AckEvent { app_limited: true, ..ack(1_200, sent, &rtt) });
        }
        assert_eq!(capacity.get(), Some(60_000), "the application had little to send");
        for _ in 0..20 {
            let sent = now + Duration::from_nanos(1);
            now += Duration::from_millis(50);
            capacity.on_ack(now, &ack(12_000, sent, &rtt));
        }
        assert_eq!(capacity.get(), Some(12_000), "the path has become narrower");
    }

    #[test]
    fn rounds_that_the_application_limits_show_no_full_path() {
        let rtt = rtt(Duration::from_millis(50));
        let (mut capacity, mut now) = (Capacity::new(Instant::ZERO), Instant::ZERO);
        for app_limited in [false, true, true, true, true, true, true] {
            let sent = now + Duration::from_nanos(1);
            now += Duration::from_millis(50);
            capacity.on_ack(now, &AckEvent { app_limited, ..ack(60_000, sent, &rtt) });
        }
        assert_eq!((capacity.get(), capacity.is_full()), (Some(60_000), false));
    }
}
