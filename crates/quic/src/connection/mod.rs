//! The connection as the application holds it.

mod connecting;
mod datagrams;
mod opening;
mod paths;
mod weak;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::congestion::SavedPath;
use fulmar_proto::{ConnectionError, ConnectionStats, EarlyData, Side, TlsError, VarInt};
use rustls::pki_types::CertificateDer;

use crate::clock;
use crate::log::ApplicationEvent;
use crate::shared::{Awaited, ConnectionRef, Ticket};

pub use crate::shared::DropCodes;
pub use connecting::Connecting;
pub use datagrams::DatagramOptions;
pub use paths::{Local, Path};
pub use weak::WeakConnection;

/// A QUIC connection.
///
/// It is a handle: clones refer to the same connection, and so do its streams. When the last of them is dropped, the
/// connection is closed with code 0 (see [`Connection::set_drop_codes`]) and data that was not acknowledged yet may be lost:
/// await [`SendStream::stopped`](crate::SendStream::stopped) or an answer of the peer before that.
///
/// The futures of the async methods borrow the handle and are independent of each other. The `poll_*` methods are for
/// hand-written futures and adapters: a handle remembers for each of them the task that has polled last, and a clone
/// remembers its own.
pub struct Connection {
    inner: ConnectionRef,
    /// The places of this handle among those who wait. Most handles never poll, and are moved around.
    tickets: Option<Box<Tickets>>,
}

/// By [`Awaited::index`].
type Tickets = [Option<Ticket>; Awaited::ALL.len()];

impl Connection {
    pub(crate) fn new(inner: ConnectionRef) -> Self {
        Self { inner, tickets: None }
    }

    /// Sets what the peer is told by streams and connections that are dropped before their end. It holds for all handles of
    /// the connection, from now on. A stream can have a code of its own:
    /// [`SendStream::set_drop_code`](crate::SendStream::set_drop_code),
    /// [`RecvStream::set_drop_code`](crate::RecvStream::set_drop_code).
    pub fn set_drop_codes(&self, codes: DropCodes) {
        self.inner.lock().drop_codes = codes;
    }

    /// A reference to the connection that does not keep it open, for tables of connections and for tasks that watch them.
    pub fn downgrade(&self) -> WeakConnection {
        WeakConnection::new(&self.inner)
    }

    /// Closes the connection at once: the peer is told `code` and `reason`, whose meaning is the application's, of the reason 256
    /// bytes at most. What was not delivered yet may be lost on both sides, and operations fail with
    /// [`ConnectionError::LocallyClosed`]. Does nothing if the connection is over already.
    pub fn close(&self, code: VarInt, reason: &[u8]) {
        self.inner.inner().close(code, Bytes::copy_from_slice(reason));
    }

    /// Waits until the handshake is complete: from then on nothing that is sent or received is replayable, and the peer has
    /// proven who it is. Only connections from [`Connecting::into_0rtt`] have to ask.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// If the connection ended first.
    pub async fn connected(&self) -> Result<(), ConnectionError> {
        loop {
            let connected = self.inner.inner().changed().connected.notified();
            {
                let state = self.inner.lock();
                state.check()?;
                if state.is_connected {
                    return Ok(());
                }
            }
            connected.await;
        }
    }

    /// Waits until the handshake is confirmed (RFC 9001 §4.1.2): the peer is known to have completed it, too, and more
    /// paths can be opened. A server's is with its completion, a client's about a round trip later, when HANDSHAKE_DONE comes.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// If the connection ended first.
    pub async fn confirmed(&self) -> Result<(), ConnectionError> {
        loop {
            let confirmed = self.inner.inner().changed().connected.notified();
            {
                let state = self.inner.lock();
                state.check()?;
                if state.proto.is_confirmed() {
                    return Ok(());
                }
            }
            confirmed.await;
        }
    }

    /// What became of early data (0-RTT).
    pub fn early_data(&self) -> EarlyData {
        self.inner.lock().proto.early_data()
    }

    /// Changes the keys of the connection as soon as the protocol allows it (RFC 9001 §6). This happens by itself in time;
    /// see also `TransportConfig::key_update`.
    pub fn update_keys(&self) {
        let mut state = self.inner.lock();
        state.proto.update_keys();
        self.inner.release(state);
    }

    /// Waits until the connection is over, and says why.
    ///
    /// Cancellation safe.
    pub async fn closed(&self) -> ConnectionError {
        loop {
            let closed = self.inner.inner().changed().closed.notified();
            if let Some(error) = self.close_reason() {
                return error;
            }
            closed.await;
        }
    }

    /// Waits until nothing is left of the connection: the peer has closed it, or it is over and was remembered for three probe timeouts, so
    /// that the peer surely learns of it (RFC 9000 §10.2). [`Endpoint::wait_idle`](crate::Endpoint::wait_idle) waits for all of an endpoint.
    ///
    /// Cancellation safe.
    pub async fn drained(&self) {
        loop {
            let forgotten = self.inner.inner().changed().closed.notified();
            if self.inner.lock().is_drained {
                return;
            }
            forgotten.await;
        }
    }

    /// Waits until the peer has acknowledged all streams that were finished, those that are finished meanwhile included. What
    /// [`SendStream::reset_at`](crate::SendStream::reset_at) has left of a stream counts, too.
    ///
    /// Where many streams are written this is cheaper than to wait for each of them
    /// ([`SendStream::stopped`](crate::SendStream::stopped)). Cancellation safe.
    ///
    /// # Errors
    /// If the connection ends first.
    pub async fn delivered(&self) -> Result<(), ConnectionError> {
        loop {
            let ended = self.inner.inner().changed().stream_ended.notified();
            if self.is_delivered() {
                return Ok(());
            }
            self.inner.lock().check()?;
            ended.await;
        }
    }

