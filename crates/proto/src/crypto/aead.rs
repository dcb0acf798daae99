//! Cipher suites, and the seam behind which an AEAD implementation lives.

use std::fmt;

use aws_lc_rs::aead as aws_lc;
use ring::aead as ring_aead;

/// The length of an AEAD nonce in bytes.
pub(crate) const NONCE_LEN: usize = 12;

/// The length of an authentication tag in bytes; the same for every suite of QUIC (RFC 9001 §5.3).
pub(crate) const TAG_LEN: usize = 16;

/// Which implementation seals and opens packets. Both give the same bytes; they differ in speed.
///
/// The default is [`AeadBackend::preferred`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AeadBackend {
    /// The `ring` crate.
    Ring,
    /// The `aws-lc-rs` crate.
    AwsLc,
}

impl AeadBackend {
    /// The implementation that is expected to be faster on the processor the program runs on.
    ///
    /// Sealing 1,452-byte packets on one core of a server processor of 2023 took, in nanoseconds:
    ///
    /// | | ring | aws-lc | aws-lc without AVX-512 |
    /// |---|---|---|---|
    /// | AES-128-GCM | 190 | 152 | 279 |
    /// | AES-256-GCM | 213 | 171 | 318 |
    /// | ChaCha20-Poly1305 | 703 | 711 | 711 |
    ///
    /// Opening gives the same order. aws-lc has AES-GCM kernels for AVX-512 and nothing between those and
    /// 128-bit AES-NI; ring stops at AVX2. So on x86-64 AVX-512 decides. On other processors the choice
    /// is aws-lc, which has the wider unrolled kernels for 64-bit Arm; that was not measured.
    pub fn preferred() -> Self {
        if cfg!(target_arch = "x86_64") && !has_avx512_aes() { Self::Ring } else { Self::AwsLc }
    }
}

impl Default for AeadBackend {
    fn default() -> Self {
        Self::preferred()
    }
}

/// Whether the processor has what aws-lc's widest AES-GCM kernel needs.
#[cfg(target_arch = "x86_64")]
fn has_avx512_aes() -> bool {
    std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512vl")
        && std::is_x86_feature_detected!("vaes")
        && std::is_x86_feature_detected!("vpclmulqdq")
}

/// Whether the processor has what aws-lc's widest AES-GCM kernel needs.
#[cfg(not(target_arch = "x86_64"))]
fn has_avx512_aes() -> bool {
    false
}

/// Whether the processor has instructions for AES-GCM.
#[cfg(target_arch = "x86_64")]
fn has_aes() -> bool {
    std::is_x86_feature_detected!("aes") && std::is_x86_feature_detected!("pclmulqdq")
}

/// Whether the processor has instructions for AES-GCM.
#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull")
}

/// Whether the processor has instructions for AES-GCM: not known here.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}

/// A TLS 1.3 cipher suite that QUIC can use (RFC 9001 §5.3).
///
/// The two CCM suites are missing: rustls does not offer them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CipherSuite {
    /// TLS_AES_128_GCM_SHA256; also what protects Initial packets.
    Aes128Gcm,
    /// TLS_AES_256_GCM_SHA384.
    Aes256Gcm,
    /// TLS_CHACHA20_POLY1305_SHA256.
    ChaCha20Poly1305,
}

impl CipherSuite {
    /// All of them, the one that is the fastest on the processor the program runs on first: AES with a key of 128 bits where
    /// there are instructions for it, ChaCha20 where there are none. The figures are at [`AeadBackend::preferred`].
    pub fn fastest_first() -> [Self; 3] {
        if has_aes() {
            [Self::Aes128Gcm, Self::Aes256Gcm, Self::ChaCha20Poly1305]
        } else {
            [Self::ChaCha20Poly1305, Self::Aes128Gcm, Self::Aes256Gcm]
        }
    }

    /// The length of the tag that sealing adds, in bytes.
    pub const fn tag_len(self) -> usize {
        TAG_LEN
    }

    /// The length of the packet key and of the header protection key, in bytes.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }

