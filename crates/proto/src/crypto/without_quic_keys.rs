//! A key schedule of TLS that makes no packet keys of QUIC.
//!
//! rustls expands keys of packets from each traffic secret, and hands them out. Here they are made of the secrets a second
//! time, for reasons that the module [`crypto`](super) names, and those of rustls are dropped. Cipher suites from this file
//! make none: what stands in their place refuses to seal and to open anything. All else is computed as before; several
//! expansions of one secret share the work of extracting it and of keying HMAC.

use std::sync::{LazyLock, OnceLock};

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::crypto::hmac::Tag as HmacTag;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::{CipherSuiteCommon, Error, SupportedCipherSuite, Tls13CipherSuite};
use zeroize::Zeroizing;

use super::aead::TAG_LEN;
use super::header_key::SAMPLE_LEN;
use super::hkdf::expand_first;
use super::hmac::{Hash, Key};

/// The provider of aws-lc that rustls has, whose cipher suites of TLS 1.3 waste no time on packet keys of QUIC that Fulmar
/// does not use. Their HMAC and HKDF are made with another library's SHA-2, so that they claim no certificate of FIPS.
///
/// It is for this library and for TLS over TCP. Another stack of QUIC can complete a handshake with it, and then neither
/// send nor receive, as the packet keys that rustls has for it refuse to work.
pub fn aws_lc_without_quic_keys() -> CryptoProvider {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let cipher_suites = provider.cipher_suites.iter().map(|&suite| lean(suite)).collect();
    CryptoProvider { cipher_suites, ..provider }
}

/// What stands for a suite of aws-lc.
fn lean(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    let lean = SUITES.iter().find(|lean| lean.common.suite == suite.suite());
    lean.map_or(suite, SupportedCipherSuite::Tls13)
}

static SUITES: LazyLock<[Tls13CipherSuite; 3]> = LazyLock::new(|| {
    let suites: [(_, &'static dyn Hkdf, &'static dyn Algorithm); 3] = [
        (TLS13_AES_128_GCM_SHA256, &*SHA256, &NoKeys { len: 16 }),
        (TLS13_AES_256_GCM_SHA384, &*SHA384, &NoKeys { len: 32 }),
        (TLS13_CHACHA20_POLY1305_SHA256, &*SHA256, &NoKeys { len: 32 }),
    ];
    suites.map(|(suite, hkdf_provider, keys)| {
        let Tls13CipherSuite { common, aead_alg, .. } = of_tls13(suite);
        let CipherSuiteCommon { suite, hash_provider, confidentiality_limit } = *common;
        let common = CipherSuiteCommon { suite, hash_provider, confidentiality_limit };
        Tls13CipherSuite { common, hkdf_provider, aead_alg: *aead_alg, quic: Some(keys) }
    })
});

static SHA256: LazyLock<KeySchedule> =
    LazyLock::new(|| KeySchedule::of(TLS13_AES_128_GCM_SHA256, Hash::Sha256));
static SHA384: LazyLock<KeySchedule> =
    LazyLock::new(|| KeySchedule::of(TLS13_AES_256_GCM_SHA384, Hash::Sha384));

fn of_tls13(suite: SupportedCipherSuite) -> &'static Tls13CipherSuite {
    suite.tls13().expect("a suite of TLS 1.3")
}

/// HKDF, extracted and expanded in another way.
struct KeySchedule {
    inner: &'static dyn Hkdf,
    hash: Hash,
    /// Of the Early Secret of connections without a pre-shared key, which is always the same (RFC 8446 §7.1).
    early: OnceLock<(OkmBlock, Key)>,
}

impl KeySchedule {
    fn of(suite: SupportedCipherSuite, hash: Hash) -> Self {
        Self { inner: of_tls13(suite).hkdf_provider, hash, early: OnceLock::new() }
    }

    fn expander(&self, secret: OkmBlock) -> SecretExpander {
        SecretExpander { inner: self.inner, hash: self.hash, secret, key: OnceLock::new() }
    }

