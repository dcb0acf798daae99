//! The sending half of a stream (RFC 9000 §3.1).

mod reset;

use std::ops::Range;

use bytes::Bytes;
use fulmar_wire::{StreamId, VarInt};

use self::reset::PartialReset;
pub(super) use self::reset::Reset;
use super::flow::SendCredit;
use super::handles::WriteError;
use super::priority::Priority;
use super::send_buffer::SendBuffer;
use crate::packet::{FrameWriter, Protection};
use crate::reliable::{Latest, Once};

/// The sending half of a stream, until the peer has acknowledged its end.
#[derive(Debug)]
pub(super) struct SendHalf {
    buffer: SendBuffer,
    credit: SendCredit,
    fin: Fin,
    reset: Once<Reset>,
    /// The application has abandoned the stream but for its beginning, which is delivered. The frame that says so
    /// waits until all of that was sent once, so that its final size is within the peer's limits.
    partial_reset: Option<PartialReset>,
    stopped: Option<VarInt>,
    priority: Priority,
    /// What forward erasure correction does for it; `None`: what it does for the connection.
    pub(super) protection: Option<Protection>,
    /// Whether the stream is in the queue of streams with data to send again.
    pub(super) queued_lost: bool,
    /// Whether the stream is in the queue of streams with new data.
    pub(super) queued_fresh: bool,
    /// Whether the application was told to wait for room.
    pub(super) write_blocked: bool,
    /// Whether the stream is in the queue of those that wait for room in the buffer of all streams.
    pub(super) queued_waiting: bool,
    /// How much may be written and not sent, in bytes.
    pub(super) unsent_max: u64,
}

/// The end of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fin {
    /// The application may write more.
    Open,
    /// To be sent: with the last data, or alone.
    Pending,
    Sent,
    Acked,
}

