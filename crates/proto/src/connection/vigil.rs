//! A client that only receives notices when a steady flow stops.
//!
//! A NAT that forgets its mapping drops what the server sends, and the server learns the new address from the
//! client's next packet only. A client that has nothing to send would wait for data for ever, and the server for
//! acknowledgements. So it asks once when a flow is interrupted.

use std::time::Duration;

use fulmar_base::{Instant, Timer};

/// A flow is steady after so many packets with less than a round trip between one and the next.
const STEADY_PACKETS: u32 = 16;

/// Watches what arrives.
#[derive(Debug, Default)]
pub(super) struct Vigil {
    packets: u32,
    last: Option<Instant>,
    alarm: Timer,
}

impl Vigil {
    /// A packet arrived. If it is one of a steady flow, the next one is missed after a round trip: a question too
    /// many costs little, as there is one for each interruption, and the flow stands still until it is asked.
    pub(super) fn on_received(&mut self, now: Instant, rtt: Duration) {
        let follows = self.last.is_some_and(|last| now.saturating_since(last) <= rtt);
        self.packets = if follows { self.packets.saturating_add(1) } else { 1 };
        self.last = Some(now);
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
        let mut vigil = Vigil::default();
        for n in 0..100 {
            vigil.on_received(at(n * 11), rtt);
        }
        assert_eq!(vigil.deadline(), None, "the packets are too far apart");
        for n in 0..100 {
            vigil.on_received(at(2_000 + n), rtt);
        }
        assert_eq!(vigil.deadline(), Some(at(2_109)));
        assert!(vigil.on_timeout(at(2_109)) && !vigil.on_timeout(at(2_109)));
        vigil.on_received(at(2_130), rtt);
        assert_eq!(vigil.deadline(), None, "the answer is no flow");
    }
}
