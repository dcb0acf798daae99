//! Secrets are wiped when they are dropped.

use std::sync::Arc;

use rustls::{KeyLog, NoKeyLog};
use zeroize::ZeroizeOnDrop;

use super::aead::CipherSuite;
use super::hkdf::Secret;
use super::hmac::Key;
use super::packet_key::PacketKey;
use super::reset::ResetKey;
use super::secret_capture::{Captured, SecretCapture};
use super::token::TokenKey;

/// Compiles only for types that wipe themselves.
const fn wipes_itself<T: ZeroizeOnDrop>() {}

const _: () = {
    wipes_itself::<Secret>();
    wipes_itself::<PacketKey>();
    wipes_itself::<Captured>();
    wipes_itself::<TokenKey>();
    wipes_itself::<Key>();
    wipes_itself::<ResetKey>();
};

#[test]
fn a_captured_secret_is_given_out_once() {
    let capture = SecretCapture::new(Arc::new(NoKeyLog {}));
    capture.log("CLIENT_EARLY_TRAFFIC_SECRET", &[1; 32], &[2; 32]);
    assert!(capture.take_early(CipherSuite::Aes128Gcm).is_some());
    assert!(capture.take_early(CipherSuite::Aes128Gcm).is_none(), "nothing is kept");
    capture.log("CLIENT_HANDSHAKE_TRAFFIC_SECRET", &[1; 32], &[2; 32]);
    capture.log("SERVER_HANDSHAKE_TRAFFIC_SECRET", &[1; 32], &[3; 32]);
    assert!(capture.take_handshake(CipherSuite::Aes128Gcm).is_some() && !capture.has_handshake());
}
