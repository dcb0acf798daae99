//! Stateless reset tokens, and where a datagram has one (RFC 9000 §10.3).

use std::fmt;

use fulmar_wire::{ConnectionId, ResetToken};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::hmac::{Hash, Key};

/// A stateless reset has at least this many bytes, so that it looks like a packet (RFC 9000 §10.3).
pub(crate) const RESET_LEN_MIN: usize = 21;

/// The key from which an endpoint derives the stateless reset token of every connection ID it issues.
///
/// Whoever holds it can end every connection of the endpoint. An endpoint that gets the same key again after
/// a restart can reset the connections it has forgotten.
///
/// It is wiped when it is dropped.
#[derive(Clone)]
pub struct ResetKey(Key);

impl ZeroizeOnDrop for ResetKey {}

impl ResetKey {
    /// A key from secret bytes: at least 32 of them, which is checked when the program is compiled.
    pub fn new<const N: usize>(secret: &[u8; N]) -> Self {
        const { assert!(N >= 32, "a reset key has at least 256 bits") };
        Self(Key::new(Hash::Sha256, secret))
    }

    /// The token for `cid`: HMAC-SHA256, cut to 128 bits.
    pub fn token(&self, cid: &ConnectionId) -> ResetToken {
        let mut token = [0; 16];
        self.0.mac([cid.as_bytes()], &mut token);
        ResetToken(token)
    }

    /// Another secret, from which nothing can be told about this one. What is signed for it is longer than any
    /// connection ID, so it is no token.
    pub(crate) fn token_secret(&self) -> Zeroizing<[u8; 32]> {
        let mut secret = Zeroizing::new([0; 32]);
        self.0.mac([&b"the key of fulmar's address validation tokens"[..]], &mut secret[..]);
        secret
    }
}

impl fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetKey(..)")
    }
}

/// The reset token at the end of `payload`, if it is long enough to be a stateless reset.
pub(crate) fn trailing_token(payload: &[u8]) -> Option<ResetToken> {
    if payload.len() < RESET_LEN_MIN {
        return None;
    }
    payload.last_chunk().map(|token| ResetToken(*token))
}

#[cfg(test)]
mod tests;
