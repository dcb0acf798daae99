//! A client that only receives notices when a flow stops: a steady one soon, another one after a few of its pauses.
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

/// Data that is not steady is missed after so many times its longest pause of late, so many round trips, and this time: that is
/// one question where it ends, and none while it goes on as it did.
const PAUSES: u32 = 4;
const PAUSE_RTTS: u32 = 10;
const PAUSE_MIN: Duration = Duration::from_millis(250);

/// Each pause that is shorter takes this part of the longest one.
const PAUSE_DECAY: u32 = 8;

/// Watches what arrives.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    packets: u32,
    /// When the last one came; while a question waits for the next one, when it was asked.
    last: Option<Instant>,
    /// When data of a stream came, and the longest pause between some and more.
    last_data: Option<Instant>,
    pause: Duration,
    alarm: Timer,
    /// Whether a question is to be sent.
    asks: bool,
    /// Whether nothing has come since one was asked.
    waits: bool,
}

impl Watchdog {
    /// A packet arrived. If it is one of a steady flow, the next one is missed after a round trip: a question too
    /// many costs little, as there is one for each interruption, and the flow stands still until it is asked.
    pub(super) fn on_received(&mut self, now: Instant, rtt: Duration) {
        let silence = self.last.replace(now).map(|last| now.saturating_since(last));
        let is_answer = std::mem::take(&mut self.waits);
        let follows = !is_answer && silence.is_some_and(|silence| silence <= rtt);
        self.packets = if follows { self.packets.saturating_add(1) } else { 1 };
        self.asks = false;
        if is_answer {
            // While nothing came through, nobody has paused.
            self.last_data = self.last_data.map(|last| last + silence.unwrap_or_default());
        }
        if self.packets >= STEADY_PACKETS {
            self.alarm.set(now + rtt);
        }
    }

    /// The packet has data of a stream.
    pub(super) fn on_data(&mut self, now: Instant, rtt: Duration) {
        let gap = self.last_data.replace(now).map_or(Duration::ZERO, |last| now.saturating_since(last));
        if gap > rtt {
            self.pause = gap.max(self.pause - self.pause / PAUSE_DECAY);
        }
        if self.packets < STEADY_PACKETS {
            self.alarm.set(now + (self.pause * PAUSES).max(rtt * PAUSE_RTTS).max(PAUSE_MIN));
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
    pub(super) fn ask(&mut self, now: Instant) {
        (self.asks, self.waits) = (true, true);
        self.last = Some(now);
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
        for n in 0..16 {
            watchdog.on_received(at(1_500 + n * 10), rtt);
        }
        assert_eq!(watchdog.deadline(), Some(at(1_660)), "these are not");
        for n in 0..100 {
            watchdog.on_received(at(2_000 + n), rtt);
        }
        assert_eq!(watchdog.deadline(), Some(at(2_109)));
        assert!(watchdog.on_timeout(at(2_109)) && !watchdog.on_timeout(at(2_109)));
        watchdog.on_received(at(2_130), rtt);
        assert_eq!(watchdog.deadline(), None, "the answer is no flow");
    }

    #[test]
    fn the_end_of_data_with_pauses_is_noticed_after_some_of_them() {
        let (rtt, at) = (Duration::from_millis(10), Instant::from_millis);
        let mut watchdog = Watchdog::default();
        let mut arrive = |millis: u64| {
            watchdog.on_received(at(millis), rtt);
            watchdog.on_data(at(millis), rtt);
            watchdog.deadline()
        };
        assert_eq!(arrive(1_000), Some(at(1_250)));
        assert_eq!(arrive(1_200), Some(at(2_000)));
        for millis in (1_300..5_000).step_by(100) {
            assert!(arrive(millis) > Some(at(millis + 100)), "the pauses are as they were");
        }
        assert_eq!(arrive(5_000), Some(at(5_400)), "the long one is forgotten");
        // What is not data is no reason to ask again.
        assert!(watchdog.on_timeout(at(5_400)));
        watchdog.on_received(at(5_410), rtt);
        assert_eq!(watchdog.deadline(), None);
    }

    #[test]
    fn data_in_a_steady_flow_is_missed_as_soon_as_its_packets() {
        let (rtt, at) = (Duration::from_millis(10), Instant::from_millis);
        let mut watchdog = Watchdog::default();
        for millis in 1_000..1_020 {
            watchdog.on_received(at(millis), rtt);
            watchdog.on_data(at(millis), rtt);
        }
        assert_eq!(watchdog.deadline(), Some(at(1_029)));
    }

    #[test]
    fn packets_that_come_together_are_no_pauses() {
        let (rtt, at) = (Duration::from_millis(10), Instant::from_millis);
        let mut watchdog = Watchdog::default();
        for millis in [1_000, 1_200, 1_201, 1_202, 1_203, 1_204, 1_205] {
            watchdog.on_received(at(millis), rtt);
            watchdog.on_data(at(millis), rtt);
        }
        assert_eq!(watchdog.deadline(), Some(at(1_205 + 4 * 200)), "the longest pause is as it was");
    }

    #[test]
    fn an_outage_is_no_pause_of_the_data() {
        let (rtt, at) = (Duration::from_millis(10), Instant::from_millis);
        let mut watchdog = Watchdog::default();
        watchdog.on_received(at(1_000), rtt);
        watchdog.on_data(at(1_000), rtt);
        assert!(watchdog.on_timeout(at(1_250)));
        watchdog.ask(at(1_250));
        watchdog.on_received(at(21_250), rtt);
        watchdog.on_received(at(21_260), rtt);
        watchdog.on_data(at(21_260), rtt);
        assert_eq!(watchdog.deadline(), Some(at(21_260 + 4 * 260)));
    }

    #[test]
    fn one_probe_is_the_question_unless_a_packet_arrives_before_it() {
        let (rtt, now) = (Duration::from_millis(10), Instant::from_millis(1));
        let mut watchdog = Watchdog::default();
        assert_eq!(watchdog.take_question(), 0);
        watchdog.ask(now);
        assert_eq!((watchdog.take_question(), watchdog.take_question()), (400, 0));
        watchdog.ask(now);
        watchdog.on_received(now, rtt);
        assert_eq!(watchdog.take_question(), 0);
    }
}
