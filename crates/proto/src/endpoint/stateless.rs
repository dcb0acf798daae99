//! Answers that need no connection.

use fulmar_base::Rng;
use fulmar_wire::{
    ConnectionId, PathId, ProtectedKind, ProtectedPacket, ResetToken, Side, Version, packet_number, sample,
    unprotect_header, write_retry as write_retry_packet,
    write_version_negotiation as write_version_negotiation_packet,
};

use super::incoming::FirstPacket;
use crate::crypto::{AeadBackend, DirectionKeys, RESET_LEN_MIN, retry_tag};
use crate::datagram::{Datagram, Ecn, Transmit, TransmitBatch};
use crate::ids::reserved_version;

/// A stateless reset never needs more bytes than this.
const RESET_LEN_MAX: usize = 43;
const TOKEN_LEN: usize = 16;

/// The answer to `datagram`, in the first `len` bytes of the batch.
pub(super) fn answer(datagram: &Datagram, len: usize) -> Transmit {
    Transmit { addrs: datagram.addrs, ecn: Ecn::NotEct, len, segment_size: None }
}

/// Writes a stateless reset for a packet of `trigger_len` bytes. It is shorter than that packet, so that two
/// endpoints that reset each other fall silent (RFC 9000 §10.3.3).
pub(super) fn write_reset(
    rng: &mut Rng,
    token: ResetToken,
    trigger_len: usize,
    reply: &mut TransmitBatch,
) -> Option<usize> {
    let len = trigger_len.checked_sub(1)?.min(RESET_LEN_MAX);
    if len < RESET_LEN_MIN {
        return None;
    }
    let packet = &mut reply.room()[..len];
    rng.fill(&mut packet[..len - TOKEN_LEN]);
    packet[0] = 0x40 | (packet[0] & 0x3f);
    packet[len - TOKEN_LEN..].copy_from_slice(&token.0);
    reply.set_len(len);
    Some(len)
}

/// Writes a Version Negotiation packet that answers a packet from `src` to `dst`.
pub(super) fn write_version_negotiation(
    rng: &mut Rng,
    dst: &[u8],
    src: &[u8],
    versions: &[Version],
    reply: &mut TransmitBatch,
) -> usize {
    // A reserved version among the real ones keeps clients honest (RFC 9000 §6.3).
    let mut offered = versions.to_vec();
    offered.push(reserved_version(rng));
    let mut packet = Vec::new();
    write_version_negotiation_packet(&mut packet, rng.u64() as u8, src, dst, &offered);
    reply.room()[..packet.len()].copy_from_slice(&packet);
    reply.set_len(packet.len());
    packet.len()
}

/// Writes a Retry packet that answers the first packet of a client and sends it to `cid` (RFC 9000 §17.2.5).
pub(super) fn write_retry(
    rng: &mut Rng,
    first: &FirstPacket,
    cid: &ConnectionId,
    token: &[u8],
    reply: &mut TransmitBatch,
) -> usize {
    let mut packet = Vec::new();
    write_retry_packet(&mut packet, first.version, rng.u64() as u8, &first.src, cid, token);
    let tag = retry_tag(first.version, &first.dst, &packet);
    packet.extend_from_slice(&tag);
    reply.room()[..packet.len()].copy_from_slice(&packet);
    reply.set_len(packet.len());
    packet.len()
}

/// The keys of a client's Initial packets, if this one was made by somebody who saw, or chose, its connection ID.
pub(super) fn open_initial(
    packet: &ProtectedPacket,
    version: Version,
    payload: &[u8],
    aead: AeadBackend,
) -> Option<DirectionKeys> {
    let ProtectedKind::Initial { pn_offset, .. } = packet.kind else {
        return None;
    };
    let keys = DirectionKeys::initial(version, &packet.dst, Side::Client, aead);
    // A copy is opened: the connection, once accepted, needs the datagram as it came.
    let mut bytes = payload[..packet.len].to_vec();
    let mask = keys.header.mask(sample(&bytes, pn_offset)?);
    let header = unprotect_header(&mut bytes, pn_offset, mask).ok()?;
    let number = packet_number::decode(None, header.truncated_pn, header.pn_len);
    keys.packet.open(PathId::ZERO, number, &mut bytes, pn_offset + header.pn_len).ok()?;
    Some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::trailing_token;

    #[test]
    fn resets_get_shorter_until_nobody_answers() {
        let mut batch = TransmitBatch::new(1);
        let mut rng = Rng::from_u64(1);
        let token = ResetToken([7; 16]);
        let mut len = 1_452;
        let mut rounds = 0;
        while let Some(next) = write_reset(&mut rng, token, len, &mut batch) {
            assert!(next < len && next >= RESET_LEN_MIN);
            assert_eq!(batch.bytes()[0] & 0xc0, 0x40);
            assert_eq!(trailing_token(batch.bytes()), Some(token));
            len = next;
            rounds += 1;
        }
        assert!(rounds < 50);
    }
}
