//! Unreliable datagrams (RFC 9221).
//!
//! Owns the DATAGRAM frame in both directions. A datagram is sent once, so its acknowledgement or loss means nothing here.
//! Knows no stream and no flow control. Memory is bounded by dropping; what is dropped before it was sent is counted and
//! reported.

mod incoming;
mod outgoing;
mod turn;

use std::sync::Arc;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_wire::{Datagram, Frame, FrameType, TransportErrorCode};
use thiserror::Error;

use self::incoming::Incoming;
use self::outgoing::Outgoing;
use self::turn::Turn;
use crate::TransportError;
use crate::memory::SharedMemory;
use crate::packet::{FrameWriter, Protection};
use crate::slices::{adopt, may_pin};

/// What a queued datagram counts for in addition to its length, so that empty ones are not free.
const OVERHEAD_BYTES: usize = 64;
/// The largest DATAGRAM frame that this end accepts: anything that fits a packet (RFC 9221 §3).
const FRAME_SIZE_MAX: u64 = 65_535;

/// The `max_datagram_frame_size` transport parameter of an end with such a receive buffer; 0, the default,
/// refuses datagrams.
pub(crate) fn local_frame_max(receive_buffer: Option<usize>) -> u64 {
    receive_buffer.map_or(0, |_| FRAME_SIZE_MAX)
}

/// The id of a datagram within its connection. Ids count up from 0 in the order of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatagramId(pub u64);

/// How a datagram is to be sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatagramOptions {
    /// Datagrams of a larger priority leave first; those of one priority in the order of sending. It is compared with the level of
    /// streams ([`Priority`](crate::Priority)), too: datagrams go before data of a lower level, and behind that of a higher one.
    /// Of the same level, as both are by default, datagrams go first, but after each 16 KiB of them comes a packet of streams.
    pub priority: i32,
    /// From this time on the datagram is of no use: if it has not left by then, it never does.
    pub deadline: Option<Instant>,
    /// When the queue is full, others are dropped for this one: those of the smallest priority first, and of
    /// these the oldest, but none of a larger priority than its own.
    pub makes_room: bool,
    /// What forward erasure correction does for the datagram. `None`: what [`FecConfig::mode`](crate::FecConfig::mode) says. Without
    /// effect where it is off, or the peer does not have it.
    pub protection: Option<Protection>,
}

/// A datagram that was queued and will never be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedDatagram {
    /// Which one.
    pub id: DatagramId,
    /// Why.
    pub reason: DatagramDropReason,
}

/// Why a datagram was dropped before it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramDropReason {
    /// Its deadline has passed.
    Late,
    /// The queue was full, and another one took its place.
    Displaced,
    /// The path carries no datagrams of its size any more.
    TooLarge,
}

/// Why a datagram was not queued.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum SendDatagramError {
    /// The peer does not receive datagrams.
    #[error("the peer does not receive datagrams")]
    UnsupportedByPeer,
    /// The datagram is larger than a packet on this path, or than the peer allows.
    #[error("the datagram is too large")]
    TooLarge,
    /// The queue is full of datagrams that do not make room; the datagram is given back, and a
    /// `DatagramsUnblocked` event follows.
    #[error("too many datagrams wait to be sent")]
    Blocked(Bytes),
}

/// Something happened to the datagrams of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatagramEvent {
    /// A datagram can be read. Comes once until [`Datagrams::receive`] has found the queue empty.
    Received,
    /// There is room in the queue again, after [`SendDatagramError::Blocked`].
    Unblocked,
    /// A datagram was dropped before it was sent. Comes once until [`Datagrams::dropped`] has told of all.
    Dropped,
}

/// Counts of what happened to datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatagramStats {
    /// Datagrams written into packets.
    pub sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams dropped before they were sent because their deadline had passed.
    pub late: u64,
    /// Datagrams dropped before they were sent for other reasons: others took their place, or the path shrank.
    pub dropped_outgoing: u64,
    /// Notices of dropped datagrams that were forgotten, because the application read none for long.
    pub notices_lost: u64,
    /// Datagrams dropped because the application did not read.
    pub dropped_incoming: u64,
}

