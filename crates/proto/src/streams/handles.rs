//! What the application does with a stream.

use bytes::Bytes;
use fulmar_wire::{StreamId, VarInt};
use thiserror::Error;

use super::Streams;
use super::priority::Priority;
use super::send::Source;
use crate::packet::Protection;

/// Received data of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The offset of the first byte in the stream.
    pub offset: u64,
    /// The data, at least one byte.
    pub bytes: Bytes,
    /// Whether the stream has ended with this chunk: all other data was read before, and no reset follows. Reading again
    /// returns `None`, and frees what the stream holds.
    pub fin: bool,
}

/// Why nothing was read.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
pub enum ReadError {
    /// There is no data now; a [`Readable`](super::StreamEvent::Readable) event follows when there is.
    #[error("no data yet")]
    Blocked,
    /// The peer has abandoned the stream with this code. What was not read is lost; where the peer has promised a part of the
    /// stream all the same (RESET_STREAM_AT), all of that was read.
    #[error("the peer has reset the stream with code {0}")]
    Reset(VarInt),
    /// The stream has no receiving half, or it has ended: read to the end, reset and read, or stopped.
    #[error("the stream is closed")]
    ClosedStream,
}

/// Why nothing was written.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
pub enum WriteError {
    /// There is no room now; a [`Writable`](super::StreamEvent::Writable) event follows when there is.
    #[error("no room yet")]
    Blocked,
    /// The peer wants no more data, for the reason of this code.
    #[error("the peer has stopped the stream with code {0}")]
    Stopped(VarInt),
    /// The stream has no sending half, or it was finished or reset.
    #[error("the stream is closed")]
    ClosedStream,
}

/// Why a stream cannot be finished.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
pub enum FinishError {
    /// The peer wants no more data, for the reason of this code.
    #[error("the peer has stopped the stream with code {0}")]
    Stopped(VarInt),
    /// The stream has no sending half, or it was finished or reset.
    #[error("the stream is closed")]
    ClosedStream,
}

/// Why a stream cannot be reset but for its beginning.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
pub enum ResetAtError {
    /// The peer knows no such resets (draft-ietf-quic-reliable-stream-reset §3), or its transport parameters have not
    /// come.
    #[error("the peer knows no resets that leave a part of a stream")]
    UnsupportedByPeer,
    /// The stream has no sending half, everything was acknowledged, or it was reset before as a whole.
    #[error("the stream is closed")]
    ClosedStream,
}

impl From<FinishError> for WriteError {
    fn from(error: FinishError) -> Self {
        match error {
            FinishError::Stopped(code) => Self::Stopped(code),
            FinishError::ClosedStream => Self::ClosedStream,
        }
    }
}

/// The stream, or the half of it that was asked for, does not exist or has ended.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
#[error("the stream is closed")]
pub struct ClosedStream;

/// Access to the sending half of a stream.
#[derive(Debug)]
pub struct SendHandle<'a> {
    pub(super) streams: &'a mut Streams,
    pub(super) id: StreamId,
}

