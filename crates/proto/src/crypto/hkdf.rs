//! Secrets and what is expanded from them (RFC 5869, RFC 8446 §7.1).

use std::fmt;

use aws_lc_rs::hkdf::{self, HKDF_SHA256, HKDF_SHA384, KeyType, Prk};
use aws_lc_rs::{digest, hmac};
use smallvec::SmallVec;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::aead::CipherSuite;

/// The longest secret, that of SHA-384, in bytes.
const SECRET_LEN_MAX: usize = 48;

/// A secret of the key schedule, ready to be expanded. Its bytes are wiped when it is dropped.
///
/// HKDF is always that of aws-lc, which wipes what it needs meanwhile; ring does not. A handshake takes a few dozen
/// expansions: several of one secret are made with one [`Expander`].
pub(super) struct Secret {
    bytes: Zeroizing<[u8; SECRET_LEN_MAX]>,
    /// How many of the bytes count.
    len: usize,
    algorithm: hkdf::Algorithm,
}

/// The bytes are all that is secret, and `Zeroizing` wipes them.
impl ZeroizeOnDrop for Secret {}

impl Secret {
    /// A traffic secret that TLS gave out for `suite`.
    ///
    /// # Panics
    /// If it is longer than 48 bytes, the hash of no suite.
    pub(super) fn new(suite: CipherSuite, bytes: &[u8]) -> Self {
        let algorithm = match suite {
            CipherSuite::Aes128Gcm | CipherSuite::ChaCha20Poly1305 => HKDF_SHA256,
            CipherSuite::Aes256Gcm => HKDF_SHA384,
        };
        Self::from_bytes(algorithm, bytes)
    }

    /// HKDF-Extract with SHA-256, the start of the Initial keys (RFC 9001 §5.2).
    pub(super) fn extract_sha256(salt: &[u8], input: &[u8]) -> Self {
        let mut bytes = Zeroizing::new([0; SECRET_LEN_MAX]);
        let len = HKDF_SHA256.len();
        mac(&hmac::Key::new(hmac::HMAC_SHA256, salt), input, &mut bytes[..len]);
        Self { bytes, len, algorithm: HKDF_SHA256 }
    }

    fn from_bytes(algorithm: hkdf::Algorithm, secret: &[u8]) -> Self {
        let mut bytes = Zeroizing::new([0; SECRET_LEN_MAX]);
        bytes[..secret.len()].copy_from_slice(secret);
        Self { bytes, len: secret.len(), algorithm }
    }

    /// What expands this secret, for several labels in a row.
    pub(super) fn expander(&self) -> Expander {
        let hash = if self.algorithm == HKDF_SHA384 { hmac::HMAC_SHA384 } else { hmac::HMAC_SHA256 };
        Expander { key: hmac::Key::new(hash, &self.bytes[..self.len]), algorithm: self.algorithm }
    }

    /// HKDF-Expand-Label to a secret of the same hash.
    pub(super) fn next(&self, label: &str) -> Self {
        self.expander().next(label)
    }

    /// HKDF-Expand-Label with an empty context, as many bytes as `output` holds; see [`Expander::expand_label`].
    pub(super) fn expand_label(&self, label: &str, output: &mut [u8]) {
        self.expander().expand_label(label, output);
    }

    /// What TLS makes for others of an exporter secret (RFC 8446 §7.5), as many bytes as `output` holds.
    ///
    /// # Errors
    /// If the label or the output is too long.
    pub(super) fn export(&self, label: &[u8], context: &[u8], output: &mut [u8]) -> Result<(), TooLong> {
        let hash = if self.algorithm == HKDF_SHA384 { &digest::SHA384 } else { &digest::SHA256 };
        let mut bytes = Zeroizing::new([0; SECRET_LEN_MAX]);
        let len = self.algorithm.len();
        self.expand(label, digest::digest(hash, &[]).as_ref(), &mut bytes[..len])?;
        let derived = Self { bytes, len, algorithm: self.algorithm };
        derived.expand(b"exporter", digest::digest(hash, context).as_ref(), output)
    }

    /// HKDF-Expand-Label to any length, with a context.
    fn expand(&self, label: &[u8], context: &[u8], output: &mut [u8]) -> Result<(), TooLong> {
        // struct HkdfLabel { uint16 length; opaque label<7..255> = "tls13 " + Label; opaque context<0..255>; }
        let len = u16::try_from(output.len()).map_err(|_| TooLong)?.to_be_bytes();
        let label_len = u8::try_from(PREFIX.len() + label.len()).map_err(|_| TooLong)?;
        let context_len = u8::try_from(context.len()).map_err(|_| TooLong)?;
        let info: [&[u8]; 6] = [&len, &[label_len], PREFIX, label, &[context_len], context];
        let prk = Prk::new_less_safe(self.algorithm, &self.bytes[..self.len]);
        let okm = prk.expand(&info, Length(output.len()));
        okm.and_then(|okm| okm.fill(output)).map_err(|_| TooLong)
    }
}

/// A secret with which HMAC is keyed already: half of the work of a short expansion, done once for all of them.
pub(super) struct Expander {
    /// Wiped by aws-lc when it is dropped.
    key: hmac::Key,
    algorithm: hkdf::Algorithm,
}

impl Expander {
    /// HKDF-Expand-Label to a secret of the same hash.
    pub(super) fn next(&self, label: &str) -> Secret {
        let mut bytes = Zeroizing::new([0; SECRET_LEN_MAX]);
        let len = self.algorithm.len();
        self.expand_label(label, &mut bytes[..len]);
        Secret { bytes, len, algorithm: self.algorithm }
    }

    /// HKDF-Expand-Label with an empty context, as many bytes as `output` holds.
    ///
    /// # Panics
    /// If that is more than the hash has, or the label is longer than 249 bytes: keys and secrets are short, and so are
    /// their labels.
    pub(super) fn expand_label(&self, label: &str, output: &mut [u8]) {
        assert!(output.len() <= self.algorithm.len(), "one block of HKDF is enough for a key");
        let label_len = u8::try_from(PREFIX.len() + label.len()).expect("labels are short");
        // The struct HkdfLabel, and the number of the block (RFC 5869 §2.3).
        let mut info = SmallVec::<[u8; INFO_LEN]>::new();
        info.extend_from_slice(&[0, output.len() as u8, label_len]);
        info.extend_from_slice(PREFIX);
        info.extend_from_slice(label.as_bytes());
        info.extend_from_slice(&[0, 1]);
        mac(&self.key, &info, output);
    }
}

/// An HMAC, of which `output` gets the beginning: it is not longer than the hash. HKDF-Extract is one, keyed with the salt
/// (RFC 5869 §2.2), and so is the first block of HKDF-Expand, whose message ends with the number of the block, 1 (§2.3).
pub(super) fn mac(key: &hmac::Key, message: &[u8], output: &mut [u8]) {
    let mut tag = Zeroizing::new([0; SECRET_LEN_MAX]);
    let tag = hmac::sign_to_buffer(key, message, &mut tag[..]).expect("there is room for any hash");
    output.copy_from_slice(&tag[..output.len()]);
}

/// Enough for the labels that QUIC has.
const INFO_LEN: usize = 32;

/// What is to be expanded, or a name for it, is longer than HKDF has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

const PREFIX: &[u8] = b"tls13 ";

/// A length of output as the library takes it.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl fmt::Debug for Expander {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Expander(..)")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