/// The datagrams of a connection.
#[derive(Debug)]
pub(crate) struct Datagrams {
    incoming: Incoming,
    outgoing: Outgoing,
    /// What they have sent while streams waited.
    pub(crate) turn: Turn,
    /// Whether this end accepts any.
    is_accepting: bool,
    /// The largest frame that the peer accepts; 0 if it accepts none, or is not known yet.
    peer_frame_max: u64,
    /// The application waits for room.
    send_blocked: bool,
    /// The application waits for a datagram.
    receive_blocked: bool,
    received_event: bool,
    unblocked_event: bool,
    /// An event has reported dropped datagrams, and the application has not fetched all of them.
    drops_announced: bool,
    sent: u64,
    received: u64,
    dropped_incoming: u64,
}

impl Datagrams {
    /// Buffers of these sizes in bytes, where a datagram counts 64 bytes more than it has; `memory` is what the connections of
    /// the endpoint have for received data. Without a receive
    /// buffer datagrams are refused.
    pub(crate) fn new(receive_buffer: Option<usize>, send_buffer: usize, memory: Arc<SharedMemory>) -> Self {
        Self {
            incoming: Incoming::new(receive_buffer.unwrap_or(0), memory),
            outgoing: Outgoing::new(send_buffer),
            turn: Turn::default(),
            is_accepting: receive_buffer.is_some(),
            peer_frame_max: 0,
            send_blocked: false,
            receive_blocked: true,
            received_event: false,
            unblocked_event: false,
            drops_announced: false,
            sent: 0,
            received: 0,
            dropped_incoming: 0,
        }
    }

    /// The peer's `max_datagram_frame_size` is known, from its transport parameters.
    pub(crate) fn set_peer_frame_max(&mut self, frame_max: u64) {
        self.peer_frame_max = frame_max;
    }

    /// The longest datagram that can be sent now, if a packet has room for `payload` bytes of frames; `None`
    /// if the peer accepts none.
    pub(crate) fn max_len(&self, payload: usize) -> Option<usize> {
        if self.peer_frame_max == 0 {
            return None;
        }
        // What does not fit the queue cannot be sent, whatever the path carries.
        let queue = self.outgoing.len_max();
        let frame = usize::try_from(self.peer_frame_max).unwrap_or(usize::MAX).min(payload);
        // The frame is a type of one byte, a length field of 1, 2 or 4 bytes, and the data.
        let fields = [(1, 63), (2, 16_383), (4, (1 << 30) - 1)];
        fields
            .into_iter()
            .filter_map(|(field, max)| Some(frame.checked_sub(1 + field)?.min(max).min(queue)))
            .max()
    }

    /// See [`Outgoing::room`].
    pub(crate) fn send_room(&self) -> usize {
        self.outgoing.room()
    }