    /// The library would extract once more for each expansion. No salt is as good as zeros: HMAC fills a short key up with them.
    fn extract(&self, salt: Option<&[u8]>, secret: &[u8]) -> OkmBlock {
        let mut prk = Zeroizing::new([0; OkmBlock::MAX_LEN]);
        let prk = &mut prk[..self.hash.len()];
        Key::new(self.hash, salt.unwrap_or_default()).mac([secret], prk);
        OkmBlock::new(prk)
    }
}

impl Hkdf for KeySchedule {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        let zeros = &[0; OkmBlock::MAX_LEN][..self.hash.len()];
        if salt.is_some() {
            return self.extract_from_secret(salt, zeros);
        }
        let (secret, key) = self.early.get_or_init(|| {
            let secret = self.extract(None, zeros);
            let key = Key::new(self.hash, secret.as_ref());
            (secret, key)
        });
        Box::new(SecretExpander { key: OnceLock::from(key.clone()), ..self.expander(secret.clone()) })
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        Box::new(self.expander(self.extract(salt, secret)))
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        Box::new(self.expander(okm.clone()))
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> HmacTag {
        let mut tag = Zeroizing::new([0; HmacTag::MAX_LEN]);
        let tag = &mut tag[..self.hash.len()];
        Key::new(self.hash, key.as_ref()).mac([message], tag);
        HmacTag::new(tag)
    }
}

/// Expands one secret.
struct SecretExpander {
    inner: &'static dyn Hkdf,
    hash: Hash,
    /// Wiped by rustls.
    secret: OkmBlock,
    /// Made when it is needed.
    key: OnceLock<Key>,
}

impl SecretExpander {
    fn key(&self) -> &Key {
        self.key.get_or_init(|| Key::new(self.hash, self.secret.as_ref()))
    }
}

impl HkdfExpander for SecretExpander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        if is_of_packets(info) {
            output.fill(0);
            return Ok(());
        }
        if output.len() > self.hash_len() {
            return self.inner.expander_for_okm(&self.secret).expand_slice(info, output);
        }
        expand_first(self.key(), info, output);
        Ok(())
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        let mut block = Zeroizing::new([0; OkmBlock::MAX_LEN]);
        let block = &mut block[..self.hash_len()];
        expand_first(self.key(), info, block);
        OkmBlock::new(block)
    }

    fn hash_len(&self) -> usize {
        self.secret.as_ref().len()
    }
}

/// Whether this is the HkdfLabel of a packet key, its IV or the key of header protection in version 1, the only one of which
/// rustls is told (RFC 9001 §5.1). Their context is empty; that of an exporter, whose label anybody may choose, is a hash.
fn is_of_packets(info: &[&[u8]]) -> bool {
    matches!(info, [_, _, b"tls13 ", b"quic key" | b"quic iv" | b"quic hp", [0], []])
}

/// What stands in the place of packet keys, which have this length, and does nothing.
struct NoKeys {
    len: usize,
}

impl Algorithm for NoKeys {
    fn packet_key(&self, _: AeadKey, _: Iv) -> Box<dyn PacketKey> {
        Box::new(NoKey)
    }

    fn header_protection_key(&self, _: AeadKey) -> Box<dyn HeaderProtectionKey> {
        Box::new(NoKey)
    }

    fn aead_key_len(&self) -> usize {
        self.len
    }
}

/// A key that refuses everything.
struct NoKey;

impl PacketKey for NoKey {
    fn encrypt_in_place(&self, _: u64, _: &[u8], _: &mut [u8]) -> Result<Tag, Error> {
        Err(Error::EncryptError)
    }

    fn decrypt_in_place<'a>(&self, _: u64, _: &[u8], _: &'a mut [u8]) -> Result<&'a [u8], Error> {
        Err(Error::DecryptError)
    }

    fn tag_len(&self) -> usize {
        TAG_LEN
    }

    fn confidentiality_limit(&self) -> u64 {
        0
    }

    fn integrity_limit(&self) -> u64 {
        0
    }
}

impl HeaderProtectionKey for NoKey {
    fn encrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::EncryptError)
    }

    fn decrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::DecryptError)
    }

    fn sample_len(&self) -> usize {
        SAMPLE_LEN
    }
}

#[cfg(test)]
mod tests;
