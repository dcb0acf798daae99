//! Accepting a connection without keeping its worker from the others.

use std::sync::Arc;

use fulmar_proto::{AcceptWork, Accepting, ServerConfig};

use crate::clock;
use crate::error::AcceptError;
use crate::shared::{Accepted, ConnectionRef, WorkerShared};
use crate::sync::lock;

/// The place of a connection that is being accepted. When this is dropped, also if what an application does in TLS panics, it is given
/// back, and the client is refused: it would wait for an answer until its handshake times out.
struct Place<'a> {
    worker: &'a WorkerShared,
    accepting: Option<Accepting>,
}

/// Accepts an attempt that came to `worker`. TLS makes keys and signs here, for up to a millisecond, and the application may
/// look for a certificate: the worker serves other connections meanwhile, and keeps what comes for this one. Without a `config`
/// that of the endpoint holds.
pub(super) fn accept(
    worker: &Arc<WorkerShared>,
    attempt: fulmar_proto::Incoming,
    config: Option<Arc<ServerConfig>>,
) -> Result<ConnectionRef, AcceptError> {
    let (mut place, work) = Place::begin(worker, attempt, config)?;
    let mut connection = work.run(clock::now())?;
    // Before anything is sent, so that the handshake counts as reconnaissance (RFC 9959).
    let remote = connection.remote_address().ip();
    if let Some(path) = worker.common.known_paths.take(clock::now(), remote) {
        connection.resume_congestion(path);
    }
    loop {
        let Some(accepting) = place.accepting.take() else { return Err(AcceptError::EndpointClosed) };
        let mut core = lock(&worker.core);
        let now = core.advance(clock::now());
        match core.finish_accept(accepting) {
            Ok(Accepted::More(accepting, datagrams)) => {
                place.accepting = Some(accepting);
                drop(core);
                for datagram in datagrams {
                    connection.handle_datagram(now, datagram);
                }
            }
            Ok(Accepted::Registered(handle)) => {
                let inner = worker.insert(&mut core, handle, connection);
                let close = core.close_reason();
                drop(core);
                if let Some((code, reason)) = close {
                    inner.close(code, reason);
                }
                let connection = ConnectionRef::new(inner);
                connection.mark_ready();
                return Ok(connection);
            }
            Ok(Accepted::Abandoned) => {
                // There is no worker to say so any more.
                worker.notify_if_idle(&core);
                return Err(AcceptError::EndpointClosed);
            }
            Err(error) => {
                worker.notify_if_idle(&core);
                return Err(error.into());
            }
        }
    }
}

impl<'a> Place<'a> {
    fn begin(
        worker: &'a WorkerShared,
        attempt: fulmar_proto::Incoming,
        config: Option<Arc<ServerConfig>>,
    ) -> Result<(Self, AcceptWork), AcceptError> {
        let mut core = lock(&worker.core);
        core.advance(clock::now());
        match core.begin_accept(attempt, config) {
            Ok((accepting, work)) => Ok((Self { worker, accepting: Some(accepting) }, work)),
            Err((error, attempt)) => {
                worker.refuse(&mut core, attempt);
                Err(error.into())
            }
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            let mut core = lock(&self.worker.core);
            let attempt = core.cancel_accept(accepting);
            self.worker.refuse(&mut core, attempt);
            self.worker.notify_if_idle(&core);
        }
    }
}