    /// How many packets may be sealed with one key (RFC 9001 §6.6).
    ///
    /// For ChaCha20-Poly1305 that is more than there are packet numbers.
    pub const fn confidentiality_limit(self) -> u64 {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 1 << 23,
            Self::ChaCha20Poly1305 => 1 << 62,
        }
    }

    /// How many packets of a connection may fail authentication, over all keys (RFC 9001 §6.6).
    pub const fn integrity_limit(self) -> u64 {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 1 << 52,
            Self::ChaCha20Poly1305 => 1 << 36,
        }
    }

    /// The suite that rustls negotiated, or `None` for one that QUIC has no header protection for.
    pub(crate) fn from_rustls(suite: rustls::CipherSuite) -> Option<Self> {
        match suite {
            rustls::CipherSuite::TLS13_AES_128_GCM_SHA256 => Some(Self::Aes128Gcm),
            rustls::CipherSuite::TLS13_AES_256_GCM_SHA384 => Some(Self::Aes256Gcm),
            rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => Some(Self::ChaCha20Poly1305),
            _ => None,
        }
    }
}

impl fmt::Display for CipherSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aes128Gcm => "AES-128-GCM",
            Self::Aes256Gcm => "AES-256-GCM",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        })
    }
}

/// A key of an AEAD, in the hands of one of the implementations.
pub(super) enum AeadKey {
    // ring keeps the expanded key inline, 544 bytes of it.
    Ring(Box<ring_aead::LessSafeKey>),
    AwsLc(aws_lc::LessSafeKey),
}

impl AeadKey {
    /// The key `bytes`, which must be [`CipherSuite::key_len`] long.
    pub(super) fn new(suite: CipherSuite, bytes: &[u8], backend: AeadBackend) -> Self {
        match backend {
            AeadBackend::Ring => {
                let algorithm = match suite {
                    CipherSuite::Aes128Gcm => &ring_aead::AES_128_GCM,
                    CipherSuite::Aes256Gcm => &ring_aead::AES_256_GCM,
                    CipherSuite::ChaCha20Poly1305 => &ring_aead::CHACHA20_POLY1305,
                };
                let key =
                    ring_aead::UnboundKey::new(algorithm, bytes).expect("the key has the suite's length");
                Self::Ring(Box::new(ring_aead::LessSafeKey::new(key)))
            }
            AeadBackend::AwsLc => {
                let algorithm = match suite {
                    CipherSuite::Aes128Gcm => &aws_lc::AES_128_GCM,
                    CipherSuite::Aes256Gcm => &aws_lc::AES_256_GCM,
                    CipherSuite::ChaCha20Poly1305 => &aws_lc::CHACHA20_POLY1305,
                };
                let key = aws_lc::UnboundKey::new(algorithm, bytes).expect("the key has the suite's length");
                Self::AwsLc(aws_lc::LessSafeKey::new(key))
            }
        }
    }

    /// Encrypts `text` in place and returns the tag over it and `header`.
    pub(super) fn seal(&self, nonce: [u8; NONCE_LEN], header: &[u8], text: &mut [u8]) -> [u8; TAG_LEN] {
        let mut tag = [0; TAG_LEN];
        match self {
            Self::Ring(key) => {
                let nonce = ring_aead::Nonce::assume_unique_for_key(nonce);
                let sealed = key.seal_in_place_separate_tag(nonce, ring_aead::Aad::from(header), text);
                tag.copy_from_slice(sealed.expect("a packet is shorter than the AEAD's limit").as_ref());
            }
            Self::AwsLc(key) => {
                let nonce = aws_lc::Nonce::assume_unique_for_key(nonce);
                let sealed = key.seal_in_place_separate_tag(nonce, aws_lc::Aad::from(header), text);
                tag.copy_from_slice(sealed.expect("a packet is shorter than the AEAD's limit").as_ref());
            }
        }
        tag
    }

    /// Decrypts `sealed`, a text and its tag, in place and returns the length of the text, or `None` if it is
    /// not what was sealed with this key, nonce and header. In that case the contents of `sealed` are undefined.
    pub(super) fn open(&self, nonce: [u8; NONCE_LEN], header: &[u8], sealed: &mut [u8]) -> Option<usize> {
        match self {
            Self::Ring(key) => {
                let nonce = ring_aead::Nonce::assume_unique_for_key(nonce);
                key.open_in_place(nonce, ring_aead::Aad::from(header), sealed).ok().map(|text| text.len())
            }
            Self::AwsLc(key) => {
                let nonce = aws_lc::Nonce::assume_unique_for_key(nonce);
                key.open_in_place(nonce, aws_lc::Aad::from(header), sealed).ok().map(|text| text.len())
            }
        }
    }
}
