//! A client that only receives notices when a steady flow stops.
//!
//! A NAT that forgets its mapping drops what the server sends, and the server learns the new address from the
//! client's next packet only. A client that has nothing to send would wait for data for ever, and the server for
//! acknowledgements. So it asks once when a flow is interrupted.
//!
//! If it was a NAT, the address that the question comes from is new to the server, which may send it no more than three times
//! the bytes that came from there until it has proven itself (RFC 9000 §8.1, §9.3). So the question is as long as it takes for
//! a whole datagram in return: with the challenge goes the data that was lost first, and the flow goes on a round trip earlier.

use std::time::Duration;

use fulmar_base::{Instant, Timer};

use crate::config::MTU_MIN;

/// A flow is steady after so many packets with less than a round trip between one and the next.
const STEADY_PACKETS: u32 = 16;

/// A third of a datagram that every path carries.
const QUESTION_LEN: u16 = MTU_MIN.div_ceil(3);

/// Watches what arrives.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    packets: u32,
    last: Option<Instant>,
    alarm: Timer,
    /// Whether a question is to be sent.
    asks: bool,
}

impl Watchdog {
    /// A packet arrived. If it is one of a steady flow, the next one is missed after a round trip: a question too
    /// many costs little, as there is one for each interruption, and the flow stands still until it is asked.
    pub(super) fn on_received(&mut self, now: Instant, rtt: Duration) {
        let follows = self.last.is_some_and(|last| now.saturating_since(last) <= rtt);
        self.packets = if follows { self.packets.saturating_add(1) } else { 1 };
        self.last = Some(now);
        self.asks = false;
        if self.packets >= STEADY_PACKETS {
            self.alarm.set(now + rtt);
        }
    }

    /// When the next packet is missed.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.alarm.deadline()
    }

    /// Returns true if the flow has stopped. It is told once.
    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        self.alarm.take_expired(now)
    }

    /// The next probe is the question, unless a packet arrives before it.
    pub(super) fn ask(&mut self) {
        self.asks = true;
    }

    /// How many bytes the datagram of a probe that leaves now has at least. It is told once.
    pub(super) fn take_question(&mut self) -> usize {
        if std::mem::take(&mut self.asks) { usize::from(QUESTION_LEN) } else { 0 }
    }

    pub(super) fn stop(&mut self) {
        self.alarm.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_steady_flow_is_noticed_once_and_that_of_another_is_not() {
        let rtt = Duration::from_millis(10);
        let at = Instant::from_millis;
        let mut watchdog = Watchdog::default();
        for n in 0..100 {
            watchdog.on_received(at(n * 11), rtt);
        }
        assert_eq!(watchdog.deadline(), None, "the packets are too far apart");
        for n in 0..100 {
            watchdog.on_received(at(2_000 + n), rtt);
        }
        assert_eq!(watchdog.deadline(), Some(at(2_109)));
        assert!(watchdog.on_timeout(at(2_109)) && !watchdog.on_timeout(at(2_109)));
        watchdog.on_received(at(2_130), rtt);
        assert_eq!(watchdog.deadline(), None, "the answer is no flow");
    }

    #[test]
    fn one_probe_is_the_question_unless_a_packet_arrives_before_it() {
        let (rtt, now) = (Duration::from_millis(10), Instant::from_millis(1));
        let mut watchdog = Watchdog::default();
        assert_eq!(watchdog.take_question(), 0);
        watchdog.ask();
        assert_eq!((watchdog.take_question(), watchdog.take_question()), (400, 0));
        watchdog.ask();
        watchdog.on_received(now, rtt);
        assert_eq!(watchdog.take_question(), 0);
    }
}
