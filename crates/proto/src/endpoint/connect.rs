//! Connections begin that this endpoint makes.

use std::net::SocketAddr;

use fulmar_base::Instant;
use fulmar_wire::{ConnectionId, Side, Version};
use rustls::pki_types::{InvalidDnsNameError, ServerName};

use super::{ConnectError, ConnectionHandle, Endpoint};
use crate::cids::random_cid;
use crate::config::ClientConfig;
use crate::connection::{Connection, ConnectionSetup};
use crate::datagram::FourTuple;
use crate::sessions::{ServerKey, SessionView};

/// So many connection IDs are made at most to find one that is not in use. Of those of eight bytes the first one is; short ones are for
/// so few connections that not all of several are in use.
const CID_TRIES: usize = 8;

impl Endpoint {
    /// Starts a connection to a server.
    ///
    /// # Errors
    /// If the name is not valid or the TLS configuration cannot be used.
    pub fn connect(
        &mut self,
        now: Instant,
        config: &ClientConfig,
        addrs: FourTuple,
        server_name: &str,
    ) -> Result<(ConnectionHandle, Connection), ConnectError> {
        self.handle_timeout(now);
        let name = ServerName::try_from(server_name)
            .map_err(|_: InvalidDnsNameError| ConnectError::InvalidServerName(server_name.to_owned()))?
            .to_owned();
        let server = ServerKey { name: server_name.to_ascii_lowercase(), port: addrs.remote.port() };
        let setup = ConnectionSetup {
            side: Side::Client,
            version: self.first_version(config, &server),
            local_cid: self.unused_cid(),
            preferred_address: None,
            // RFC 9000 §7.2: at least 8 unpredictable bytes.
            remote_cid: random_cid(&mut self.rng),
            addrs,
            endpoint: self.config.clone(),
            transport: config.transport.clone(),
            memory: self.shared.memory.clone(),
            aead: config.aead,
            client_initial: None,
            rng: self.rng.fork(),
            now,
        };
        let local_cid = setup.local_cid;
        if local_cid.is_empty() && self.connections.is_in_use(&addrs.remote) {
            return Err(ConnectError::AddressInUse);
        }
        let sessions = config
            .sessions
            .clone()
            .map(|store| SessionView::new(store, server, self.config.epoch, setup.version));
        let mut connection = Connection::client(setup, &config.tls, name, sessions, config.early_data)
            .map_err(ConnectError::Tls)?;
        match &config.saved_path {
            Some(saved) => connection.resume_congestion(saved.clone()),
            None => connection.resume_remembered(now),
        }
        Ok((self.register(&[local_cid], addrs.remote), connection))
    }

    /// The version of a client's first packets: one in which a session can be resumed, or else the configured one.
    fn first_version(&self, config: &ClientConfig, server: &ServerKey) -> Version {
        let versions = &self.config.versions;
        let resumed = config.sessions.as_ref().and_then(|store| store.version_of_session(server, versions));
        let first = resumed.or(self.config.initial_version).or(versions.first().copied());
        first.unwrap_or(Version::V1)
    }

    /// A connection ID that stands for nothing yet.
    pub(super) fn unused_cid(&mut self) -> ConnectionId {
        let Self { config, rng, connections, closed, waiting, .. } = self;
        let is_used = |cid: &ConnectionId| connections.knows(cid) || closed.knows(cid) || waiting.knows(cid);
        let mut cid = config.cid_generator.generate(rng);
        for _ in 1..CID_TRIES {
            if !is_used(&cid) {
                break;
            }
            cid = config.cid_generator.generate(rng);
        }
        cid
    }

    /// Makes a connection known, by these connection IDs, or where there are none by the address of its peer.
    pub(super) fn register(&mut self, cids: &[ConnectionId], remote: SocketAddr) -> ConnectionHandle {
        let is_nameless = self.config.cid_generator.cid_len() == 0;
        self.connections.add(cids, is_nameless.then_some(remote))
    }
}
