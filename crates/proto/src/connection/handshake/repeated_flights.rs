//! Flights that are repeated before a timeout asks for it (RFC 9002 §6.2.3).
//!
//! The probe timeouts of a handshake are long: there is no sample of the round trip yet, or the backoff has grown
//! while packets were lost. But what arrives can tell that a flight of this end did not. So it is repeated then, a few times
//! in a connection, for the evidence may be wrong: where the peer's guess of the round trip is too short, it asks
//! again for what is on its way.

use std::time::Duration;

use fulmar_base::Instant;

use super::HandshakeState;
use super::reminders::Reminders;
use crate::crypto::Level;
use crate::ids::SpaceId;
use crate::space::NumberSpace;

impl HandshakeState {
    /// A server's packet came that asks for an acknowledgement before the handshake is complete. If the server has sent
    /// its flight, the client asks for it: it has not arrived, or not yet. `pto` is the probe timeout without backoff. Returns whether
    /// the flight is repeated.
    pub(in crate::connection) fn repeat_asked_flight(&mut self, now: Instant, pto: Duration) -> bool {
        let spaces = [SpaceId::Initial, SpaceId::Handshake];
        let is_missing =
            |space: SpaceId| self.can_send(space) && self.tls.crypto.has_sent_unacked(space.level());
        if !spaces.into_iter().any(is_missing) || !self.may_repeat_flight(now, Reminders::last_after(pto)) {
            return false;
        }
        for space in spaces {
            self.repeat(space);
        }
        if let Some(underway) = &mut self.underway {
            // Who is reminded asks again, which has to be of use.
            match underway.repeats.are_over() {
                true => underway.reminders.stop(),
                false => underway.reminders.start_again(),
            }
        }
        true
    }

    /// A server's Handshake packet came that asks for an acknowledgement after the client has ended the handshake. If the end has
    /// left before this time and is not acknowledged, it is repeated: the server did not have it when it sent that. Returns whether
    /// that was done.
    pub(in crate::connection) fn repeat_asked_end(&mut self, left_before: Instant) -> bool {
        let space = SpaceId::Handshake;
        let left = self.spaces.get(space).and_then(NumberSpace::last_ack_eliciting_sent);
        let is_due = left.is_some_and(|left| left <= left_before)
            && self.can_send(space)
            && self.tls.crypto.has_sent_unacked(space.level())
            && !std::mem::replace(&mut self.end_repeated, true);
        if is_due {
            self.repeat(space);
        }
        is_due
    }

    /// A packet of the server came for which the client has no keys yet: the server's Initial packet is missing.
    pub(super) fn on_packet_without_keys(&mut self, now: Instant, level: Level) {
        let missing = level > Level::Initial && self.keys.handshake().is_none();
        if self.side.is_client() && missing && self.may_repeat_flight(now, Duration::MAX) {
            self.repeat(SpaceId::Initial);
            self.demand_probe(SpaceId::Initial);
        }
    }

    fn may_repeat_flight(&mut self, now: Instant, patience_max: Duration) -> bool {
        self.underway.as_mut().is_some_and(|underway| underway.repeats.take(now, patience_max))
    }

    /// Whether the client is to be reminded of the flight now; that is taken for done.
    pub(in crate::connection) fn take_reminder(&mut self) -> bool {
        self.can_send(SpaceId::Handshake)
            && self.underway.as_mut().is_some_and(|underway| underway.reminders.take_due())
    }

    fn demand_probe(&mut self, space: SpaceId) {
        if let Some(numbers) = self.spaces.get_mut(space) {
            numbers.probes.demand_one();
        }
    }

    /// Sends again what the peer has not acknowledged, as a probe.
    fn repeat(&mut self, space: SpaceId) {
        if self.can_send(space) && self.tls.crypto.repeat(space.level()) {
            self.demand_probe(space);
        }
    }
}
