//! Unreliable datagrams (RFC 9221): the application's calls, and how large a datagram can be on the path.

use bytes::Bytes;

use super::Connection;
use crate::datagrams::{DatagramId, DatagramOptions, DroppedDatagram, SendDatagramError};
use crate::path::Pending;

impl Connection {
    /// Queues an unreliable datagram (RFC 9221). When the queue is full, the oldest one is dropped for it if
    /// `drop_oldest`.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram(&mut self, data: Bytes, drop_oldest: bool) -> Result<(), SendDatagramError> {
        let options = DatagramOptions { makes_room: drop_oldest, ..DatagramOptions::default() };
        self.send_datagram_with(data, &options).map(|_| ())
    }

    /// Queues an unreliable datagram (RFC 9221) with a priority and a deadline, and names it. If it is dropped before
    /// it is sent, [`Connection::dropped_datagram`] tells so.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram_with(
        &mut self,
        data: Bytes,
        options: &DatagramOptions,
    ) -> Result<DatagramId, SendDatagramError> {
        let room = self.paths.datagram_room();
        for path in self.paths.iter_mut() {
            path.tuple.mtud.want();
            path.pending.raise(Pending::DATAGRAMS);
        }
        self.datagrams.send(data, options, room)
    }

    /// The next unreliable datagram that was queued and dropped before it was sent. Up to 1024 wait to be asked for; of
    /// more the oldest are forgotten, which [`DatagramStats::notices_lost`](crate::DatagramStats::notices_lost)
    /// counts.
    pub fn dropped_datagram(&mut self) -> Option<DroppedDatagram> {
        self.datagrams.dropped()
    }

    /// The oldest unreliable datagram that was received and not read.
    pub fn read_datagram(&mut self) -> Option<Bytes> {
        self.datagrams.receive()
    }

    /// How many bytes a datagram can have that still finds room in the send buffer without an older one being dropped for it. In
    /// the buffer each datagram counts 64 bytes more than it has.
    pub fn datagram_send_buffer_space(&self) -> usize {
        self.datagrams.send_room()
    }

    /// The largest unreliable datagram that can be sent now; `None` if the peer takes none. It may change with
    /// the path; where there are several, all can carry it.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.datagrams.max_len(self.paths.datagram_room())
    }
}
