//! TLS of a connection, and what is kept of it once it is over.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::quic;

use super::super::aead::CipherSuite;
use super::super::hkdf::Secret;
use super::super::secret_capture::SecretCapture;

/// TLS, or what is left of it.
pub(super) enum Tls {
    Running(Box<Running>),
    /// On a server that has said all it has to say. What a client could still say is nothing, so only what was agreed is kept.
    Finished(Box<Finished>),
    /// The connection ended before anything was agreed.
    Over,
}

pub(super) struct Running {
    pub(super) tls: quic::Connection,
    pub(super) capture: Arc<SecretCapture>,
}

/// What was agreed.
pub(super) struct Finished {
    pub(super) alpn: Option<Box<[u8]>>,
    pub(super) server_name: Option<Box<str>>,
    pub(super) certificates: Option<Vec<CertificateDer<'static>>>,
    pub(super) suite: CipherSuite,
    pub(super) key_exchange: Option<rustls::NamedGroup>,
    pub(super) is_resumed: bool,
    pub(super) exporter: Secret,
}

impl Finished {
    /// What `running` has agreed, once it is complete.
    pub(super) fn of(running: &Running) -> Option<Self> {
        let Running { tls, capture } = running;
        let server_name = match tls {
            quic::Connection::Client(_) => None,
            quic::Connection::Server(tls) => tls.server_name().map(Box::from),
        };
        let suite = running.suite()?;
        Some(Self {
            alpn: tls.alpn_protocol().map(Box::from),
            server_name,
            certificates: tls.peer_certificates().map(<[_]>::to_vec),
            suite,
            key_exchange: running.key_exchange(),
            is_resumed: running.is_resumed(),
            exporter: capture.take_exporter(suite)?,
        })
    }
}

impl Running {
    pub(super) fn suite(&self) -> Option<CipherSuite> {
        CipherSuite::from_rustls(self.tls.negotiated_cipher_suite()?.suite())
    }

    pub(super) fn key_exchange(&self) -> Option<rustls::NamedGroup> {
        self.tls.negotiated_key_exchange_group().map(|group| group.name())
    }

    pub(super) fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(rustls::HandshakeKind::Resumed)
    }
}
