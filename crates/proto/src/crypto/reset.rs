//! Stateless reset tokens, and where a datagram has one (RFC 9000 §10.3).

use std::fmt;

use aws_lc_rs::hmac;
use fulmar_wire::{ConnectionId, ResetToken};
use zeroize::Zeroizing;

/// A stateless reset has at least this many bytes, so that it looks like a packet (RFC 9000 §10.3).
pub(crate) const RESET_LEN_MIN: usize = 21;

/// The key from which an endpoint derives the stateless reset token of every connection ID it issues.
///
/// Whoever holds it can end every connection of the endpoint. An endpoint that gets the same key again after
/// a restart can reset the connections it has forgotten.
///
/// The HMAC is that of aws-lc, which wipes its keys when they are dropped; ring does not.
#[derive(Clone)]
pub struct ResetKey(hmac::Key);

impl ResetKey {
    /// A key from secret bytes: at least 32 of them, which is checked when the program is compiled.
    pub fn new<const N: usize>(secret: &[u8; N]) -> Self {
        const { assert!(N >= 32, "a reset key has at least 256 bits") };
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The token for `cid`: HMAC-SHA256, cut to 128 bits.
    pub fn token(&self, cid: &ConnectionId) -> ResetToken {
        let tag = hmac::sign(&self.0, cid.as_bytes());
        let mut token = [0; 16];
        token.copy_from_slice(&tag.as_ref()[..16]);
        ResetToken(token)
    }

    /// Another secret, from which nothing can be told about this one. What is signed for it is longer than any
    /// connection ID, so it is no token.
    pub(crate) fn token_secret(&self) -> Zeroizing<[u8; 32]> {
        let tag = hmac::sign(&self.0, b"the key of fulmar's address validation tokens");
        let mut secret = Zeroizing::new([0; 32]);
        secret.copy_from_slice(tag.as_ref());
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
