//! What differs between the versions of QUIC as far as cryptography goes.

use std::sync::LazyLock;

use fulmar_wire::Version;

use super::aead::NONCE_LEN;
use super::hmac::{Hash, Key};

/// The constants of one version.
#[derive(Debug)]
pub(super) struct VersionConstants {
    /// The salt of the Initial secret (RFC 9001 §5.2), as the key that it is used as.
    pub(super) initial_salt: LazyLock<Key>,
    /// The labels that expand a secret (RFC 9001 §5.1, §6.1).
    pub(super) key_label: &'static str,
    pub(super) iv_label: &'static str,
    pub(super) hp_label: &'static str,
    pub(super) update_label: &'static str,
    /// The public key and nonce of the Retry integrity tag (RFC 9001 §5.8).
    pub(super) retry_key: [u8; 16],
    pub(super) retry_nonce: [u8; NONCE_LEN],
}

impl VersionConstants {
    /// The constants of `version`. The endpoint answers unknown versions before any key is made; should one
    /// get here, it is treated as version 1, and its packets fail authentication.
    pub(super) fn of(version: Version) -> &'static Self {
        match version {
            Version::V2 => &V2,
            _ => &V1,
        }
    }
}

/// RFC 9001.
static V1: VersionConstants = VersionConstants {
    initial_salt: LazyLock::new(|| {
        let salt = [
            0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
            0xcc, 0xbb, 0x7f, 0x0a,
        ];
        Key::new(Hash::Sha256, &salt)
    }),
    key_label: "quic key",
    iv_label: "quic iv",
    hp_label: "quic hp",
    update_label: "quic ku",
    retry_key: [
        0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e,
    ],
    retry_nonce: [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb],
};

/// RFC 9369 §3.3.
static V2: VersionConstants = VersionConstants {
    initial_salt: LazyLock::new(|| {
        let salt = [
            0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb,
            0xf9, 0xbd, 0x2e, 0xd9,
        ];
        Key::new(Hash::Sha256, &salt)
    }),
    key_label: "quicv2 key",
    iv_label: "quicv2 iv",
    hp_label: "quicv2 hp",
    update_label: "quicv2 ku",
    retry_key: [
        0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc, 0x92,
    ],
    retry_nonce: [0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a],
};
