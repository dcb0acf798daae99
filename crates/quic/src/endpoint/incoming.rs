//! Connection attempts, before they are accepted.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use fulmar_proto::{ServerConfig, TransmitBatch};

use super::Endpoint;
use super::accept::accept;
use crate::clock;
use crate::connection::{Connecting, Connection};
use crate::error::AcceptError;
use crate::shared::WorkerShared;
use crate::sync::lock;

/// A peer that wants to connect. Nothing was answered yet, and nothing is known of the peer but its address, which it only
/// claims unless [`is_validated`](Self::is_validated) says otherwise.
///
/// Awaiting it accepts. Dropping it refuses.
#[must_use = "dropping an incoming connection refuses it"]
pub struct Incoming(
    /// Programs move it around, into tasks that keep the room of the largest thing they ever hold.
    Box<Attempt>,
);

struct Attempt {
    /// Keeps the endpoint alive.
    _endpoint: Endpoint,
    /// The worker that the attempt came to, and that the connection will stay with.
    worker: Arc<WorkerShared>,
    /// `None` only once it was decided upon.
    incoming: Option<fulmar_proto::Incoming>,
    remote: SocketAddr,
    local_ip: Option<IpAddr>,
}

impl Incoming {
    pub(super) fn new(
        endpoint: Endpoint,
        worker: Arc<WorkerShared>,
        incoming: fulmar_proto::Incoming,
    ) -> Self {
        let addrs = incoming.addrs();
        Self(Box::new(Attempt {
            _endpoint: endpoint,
            worker,
            incoming: Some(incoming),
            remote: addrs.remote,
            local_ip: addrs.local_ip,
        }))
    }

    /// The runtime in which the worker lives that the attempt came to, and that the connection will stay with. Where an endpoint has
    /// several ([`EndpointBuilder::runtimes`](super::EndpointBuilder::runtimes)), a task that accepts and serves the connection is best
    /// spawned there.
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        &self.0.worker.runtime
    }

    /// Accepts: the handshake begins, with up to a millisecond of cryptography in this task. The endpoint serves other
    /// connections meanwhile.
    ///
    /// # Errors
    /// If the endpoint was closed or is no server any more.
    pub fn accept(self) -> Result<Connecting, AcceptError> {
        self.accept_by(None)
    }

    /// Accepts with another configuration than the endpoint's: other certificates, protocols or limits for this client, chosen by
    /// what is known of it so far. How addresses are validated, and the tokens for that, stay those of the endpoint.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn accept_with(self, config: Arc<ServerConfig>) -> Result<Connecting, AcceptError> {
        self.accept_by(Some(config))
    }

    fn accept_by(mut self, config: Option<Arc<ServerConfig>>) -> Result<Connecting, AcceptError> {
        if lock(&self.0.worker.core).is_closed() {
            // Dropped here, the attempt is refused.
            return Err(AcceptError::EndpointClosed);
        }
        let Some(attempt) = self.0.incoming.take() else { return Err(AcceptError::EndpointClosed) };
        accept(&self.0.worker, attempt, config).map(Connecting::new)
    }

    /// Turns the peer away with CONNECTION_REFUSED.
    pub fn refuse(mut self) {
        self.refuse_now();
    }

    /// Asks the peer to prove its address (RFC 9000 §8.1.2). It comes back with another attempt, which is validated.
    ///
    /// # Errors
    /// If the peer has followed such a request already: then the attempt is given back.
    pub fn retry(mut self) -> Result<(), Box<Self>> {
        if !self.0.incoming.as_ref().is_some_and(fulmar_proto::Incoming::may_retry) {
            return Err(Box::new(self));
        }
        let Some(attempt) = self.0.incoming.take() else { return Ok(()) };
        let mut reply = TransmitBatch::new(1);
        let mut core = lock(&self.0.worker.core);
        let now = core.advance(clock::now());
        let answer = core.endpoint.retry(now, attempt, &mut reply);
        drop(core);
        if let Ok(Some(transmit)) = answer {
            self.0.worker.reply(transmit, &reply);
        }
        Ok(())
    }

    /// Whether the peer has proven that it receives what is sent to its address (RFC 9000 §8.1).
    pub fn is_validated(&self) -> bool {
        self.0.incoming.as_ref().is_some_and(fulmar_proto::Incoming::is_validated)
    }

    /// Whether [`retry`](Self::retry) is possible: a peer follows one such request.
    pub fn may_retry(&self) -> bool {
        self.0.incoming.as_ref().is_some_and(fulmar_proto::Incoming::may_retry)
    }

    /// Forgets the attempt without an answer. The peer tries again until its handshake timeout.
    pub fn ignore(mut self) {
        if let Some(attempt) = self.0.incoming.take() {
            lock(&self.0.worker.core).endpoint.ignore(attempt);
        }
    }

    /// The address that the attempt claims to come from. See [`is_validated`](Self::is_validated).
    pub fn remote_address(&self) -> SocketAddr {
        self.0.remote
    }

    /// The local address that the attempt was sent to, where the platform tells.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.0.local_ip
    }

    fn refuse_now(&mut self) {
        let Some(attempt) = self.0.incoming.take() else { return };
        let mut reply = TransmitBatch::new(1);
        let transmit = lock(&self.0.worker.core).endpoint.refuse(attempt, &mut reply);
        self.0.worker.reply(transmit, &reply);
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.refuse_now();
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("remote_address", &self.0.remote).finish_non_exhaustive()
    }
}

impl IntoFuture for Incoming {
    type Output = Result<Connection, AcceptError>;
    type IntoFuture = IncomingFuture;

    fn into_future(self) -> IncomingFuture {
        IncomingFuture(self.accept())
    }
}

/// Accepts a connection and waits for its handshake. Made by awaiting an [`Incoming`].
#[derive(Debug)]
pub struct IncomingFuture(Result<Connecting, AcceptError>);

impl Future for IncomingFuture {
    type Output = Result<Connection, AcceptError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(connecting) => Poll::Ready(Ok(ready!(Pin::new(connecting).poll(cx))?)),
            Err(error) => Poll::Ready(Err(error.clone())),
        }
    }
}
