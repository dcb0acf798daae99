//! Connections begin that this endpoint accepts.
//!
//! It is done in three steps, because the one in the middle is expensive: TLS makes keys and signs, which takes a
//! millisecond. It needs no endpoint, so that a lock around the endpoint need not be held meanwhile.

use std::fmt;
use std::sync::Arc;

use fulmar_base::Instant;
use fulmar_wire::{ConnectionId, PathId, PreferredAddress, Side, TransportErrorCode};

use super::incoming::AddressProof;
use super::{AcceptError, ConnectionHandle, Destination, Endpoint, Incoming, RetryError, Route};
use crate::config::ServerConfig;
use crate::connection::{Admission, Connection, ConnectionSetup};
use crate::datagram::{Datagram, Transmit, TransmitBatch};

/// A place for a connection that is being accepted. It must be given back to its endpoint, by
/// [`finish_accept`](Endpoint::finish_accept) or [`cancel_accept`](Endpoint::cancel_accept). As long as it exists, datagrams
/// of the client are kept for it, as many bytes as [`max_incoming_bytes`](crate::EndpointConfig::max_incoming_bytes) beside
/// those that came before; what comes beyond is dropped, and the client repeats it.
#[derive(Debug)]
#[must_use = "it holds one of a limited number of places"]
pub struct Accepting {
    incoming: Incoming,
    /// The connection IDs by which the client will know the connection.
    local_cid: ConnectionId,
    preferred_cid: Option<ConnectionId>,
}

/// The expensive part of accepting, which needs no endpoint: what a connection is made from, and what its client has sent.
#[must_use = "without it there is no connection"]
pub struct AcceptWork {
    config: Arc<ServerConfig>,
    setup: ConnectionSetup,
    admission: Admission,
    datagrams: Vec<Datagram>,
}

/// How far accepting has come.
#[derive(Debug)]
pub enum AcceptProgress {
    /// The connection is known under this handle.
    Done(ConnectionHandle),
    /// More datagrams of the client have come meanwhile: they are to be given to the connection, in this order, and then
    /// this place to [`finish_accept`](Endpoint::finish_accept) again. The number of times is bounded, for so are their bytes.
    More(Accepting, Vec<Datagram>),
}

impl AcceptWork {
    /// Makes the connection and gives it the datagrams that have come so far: TLS answers the client.
    ///
    /// # Errors
    /// If the TLS configuration cannot be used. Then the place is to be given back by
    /// [`cancel_accept`](Endpoint::cancel_accept).
    pub fn run(self, now: Instant) -> Result<Connection, AcceptError> {
        let connection = Connection::server(self.setup, &self.config.tls, self.admission);
        let mut connection = connection.map_err(AcceptError::Tls)?;
        for datagram in self.datagrams {
            connection.handle_datagram(now, datagram);
        }
        Ok(connection)
    }
}

impl Endpoint {
    /// Accepts a connection, in one step. It has already seen the datagrams that arrived so far.
    ///
    /// # Errors
    /// If the endpoint is no server any more or the TLS configuration cannot be used.
    pub fn accept(
        &mut self,
        now: Instant,
        incoming: Incoming,
    ) -> Result<(ConnectionHandle, Connection), AcceptError> {
        let begun = self.begin_accept(now, incoming, None);
        let (mut accepting, work) = begun.map_err(|(error, incoming)| {
            self.ignore(incoming);
            error
        })?;
        let mut connection = match work.run(now) {
            Ok(connection) => connection,
            Err(error) => {
                let incoming = self.cancel_accept(accepting);
                self.ignore(incoming);
                return Err(error);
            }
        };
        loop {
            match self.finish_accept(accepting)? {
                AcceptProgress::Done(handle) => return Ok((handle, connection)),
                AcceptProgress::More(place, datagrams) => {
                    accepting = place;
                    for datagram in datagrams {
                        connection.handle_datagram(now, datagram);
                    }
                }
            }
        }
    }

