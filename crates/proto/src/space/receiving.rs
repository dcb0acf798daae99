//! What a space has received, and its acknowledgements.

use fulmar_base::Instant;
use fulmar_wire::PathId;

use super::{AckPolicy, NumberSpace};
use crate::datagram::Ecn;
use crate::packet::FrameWriter;

impl NumberSpace {
    /// Whether a packet with this number was received already, or is too old to say (RFC 9000 §12.3).
    pub(crate) fn is_duplicate(&self, number: u64) -> bool {
        self.received.is_duplicate(number)
    }

    /// The largest number received, from which the next ones are decoded (RFC 9000 §17.1).
    pub(crate) fn largest_received(&self) -> Option<u64> {
        self.received.largest()
    }

    /// Records a packet whose frames were processed. Duplicates change nothing.
    pub(crate) fn on_received(&mut self, now: Instant, number: u64, ack_eliciting: bool, ecn: Ecn) {
        if self.received.insert(now, number) {
            self.acks.on_received(now, number, ack_eliciting, ecn);
        }
    }

    /// Whether an ACK must be sent now, alone if there is nothing else to send.
    pub(crate) fn needs_ack(&self, now: Instant) -> bool {
        self.acks.needs_ack(now)
    }

    /// Whether a packet that is sent anyway should carry an ACK.
    pub(crate) fn has_ack_news(&self) -> bool {
        self.acks.has_news()
    }

    /// Whether the latest ACK may have been lost.
    pub(crate) fn ack_is_unconfirmed(&self) -> bool {
        self.acks.is_unconfirmed()
    }

    /// When [`NumberSpace::needs_ack`] becomes true by itself; `None` also if it is true already.
    pub(crate) fn ack_deadline(&self) -> Option<Instant> {
        self.acks.deadline()
    }

    /// How eagerly received packets are acknowledged.
    pub(crate) fn ack_policy(&self) -> AckPolicy {
        self.acks.policy()
    }

    /// Changes how eagerly received packets are acknowledged.
    pub(crate) fn set_ack_policy(&mut self, policy: AckPolicy) {
        self.acks.set_policy(policy);
    }

    /// See [`AckManager::begin_beside_others`](super::ack_manager::AckManager::begin_beside_others).
    pub(crate) fn begin_beside_others(&mut self) {
        self.acks.begin_beside_others();
    }

    /// See [`AckManager::began_beside_others`](super::ack_manager::AckManager::began_beside_others).
    pub(crate) fn began_beside_others(&self) -> bool {
        self.acks.began_beside_others()
    }

    /// The packet that is being processed asks for an ACK without delay.
    pub(crate) fn demand_ack(&mut self) {
        self.acks.demand();
    }

    /// Writes an ACK. Returns false if there is nothing to acknowledge or no room. `ack_delay_exponent` is
    /// ours.
    pub(crate) fn write_ack(
        &mut self,
        now: Instant,
        path: PathId,
        ack_delay_exponent: u8,
        out: &mut FrameWriter<'_>,
    ) -> bool {
        let Some(largest_time) = self.received.largest_time() else { return false };
        self.acks.write(now, path, largest_time, ack_delay_exponent, out)
    }

    /// Writes an ACK for a packet of another path. The one that is due in this space stays due.
    pub(crate) fn write_ack_copy(
        &self,
        now: Instant,
        path: PathId,
        ack_delay_exponent: u8,
        out: &mut FrameWriter<'_>,
    ) -> bool {
        let Some(largest_time) = self.received.largest_time() else { return false };
        self.acks.write_copy(now, path, largest_time, ack_delay_exponent, out).is_some()
    }

    /// The peer acknowledged a packet with our ACK of `largest`: the token `SentFrame::Ack`.
    pub(crate) fn on_ack_acked(&mut self, largest: u64) {
        self.acks.on_ack_acked(largest);
    }
}