impl SendHandle<'_> {
    /// Appends a copy of as much of `data` as there is room for, and returns how much that is. Room is what
    /// the peer's flow control allows on this stream, within the send window.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        if data.is_empty() {
            return self.streams.check_writable(self.id).map(|()| 0);
        }
        self.streams.write(self.id, Source::Slice(data))
    }

    /// Appends as much of `chunk` as there is room for, without a copy. What was taken is split off `chunk`;
    /// returns how much that is.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn write_chunk(&mut self, chunk: &mut Bytes) -> Result<usize, WriteError> {
        if chunk.is_empty() {
            return self.streams.check_writable(self.id).map(|()| 0);
        }
        self.streams.write(self.id, Source::Chunk(chunk))
    }

    /// [`SendHandle::write_chunk`] for several chunks. Returns how many bytes were taken in all.
    ///
    /// # Errors
    /// See [`WriteError`]; none if anything was taken.
    pub fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<usize, WriteError> {
        let mut taken = 0;
        for chunk in chunks {
            match self.write_chunk(chunk) {
                Ok(bytes) => taken += bytes,
                // The next call tells the error.
                Err(_) if taken > 0 => break,
                Err(error) => return Err(error),
            }
            if !chunk.is_empty() {
                break;
            }
        }
        Ok(taken)
    }

    /// Appends as much of `chunk` as there is room for, like [`SendHandle::write_chunk`], and ends the stream if that is all
    /// of it, so that the last bytes and the end leave in one STREAM frame. Returns how many bytes were taken; the stream is
    /// finished exactly if nothing of `chunk` is left.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn finish_with(&mut self, chunk: &mut Bytes) -> Result<usize, WriteError> {
        if chunk.is_empty() {
            self.streams.finish(self.id)?;
            return Ok(0);
        }
        self.streams.write(self.id, Source::LastChunk(chunk))
    }

    /// How many bytes there is room for, at least one.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn room(&mut self) -> Result<u64, WriteError> {
        self.streams.room(self.id)
    }

    /// Ends the stream after what was written. A [`Finished`](super::StreamEvent::Finished) event follows
    /// when the peer has acknowledged everything.
    ///
    /// # Errors
    /// The stream was stopped by the peer, or is finished or reset already.
    pub fn finish(&mut self) -> Result<(), FinishError> {
        self.streams.finish(self.id)
    }

    /// Abandons the stream with a code for the peer's application: what was not sent or is lost will not be
    /// sent (RFC 9000 §3.1).
    ///
    /// # Errors
    /// Everything was acknowledged, or the stream was reset before, by the application or because the peer
    /// has stopped it.
    pub fn reset(&mut self, code: VarInt) -> Result<(), ClosedStream> {
        self.streams.reset(self.id, code)
    }

    /// Abandons the stream like [`SendHandle::reset`], but for its first `reliable_size` bytes: they are sent, repeated
    /// where they are lost, and reach the peer's application before the reset does
    /// (draft-ietf-quic-reliable-stream-reset). More than was written cannot be promised: `u64::MAX` means all of
    /// that. A [`Finished`](super::StreamEvent::Finished) event follows when the peer has acknowledged them. Where nothing is
    /// promised it is the same as [`SendHandle::reset`], and no event follows.
    ///
    /// A second call can only make it less; the code of the first one holds. So does it if [`SendHandle::reset`] follows.
    ///
    /// # Errors
    /// See [`ResetAtError`]. The stream is as it was then.
    pub fn reset_at(&mut self, code: VarInt, reliable_size: u64) -> Result<(), ResetAtError> {
        self.streams.reset_at(self.id, code, reliable_size)
    }

    /// Whether the stream was abandoned as a whole, and nothing of it has to arrive any more.
    pub fn is_abandoned(&mut self) -> bool {
        self.streams.table.send_mut(self.id).is_some_and(|send| send.is_abandoned())
    }

    /// Sets how much may be written ahead of what is sent, in bytes, one at least. Without it all of the room may be, which follows the
    /// paths: two flights and more. What is not written can still be something else, and takes no memory. Whoever waits is told
    /// ([`Writable`](super::StreamEvent::Writable)) when half of it was sent.
    ///
    /// # Errors
    /// The sending half has ended.
    pub fn set_unsent_max(&mut self, bytes: u64) -> Result<(), ClosedStream> {
        self.streams.set_unsent_max(self.id, bytes)
    }

    /// Sets whether this stream sends before others: see [`Priority`]. A number is a level: streams of a higher one send
    /// first, equals take turns, and streams start with 0.
    ///
    /// # Errors
    /// The sending half has ended.
    pub fn set_priority(&mut self, priority: impl Into<Priority>) -> Result<(), ClosedStream> {
        self.streams.set_priority(self.id, priority.into())
    }

    /// The priority.
    ///
    /// # Errors
    /// The sending half has ended.
    pub fn priority(&mut self) -> Result<Priority, ClosedStream> {
        self.streams.table.send_mut(self.id).map(|send| send.priority()).ok_or(ClosedStream)
    }

    /// Sets what forward erasure correction does for what is sent on the stream from now on, also again. Without effect where it is
    /// off, or the peer does not have it. The default is [`FecConfig::mode`](crate::FecConfig::mode).
    ///
    /// # Errors
    /// The sending half has ended.
    pub fn set_protection(&mut self, protection: Protection) -> Result<(), ClosedStream> {
        self.streams.table.send_mut(self.id).ok_or(ClosedStream)?.protection = Some(protection);
        Ok(())
    }

    /// The code with which the peer has stopped the stream, if it has.
    ///
    /// # Errors
    /// The stream has ended, or its sending half without being stopped.
    pub fn stopped(&mut self) -> Result<Option<VarInt>, ClosedStream> {
        let stream = self.streams.table.get_mut(self.id).ok_or(ClosedStream)?;
        match &stream.send {
            Some(send) => Ok(send.stopped()),
            None => stream.stopped.map(Some).ok_or(ClosedStream),
        }
    }
}

/// Access to the receiving half of a stream.
#[derive(Debug)]
pub struct RecvHandle<'a> {
    pub(super) streams: &'a mut Streams,
    pub(super) id: StreamId,
}

impl RecvHandle<'_> {
    /// At most `max_len` bytes, or `None` at the end of the stream, which is told once. If the end is known when the last
    /// bytes are read, their chunk tells it already (see [`Chunk::fin`]).
    ///
    /// With `ordered`, the data is the next in the stream. Without, it may be any that was not read before,
    /// ahead of gaps too: the offset tells where it belongs. The two may be mixed; every byte is read once.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(&mut self, max_len: usize, ordered: bool) -> Result<Option<Chunk>, ReadError> {
        self.streams.read(self.id, max_len, ordered)
    }

    /// Whether a part of what was received came as early data (0-RTT): an attacker may have repeated it, so what it asks
    /// for must do no harm when it is done twice (RFC 9001 §9.2).
    pub fn is_early_data(&mut self) -> bool {
        self.streams.table.recv_mut(self.id).is_some_and(|recv| recv.is_early())
    }

    /// The code with which the peer has abandoned the stream, before what comes ahead of the reset is read. `None` if that
    /// cannot happen any more: everything has arrived.
    ///
    /// # Errors
    /// [`ReadError::Blocked`] if neither is known; a [`Readable`](super::StreamEvent::Readable) event follows when it is.
    /// [`ReadError::ClosedStream`] if the receiving half has ended.
    pub fn received_reset(&mut self) -> Result<Option<VarInt>, ReadError> {
        self.streams.table.recv_mut(self.id).ok_or(ReadError::ClosedStream)?.received_reset()
    }

    /// Ends the interest in the stream: what was not read is discarded, and the peer is asked to stop, with a
    /// code for its application (RFC 9000 §3.5).
    ///
    /// # Errors
    /// The receiving half has ended: read to its end, reset and read, or stopped before.
    pub fn stop(&mut self, code: VarInt) -> Result<(), ClosedStream> {
        self.streams.stop(self.id, code)
    }
}
