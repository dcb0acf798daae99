//! The integrity tag of Retry packets (RFC 9001 §5.8, RFC 9369 §3.3.3).

use fulmar_wire::{ConnectionId, Version};

use super::aead::{AeadBackend, AeadKey, CipherSuite, TAG_LEN};
use super::version::VersionConstants;

/// The tag of a Retry packet. `packet` is the whole packet without the tag, `original_dcid` the destination
/// of the Initial packet that it answers.
///
/// The key is public. The tag shows that the sender saw the client's Initial packet, and guards against
/// damage; it is no secret.
pub(crate) fn retry_tag(version: Version, original_dcid: &ConnectionId, packet: &[u8]) -> [u8; TAG_LEN] {
    let constants = VersionConstants::of(version);
    // A connection ID has at most 20 bytes.
    let id_len = original_dcid.len() as u8;
    let mut pseudo_packet = Vec::with_capacity(1 + usize::from(id_len) + packet.len());
    pseudo_packet.push(id_len);
    pseudo_packet.extend_from_slice(original_dcid.as_bytes());
    pseudo_packet.extend_from_slice(packet);
    let key = AeadKey::new(CipherSuite::Aes128Gcm, &constants.retry_key, AeadBackend::Ring);
    key.seal(constants.retry_nonce, &pseudo_packet, &mut [])
}

/// Whether `packet`, a whole Retry packet, ends with the right tag. A client discards it otherwise
/// (RFC 9000 §17.2.5.2).
pub(crate) fn verify_retry(version: Version, original_dcid: &ConnectionId, packet: &[u8]) -> bool {
    packet
        .split_last_chunk::<TAG_LEN>()
        .is_some_and(|(body, tag)| retry_tag(version, original_dcid, body) == *tag)
}
