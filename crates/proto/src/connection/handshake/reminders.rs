//! Small packets that follow a flight of a server, so that a client that has not received it asks again.
//!
//! A client that gets Handshake packets before it has keys for them knows that a flight was lost, and asks for it at once
//! (RFC 9002 §6.2.3). Small flights fit one datagram, with X25519 and a small certificate or a resumed session: if that is lost, or all
//! of a larger one, nothing tells, and both ends wait for a probe timeout, which is a long guess as there is no sample of the round
//! trip. So packets of padding follow while nothing is heard: an eighth of that timeout after the flight, a fourth, and a half. On
//! shorter paths the answer comes before the first; on longer ones they are a small part of the bytes of the probe that they precede.
//! They follow a flight that the client has asked for as well, but not the last one that is repeated for that.

use std::time::Duration;

use fulmar_base::Instant;

/// The last packet follows the flight by the probe timeout divided by two, the one before it by four, and so on.
const REMINDERS: u32 = 3;

/// When the next packet leaves behind a flight.
#[derive(Debug, Default)]
pub(in crate::connection) struct Reminders {
    /// The flight has left then, and its probe timeout is so long; `None` before that.
    flight: Option<(Instant, Duration)>,
    /// Those whose time has come, or that are not needed any more.
    passed: u32,
    is_due: bool,
}

impl Reminders {
    /// A flight of a server has begun to leave; its probe timeout is a guess. Without effect for what a timeout repeats.
    pub(in crate::connection) fn start(&mut self, now: Instant, pto: Duration) {
        self.flight.get_or_insert((now, pto));
    }

    /// The client has asked for the flight. What is sent of it next is as likely to be lost as before: the next call of
    /// [`Reminders::start`] counts as the first did.
    pub(in crate::connection) fn start_again(&mut self) {
        *self = Self::default();
    }

    /// How long after its flight the last packet leaves.
    pub(in crate::connection) fn last_after(pto: Duration) -> Duration {
        pto / 2
    }

    /// The client has the flight, or a part of it, or would ask for it in vain.
    pub(in crate::connection) fn stop(&mut self) {
        self.passed = REMINDERS;
        self.is_due = false;
    }

    /// When the next packet is due.
    pub(in crate::connection) fn deadline(&self) -> Option<Instant> {
        let (sent, pto) = self.flight?;
        let halvings = REMINDERS.checked_sub(self.passed).filter(|left| *left > 0)?;
        Some(sent + pto / (1 << halvings))
    }

    pub(in crate::connection) fn on_timeout(&mut self, now: Instant) {
        while self.deadline().is_some_and(|at| at <= now) {
            self.passed += 1;
            self.is_due = true;
        }
    }

    /// Whether a packet is to be sent now; it is taken for sent.
    pub(in crate::connection) fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_packets_follow_a_flight_and_each_waits_twice_as_long() {
        let mut reminders = Reminders::default();
        assert_eq!(reminders.deadline(), None);
        let (sent, pto) = (Instant::from_millis(1000), Duration::from_millis(240));
        reminders.start(sent, pto);
        // What is repeated of the flight changes nothing.
        reminders.start(sent + pto, pto);
        for after in [30, 60, 120] {
            let at = sent + Duration::from_millis(after);
            assert_eq!(reminders.deadline(), Some(at));
            reminders.on_timeout(sent + Duration::from_millis(after - 1));
            assert!(!reminders.take_due());
            reminders.on_timeout(at);
            assert!(reminders.take_due() && !reminders.take_due());
        }
        assert_eq!(reminders.deadline(), None);
        assert_eq!(Reminders::last_after(pto), Duration::from_millis(120));
        // But what the client has asked for does.
        reminders.start_again();
        assert_eq!(reminders.deadline(), None);
        reminders.start(sent + pto, pto);
        assert_eq!(reminders.deadline(), Some(sent + pto + pto / 8));
    }

    #[test]
    fn a_timer_that_rings_late_sends_one_packet() {
        let mut reminders = Reminders::default();
        let sent = Instant::from_millis(0);
        reminders.start(sent, Duration::from_millis(240));
        reminders.on_timeout(sent + Duration::from_millis(100));
        assert!(reminders.take_due() && !reminders.take_due());
        assert_eq!(reminders.deadline(), Some(sent + Duration::from_millis(120)));
    }

    #[test]
    fn nothing_follows_what_was_answered() {
        let mut reminders = Reminders::default();
        let sent = Instant::from_millis(0);
        reminders.start(sent, Duration::from_millis(240));
        reminders.on_timeout(sent + Duration::from_millis(30));
        reminders.stop();
        assert!(!reminders.take_due());
        assert_eq!(reminders.deadline(), None);
    }
}
