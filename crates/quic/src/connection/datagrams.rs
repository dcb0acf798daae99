//! Unreliable datagrams (RFC 9221).

use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::{ConnectionError, DatagramId, DatagramOptions as Options, DroppedDatagram, Protection};

use super::Connection;
use crate::clock;
use crate::error::SendDatagramError;

/// How a datagram is to be sent. By default like [`Connection::send_datagram`] does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatagramOptions {
    /// Datagrams of a larger priority leave first; those of one priority in the order of sending. It is compared with the level of
    /// streams ([`Priority`](crate::Priority)), too: datagrams go before data of a lower level, and behind that of a higher one.
    /// Of the same level, as both are by default, datagrams go first, but after each 16 KiB of them comes a packet of streams.
    /// By default 0.
    pub priority: i32,
    /// If the datagram has not left after this time, it never does. By default it waits as long as it takes.
    pub lifetime: Option<Duration>,
    /// What forward erasure correction does for the datagram. By default what [`FecConfig::mode`](crate::FecConfig::mode) says.
    pub protection: Option<Protection>,
}

impl Connection {
    /// Sends an unreliable datagram (RFC 9221). It may be lost, or overtake and be overtaken.
    ///
    /// Never waits: if `TransportConfig::datagram_send_buffer` is full, the oldest datagrams in it are dropped, as
    /// [`Connection::send_datagram_with`] describes it for the priority 0.
    ///
    /// # Errors
    /// If the datagram can never be sent on this connection, or the queue is full of datagrams of larger priorities.
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        let options = Options { makes_room: true, ..Options::default() };
        self.try_send_datagram(data, &options)?
            .map_or_else(|data| Err(SendDatagramError::QueueFull(data)), |_| Ok(()))
    }

    /// Sends an unreliable datagram, waiting while `TransportConfig::datagram_send_buffer` is full. Nothing is dropped on this end.
    ///
    /// Cancellation safe: the datagram is either queued or not, and it is if and only if this returned `Ok`.
    ///
    /// # Errors
    /// If the datagram can never be sent on this connection.
    pub async fn send_datagram_wait(&self, mut data: Bytes) -> Result<(), SendDatagramError> {
        loop {
            let unblocked = self.inner.inner().changed().datagrams_unblocked.notified();
            match self.try_send_datagram(data, &Options::default())? {
                Err(returned) => data = returned,
                Ok(_) => return Ok(()),
            }
            unblocked.await;
        }
    }

    /// Sends an unreliable datagram with a priority and a lifetime, and returns its name. If it is dropped before it is
    /// sent, [`Connection::dropped_datagram`] tells so.
    ///
    /// Never waits: if `TransportConfig::datagram_send_buffer` is full, others are dropped for this one, those of the smallest
    /// priority first, and of these the oldest; never one of a larger priority than its own.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use fulmar::{Connection, DatagramOptions, SendDatagramError};
    /// # fn frame(connection: &Connection, frame: bytes::Bytes) -> Result<(), SendDatagramError> {
    /// // After 100 ms the frame is of no use. Before it go the datagrams of larger priorities.
    /// let options = DatagramOptions {
    ///     lifetime: Some(Duration::from_millis(100)),
    ///     priority: -1,
    ///     ..DatagramOptions::default()
    /// };
    /// connection.send_datagram_with(frame, &options)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the datagram can never be sent on this connection, or the queue is full of datagrams of larger priorities.
    pub fn send_datagram_with(
        &self,
        data: Bytes,
        options: &DatagramOptions,
    ) -> Result<DatagramId, SendDatagramError> {
        let deadline = options.lifetime.map(|lifetime| clock::now() + lifetime);
        let options = Options {
            priority: options.priority,
            deadline,
            makes_room: true,
            protection: options.protection,
        };
        self.try_send_datagram(data, &options)?.map_err(SendDatagramError::QueueFull)
    }

    /// Waits until a datagram is dropped before it was sent, whichever way it was queued, and tells which and why.
    ///
    /// Up to 1024 notices wait to be read; of more the oldest are forgotten. [`DatagramStats`](crate::DatagramStats) counts
    /// all that is dropped, and the notices that are forgotten.
    ///
    /// Cancellation safe: no notice is lost.
    ///
    /// # Errors
    /// If the connection is over and all notices from before were read.
    pub async fn dropped_datagram(&self) -> Result<DroppedDatagram, ConnectionError> {
        loop {
            let dropped = self.inner.inner().changed().datagrams_dropped.notified();
            {
                let mut state = self.inner.lock();
                if let Some(dropped) = state.proto.dropped_datagram() {
                    return Ok(dropped);
                }
                state.check()?;
            }
            dropped.await;
        }
    }

    /// Waits for the next unreliable datagram of the peer.
    ///
    /// Datagrams that nobody reads are limited by `TransportConfig::datagram_receive_buffer`: the oldest are dropped then.
    ///
    /// Cancellation safe: no datagram is lost.
    ///
    /// # Errors
    /// If the connection is over and all datagrams that arrived before were read.
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        loop {
            let received = self.inner.inner().changed().datagram_received.notified();
            {
                let mut state = self.inner.lock();
                if let Some(data) = state.proto.read_datagram() {
                    return Ok(data);
                }
                state.check()?;
            }
            received.await;
        }
    }

    /// How many bytes a datagram can have that [`send_datagram`](Self::send_datagram) takes without dropping an older one for it: what
    /// is left of `TransportConfig::datagram_send_buffer`, where each datagram counts 64 bytes more than it has. What the path
    /// carries is another matter: [`max_datagram_size`](Self::max_datagram_size).
    pub fn datagram_send_buffer_space(&self) -> usize {
        self.inner.lock().proto.datagram_send_buffer_space()
    }

    /// The longest datagram, in bytes, that can be sent now, or `None` if the peer takes none. It changes with the path.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.inner.lock().proto.max_datagram_size()
    }

    /// Queues the datagram, or returns it if there is no room.
    fn try_send_datagram(
        &self,
        data: Bytes,
        options: &Options,
    ) -> Result<Result<DatagramId, Bytes>, SendDatagramError> {
        use fulmar_proto::SendDatagramError as Refused;
        let mut state = self.inner.lock();
        state.check()?;
        match state.proto.send_datagram_with(data, options) {
            Ok(id) => {
                self.inner.release(state);
                Ok(Ok(id))
            }
            Err(Refused::Blocked(data)) => Ok(Err(data)),
            Err(Refused::TooLarge) => Err(SendDatagramError::TooLarge),
            Err(Refused::UnsupportedByPeer) => Err(SendDatagramError::UnsupportedByPeer),
        }
    }
}
