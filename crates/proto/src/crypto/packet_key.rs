//! Packet protection in place, with the path-aware nonce.

use std::fmt;

use fulmar_wire::PathId;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::aead::{AeadBackend, AeadKey, CipherSuite, NONCE_LEN, TAG_LEN};
use super::hkdf::Expander;
use super::version::VersionConstants;

/// The packet is not authentic: forged, damaged, or sealed with another key.
///
/// It is to be discarded without a trace; it says nothing about the peer (RFC 9001 §5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the packet failed authentication")]
pub(crate) struct DecryptError;

/// Seals or opens the packets of one direction at one encryption level, in one key phase. The IV is wiped when it is
/// dropped; the module's documentation says what becomes of the key.
pub(crate) struct PacketKey {
    key: AeadKey,
    /// The IV: its first 32 bits, where the path goes, and its last 64, where the packet number goes.
    iv: (u32, u64),
}

impl PacketKey {
    /// Expands a secret with the labels of `version` (RFC 9001 §5.1).
    pub(super) fn new(
        suite: CipherSuite,
        secret: &Expander,
        version: &VersionConstants,
        backend: AeadBackend,
    ) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        let key = &mut key[..suite.key_len()];
        secret.expand_label(version.key_label, key);
        let mut iv = Zeroizing::new([0; NONCE_LEN]);
        secret.expand_label(version.iv_label, iv.as_mut());
        Self { key: AeadKey::new(suite, key, backend), iv: split_iv(&iv) }
    }

    /// Seals a packet in place. `packet` is the header, `header_len` bytes with the unprotected packet number
    /// at their end, then the payload, then 16 bytes of room for the tag.
    ///
    /// # Panics
    /// If `packet` has no room for the tag behind the header: the caller built it.
    pub(crate) fn seal(&self, path: PathId, packet_number: u64, packet: &mut [u8], header_len: usize) {
        let (header, body) = packet.split_at_mut(header_len);
        let (payload, room) = body.split_at_mut(body.len() - TAG_LEN);
        let tag = self.key.seal(self.nonce(path, packet_number), header, payload);
        room.copy_from_slice(&tag);
    }

    /// Opens a packet in place and returns the length of the payload, which starts at `header_len`. The header
    /// must be free of its protection.
    ///
    /// After an error the bytes behind the header are undefined: there is one attempt per packet.
    ///
    /// # Errors
    /// If the packet is too short or not authentic.
    pub(crate) fn open(
        &self,
        path: PathId,
        packet_number: u64,
        packet: &mut [u8],
        header_len: usize,
    ) -> Result<usize, DecryptError> {
        let (header, body) = packet.split_at_mut_checked(header_len).ok_or(DecryptError)?;
        if body.len() < TAG_LEN {
            return Err(DecryptError);
        }
        self.key.open(self.nonce(path, packet_number), header, body).ok_or(DecryptError)
    }

    /// The IV, exclusive-or the path in its first 32 bits and the packet number in its last 64. For path 0 that
    /// is the nonce of RFC 9001 §5.3; for others the one of the multipath extension (RFC 10069), which keeps
    /// packets of the same number on different paths apart under one key.
    fn nonce(&self, path: PathId, packet_number: u64) -> [u8; NONCE_LEN] {
        let mut nonce = [0; NONCE_LEN];
        nonce[..4].copy_from_slice(&(self.iv.0 ^ path.0).to_be_bytes());
        nonce[4..].copy_from_slice(&(self.iv.1 ^ packet_number).to_be_bytes());
        nonce
    }
}

fn split_iv(iv: &[u8; NONCE_LEN]) -> (u32, u64) {
    let [a, b, c, d, last @ ..] = iv;
    (u32::from_be_bytes([*a, *b, *c, *d]), u64::from_be_bytes(*last))
}

impl Drop for PacketKey {
    fn drop(&mut self) {
        self.iv.0.zeroize();
        self.iv.1.zeroize();
    }
}

impl ZeroizeOnDrop for PacketKey {}

impl fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PacketKey(..)")
    }
}

#[cfg(test)]
mod tests;
