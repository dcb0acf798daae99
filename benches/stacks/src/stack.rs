//! What every stack does for a benchmark: connections, streams, datagrams. One file per stack below.

pub(crate) mod fulmar;
pub(crate) mod quinn;
pub(crate) mod s2n;
pub(crate) mod tcp;

use std::net::SocketAddr;

use bytes::Bytes;

use crate::failure::Result;
use crate::options::Transport;

/// A stack: how it listens and how it dials.
pub(crate) trait Stack: 'static {
    type Listener: Listener;
    type Dialer: Dialer;

    /// Whether requests come one after the other on the one stream of a connection, instead of on a stream each.
    const REUSES_STREAM: bool = false;

    /// Listens on a port of loopback that the system chooses.
    fn listen(transport: &Transport) -> Result<Self::Listener>;

    /// A client of `server`.
    fn dialer(transport: &Transport, server: SocketAddr) -> Result<Self::Dialer>;
}

/// A server's socket.
pub(crate) trait Listener: Send + 'static {
    type Pending: Send + 'static;
    type Connection: Connection;

    fn address(&self) -> Result<SocketAddr>;

    /// The next attempt; its handshake goes on in [`establish`](Self::establish), beside others.
    fn accept(&mut self) -> impl Future<Output = Option<Self::Pending>> + Send;

    fn establish(pending: Self::Pending) -> impl Future<Output = Result<Self::Connection>> + Send;
}

/// A client's socket.
pub(crate) trait Dialer: Clone + Send + Sync + 'static {
    type Connection: Connection;

    /// A connection whose handshake is complete.
    fn dial(&self) -> impl Future<Output = Result<Self::Connection>> + Send;

    /// A connection that sends before its handshake is complete.
    fn dial_early(&self) -> impl Future<Output = Result<Self::Connection>> + Send;
}

/// A connection, or a handle to it.
pub(crate) trait Connection: Clone + Send + Sync + 'static {
    type Sender: Sender;
    type Receiver: Receiver;

    fn open(&self) -> impl Future<Output = Result<(Self::Sender, Self::Receiver)>> + Send;

    /// The next stream of the peer; `None` when the connection is over.
    fn accept(&self) -> impl Future<Output = Option<(Self::Sender, Self::Receiver)>> + Send;

    /// Sends a datagram as soon as there is room for it.
    fn send_datagram(&self, datagram: Bytes) -> impl Future<Output = Result<()>> + Send;

    fn receive_datagram(&self) -> impl Future<Output = Result<Bytes>> + Send;

    fn close(&self);
}

/// The sending half of a stream.
pub(crate) trait Sender: Send + 'static {
    /// Writes all of `bytes`.
    fn write(&mut self, bytes: Bytes) -> impl Future<Output = Result<()>> + Send;

    /// Says that nothing follows.
    fn finish(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// The receiving half of a stream.
pub(crate) trait Receiver: Send + 'static {
    /// Bytes as they come, at least one; `None` at the end.
    fn read(&mut self) -> impl Future<Output = Result<Option<Bytes>>> + Send;
}
