//! A Retry: the client begins again, with a token and another connection ID (RFC 9000 §8.1.2, §17.2.5).

use fulmar_base::Instant;
use fulmar_wire::{ProtectedPacket, RETRY_TAG_LEN};

use super::Connection;
use super::opening::Drop;
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
    ) -> Result<(), Drop> {
        let first = self.handshake.cids.peer_scid.is_none() && self.handshake.cids.retry_scid.is_none();
        let usable = self.side.is_client()
            && first
            && packet.version == Some(self.versions.current)
            && !token.is_empty()
            && packet.src != self.handshake.cids.original_dcid
            && bytes.len() > RETRY_TAG_LEN
            && verify_retry(self.versions.current, &self.handshake.cids.original_dcid, bytes);
        if !usable {
            return Err(Drop::Silently(PacketDropReason::Unwanted));
        }
        self.note(now, LogEvent::BareReceived { packet: BarePacket::Retry, size: bytes.len() as u16 });
        self.handshake.on_retry(packet.src, &bytes[token]);
        self.versions.keep();
        self.path.remote_cids.replace_handshake_cid(packet.src);
        // What was sent is void, the numbers go on (RFC 9000 §17.2.5.3).
        self.forget_sent(SpaceId::Initial);
        self.repeat_early_data();
        Ok(())
    }
}
