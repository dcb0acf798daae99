//! Keys, packet protection and the seam to TLS (RFC 9001, RFC 9369).
//!
//! This module owns everything that knows a secret. TLS itself is rustls, but rustls' packet keys are not
//! used: its secrets are received through a key log of our own and expanded here, so that the version of QUIC
//! is not fixed when the connection is made, and so that the AEAD can be the fastest one at hand.
//!
//! | file | what it owns |
//! |---|---|
//! | [`aead`] | cipher suites, their limits, and the choice between ring and aws-lc |
//! | [`hkdf`] | secrets and HKDF-Expand-Label |
//! | [`hmac`] | HMAC with SHA-2, keyed once for several messages |
//! | [`version`] | the constants that differ between QUIC versions: salt, labels, Retry key |
//! | [`packet_key`] | sealing and opening a packet in place, the path-aware nonce |
//! | [`header_key`] | the mask of header protection |
//! | [`keys`] | the keys of one encryption level |
//! | [`key_phase`] | 1-RTT keys: key update and the limits of the AEAD |
//! | [`session`] | the TLS handshake: bytes in, bytes and keys out |
//! | [`client_hello`] | a look at the transport parameters of a client before TLS gets them |
//! | [`server_sessions`], [`stored_sessions`], [`tickets`] | which TLS sessions a server resumes, and where they are kept |
//! | [`secret_capture`] | the key log through which rustls hands over its secrets |
//! | [`tls_error`] | why TLS refused, in words and as a transport error |
//! | [`provider`] | rustls providers restricted to chosen cipher suites |
//! | [`without_quic_keys`] | a rustls provider that makes no packet keys, which would not be used |
//! | [`retry`] | the integrity tag of Retry packets |
//! | [`reset`] | stateless reset tokens |
//! | [`token`] | sealed tokens for the validation of addresses, and their keys |
//!
//! Secrets are wiped from memory when they are dropped (`zeroize`): traffic secrets, the bytes that keys and IVs are made
//! of, keys of HMAC and of tokens, what the key log captures. What a library makes of a key is the library's: aws-lc wipes its AEAD
//! keys, ring does not, and this crate, which has no `unsafe`, cannot do it from outside. So with [`AeadBackend::Ring`] the
//! expanded packet keys, and in any case those of header protection, stay in freed memory until it is used again.
//!
//! It must not know packets, spaces or streams: a packet is a slice with a header length, CRYPTO data is
//! bytes in order.

mod aead;
mod client_hello;
mod header_key;
mod hkdf;
mod hmac;
mod key_phase;
mod keys;
mod packet_key;
mod provider;
mod reset;
mod retry;
mod secret_capture;
mod server_sessions;
mod session;
mod stored_sessions;
mod tickets;
mod tls_error;
mod token;
mod version;
mod without_quic_keys;

pub(crate) use aead::TAG_LEN;
pub use aead::{AeadBackend, CipherSuite};
pub(crate) use client_hello::{Peeked, peek_client_hello};
pub use key_phase::KeyUpdatePolicy;
pub(crate) use key_phase::{OneRttKeys, OpenError};
pub(crate) use keys::{DirectionKeys, Keys};
pub use provider::restrict_suites;
pub use reset::ResetKey;
pub(crate) use reset::{RESET_LEN_MIN, trailing_token};
pub(crate) use retry::{retry_tag, verify_retry};
pub(crate) use server_sessions::Circumstances;
pub(crate) use session::{KeyEvent, Level, Session};
pub(crate) use stored_sessions::StoredSessions;
pub use tickets::sealed_tickets;
pub use tls_error::TlsError;
pub(crate) use token::{OpenedToken, SALT_LEN};
pub use token::{TokenKeys, TokenKeysError};
pub use without_quic_keys::aws_lc_without_quic_keys;

#[cfg(test)]
mod vectors;
#[cfg(test)]
mod wiping;
