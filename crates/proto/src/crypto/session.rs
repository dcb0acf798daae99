//! The TLS handshake: bytes in, bytes and keys out (RFC 9001 §4).

mod tls;

use std::fmt;
use std::sync::Arc;

use fulmar_wire::{Side, TransportErrorCode, Version};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic;

use self::tls::{Finished, Running, Tls};
use super::aead::{AeadBackend, CipherSuite};
use super::key_phase::OneRttKeys;
use super::keys::{DirectionKeys, Keys, SecretPair};
use super::secret_capture::SecretCapture;
use super::server_sessions::{Circumstances, Sessions, Tickets};
use super::tls_error::{self, TlsError};
use super::version::VersionConstants;
use crate::TransportError;

/// An encryption level that carries CRYPTO frames (RFC 9001 §2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 1-RTT packets.
    OneRtt,
}

/// New keys from the handshake. From here on, [`Session::write_handshake`] writes for their level.
#[derive(Debug)]
pub(crate) enum KeyEvent {
    /// The keys of the Handshake level.
    Handshake(Box<Keys>),
    /// The keys of the 1-RTT level. Those for receiving must not be used before
    /// [`Session::is_handshaking`] is false (RFC 9001 §5.7).
    OneRtt(Box<OneRttKeys>),
}

/// The TLS side of one connection.
pub(crate) struct Session {
    tls: Tls,
    side: Side,
    version: Version,
    /// The version of the client's first packets, and of its early data.
    original_version: Version,
    backend: AeadBackend,
    read_level: Level,
    write_level: Level,
    error: Option<Box<TlsError>>,
}

/// rustls would only choose the labels of keys by the version, and those keys are not used.
const TLS_VERSION: quic::Version = quic::Version::V1;

impl Session {
    /// A client that verifies the server as `server_name`. `parameters` are its encoded transport parameters,
    /// `version` is the one whose keys are made.
    ///
    /// # Errors
    /// If `config` cannot be used with QUIC: it has no TLS 1.3 or no suite for it.
    pub(crate) fn client(
        config: &rustls::ClientConfig,
        version: Version,
        server_name: ServerName<'static>,
        parameters: Vec<u8>,
        backend: AeadBackend,
    ) -> Result<Self, TlsError> {
        check_suites(config.crypto_provider())?;
        // Nearly all of a configuration is shared, so a copy for each connection is cheap.
        let mut config = config.clone();
        let capture = SecretCapture::new(config.key_log);
        config.key_log = capture.clone();
        let tls = quic::ClientConnection::new(Arc::new(config), TLS_VERSION, server_name, parameters)
            .map_err(|error| TlsError::from(&error))?;
        Ok(Self::new(tls.into(), capture, Side::Client, version, backend))
    }

    /// A server. `parameters` are its encoded transport parameters, `version` is the one whose keys are made, and
    /// `circumstances` decide which sessions are resumed.
    ///
    /// # Errors
    /// If `config` cannot be used with QUIC: it has no TLS 1.3, no suite for it, or a limit of early data that
    /// is neither 0 nor 2^32-1.
    pub(crate) fn server(
        config: &rustls::ServerConfig,
        version: Version,
        parameters: Vec<u8>,
        mut circumstances: Circumstances,
        backend: AeadBackend,
    ) -> Result<Self, TlsError> {
        check_suites(config.crypto_provider())?;
        let mut config = config.clone();
        // rustls takes none of a session that is in the hands of the client.
        circumstances.early_data = config.max_early_data_size > 0 && !config.ticketer.enabled();
        let inner = config.session_storage.clone();
        config.session_storage = Arc::new(Sessions { inner, circumstances: circumstances.clone() });
        let inner = config.ticketer.clone();
        config.ticketer = Arc::new(Tickets { inner, circumstances });
        let capture = SecretCapture::new(config.key_log);
        config.key_log = capture.clone();
        let tls = quic::ServerConnection::new(Arc::new(config), TLS_VERSION, parameters)
            .map_err(|error| TlsError::from(&error))?;
        Ok(Self::new(tls.into(), capture, Side::Server, version, backend))
    }

    fn new(
        tls: quic::Connection,
        capture: Arc<SecretCapture>,
        side: Side,
        version: Version,
        backend: AeadBackend,
    ) -> Self {
        let (read_level, write_level) = (Level::Initial, Level::Initial);
        let original_version = version;
        let tls = Tls::Running(Box::new(Running { tls, capture }));
        Self { tls, side, version, original_version, backend, read_level, write_level, error: None }
    }

    /// The level whose CRYPTO data TLS wants next. Data of a higher level waits until it is reached.
    pub(crate) fn read_level(&self) -> Level {
        self.read_level
    }

    /// The level of the bytes that the next [`Session::write_handshake`] gives.
    pub(crate) fn write_level(&self) -> Level {
        self.write_level
    }

