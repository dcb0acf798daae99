//! How connections of a client and of a server are made.

use std::net::{SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

use super::{AddressValidation, ConfigError, TransportConfig};
use crate::congestion::SavedPath;
use crate::crypto::AeadBackend;
use crate::sessions::SessionStore;

/// How a client makes connections.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    pub(crate) tls: Arc<rustls::ClientConfig>,
    pub(crate) transport: Arc<TransportConfig>,
    pub(crate) aead: AeadBackend,
    pub(crate) saved_path: Option<SavedPath>,
    pub(crate) sessions: Option<Arc<SessionStore>>,
}

impl ClientConfig {
    /// Connections with this TLS configuration, which must allow TLS 1.3 and name at least one ALPN protocol
    /// that the server knows.
    pub fn new(tls: Arc<rustls::ClientConfig>) -> Self {
        let aead = AeadBackend::default();
        Self { tls, transport: Arc::default(), aead, saved_path: None, sessions: None }
    }

    /// Uses another transport configuration.
    ///
    /// # Errors
    /// The first field that makes no sense.
    pub fn with_transport(mut self, transport: Arc<TransportConfig>) -> Result<Self, ConfigError> {
        transport.validate()?;
        self.transport = transport;
        Ok(self)
    }

    /// Lets the next connection start with what an earlier one to the same peer knew of the path
    /// ([`Connection::congestion_parameters`](crate::Connection::congestion_parameters), RFC 9959). A set of parameters
    /// is for one connection: a configuration that has one should be used once.
    #[must_use]
    pub fn with_saved_path(mut self, saved: SavedPath) -> Self {
        self.saved_path = Some(saved);
        self
    }

    /// Remembers servers, so that later connections begin faster. Without a store nothing is remembered, whatever
    /// the TLS configuration says.
    #[must_use]
    pub fn with_sessions(mut self, sessions: Arc<SessionStore>) -> Self {
        self.sessions = Some(sessions);
        self
    }

    /// Uses another implementation of packet protection.
    #[must_use]
    pub fn with_aead(mut self, aead: AeadBackend) -> Self {
        self.aead = aead;
        self
    }
}

/// How a server takes connections.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub(crate) tls: Arc<rustls::ServerConfig>,
    pub(crate) transport: Arc<TransportConfig>,
    pub(crate) aead: AeadBackend,
    /// Where clients are asked to move to.
    pub(crate) preferred: (Option<SocketAddrV4>, Option<SocketAddrV6>),
    pub(crate) validation: AddressValidation,
}

impl ServerConfig {
    /// Connections with this TLS configuration, which must allow TLS 1.3.
    pub fn new(tls: Arc<rustls::ServerConfig>) -> Self {
        Self {
            tls,
            transport: Arc::default(),
            aead: AeadBackend::default(),
            preferred: (None, None),
            validation: AddressValidation::default(),
        }
    }

    /// Uses another transport configuration.
    ///
    /// # Errors
    /// The first field that makes no sense.
    pub fn with_transport(mut self, transport: Arc<TransportConfig>) -> Result<Self, ConfigError> {
        transport.validate()?;
        self.transport = transport;
        Ok(self)
    }

    /// Uses another implementation of packet protection.
    #[must_use]
    pub fn with_aead(mut self, aead: AeadBackend) -> Self {
        self.aead = aead;
        self
    }

    /// Asks clients to move to another address of this server after the handshake, of which they choose one by its
    /// family (RFC 9000 §9.6): from an address that many servers share, to one of this server alone. Datagrams to
    /// these addresses must reach the same endpoint.
    #[must_use]
    pub fn with_preferred_address(mut self, v4: Option<SocketAddrV4>, v6: Option<SocketAddrV6>) -> Self {
        self.preferred = (v4, v6);
        self
    }

    /// Validates addresses in another way: when clients are sent a Retry, which tokens are accepted.
    ///
    /// # Errors
    /// The first field that makes no sense.
    pub fn with_address_validation(mut self, validation: AddressValidation) -> Result<Self, ConfigError> {
        validation.validate()?;
        self.validation = validation;
        Ok(self)
    }
}
