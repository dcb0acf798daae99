//! The key log through which rustls hands over the traffic secrets of one connection.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::KeyLog;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::aead::CipherSuite;
use super::hkdf::Secret;
use super::keys::SecretPair;

/// Keeps the traffic secrets of a connection until they are taken, which wipes them, and passes everything on to the key log that
/// the user configured, so that `SSLKEYLOGFILE` works.
pub(super) struct SecretCapture {
    forward: Arc<dyn KeyLog>,
    /// A lock because a key log is shared; nobody ever waits for it.
    captured: Mutex<Captured>,
}

/// A secret as rustls gives it out, wiped when it is dropped.
type RawSecret = Zeroizing<Vec<u8>>;

#[derive(Default)]
pub(super) struct Captured {
    /// The client's secret of early data.
    early: Option<RawSecret>,
    handshake: RawPair,
    application: RawPair,
    exporter: Option<RawSecret>,
}

/// All that they hold is wiped by its type.
impl ZeroizeOnDrop for Captured {}
impl ZeroizeOnDrop for RawPair {}

#[derive(Default)]
struct RawPair {
    client: Option<RawSecret>,
    server: Option<RawSecret>,
}

impl SecretCapture {
    pub(super) fn new(forward: Arc<dyn KeyLog>) -> Arc<Self> {
        Arc::new(Self { forward, captured: Mutex::default() })
    }

    /// Whether the secrets of the Handshake level are there and were not taken.
    pub(super) fn has_handshake(&self) -> bool {
        let captured = self.lock();
        captured.handshake.client.is_some() && captured.handshake.server.is_some()
    }

    /// Takes the secret of early data, once it is there.
    pub(super) fn take_early(&self, suite: CipherSuite) -> Option<Secret> {
        self.lock().early.take().map(|secret| Secret::new(suite, &secret))
    }

    /// Takes the secrets of the Handshake level, once they are there.
    pub(super) fn take_handshake(&self, suite: CipherSuite) -> Option<SecretPair> {
        self.lock().handshake.take(suite)
    }

    /// Takes the first secrets of the 1-RTT level, once they are there.
    pub(super) fn take_application(&self, suite: CipherSuite) -> Option<SecretPair> {
        self.lock().application.take(suite)
    }

    /// Takes the secret of which TLS makes what others use, once it is there (RFC 8446 §7.5).
    pub(super) fn take_exporter(&self, suite: CipherSuite) -> Option<Secret> {
        self.lock().exporter.take().map(|secret| Secret::new(suite, &secret))
    }

    fn lock(&self) -> MutexGuard<'_, Captured> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Captured {
    /// Where the secret that rustls calls `label` is kept.
    fn slot(&mut self, label: &str) -> Option<&mut Option<RawSecret>> {
        match label {
            "CLIENT_EARLY_TRAFFIC_SECRET" => Some(&mut self.early),
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Some(&mut self.handshake.client),
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => Some(&mut self.handshake.server),
            "CLIENT_TRAFFIC_SECRET_0" => Some(&mut self.application.client),
            "SERVER_TRAFFIC_SECRET_0" => Some(&mut self.application.server),
            "EXPORTER_SECRET" => Some(&mut self.exporter),
            _ => None,
        }
    }
}

impl RawPair {
    fn take(&mut self, suite: CipherSuite) -> Option<SecretPair> {
        let (client, server) = self.client.take().zip(self.server.take())?;
        Some(SecretPair { client: Secret::new(suite, &client), server: Secret::new(suite, &server) })
    }
}

impl KeyLog for SecretCapture {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if let Some(slot) = self.lock().slot(label) {
            *slot = Some(RawSecret::new(secret.to_vec()));
        }
        if self.forward.will_log(label) {
            self.forward.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        self.lock().slot(label).is_some() || self.forward.will_log(label)
    }
}

impl fmt::Debug for SecretCapture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretCapture(..)")
    }
}