    /// Takes CRYPTO data of `level`, in order and each byte once. rustls keeps an incomplete message, at most
    /// 64 KiB of it. After each call, [`Session::write_handshake`] is due until it gives neither bytes nor
    /// keys; rustls mixes the levels of what it writes otherwise.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION for data of the wrong level, CRYPTO_ERROR with the alert of TLS otherwise; in the
    /// latter case [`Session::error`] tells more.
    pub(crate) fn read_handshake(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        if data.is_empty() {
            return Ok(());
        }
        // RFC 9001 §4.1.3: no new data at a level that TLS has left.
        if level != self.read_level {
            return Err(TransportError::protocol_violation("handshake data at the wrong encryption level"));
        }
        debug_assert!(level <= self.write_level, "`write_handshake` was not called between two levels");
        let Tls::Running(running) = &mut self.tls else { return Err(self.refuse_message()) };
        running.tls.read_hs(data).map_err(|error| {
            let words = TlsError::from(&error);
            let transport_error = tls_error::transport_error(&error, &words, running.tls.alert());
            self.error = Some(Box::new(words));
            transport_error
        })?;
        if !running.tls.is_handshaking() {
            self.read_level = Level::OneRtt;
        } else if running.capture.has_handshake() {
            self.read_level = Level::Handshake;
        }
        Ok(())
    }

    /// A client has nothing to say after the handshake: no certificate is asked for, and RFC 9001 §6 has no KeyUpdate.
    pub(crate) fn refuse_message(&mut self) -> TransportError {
        const REASON: &str = "a message of TLS after the handshake";
        self.error = Some(Box::new(TlsError::Other(REASON.to_owned())));
        let alert = u8::from(rustls::AlertDescription::UnexpectedMessage);
        TransportError::new(TransportErrorCode::crypto(alert), REASON)
    }

    /// The handshake is complete and all of it was written. A server lets go of TLS: that takes several kilobytes.
    pub(crate) fn finish(&mut self) {
        if let Tls::Running(running) = &self.tls
            && self.side.is_server()
            && !running.tls.is_handshaking()
            && let Some(finished) = Finished::of(running)
        {
            self.tls = Tls::Finished(Box::new(finished));
        }
    }

    /// The connection is over. A handshake that was not complete never will be, and TLS is let go.
    pub(crate) fn let_go(&mut self) {
        if self.is_handshaking() {
            self.tls = Tls::Over;
        }
    }

    fn running(&self) -> Option<&Running> {
        match &self.tls {
            Tls::Running(running) => Some(running),
            Tls::Finished(_) | Tls::Over => None,
        }
    }

    /// Appends handshake bytes for [`Session::write_level`], as it was before the call, to `out`. Keys, if they
    /// come, are for the next level; there may be more bytes then.
    pub(crate) fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<KeyEvent> {
        let Tls::Running(running) = &mut self.tls else { return None };
        match running.tls.write_hs(out)? {
            quic::KeyChange::Handshake { .. } => {
                self.write_level = Level::Handshake;
                Some(KeyEvent::Handshake(Box::new(self.handshake_keys())))
            }
            quic::KeyChange::OneRtt { .. } => {
                self.write_level = Level::OneRtt;
                Some(KeyEvent::OneRtt(Box::new(self.one_rtt_keys())))
            }
        }
    }

    fn handshake_keys(&self) -> Keys {
        let (suite, secrets) = self.take_secrets(SecretCapture::take_handshake);
        Keys::from_secrets(suite, &secrets, self.version, self.side, self.backend)
    }

    fn one_rtt_keys(&self) -> OneRttKeys {
        let (suite, secrets) = self.take_secrets(SecretCapture::take_application);
        OneRttKeys::from_secrets(suite, secrets, self.version, self.side, self.backend)
    }

    /// Takes the secrets of keys that TLS has just announced.
    fn take_secrets(
        &self,
        take: impl FnOnce(&SecretCapture, CipherSuite) -> Option<SecretPair>,
    ) -> (CipherSuite, SecretPair) {
        let suite = self.suite().expect(SUITE_KNOWN);
        let secrets = self.running().and_then(|running| take(&running.capture, suite));
        (suite, secrets.expect(SECRETS_LOGGED))
    }

    /// The keys of early data: on a client that resumes, as soon as it has written its first message; on a server
    /// that accepts it, as soon as it has read that (RFC 9001 §4.6). They are given once.
    pub(crate) fn early_keys(&self) -> Option<DirectionKeys> {
        let Running { tls, capture } = self.running()?;
        // The secret is logged also where early data was neither asked for nor accepted. rustls' own keys tell.
        tls.zero_rtt_keys()?;
        let suite = self.suite()?;
        let secret = capture.take_early(suite)?;
        Some(DirectionKeys::new(suite, &secret, VersionConstants::of(self.original_version), self.backend))
    }

