//! Secrets and what is expanded from them (RFC 5869, RFC 8446 §7.1).

use std::fmt;

use aws_lc_rs::digest;
use aws_lc_rs::hkdf::{HKDF_SHA256, HKDF_SHA384, KeyType, Prk};
use fulmar_wire::ConnectionId;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::aead::CipherSuite;
use super::hmac::{Hash, Key, OUTPUT_LEN_MAX};
use super::version::VersionConstants;

/// The longest secret, in bytes.
const SECRET_LEN_MAX: usize = OUTPUT_LEN_MAX;

/// A secret of the key schedule, ready to be expanded. Its bytes are wiped when it is dropped.
///
/// A handshake takes a few dozen expansions: several of one secret are made with one [`Expander`].
pub(super) struct Secret {
    bytes: Zeroizing<[u8; SECRET_LEN_MAX]>,
    /// How many of the bytes count.
    len: usize,
    hash: Hash,
}

/// The bytes are all that is secret, and `Zeroizing` wipes them.
impl ZeroizeOnDrop for Secret {}

impl Secret {
    /// A traffic secret that TLS gave out for `suite`.
    ///
    /// # Panics
    /// If it is longer than 48 bytes, the hash of no suite.
    pub(super) fn new(suite: CipherSuite, bytes: &[u8]) -> Self {
        let hash = match suite {
            CipherSuite::Aes128Gcm | CipherSuite::ChaCha20Poly1305 => Hash::Sha256,
            CipherSuite::Aes256Gcm => Hash::Sha384,
        };
        Self::from_bytes(hash, bytes)
    }

    /// The Initial secret of a connection (RFC 9001 §5.2): HKDF-Extract, which is HMAC with the salt as its key (RFC 5869 §2.2).
    pub(super) fn initial(version: &VersionConstants, dcid: &ConnectionId) -> Self {
        let mut bytes = Zeroizing::new([0; SECRET_LEN_MAX]);
        let hash = Hash::Sha256;
        version.initial_salt.mac([dcid.as_bytes()], &mut bytes[..hash.len()]);
        Self { bytes, len: hash.len(), hash }
    }

    fn from_bytes(hash: Hash, secret: &[u8]) -> Self {
        let mut bytes = Zeroizing::new([0; SECRET_LEN_MAX]);
        bytes[..secret.len()].copy_from_slice(secret);
        Self { bytes, len: secret.len(), hash }
    }

    /// What expands this secret, for several labels in a row.
    pub(super) fn expander(&self) -> Expander {
        Expander { key: Key::new(self.hash, &self.bytes[..self.len]), hash: self.hash }
    }

    /// HKDF-Expand-Label to a secret of the same hash.
    pub(super) fn next(&self, label: &str) -> Self {
        self.expander().next(label)
    }

    /// What TLS makes for others of an exporter secret (RFC 8446 §7.5), as many bytes as `output` holds.
    ///
    /// # Errors
    /// If the label or the output is too long.
    pub(super) fn export(&self, label: &[u8], context: &[u8], output: &mut [u8]) -> Result<(), TooLong> {
        let hash = match self.hash {
            Hash::Sha256 => &digest::SHA256,
            Hash::Sha384 => &digest::SHA384,
        };
        let mut bytes = Zeroizing::new([0; SECRET_LEN_MAX]);
        let len = self.hash.len();
        self.expand(label, digest::digest(hash, &[]).as_ref(), &mut bytes[..len])?;
        let derived = Self { bytes, len, hash: self.hash };
        derived.expand(b"exporter", digest::digest(hash, context).as_ref(), output)
    }

    /// HKDF-Expand-Label to any length, with a context.
    fn expand(&self, label: &[u8], context: &[u8], output: &mut [u8]) -> Result<(), TooLong> {
        // struct HkdfLabel { uint16 length; opaque label<7..255> = "tls13 " + Label; opaque context<0..255>; }
        let len = u16::try_from(output.len()).map_err(|_| TooLong)?.to_be_bytes();
        let label_len = u8::try_from(PREFIX.len() + label.len()).map_err(|_| TooLong)?;
        let context_len = u8::try_from(context.len()).map_err(|_| TooLong)?;
        let info: [&[u8]; 6] = [&len, &[label_len], PREFIX, label, &[context_len], context];
        let algorithm = match self.hash {
            Hash::Sha256 => HKDF_SHA256,
            Hash::Sha384 => HKDF_SHA384,
        };
        let prk = Prk::new_less_safe(algorithm, &self.bytes[..self.len]);
        let okm = prk.expand(&info, Length(output.len()));
        okm.and_then(|okm| okm.fill(output)).map_err(|_| TooLong)
    }
}

/// A secret with which HMAC is keyed already: half of the work of a short expansion, done once for all of them.
pub(super) struct Expander {
    key: Key,
    hash: Hash,
}

impl Expander {
    /// HKDF-Expand-Label to a secret of the same hash.
    pub(super) fn next(&self, label: &str) -> Secret {
        let mut bytes = Zeroizing::new([0; SECRET_LEN_MAX]);
        let len = self.hash.len();
        self.expand_label(label, &mut bytes[..len]);
        Secret { bytes, len, hash: self.hash }
    }

    /// HKDF-Expand-Label with an empty context, as many bytes as `output` holds.
    ///
    /// # Panics
    /// If that is more than the hash has, or the label is longer than 249 bytes: keys and secrets are short, and so are
    /// their labels.
    pub(super) fn expand_label(&self, label: &str, output: &mut [u8]) {
        assert!(output.len() <= self.hash.len(), "one block of HKDF is enough for a key");
        let label_len = u8::try_from(PREFIX.len() + label.len()).expect("labels are short");
        // The struct HkdfLabel: see `expand`.
        let lens = [0, output.len() as u8, label_len];
        expand_first(&self.key, &[&lens, PREFIX, label.as_bytes(), &[0]], output);
    }
}

/// The first block of HKDF-Expand, whose message ends with the number of the block, 1 (RFC 5869 §2.3). `output` gets the beginning: it is
/// not longer than the hash.
pub(super) fn expand_first(key: &Key, info: &[&[u8]], output: &mut [u8]) {
    key.mac(info.iter().copied().chain([&[1][..]]), output);
}

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

#[cfg(test)]
mod tests;
