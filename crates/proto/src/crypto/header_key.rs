//! Header protection (RFC 9001 §5.4).

use std::fmt;

use ring::aead::quic;
use zeroize::Zeroizing;

use super::aead::CipherSuite;
use super::hkdf::Expander;
use super::version::VersionConstants;

/// The length of the ciphertext sample that the mask depends on, in bytes (RFC 9001 §5.4.2).
pub(crate) const SAMPLE_LEN: usize = 16;

/// The length of the longest key, in bytes.
const KEY_LEN_MAX: usize = 32;

/// Masks the first byte and the packet number of the packets of one direction.
///
/// A key update leaves it alone (RFC 9001 §6.1). It is always ring's: a mask costs 24 ns there and 25 ns with
/// aws-lc, so a choice would buy nothing.
pub(crate) struct HeaderKey(quic::HeaderProtectionKey);

impl HeaderKey {
    /// Expands a secret with the labels of `version` (RFC 9001 §5.1).
    pub(super) fn new(suite: CipherSuite, secret: &Expander, version: &VersionConstants) -> Self {
        HeaderKeyBytes::new(suite, secret, version).expand(suite)
    }

    /// The mask for a packet with this sample: byte 0 is for the first byte of the packet, the rest for the
    /// packet number.
    pub(crate) fn mask(&self, sample: &[u8; SAMPLE_LEN]) -> [u8; 5] {
        self.0.new_mask(sample).expect("the sample has the length that every suite takes")
    }
}

/// The bytes of a header key, which take less room. They are wiped when they are dropped.
pub(super) struct HeaderKeyBytes(Zeroizing<[u8; KEY_LEN_MAX]>);

impl HeaderKeyBytes {
    /// Expands a secret with the labels of `version` (RFC 9001 §5.1).
    pub(super) fn new(suite: CipherSuite, secret: &Expander, version: &VersionConstants) -> Self {
        let mut key = Zeroizing::new([0; KEY_LEN_MAX]);
        secret.expand_label(version.hp_label, &mut key[..suite.key_len()]);
        Self(key)
    }

    /// The key of `suite` with these bytes.
    pub(super) fn expand(&self, suite: CipherSuite) -> HeaderKey {
        let algorithm = match suite {
            CipherSuite::Aes128Gcm => &quic::AES_128,
            CipherSuite::Aes256Gcm => &quic::AES_256,
            CipherSuite::ChaCha20Poly1305 => &quic::CHACHA20,
        };
        let key = quic::HeaderProtectionKey::new(algorithm, &self.0[..suite.key_len()]);
        HeaderKey(key.expect("the key has the suite's length"))
    }
}

impl fmt::Debug for HeaderKeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeaderKeyBytes(..)")
    }
}

impl fmt::Debug for HeaderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeaderKey(..)")
    }
}
