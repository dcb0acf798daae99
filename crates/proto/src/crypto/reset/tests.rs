//! Tokens are HMACs of the connection ID.

use super::*;
use crate::crypto::vectors::bytes;

#[test]
fn token_is_a_truncated_hmac() {
    let key = ResetKey::new(&[0x0b; 32]);
    let cid = ConnectionId::new(b"Hi There").expect("eight bytes");
    // Computed with another implementation of HMAC.
    assert_eq!(key.token(&cid).0.to_vec(), bytes("198a607eb44bfbc69903a0f1cf2bbdc5"));
}

#[test]
fn tokens_depend_on_key_and_id() {
    let cid = |bytes: &[u8]| ConnectionId::new(bytes).expect("short enough");
    let key = ResetKey::new(&[1; 64]);
    assert_eq!(key.token(&cid(&[1, 2, 3])), key.clone().token(&cid(&[1, 2, 3])));
    assert_ne!(key.token(&cid(&[1, 2, 3])), key.token(&cid(&[1, 2, 4])));
    assert_ne!(key.token(&cid(&[1, 2, 3])), ResetKey::new(&[2; 64]).token(&cid(&[1, 2, 3])));
}