    /// Queues a datagram, if a packet has room for `payload` bytes of frames.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub(crate) fn send(
        &mut self,
        data: Bytes,
        options: &DatagramOptions,
        payload: usize,
    ) -> Result<DatagramId, SendDatagramError> {
        let len_max = self.max_len(payload).ok_or(SendDatagramError::UnsupportedByPeer)?;
        if data.len() > len_max || data.len() > self.outgoing.len_max() {
            return Err(SendDatagramError::TooLarge);
        }
        self.outgoing.push(data, options).map_err(|data| {
            self.send_blocked = true;
            SendDatagramError::Blocked(data)
        })
    }

    /// The oldest datagram that was dropped before it was sent, and was not reported yet.
    pub(crate) fn dropped(&mut self) -> Option<DroppedDatagram> {
        let dropped = self.outgoing.pop_notice();
        self.drops_announced &= dropped.is_some();
        dropped
    }

    /// When the next datagram may be late.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.outgoing.next_deadline()
    }

    /// Drops what is late at `now`.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        self.outgoing.drop_late(now);
        self.unblock();
    }

    /// The oldest received datagram.
    pub(crate) fn receive(&mut self) -> Option<Bytes> {
        let data = self.incoming.pop();
        self.receive_blocked = data.is_none();
        data
    }

    /// Takes a DATAGRAM frame, which is a part of `payload` (RFC 9221 §4).
    pub(crate) fn on_datagram(
        &mut self,
        frame: &Datagram<'_>,
        payload: &Bytes,
    ) -> Result<(), TransportError> {
        // RFC 9221 §3: datagrams that were not offered, or larger than was. The frame has at least a type.
        if !self.is_accepting || frame.data.len() as u64 + 1 > FRAME_SIZE_MAX {
            let reason = "a datagram that is larger than this end accepts";
            return Err(TransportError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason)
                .with_frame(FrameType::DATAGRAM));
        }
        self.received += 1;
        let data = match may_pin(self.incoming.bytes()) {
            true => adopt(payload, frame.data),
            false => Bytes::copy_from_slice(frame.data),
        };
        // RFC 9221 §5: a receiver may drop datagrams that it has no room for; old ones are worth less.
        self.dropped_incoming += self.incoming.push_dropping_oldest(data);
        if !self.incoming.is_empty() && std::mem::take(&mut self.receive_blocked) {
            self.received_event = true;
        }
        Ok(())
    }

    /// Whether there is a datagram to write.
    pub(crate) fn wants_to_send(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Writes the datagrams that are not late, in the order of their priorities, until there are no more, the
    /// next does not fit, or the packet takes none of its protection. `payload` is what an empty packet has room for: what cannot fit any packet, because the
    /// path has changed, is dropped. Those that are written are shown to `copy`, with their deadlines.
    pub(crate) fn write(
        &mut self,
        now: Instant,
        out: &mut FrameWriter<'_>,
        payload: usize,
        mut copy: impl FnMut(&Bytes, Option<Instant>),
    ) {
        self.outgoing.drop_late(now);
        let len_max = self.max_len(payload);
        while let Some(data) = self.outgoing.first() {
            if len_max.is_none_or(|len_max| data.len() > len_max) {
                self.outgoing.drop_first_as_too_large();
            } else if out.takes(self.outgoing.first_protection())
                && out.write_untracked(&Frame::Datagram(Datagram { data }))
            {
                self.sent += 1;
                copy(data, self.outgoing.first_deadline());
                self.outgoing.on_sent();
            } else {
                break;
            }
        }
        self.unblock();
    }

    /// How many were written into packets.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// The priority of the datagram that is written next.
    pub(crate) fn next_priority(&self) -> Option<i32> {
        self.outgoing.first_priority()
    }

    /// What was chosen for the protection of the datagram that is written next.
    pub(crate) fn next_protection(&self) -> Option<Protection> {
        self.outgoing.first_protection()
    }

    /// The length of the frame that is written next.
    pub(crate) fn next_frame_len(&self) -> Option<usize> {
        self.outgoing.first().map(|data| Datagram { data }.encoded_len())
    }

    /// The bytes of all datagrams that wait to be sent.
    pub(crate) fn waiting(&self) -> usize {
        self.outgoing.waiting()
    }

    /// Wakes an application that waits for room, if there is some.
    fn unblock(&mut self) {
        if self.send_blocked && self.outgoing.is_half_empty() {
            self.send_blocked = false;
            self.unblocked_event = true;
        }
    }

    /// The next event.
    pub(crate) fn poll_event(&mut self) -> Option<DatagramEvent> {
        if std::mem::take(&mut self.received_event) {
            return Some(DatagramEvent::Received);
        }
        if self.outgoing.has_notices() && !self.drops_announced {
            self.drops_announced = true;
            return Some(DatagramEvent::Dropped);
        }
        std::mem::take(&mut self.unblocked_event).then_some(DatagramEvent::Unblocked)
    }

    /// What happened so far.
    pub(crate) fn stats(&self) -> DatagramStats {
        let drops = self.outgoing.drops();
        DatagramStats {
            sent: self.sent,
            received: self.received,
            late: drops.late,
            dropped_outgoing: drops.displaced + drops.too_large,
            notices_lost: drops.notices_lost,
            dropped_incoming: self.dropped_incoming,
        }
    }
}

#[cfg(test)]
mod tests;
