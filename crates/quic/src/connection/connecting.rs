//! A connection whose handshake is not complete.

use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use fulmar_proto::{ConnectionError, EarlyData, Side};

use super::Connection;
use crate::shared::ConnectionRef;

/// A connection in the making: a future of the [`Connection`].
///
/// The handshake proceeds in the background. Cancellation safe: it can be polled again later. Dropping it closes the connection.
#[must_use = "dropping it closes the connection"]
pub struct Connecting {
    /// `None` only once the future is complete.
    connection: Option<ConnectionRef>,
}

impl Connecting {
    pub(crate) fn new(connection: ConnectionRef) -> Self {
        Self { connection: Some(connection) }
    }

    /// The connection before its handshake is complete, to use it at once; `Err` gives the attempt back if that is not
    /// possible.
    ///
    /// On a client it is possible where a session is resumed and `ClientConfig::with_early_data` was asked for. **What is
    /// sent before [`Connection::connected`] is replayable**: an attacker who records it can send it to the server again,
    /// so it must do no harm when it is done twice (RFC 9001 §9.2). If the server does not take it, it is sent again after
    /// the handshake, without further ado. The server has not proven yet who it is, but only the one the session was made
    /// with can read what is sent.
    ///
    /// Nothing is known of the server yet: it may be gone. Then what is sent waits, and the streams fail with
    /// [`ConnectionError::HandshakeTimedOut`] after `TransportConfig::handshake_timeout`, or with
    /// [`ConnectionError::Refused`] as soon as the network says that nobody listens, and [`ConnectionError::Unsent`] if
    /// this machine has no route. Who wants to know sooner, or to be sure
    /// that nothing is replayed, awaits [`Connection::connected`]:
    ///
    /// ```no_run
    /// # async fn example(connecting: fulmar::Connecting) -> Result<(), Box<dyn std::error::Error>> {
    /// let connection = match connecting.into_0rtt() {
    ///     Ok(connection) => connection,
    ///     Err(connecting) => connecting.await?,
    /// };
    /// let (mut send, mut recv) = connection.open_bi().await?;
    /// send.write_all(b"a question that may be asked twice").await?;
    /// send.finish()?;
    /// // Fails at the end of the handshake, not of the request, if the server is not there.
    /// tokio::time::timeout(std::time::Duration::from_secs(2), connection.connected()).await??;
    /// let answer = recv.read_to_end(1_024).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// On a server it is possible unless the connection is over. [`RecvStream::is_early_data`](crate::RecvStream::is_early_data) tells which
    /// data may have been replayed.
    ///
    /// # Errors
    /// The attempt itself, to be awaited.
    pub fn into_0rtt(mut self) -> Result<Connection, Self> {
        let is_possible = self.connection.as_ref().is_some_and(|connection| {
            let state = connection.lock();
            let early = state.proto.early_data() == EarlyData::Offered;
            state.error.is_none() && (state.is_connected || early || state.proto.side() == Side::Server)
        });
        match self.connection.take_if(|_| is_possible) {
            Some(connection) => Ok(Connection::new(connection)),
            None => Err(self),
        }
    }

    /// The address of the peer, if the handshake has not been awaited to its end yet.
    pub fn remote_address(&self) -> Option<SocketAddr> {
        Some(self.connection.as_ref()?.lock().proto.remote_address())
    }

    /// The local address that the peer talks to, once it is known.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.connection.as_ref()?.lock().proto.local_ip()
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    /// # Panics
    /// If it is polled after it was complete.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let connection = self.connection.take().expect("polled after completion");
        let mut state = connection.lock();
        // A server that looks late may find a connection that was made, used and closed: what arrived on it can be read.
        let may_be_over = state.proto.side() == Side::Server && state.is_connected;
        if let Err(error) = state.check()
            && !may_be_over
        {
            drop(state);
            return Poll::Ready(Err(error));
        }
        if state.is_connected {
            drop(state);
            return Poll::Ready(Ok(Connection::new(connection)));
        }
        state.connecting = Some(cx.waker().clone());
        drop(state);
        self.connection = Some(connection);
        Poll::Pending
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").field("remote_address", &self.remote_address()).finish_non_exhaustive()
    }
}