    /// Whether the server has accepted early data. Only a client asks, at the end of its handshake.
    pub(crate) fn early_data_accepted(&self) -> bool {
        match self.running() {
            Some(Running { tls: quic::Connection::Client(tls), .. }) => tls.is_early_data_accepted(),
            _ => false,
        }
    }

    /// Another version than the one of the client's first packets was negotiated: the keys that are still to come are
    /// made for it (RFC 9369 §4.1).
    pub(crate) fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    /// The version in which the client began, where `version` is another one.
    pub(crate) fn set_original_version(&mut self, version: Version) {
        self.original_version = version;
    }

    /// Whether TLS has resumed an earlier session; known when the Handshake keys are.
    pub(crate) fn is_resumed(&self) -> bool {
        match &self.tls {
            Tls::Running(running) => running.is_resumed(),
            Tls::Finished(finished) => finished.is_resumed,
            Tls::Over => false,
        }
    }

    /// Whether the handshake is not complete yet (RFC 9001 §4.1.1).
    pub(crate) fn is_handshaking(&self) -> bool {
        self.running().is_some_and(|running| running.tls.is_handshaking())
    }

    /// The peer's encoded transport parameters, once they have arrived and until [`Session::finish`]. They can be trusted
    /// when the handshake is complete.
    pub(crate) fn transport_parameters(&self) -> Option<&[u8]> {
        self.running()?.tls.quic_transport_parameters()
    }

    /// The application protocol that was negotiated.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        match &self.tls {
            Tls::Running(running) => running.tls.alpn_protocol(),
            Tls::Finished(finished) => finished.alpn.as_deref(),
            Tls::Over => None,
        }
    }

    /// The name that the client asked for; `None` on the client itself, which knows.
    pub(crate) fn server_name(&self) -> Option<&str> {
        match &self.tls {
            Tls::Finished(finished) => finished.server_name.as_deref(),
            Tls::Over => None,
            Tls::Running(running) => match &running.tls {
                quic::Connection::Client(_) => None,
                quic::Connection::Server(tls) => tls.server_name(),
            },
        }
    }

    /// The peer's chain of certificates, its own first.
    pub(crate) fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        match &self.tls {
            Tls::Running(running) => running.tls.peer_certificates(),
            Tls::Finished(finished) => finished.certificates.as_deref(),
            Tls::Over => None,
        }
    }

    /// The cipher suite that was negotiated.
    pub(crate) fn suite(&self) -> Option<CipherSuite> {
        match &self.tls {
            Tls::Running(running) => running.suite(),
            Tls::Finished(finished) => Some(finished.suite),
            Tls::Over => None,
        }
    }

    /// The group of the key exchange that was negotiated, such as X25519MLKEM768.
    pub(crate) fn key_exchange(&self) -> Option<rustls::NamedGroup> {
        match &self.tls {
            Tls::Running(running) => running.key_exchange(),
            Tls::Finished(finished) => finished.key_exchange,
            Tls::Over => None,
        }
    }

    /// Fills `output` with bytes that both sides derive from the handshake (RFC 5705, RFC 8446 §7.5).
    ///
    /// # Errors
    /// If the handshake is not complete, or `output` is empty or longer than 255 hashes.
    pub(crate) fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), TlsError> {
        match &self.tls {
            Tls::Running(running) => {
                let exported = running.tls.export_keying_material(output, label, context);
                exported.map(drop).map_err(|error| TlsError::from(&error))
            }
            Tls::Over => Err(TlsError::Other("the handshake was never complete".to_owned())),
            Tls::Finished(_) if output.is_empty() => {
                Err(TlsError::Other("keying material of no length".to_owned()))
            }
            Tls::Finished(finished) => {
                let exported = finished.exporter.export(label, context.unwrap_or_default(), output);
                exported
                    .map_err(|_| TlsError::Other("too much keying material, or too long a label".to_owned()))
            }
        }
    }

    /// Why [`Session::read_handshake`] failed, in words for the application.
    pub(crate) fn error(&self) -> Option<&TlsError> {
        self.error.as_deref()
    }
}

/// Refuses a provider that could negotiate a suite this crate cannot make keys for.
fn check_suites(provider: &CryptoProvider) -> Result<(), TlsError> {
    let usable =
        provider.cipher_suites.iter().filter_map(|suite| suite.tls13()).filter(|tls13| tls13.quic.is_some());
    match usable.map(|tls13| tls13.common.suite).find(|suite| CipherSuite::from_rustls(*suite).is_none()) {
        None => Ok(()),
        Some(suite) => Err(TlsError::Other(format!("the cipher suite {suite:?} is not supported"))),
    }
}

const SUITE_KNOWN: &str = "the suites were checked, and rustls negotiates one before it announces keys";
const SECRETS_LOGGED: &str = "rustls logs the secrets before it announces keys";

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("side", &self.side)
            .field("version", &self.version)
            .field("read_level", &self.read_level)
            .field("write_level", &self.write_level)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
