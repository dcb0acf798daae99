//! Connections begin: those that this endpoint makes, and those that it accepts.

use std::net::SocketAddr;

use fulmar_base::Instant;
use fulmar_wire::{ConnectionId, PreferredAddress, Side, TransportErrorCode, Version};
use rustls::pki_types::{InvalidDnsNameError, ServerName};

use super::incoming::AddressProof;
use super::{AcceptError, ConnectError, ConnectionHandle, Endpoint, Incoming, RetryError, Route};
use crate::cids::random_cid;
use crate::config::{ClientConfig, ServerConfig};
use crate::connection::{Admission, Connection, ConnectionSetup};
use crate::datagram::{FourTuple, Transmit, TransmitBatch};
use crate::sessions::{ServerKey, SessionView};

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
        let name = ServerName::try_from(server_name)
            .map_err(|_: InvalidDnsNameError| ConnectError::InvalidServerName(server_name.to_owned()))?
            .to_owned();
        let server = ServerKey { name: server_name.to_ascii_lowercase(), port: addrs.remote.port() };
        let setup = ConnectionSetup {
            side: Side::Client,
            version: self.first_version(config, &server),
            local_cid: self.config.cid_generator.generate(&mut self.rng),
            preferred_address: None,
            // RFC 9000 §7.2: at least 8 unpredictable bytes.
            remote_cid: random_cid(&mut self.rng),
            addrs,
            endpoint: self.config.clone(),
            transport: config.transport.clone(),
            send_memory: self.send_memory.clone(),
            aead: config.aead,
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

    /// Accepts a connection. It has already seen the datagrams that arrived so far.
    ///
    /// # Errors
    /// If the endpoint is no server any more or the TLS configuration cannot be used.
    pub fn accept(
        &mut self,
        now: Instant,
        incoming: Incoming,
    ) -> Result<(ConnectionHandle, Connection), AcceptError> {
        let datagrams = self.waiting.leave(&incoming);
        let Some(server) = &self.server else {
            return Err(AcceptError::NotAServer);
        };
        let (config, issuer) = (server.config.clone(), server.issuer.clone());
        let Incoming { first, proof, .. } = incoming;
        let local_cid = self.config.cid_generator.generate(&mut self.rng);
        if local_cid.is_empty() && self.connections.is_in_use(&first.addrs.remote) {
            return Err(AcceptError::AddressInUse);
        }
        let preferred_address = self.preferred_address(&config);
        let setup = ConnectionSetup {
            side: Side::Server,
            version: first.version,
            local_cid,
            preferred_address,
            remote_cid: first.src,
            addrs: first.addrs,
            endpoint: self.config.clone(),
            transport: match proof {
                AddressProof::Known { credit } => config.transport.beginning_with(&credit),
                AddressProof::Missing | AddressProof::Retried { .. } => config.transport.clone(),
            },
            send_memory: self.send_memory.clone(),
            aead: config.aead,
            rng: self.rng.fork(),
            now,
        };
        let admission = Admission {
            first_dcid: first.dst,
            original_dcid: match proof {
                AddressProof::Retried { original_dcid } => original_dcid,
                AddressProof::Missing | AddressProof::Known { .. } => first.dst,
            },
            retry_scid: matches!(proof, AddressProof::Retried { .. }).then_some(first.dst),
            validated: proof != AddressProof::Missing,
            issuer,
        };
        let half_open = !admission.validated;
        let mut connection = Connection::server(setup, &config.tls, admission).map_err(AcceptError::Tls)?;
        let handle = self.register(&[local_cid, first.dst], first.addrs.remote);
        if let Some(preferred) = preferred_address {
            self.connections.add_cid(handle, preferred.cid);
        }
        if half_open {
            self.connections.open_half(handle);
        }
        for datagram in datagrams {
            connection.handle_datagram(now, datagram);
        }
        Ok((handle, connection))
    }

    /// Turns a connection attempt down with CONNECTION_REFUSED.
    pub fn refuse(&mut self, incoming: Incoming, reply: &mut TransmitBatch) -> Transmit {
        self.waiting.leave(&incoming);
        self.close_unasked(&incoming.first, TransportErrorCode::CONNECTION_REFUSED, reply)
    }

    /// Asks the client of an attempt to prove its address (RFC 9000 §8.1.2). The attempt is forgotten; the client
    /// comes back with another one, which is validated.
    ///
    /// # Errors
    /// If the client did so already, see [`Incoming::may_retry`].
    pub fn retry(
        &mut self,
        now: Instant,
        incoming: Incoming,
        reply: &mut TransmitBatch,
    ) -> Result<Option<Transmit>, RetryError> {
        if !incoming.may_retry() {
            return Err(RetryError(Box::new(incoming)));
        }
        self.waiting.leave(&incoming);
        match self.write_retry(now, &incoming.first, reply) {
            Route::Reply(transmit) => Ok(Some(transmit)),
            _ => Ok(None),
        }
    }

    /// Forgets a connection attempt without an answer.
    pub fn ignore(&mut self, incoming: Incoming) {
        self.waiting.leave(&incoming);
    }

    /// The address where a server would rather be, with a connection ID for it (RFC 9000 §9.6).
    fn preferred_address(&mut self, server: &ServerConfig) -> Option<PreferredAddress> {
        let (v4, v6) = server.preferred;
        if (v4.is_none() && v6.is_none()) || self.config.cid_generator.cid_len() == 0 {
            return None;
        }
        let cid = self.config.cid_generator.generate(&mut self.rng);
        Some(PreferredAddress { v4, v6, cid, reset_token: self.config.reset_token(&cid) })
    }

    /// Makes a connection known, by these connection IDs, or where there are none by the address of its peer.
    fn register(&mut self, cids: &[ConnectionId], remote: SocketAddr) -> ConnectionHandle {
        let is_nameless = self.config.cid_generator.cid_len() == 0;
        self.connections.add(cids, is_nameless.then_some(remote))
    }
}
