//! The configurations of both ends, as the core wants them.

use std::sync::Arc;
use std::time::Duration;

use fulmar_proto::{AddressValidation, ConfigError, ResetKey, SessionStore, Side};

use super::Lab;
use crate::capture::Secrets;

/// Servers that a client remembers, sessions that a server keeps, and that it gives to each connection.
const SERVERS_MAX: usize = 4;
const SESSIONS_MAX: usize = 256;
const TICKETS: usize = 2;

/// The application protocol of the lab.
const ALPN: &[u8] = b"lab";

impl Lab {
    /// The secrets of its connections go to `secrets`, if it is given.
    pub(crate) fn client_config(
        &self,
        secrets: Option<Arc<Secrets>>,
    ) -> Result<fulmar_proto::ClientConfig, ConfigError> {
        let mut tls = crate::crypto::client_config(&[ALPN]);
        if let Some(secrets) = secrets {
            tls.key_log = secrets;
        }
        let config =
            fulmar_proto::ClientConfig::new(Arc::new(tls)).with_transport(Arc::new(self.client.clone()))?;
        if !self.resume && !self.remember_paths {
            return Ok(config);
        }
        Ok(config.with_sessions(SessionStore::new(SERVERS_MAX)).with_early_data(self.early_data))
    }

    pub(crate) fn server_config(&self) -> Result<fulmar_proto::ServerConfig, ConfigError> {
        let mut tls = crate::crypto::server_config(&[ALPN]);
        if self.resume {
            tls.send_tls13_tickets = TICKETS;
        }
        let validation = AddressValidation {
            retry: self.retry,
            // Some links of the lab need many probes for a handshake.
            retry_lifetime: Duration::from_secs(3_600),
            ..AddressValidation::default()
        };
        let config = fulmar_proto::ServerConfig::new(Arc::new(tls))
            .with_transport(Arc::new(self.server.clone()))?
            .with_address_validation(validation)?;
        if !self.resume {
            return Ok(config);
        }
        Ok(config.with_stored_sessions(SESSIONS_MAX).with_early_data(self.early_data))
    }

    pub(crate) fn endpoint_config(&self, side: Side) -> fulmar_proto::EndpointConfig {
        let key = ResetKey::new(&[u8::from(side.is_server()); 32]);
        let mut config = fulmar_proto::EndpointConfig::new(key);
        if let Some(generator) = &self.cids[usize::from(side.is_server())] {
            config.cid_generator = generator.clone();
        }
        if side.is_client() {
            config.versions = self.client_versions.clone();
            config.initial_version = self.initial_version;
        } else if let Some(versions) = &self.server_versions {
            config.versions = versions.clone();
        }
        config
    }
}
