//! Secrets and what is expanded from them (RFC 5869, RFC 8446 §7.1).

use std::fmt;

use ring::hkdf::{self, HKDF_SHA256, HKDF_SHA384, KeyType, Prk, Salt};

use super::aead::CipherSuite;

/// A secret of the key schedule, ready to be expanded.
///
/// HKDF is always ring's: a handshake takes a few dozen expansions, so speed does not matter here.
pub(super) struct Secret {
    prk: Prk,
    /// The hash, which ring does not tell.
    algorithm: hkdf::Algorithm,
}

impl Secret {
    /// A traffic secret that TLS gave out for `suite`.
    pub(super) fn new(suite: CipherSuite, bytes: &[u8]) -> Self {
        let algorithm = match suite {
            CipherSuite::Aes128Gcm | CipherSuite::ChaCha20Poly1305 => HKDF_SHA256,
            CipherSuite::Aes256Gcm => HKDF_SHA384,
        };
        Self { prk: Prk::new_less_safe(algorithm, bytes), algorithm }
    }

    /// HKDF-Extract with SHA-256, the start of the Initial keys (RFC 9001 §5.2).
    pub(super) fn extract_sha256(salt: &[u8], input: &[u8]) -> Self {
        Self { prk: Salt::new(HKDF_SHA256, salt).extract(input), algorithm: HKDF_SHA256 }
    }

    /// HKDF-Expand-Label with an empty context, as many bytes as `output` holds.
    pub(super) fn expand_label(&self, label: &str, output: &mut [u8]) {
        self.expand(label, Length(output.len()), |okm| okm.fill(output).expect("the length is the same"));
    }

    /// HKDF-Expand-Label to a secret of the same hash.
    pub(super) fn next(&self, label: &str) -> Self {
        Self { prk: self.expand(label, self.algorithm, |okm| okm.into()), algorithm: self.algorithm }
    }

    fn expand<L: KeyType, T>(&self, label: &str, length: L, take: impl FnOnce(hkdf::Okm<'_, L>) -> T) -> T {
        // struct HkdfLabel { uint16 length; opaque label<7..255> = "tls13 " + Label; opaque context<0..255>; }
        let bytes = u16::try_from(length.len()).expect("keys and secrets are short").to_be_bytes();
        let label_len = u8::try_from(PREFIX.len() + label.len()).expect("labels are short");
        let info: [&[u8]; 5] = [&bytes, &[label_len], PREFIX, label.as_bytes(), &[0]];
        take(self.prk.expand(&info, length).expect("keys and secrets are shorter than 255 hashes"))
    }
}

const PREFIX: &[u8] = b"tls13 ";

/// A length of output as ring takes it.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
