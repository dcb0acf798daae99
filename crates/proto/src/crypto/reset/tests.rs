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

#[test]
fn the_secret_for_the_tokens_of_addresses_depends_on_the_key() {
    let secret = |key: &[u8; 32]| ResetKey::new(key).token_secret().to_vec();
    // Computed with another implementation of HMAC.
    let expected = "828f0e1d4758095f885af4d0a479136c591ca05378688085fe96654238abfab8";
    assert_eq!(secret(&[0x0b; 32]), bytes(expected));
    assert_ne!(secret(&[0x0b; 32]), secret(&[0x0c; 32]));
}