    /// Whether the peer has acknowledged all streams that were finished: see [`delivered`](Self::delivered).
    pub fn is_delivered(&self) -> bool {
        self.inner.lock().proto.streams().is_delivered()
    }

    /// When datagrams of the peer were last received for this connection. Whatever was read of it so far had come by then: what this
    /// program has found out since is no older than any request that it has read.
    pub fn received_at(&self) -> std::time::Instant {
        clock::std_time(self.inner.lock().received_at)
    }

    /// Why the connection is over, or `None` while it is not.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.inner.lock().error.clone()
    }

    /// The figures of the connection.
    pub fn stats(&self) -> ConnectionStats {
        self.inner.lock().proto.stats()
    }

    /// Whether somebody takes what is noted by [`log`](Self::log): the endpoint has a [`LogSink`](crate::LogSink), and
    /// `TransportConfig::log_entries` asks for a log. It stays as it is.
    pub fn is_logged(&self) -> bool {
        self.inner.lock().application_log.is_some()
    }

    /// Notes something of the protocol above QUIC beside what the connection notes itself, for the
    /// [`LogSink`](crate::LogSink) of the endpoint. Does nothing where the connection is not
    /// [logged](Self::is_logged), or its log has ended.
    pub fn log(&self, event: impl ApplicationEvent) {
        let mut state = self.inner.lock();
        if state.application_log.is_none() || state.is_drained {
            return;
        }
        let now = state.advance(clock::now());
        if let Some(log) = &mut state.application_log {
            log.add(now, Arc::new(event));
        }
    }

    /// What this connection has learned of its path, for a later one to the same peer (RFC 9959): see
    /// [`ClientConfig::with_saved_path`](crate::ClientConfig::with_saved_path) and [`Connection::resume_congestion`].
    /// `None` as long as nothing is known that is worth remembering.
    pub fn congestion_parameters(&self) -> Option<SavedPath> {
        self.inner.lock().proto.congestion_parameters()
    }

    /// Starts with what an earlier connection to the same peer knew of the path (RFC 9959). For servers; the sooner it
    /// is called the better. What belongs to another path, or comes after losses, is not used.
    pub fn resume_congestion(&self, saved: SavedPath) {
        self.inner.lock().proto.resume_congestion(saved);
    }

    /// The smoothed round-trip time (RFC 9002 §5.3).
    pub fn rtt(&self) -> Duration {
        self.inner.lock().proto.rtt()
    }

    /// The peer's address. It changes when the peer migrates.
    pub fn remote_address(&self) -> SocketAddr {
        self.inner.lock().proto.remote_address()
    }

    /// The local address that the peer talks to, where the platform tells.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.inner.lock().proto.local_ip()
    }

    /// The address of this end as the peer sees it, which behind a NAT is another one than that of the socket. `None` until the peer
    /// has told, or if it was not asked to: see `TransportConfig::address_discovery`. The peer may be mistaken, or lie.
    pub fn observed_address(&self) -> Option<SocketAddr> {
        self.inner.lock().proto.observed_address()
    }

    /// Waits until the peer sees this end at another address than `known`, and returns that: the first one for `None`, and later
    /// that of a client that has moved, or whose NAT has forgotten it.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn observed_address_changed(
        &self,
        known: Option<SocketAddr>,
    ) -> Result<SocketAddr, ConnectionError> {
        loop {
            let changed = self.inner.inner().changed().paths.notified();
            {
                let state = self.inner.lock();
                state.check()?;
                let observed = state.proto.observed_address();
                if let Some(address) = observed.filter(|_| observed != known) {
                    return Ok(address);
                }
            }
            changed.await;
        }
    }

    /// Which role this end has.
    pub fn side(&self) -> Side {
        self.inner.lock().proto.side()
    }

    /// The application protocol that was agreed upon (ALPN).
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.inner.lock().proto.alpn().map(<[u8]>::to_vec)
    }

    /// The server name that the client asked for (SNI).
    pub fn server_name(&self) -> Option<String> {
        self.inner.lock().proto.server_name().map(str::to_owned)
    }

    /// The peer's certificate chain, its own certificate first, if it showed one.
    pub fn peer_certificates(&self) -> Option<Vec<CertificateDer<'static>>> {
        self.inner.lock().proto.peer_certificates().map(<[_]>::to_vec)
    }

    /// How long the handshake took.
    pub fn handshake_time(&self) -> Option<Duration> {
        self.inner.lock().proto.stats().handshake_duration
    }

    /// Fills `output` with bytes that only the two ends of this connection can know (RFC 8446 §7.5).
    ///
    /// # Errors
    /// If `output` is longer than TLS can export.
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), TlsError> {
        self.inner.lock().proto.export_keying_material(output, label, context)
    }

    /// A number that no other connection of this endpoint has or had.
    pub fn stable_id(&self) -> u64 {
        self.inner.inner().id()
    }
}

impl Clone for Connection {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(mut tickets) = self.tickets.take() {
            let mut state = self.inner.lock();
            for awaited in Awaited::ALL {
                state.queues.leave(awaited, &mut tickets[awaited.index()]);
            }
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("stable_id", &self.stable_id()).finish_non_exhaustive()
    }
}