    /// Begins to accept a connection: the first of three steps. The second is [`AcceptWork::run`], the third
    /// [`finish_accept`](Self::finish_accept). The connection is made by `config`, or by that of the endpoint; how addresses are
    /// validated, and the tokens for it, are the endpoint's in any case.
    ///
    /// # Errors
    /// If the endpoint is no server any more, or without connection IDs there is a connection to this address already. The
    /// attempt comes back, to be refused or ignored.
    #[expect(clippy::result_large_err, reason = "it is the attempt itself, and moved once")]
    pub fn begin_accept(
        &mut self,
        now: Instant,
        incoming: Incoming,
        config: Option<Arc<ServerConfig>>,
    ) -> Result<(Accepting, AcceptWork), (AcceptError, Incoming)> {
        let Some(server) = &self.server else {
            return Err((AcceptError::NotAServer, incoming));
        };
        let (config, issuer) = (config.unwrap_or_else(|| server.config.clone()), server.issuer.clone());
        let Incoming { first, proof, .. } = incoming;
        let local_cid = self.unused_cid();
        if local_cid.is_empty() && self.connections.is_in_use(&first.addrs.remote) {
            return Err((AcceptError::AddressInUse, incoming));
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
                AddressProof::Known { window_hint } => config.transport.beginning_with(&window_hint),
                AddressProof::Missing | AddressProof::Retried { .. } => config.transport.clone(),
            },
            memory: self.shared.memory.clone(),
            aead: config.aead,
            client_initial: self.waiting.take_keys(&incoming),
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
        let datagrams = self.waiting.take(&incoming);
        let preferred_cid = preferred_address.map(|preferred| preferred.cid);
        let accepting = Accepting { incoming, local_cid, preferred_cid };
        Ok((accepting, AcceptWork { config, setup, admission, datagrams }))
    }

    /// Makes a connection known that was accepted, unless datagrams of its client have come since it was begun.
    ///
    /// # Errors
    /// If without connection IDs another connection to this address was accepted meanwhile. The attempt is forgotten then.
    pub fn finish_accept(&mut self, accepting: Accepting) -> Result<AcceptProgress, AcceptError> {
        let datagrams = self.waiting.take_more(&accepting.incoming);
        if !datagrams.is_empty() {
            return Ok(AcceptProgress::More(accepting, datagrams));
        }
        let Accepting { incoming, local_cid, preferred_cid } = accepting;
        let half_open = self.waiting.leave(&incoming);
        let first = &incoming.first;
        if local_cid.is_empty() && self.connections.is_in_use(&first.addrs.remote) {
            return Err(AcceptError::AddressInUse);
        }
        let handle = self.register(&[local_cid, first.dst], first.addrs.remote);
        if let Some(cid) = preferred_cid {
            self.connections.add_cid(Destination { connection: handle, path: PathId::ZERO }, cid);
        }
        if let Some(half_open) = half_open {
            self.connections.open_half(handle, half_open);
        }
        Ok(AcceptProgress::Done(handle))
    }

    /// A connection is not to be accepted after all. The attempt comes back, to be refused or ignored.
    #[must_use]
    pub fn cancel_accept(&mut self, accepting: Accepting) -> Incoming {
        accepting.incoming
    }

    /// Turns a connection attempt down with CONNECTION_REFUSED.
    pub fn refuse(&mut self, incoming: Incoming, reply: &mut TransmitBatch) -> Transmit {
        self.waiting.leave(&incoming);
        self.close_statelessly(&incoming.first, TransportErrorCode::CONNECTION_REFUSED, reply)
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
        let cid = self.unused_cid();
        Some(PreferredAddress { v4, v6, cid, reset_token: self.config.reset_token(&cid) })
    }
}

impl fmt::Debug for AcceptWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcceptWork").field("addrs", &self.setup.addrs).finish_non_exhaustive()
    }
}
