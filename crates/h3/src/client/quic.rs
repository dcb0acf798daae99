//! Connections of QUIC to a server.

use std::net::SocketAddr;
use std::sync::Arc;

use fulmar::{ClientConfig, Connecting, Endpoint, Local, happy_eyeballs};
use fulmar_h3_proto::Config;

use super::closing::Closing;
use super::connection::ClientConnection;
use crate::error::Error;

/// What connections of QUIC begin with.
#[derive(Debug, Clone)]
pub(super) struct Quic {
    /// Why there is none, where this machine gives no UDP socket, or none is wanted.
    pub(super) endpoint: Result<Endpoint, Arc<str>>,
    /// That of the endpoint if there is none.
    pub(super) config: Option<ClientConfig>,
    /// From where connections begin, and have paths.
    pub(super) locals: Vec<Local>,
    pub(super) http3: Arc<Config>,
    pub(super) closing: Arc<Closing>,
}

impl Quic {
    /// Connects to the first of these addresses that answers and proves to be `name`.
    pub(super) async fn connect(
        &self,
        name: &str,
        addresses: &[SocketAddr],
    ) -> Result<ClientConnection, Error> {
        let from = |address: &SocketAddr| {
            let address = *address;
            self.locals.iter().map(move |local| (*local, address))
        };
        let pairs: Vec<(Local, SocketAddr)> = addresses.iter().flat_map(from).collect();
        let quic = happy_eyeballs::first(&pairs, |pair| {
            let connecting = self.start(self.config.clone(), name, pair)?;
            Ok(async move { Ok(connecting.await?) })
        });
        Ok(self.begin(quic.await.map_err(Error::of_attempts)?))
    }

    fn begin(&self, quic: fulmar::Connection) -> ClientConnection {
        if let Ok(endpoint) = &self.endpoint
            && self.locals.len() > 1
        {
            endpoint.keep_paths(&quic, &self.locals);
        }
        let connection = ClientConnection::new(quic, Arc::clone(&self.http3));
        self.closing.add(connection.shared());
        connection
    }

    /// Whether something is remembered of a server with which early data can be sent to it.
    pub(super) fn has_session(&self, name: &str, port: u16) -> bool {
        let sessions = self.config.as_ref().and_then(ClientConfig::sessions);
        sessions.is_some_and(|sessions| sessions.has_session(name, port))
    }

    /// Begins a connection on which early data can be sent (0-RTT); `None` if that is not possible after all.
    pub(super) fn connect_early(&self, name: &str, address: SocketAddr) -> Option<ClientConnection> {
        let config = self.config.clone()?.with_early_data(true);
        let start = |local: &Local| self.start(Some(config.clone()), name, (*local, address)).ok();
        let quic = self.locals.iter().find_map(start)?.into_0rtt().ok()?;
        Some(self.begin(quic))
    }

    fn start(
        &self,
        config: Option<ClientConfig>,
        name: &str,
        (local, address): (Local, SocketAddr),
    ) -> Result<Connecting, Error> {
        let endpoint = self.endpoint.as_ref().map_err(|why| Error::Setup(why.as_ref().into()))?;
        Ok(match config {
            Some(config) => endpoint.connect_from(config, local, address, name)?,
            None => endpoint.connect(address, name)?,
        })
    }
}
