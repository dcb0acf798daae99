//! A Retry: the client begins again, with a token and another connection ID (RFC 9000 §8.1.2, §17.2.5).

use fulmar_base::Instant;
use fulmar_wire::{ProtectedPacket, RETRY_TAG_LEN};

use super::Connection;
use super::opening::Discard;
use crate::crypto::verify_retry;
use crate::ids::SpaceId;
use crate::log::{BarePacket, LogEvent, PacketDropReason};

impl Connection {
    /// RFC 9000 §17.2.5.2: a client follows one Retry, and only before any other answer.
    pub(super) fn on_retry(
        &mut self,
        now: Instant,
        packet: &ProtectedPacket,
        bytes: &[u8],
        token: std::ops::Range<usize>,
    ) -> Result<(), Discard> {
        let first =
            self.handshake.tls.cids.peer_scid.is_none() && self.handshake.tls.cids.retry_scid.is_none();
        let usable = self.side.is_client()
            && first
            && packet.version == Some(self.handshake.versions.current)
            && !token.is_empty()
            && packet.src != self.handshake.tls.cids.original_dcid
            && bytes.len() > RETRY_TAG_LEN
            && verify_retry(self.handshake.versions.current, &self.handshake.tls.cids.original_dcid, bytes);
        if !usable {
            return Err(Discard::Silently(PacketDropReason::Unwanted));
        }
        self.telemetry
            .record(now, LogEvent::BareReceived { packet: BarePacket::Retry, size: bytes.len() as u16 });
        let handshake = &mut self.handshake;
        handshake.tls.on_retry(packet.src, &bytes[token], &mut handshake.keys);
        self.handshake.versions.keep();
        self.paths.primary_mut().remote_cids.replace_handshake_cid(packet.src);
        self.forget_first_flight(now);
        self.repeat_early_data(now);
        Ok(())
    }

    /// The server wants another first flight. What was sent is void, the numbers go on (RFC 9000 §17.2.5.3), and the timers start
    /// anew (RFC 9002 §6.3).
    pub(super) fn forget_first_flight(&mut self, now: Instant) {
        let numbers = self.handshake.spaces.get(SpaceId::Initial);
        let left = numbers.and_then(|numbers| numbers.last_ack_eliciting_sent());
        let path = self.paths.primary_mut();
        // What was repeated leaves open which datagram the server has answered.
        if path.pto.backoff.count() == 0
            && let Some(left) = left
        {
            path.tuple.rtt.assume(now.saturating_since(left));
        }
        path.pto.restart(now);
        self.recovery(now).forget_sent(SpaceId::Initial);
    }
}
