//! Flights of the handshake that are repeated before a timeout asks for it (RFC 9002 §6.2.3).
//!
//! The probe timeouts of a handshake are long: there is no sample of the round trip yet, or the backoff has grown while
//! packets were lost. But what arrives can tell that a flight of this end did not. So it is repeated then, once in a
//! connection, for the evidence may be wrong: where the peer's guess of the round trip is too short, it asks again for what
//! is on its way.

use fulmar_base::Instant;

use super::Connection;
use crate::crypto::Level;
use crate::ids::SpaceId;

/// Whether a flight was repeated.
#[derive(Debug, Default)]
pub(super) struct Repetition {
    done: bool,
}

impl Repetition {
    /// Whether a flight may be repeated: once in a connection, which is enough for the loss of a flight.
    fn take(&mut self) -> bool {
        !std::mem::replace(&mut self.done, true)
    }
}

impl Connection {
    /// A packet of the handshake came that asks for an acknowledgement. If the server has sent its flight already and the
    /// handshake is not complete with it, the client asks for the flight: it has not arrived, or not yet. What is sent now
    /// carries the acknowledgement as well, within the credit of the client's address.
    pub(super) fn on_handshake_asked(&mut self, now: Instant) {
        let rtt = &self.path.tuple.rtt;
        let on_its_way = rtt.has_sample() && now < self.pto_base_time + rtt.smoothed();
        if self.side.is_client() || self.handshake.is_complete() || on_its_way {
            return;
        }
        let spaces = [SpaceId::Initial, SpaceId::Handshake];
        let is_missing =
            |space: SpaceId| self.can_send(space) && self.handshake.has_sent_unacked(space.level());
        if spaces.into_iter().any(is_missing) && self.repetition.take() {
            for space in spaces {
                self.repeat_handshake(space);
            }
        }
    }

    /// A packet of the server came for which the client has no keys yet: the server's Initial packet is missing.
    pub(super) fn on_packet_without_keys(&mut self, level: Level) {
        let missing = level > Level::Initial && self.handshake.handshake_keys().is_none();
        if self.side.is_client() && missing && self.repetition.take() {
            self.repeat_handshake(SpaceId::Initial);
            self.probes.demand_one(SpaceId::Initial);
        }
    }

    /// Sends again what the peer has not acknowledged, as a probe.
    fn repeat_handshake(&mut self, space: SpaceId) {
        if self.can_send(space) && self.handshake.repeat(space.level()) {
            self.probes.demand_one(space);
        }
    }
}