/// Data to be appended.
pub(super) enum Source<'a> {
    /// Is copied.
    Slice(&'a [u8]),
    /// Is kept; what was taken is split off.
    Chunk(&'a mut Bytes),
    /// The same, and the stream ends if all of it was taken.
    LastChunk(&'a mut Bytes),
}

/// What an acknowledgement has changed.
#[derive(Debug, Default)]
pub(super) struct Acked {
    /// Bytes that need no longer be held.
    pub(super) released: u64,
    /// The peer has all data and the end of the stream.
    pub(super) finished: bool,
}

impl SendHalf {
    /// The half of a new stream on which the peer allows `limit` bytes.
    pub(super) fn new(limit: u64) -> Self {
        Self {
            buffer: SendBuffer::default(),
            credit: SendCredit::new(limit),
            fin: Fin::Open,
            reset: Once::Idle,
            partial_reset: None,
            stopped: None,
            priority: Priority::default(),
            protection: None,
            queued_lost: false,
            queued_fresh: false,
            write_blocked: false,
            queued_waiting: false,
            unsent_max: u64::MAX,
        }
    }

    /// Whether the application may write: not finished, reset or stopped.
    pub(super) fn check_writable(&self) -> Result<(), WriteError> {
        match self.stopped {
            Some(code) => Err(WriteError::Stopped(code)),
            None if self.fin != Fin::Open || self.is_reset() => Err(WriteError::ClosedStream),
            None => Ok(()),
        }
    }

    /// Bytes that the peer's limit leaves for writing. No more is taken from the application, so that a
    /// stream whose peer does not read cannot fill the buffer that all streams share.
    pub(super) fn credit_room(&self) -> u64 {
        self.credit.limit().saturating_sub(self.buffer.end())
    }

    /// Bytes that were never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.buffer.unsent()
    }

    /// Bytes that may be written before some are sent.
    pub(super) fn unsent_room(&self) -> u64 {
        self.unsent_max.saturating_sub(self.unsent())
    }

    /// Whether so little is left to send that it is worth waking the application.
    pub(super) fn has_unsent_room(&self) -> bool {
        self.unsent() <= self.unsent_max / 2
    }

    /// Whether the application may wait for what was written to be sent, and enough of that was.
    #[inline]
    pub(super) fn is_sent_enough(&self) -> bool {
        self.write_blocked && self.unsent_max < u64::MAX && self.has_unsent_room()
    }

    /// Bytes to send again.
    pub(super) fn lost_bytes(&self) -> u64 {
        self.buffer.lost_bytes()
    }

    /// Bytes held for this stream.
    pub(super) fn held(&self) -> u64 {
        self.buffer.held()
    }

    /// Takes at most `room` bytes, and returns how many. The application waits for the rest if there is none.
    pub(super) fn write(&mut self, source: Source<'_>, room: u64) -> usize {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        match source {
            Source::Slice(data) => {
                let len = data.len().min(room);
                self.buffer.write(&data[..len]);
                len
            }
            Source::Chunk(chunk) | Source::LastChunk(chunk) => {
                let len = chunk.len().min(room);
                self.buffer.write_chunk(chunk.split_to(len));
                len
            }
        }
    }

    /// The application has something to write that the peer's limit holds back.
    pub(super) fn on_credit_blocked(&mut self) {
        self.credit.on_blocked();
    }

    /// No more will be written.
    pub(super) fn finish(&mut self) {
        debug_assert!(self.fin == Fin::Open, "checked by the caller");
        self.fin = Fin::Pending;
        self.write_blocked = false;
        self.credit.blocked_frame().cancel();
    }

    /// Whether this end has said what the peer is to have, all or a part of the stream, and it does not have that yet.
    pub(super) fn is_ending(&self) -> bool {
        (self.fin != Fin::Open || self.partial_reset.is_some()) && !self.is_abandoned()
    }

    /// The peer wants no more data.
    pub(super) fn set_stopped(&mut self, code: VarInt) {
        self.stopped = Some(code);
    }

    /// The code with which the peer has asked for an end.
    pub(super) fn stopped(&self) -> Option<VarInt> {
        self.stopped
    }

    pub(super) fn priority(&self) -> Priority {
        self.priority
    }

    pub(super) fn set_priority(&mut self, priority: Priority) {
        self.priority = priority;
    }

    /// The peer allows `limit` bytes on this stream. Returns whether that is more than before.
    pub(super) fn raise_limit(&mut self, limit: u64) -> bool {
        self.credit.raise(limit)
    }

    /// Nothing of this half has reached the peer, which allows `limit` bytes: everything begins anew.
    pub(super) fn restart(&mut self, limit: u64) {
        self.buffer.restart();
        self.credit = SendCredit::new(limit);
        if self.partial_reset.is_some() {
            (self.fin, self.reset) = (Fin::Open, Once::Idle);
            self.announce_partial_reset();
            return;
        }
        if self.fin == Fin::Sent {
            self.fin = Fin::Pending;
        }
        if let Once::Pending(reset) | Once::Sent(reset) = self.reset {
            self.reset = Once::Pending(Reset { final_size: 0, ..reset });
        }
    }

    /// Whether there is something to send for which no flow control credit is needed: lost data, or an end of
    /// the stream that new data does not carry.
    pub(super) fn has_lost(&self) -> bool {
        self.buffer.first_lost().is_some()
            || (self.fin == Fin::Pending && self.buffer.unsent() == 0 && !self.is_reset())
    }

    /// Whether there is new data that the stream's limit allows.
    pub(super) fn has_new(&self) -> bool {
        self.sendable() > 0
    }

    /// Bytes of new data that the stream's limit allows.
    pub(super) fn sendable(&self) -> u64 {
        self.buffer.unsent().min(self.credit.available())
    }

    /// Writes a STREAM frame of what [`SendHalf::has_lost`] tells. Returns its length, or `None` if the packet
    /// is full.
    pub(super) fn write_lost(&mut self, id: StreamId, out: &mut FrameWriter<'_>) -> Option<usize> {
        let end = self.buffer.end();
        let range = self.buffer.first_lost().unwrap_or(end..end);
        let fin = self.fin == Fin::Pending && range.end == end;
        let available = (range.end - range.start) as usize;
        let buffer = &self.buffer;
        let len =
            out.write_stream(id, range.start, available, fin, |dst| buffer.copy_old(range.start, dst))?;
        self.buffer.on_old_sent(range.start..range.start + len as u64);
        self.on_fin_sent(fin && len == available);
        Some(len)
    }

    /// Writes a STREAM frame of new data, at most `allowed` bytes. Returns its length, or `None` if the packet
    /// is full.
    #[inline]
    pub(super) fn write_new(
        &mut self,
        id: StreamId,
        allowed: u64,
        out: &mut FrameWriter<'_>,
    ) -> Option<usize> {
        let unsent = self.buffer.unsent();
        let available = unsent.min(allowed).min(self.credit.available());
        let fin = self.fin == Fin::Pending && available == unsent;
        // Lengths in memory fit `usize`.
        let available = available as usize;
        let buffer = &self.buffer;
        let len = out.write_stream(id, buffer.next(), available, fin, |dst| buffer.copy_new(dst))?;
        self.buffer.on_new_sent(len);
        self.credit.spend(len as u64);
        self.on_fin_sent(fin && len == available);
        if self.partial_reset.is_some() {
            self.announce_partial_reset();
        }
        Some(len)
    }

    /// Whether the end of the stream has left, and nothing says that it was lost.
    pub(super) fn is_end_sent(&self) -> bool {
        self.fin == Fin::Sent
    }

    fn on_fin_sent(&mut self, sent: bool) {
        if sent {
            self.fin = Fin::Sent;
        }
    }

    /// Data arrived at the peer, and the end of the stream if `fin`.
    pub(super) fn on_acked(&mut self, range: Range<u64>, fin: bool) -> Acked {
        if self.is_abandoned() {
            return Acked::default();
        }
        let released = self.buffer.on_acked(range);
        if fin {
            self.fin = Fin::Acked;
        }
        self.conclude(released)
    }

    /// Whether the peer has everything that it is to have, after `released` bytes need no longer be held.
    fn conclude(&self, released: u64) -> Acked {
        let all = self.fin == Fin::Acked && self.buffer.is_all_acked();
        // Draft §5.3: the frame and everything below its reliable size.
        let partial = self.partial_reset.is_some_and(|partial| {
            matches!(self.reset, Once::Acked) && self.buffer.is_acked_to(partial.reliable_size)
        });
        match all || partial {
            true => Acked { released: released + self.buffer.held(), finished: true },
            false => Acked { released, finished: false },
        }
    }

    /// Data was lost, or a probe wants to repeat it.
    pub(super) fn on_lost(&mut self, range: Range<u64>, fin: bool) {
        if self.is_abandoned() {
            return;
        }
        if let Some(PartialReset { reliable_size, .. }) = self.partial_reset {
            // Draft §5: the rest is not repeated, nor is an end that the frame tells.
            self.buffer.on_lost(range.start..range.end.min(reliable_size));
            return;
        }
        self.buffer.on_lost(range);
        if fin && self.fin == Fin::Sent {
            self.fin = Fin::Pending;
        }
    }

    /// The STREAM_DATA_BLOCKED frame.
    pub(super) fn blocked_frame(&mut self) -> &mut Latest<u64> {
        self.credit.blocked_frame()
    }

    /// Whether a frame of this half other than STREAM waits to be written.
    pub(super) fn has_control(&self) -> bool {
        self.reset.pending().is_some() || self.credit.is_blocked_pending()
    }
}

#[cfg(test)]
mod tests;
