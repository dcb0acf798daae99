//! Connections of QUIC to a server.

use std::net::SocketAddr;
use std::sync::Arc;

use fulmar::{ClientConfig, Connecting, Endpoint};
use fulmar_h3_proto::Config;

use super::connection::ClientConnection;
use super::happy_eyeballs;
use crate::error::Error;

/// What connections of QUIC begin with.
#[derive(Debug, Clone)]
pub(super) struct Quic {
    pub(super) endpoint: Endpoint,
    /// That of the endpoint if there is none.
    pub(super) config: Option<ClientConfig>,
    pub(super) http3: Arc<Config>,
}

impl Quic {
    /// Connects to the first of these addresses that answers and proves to be `name`.
    pub(super) async fn connect(
        &self,
        name: &str,
        addresses: &[SocketAddr],
    ) -> Result<ClientConnection, Error> {
        let quic = happy_eyeballs::connect(addresses, |address| {
            let connecting = self.start(self.config.clone(), name, address)?;
            Ok(async move { Ok(connecting.await?) })
        });
        Ok(ClientConnection::new(quic.await?, Arc::clone(&self.http3)))
    }

    /// Whether something is remembered of a server with which early data can be sent to it.
    pub(super) fn has_session(&self, name: &str, port: u16) -> bool {
        let sessions = self.config.as_ref().and_then(ClientConfig::sessions);
        sessions.is_some_and(|sessions| sessions.has_session(name, port))
    }

    /// Begins a connection on which early data can be sent (0-RTT); `None` if that is not possible after all.
    pub(super) fn connect_early(&self, name: &str, address: SocketAddr) -> Option<ClientConnection> {
        let config = self.config.clone()?.with_early_data(true);
        let quic = self.start(Some(config), name, address).ok()?.into_0rtt().ok()?;
        Some(ClientConnection::new(quic, Arc::clone(&self.http3)))
    }

    fn start(
        &self,
        config: Option<ClientConfig>,
        name: &str,
        address: SocketAddr,
    ) -> Result<Connecting, Error> {
        Ok(match config {
            Some(config) => self.endpoint.connect_with(config, address, name)?,
            None => self.endpoint.connect(address, name)?,
        })
    }
}
