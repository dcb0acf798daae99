//! The configuration of clients and of servers.

use std::net::{SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

use super::{AddressValidation, ConfigError, TransportConfig};

use crate::congestion::SavedPath;
use crate::crypto::{AeadBackend, StoredSessions, TokenKeys, sealed_tickets};
use crate::sessions::SessionStore;

/// How a client makes connections.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    pub(crate) tls: Arc<rustls::ClientConfig>,
    pub(crate) transport: Arc<TransportConfig>,
    pub(crate) aead: AeadBackend,
    pub(crate) saved_path: Option<SavedPath>,
    pub(crate) sessions: Option<Arc<SessionStore>>,
    pub(crate) early_data: bool,
}

impl ClientConfig {
    /// Connections with this TLS configuration, which must allow TLS 1.3 and name at least one ALPN protocol
    /// that the server knows.
    pub fn new(tls: Arc<rustls::ClientConfig>) -> Self {
        let aead = AeadBackend::default();
        Self { tls, transport: Arc::default(), aead, saved_path: None, sessions: None, early_data: false }
    }

    /// The transport configuration.
    pub fn transport(&self) -> &Arc<TransportConfig> {
        &self.transport
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

    /// What servers are remembered in.
    pub fn sessions(&self) -> Option<&Arc<SessionStore>> {
        self.sessions.as_ref()
    }

    /// Offers early data (0-RTT) to servers with which a session can be resumed: what the application sends before the
    /// handshake is complete leaves with the first packets. An attacker can record it and send it to the server again, so
    /// nothing must be sent so early that does harm when it arrives twice (RFC 9001 §9.2). Needs a session store.
    #[must_use]
    pub fn with_early_data(mut self, early_data: bool) -> Self {
        self.early_data = early_data;
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

    /// Takes early data (0-RTT) of clients that resume a session, or takes it no more. A session is kept in the memory of
    /// this server, serves one connection, and takes early data only within a minute of when its client says it does, so
    /// that early data which somebody has recorded is not taken a second time by this server (RFC 8446 §8.1, §8.3). The
    /// application still has to expect that it was sent to other servers as well.
    #[must_use]
    pub fn with_early_data(mut self, early_data: bool) -> Self {
        let tls = Arc::make_mut(&mut self.tls);
        tls.max_early_data_size = if early_data { u32::MAX } else { 0 };
        self
    }

    /// Keeps up to `sessions_max` TLS sessions in memory, for clients that resume; the oldest goes first. Without this the
    /// store of the TLS configuration is used, by default that of rustls for 256 sessions, which searches all of them
    /// whenever one is resumed.
    #[must_use]
    pub fn with_stored_sessions(mut self, sessions_max: usize) -> Self {
        let tls = Arc::make_mut(&mut self.tls);
        tls.session_storage = StoredSessions::new(sessions_max);
        self
    }

    /// Gives TLS sessions to the clients as sealed tickets and keeps none. Servers with the same keys resume each
    /// other's sessions; none of them takes early data, as nobody could tell that a ticket was used before.
    #[must_use]
    pub fn with_sealed_tickets(mut self, keys: TokenKeys) -> Self {
        let tls = Arc::make_mut(&mut self.tls);
        tls.ticketer = sealed_tickets(keys, tls.crypto_provider().secure_random);
        tls.max_early_data_size = 0;
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
