//! The connection as the application holds it.

mod connecting;
mod datagrams;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::congestion::SavedPath;
use fulmar_proto::{ConnectionError, ConnectionStats, Dir, EarlyData, Side, StreamId, TlsError, VarInt};
use rustls::pki_types::CertificateDer;

use crate::shared::{ConnectionRef, index};
use crate::stream::{RecvStream, SendStream};

pub use connecting::Connecting;
pub use datagrams::DatagramOptions;

/// A QUIC connection.
///
/// It is a handle: clones refer to the same connection, and so do its streams. When the last of them is dropped, the
/// connection is closed with code 0 and data that was not acknowledged yet may be lost: await
/// [`SendStream::stopped`] or an answer of the peer before that.
#[derive(Clone)]
pub struct Connection {
    inner: ConnectionRef,
}

impl Connection {
    pub(crate) fn new(inner: ConnectionRef) -> Self {
        Self { inner }
    }

    /// Opens a bidirectional stream, waiting until the peer's limit allows it. The peer learns of the stream when something
    /// is sent on it.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.open(Dir::Bi).await?;
        Ok((self.send_stream(id), self.recv_stream(id)))
    }

    /// Opens a unidirectional stream, waiting until the peer's limit allows it.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        Ok(self.send_stream(self.open(Dir::Uni).await?))
    }

    /// Opens a bidirectional stream now, or returns `None` if the peer's limit is reached.
    ///
    /// # Errors
    /// If the connection is over.
    pub fn try_open_bi(&self) -> Result<Option<(SendStream, RecvStream)>, ConnectionError> {
        let id = self.try_open(Dir::Bi)?;
        Ok(id.map(|id| (self.send_stream(id), self.recv_stream(id))))
    }

    /// Opens a unidirectional stream now, or returns `None` if the peer's limit is reached.
    ///
    /// # Errors
    /// If the connection is over.
    pub fn try_open_uni(&self) -> Result<Option<SendStream>, ConnectionError> {
        Ok(self.try_open(Dir::Uni)?.map(|id| self.send_stream(id)))
    }

    /// Waits for the next bidirectional stream that the peer opens.
    ///
    /// Streams that nobody accepts are limited by `TransportConfig::max_concurrent_bidi_streams`: the peer has to wait then.
    ///
    /// Cancellation safe: no stream is lost.
    ///
    /// # Errors
    /// If the connection is over and all streams that arrived before were accepted.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.accept(Dir::Bi).await?;
        Ok((self.send_stream(id), self.recv_stream(id)))
    }

    /// Waits for the next unidirectional stream that the peer opens. See [`accept_bi`](Self::accept_bi).
    ///
    /// Cancellation safe: no stream is lost.
    ///
    /// # Errors
    /// If the connection is over and all streams that arrived before were accepted.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        Ok(self.recv_stream(self.accept(Dir::Uni).await?))
    }

    /// Closes the connection at once: the peer is told `code` and `reason`, whose meaning is the application's; what was
    /// not delivered yet may be lost on both sides, and operations fail with [`ConnectionError::LocallyClosed`]. Does nothing if
    /// the connection is over already.
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
            let connected = self.inner.inner().changed.connected.notified();
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
            let closed = self.inner.inner().changed.closed.notified();
            if let Some(error) = self.close_reason() {
                return error;
            }
            closed.await;
        }
    }

    /// Why the connection is over, or `None` while it is not.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.inner.lock().error.clone()
    }

    /// The figures of the connection.
    pub fn stats(&self) -> ConnectionStats {
        self.inner.lock().proto.stats()
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
            let changed = self.inner.inner().changed.observed_address.notified();
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

    fn try_open(&self, dir: Dir) -> Result<Option<StreamId>, ConnectionError> {
        let mut state = self.inner.lock();
        state.check()?;
        let id = state.proto.streams().open(dir);
        // Where the limit was reached, the peer is told so (STREAMS_BLOCKED, RFC 9000 §19.14).
        self.inner.release(state);
        Ok(id)
    }

    async fn open(&self, dir: Dir) -> Result<StreamId, ConnectionError> {
        loop {
            let available = self.inner.inner().changed.open[index(dir)].notified();
            if let Some(id) = self.try_open(dir)? {
                return Ok(id);
            }
            available.await;
        }
    }

    async fn accept(&self, dir: Dir) -> Result<StreamId, ConnectionError> {
        loop {
            let opened = self.inner.inner().changed.accept[index(dir)].notified();
            {
                let mut state = self.inner.lock();
                if let Some(id) = state.proto.streams().accept(dir) {
                    self.inner.release(state);
                    return Ok(id);
                }
                state.check()?;
            }
            opened.await;
        }
    }

    fn send_stream(&self, id: StreamId) -> SendStream {
        SendStream::new(self.inner.clone(), id)
    }

    fn recv_stream(&self, id: StreamId) -> RecvStream {
        RecvStream::new(self.inner.clone(), id)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("stable_id", &self.stable_id()).finish_non_exhaustive()
    }
}
