//! The sending side of a stream.

mod stopped;
mod write;

use std::fmt;
use std::task::Waker;

use fulmar_proto::{Priority, Protection, ResetAtError, StreamId, VarInt};

use crate::error::ClosedStream;
use crate::shared::{ConnectionRef, SlotKey, Ticket};

/// A stream that this end sends.
///
/// Bytes that were written are sent in order and repeated until they are acknowledged. Writing waits while the peer's flow
/// control (RFC 9000 §4) or `TransportConfig::send_window` allows no more.
///
/// Dropping the stream finishes it, if it was neither finished nor reset: everything that was written is still delivered, as
/// long as the connection lives. Whoever gives up in the middle should call [`reset`](Self::reset), so that the peer does
/// not take a part for the whole, or have the stream reset when it is dropped: [`set_drop_code`](Self::set_drop_code).
///
/// The `poll_*` methods do what the async ones do, for hand-written futures and adapters. Of those that return `Pending`, the
/// task that polled last is woken: one for writing, and one for [`poll_stopped`](Self::poll_stopped).
pub struct SendStream {
    connection: ConnectionRef,
    key: SlotKey,
    /// The place among those who wait for the completion, of `poll_stopped`.
    stopping: Option<Ticket>,
    written: u64,
    /// Finished or reset by this end.
    is_closed: bool,
    /// What to reset with, or to finish (`None`), when this is dropped. If nothing is set, the connection says.
    drop_code: Option<Option<VarInt>>,
}

impl SendStream {
    pub(crate) fn new(connection: ConnectionRef, key: SlotKey) -> Self {
        Self { connection, key, stopping: None, written: 0, is_closed: false, drop_code: None }
    }

    /// The stream's number.
    pub fn id(&self) -> StreamId {
        self.key.id
    }

    /// How many bytes were accepted from the application so far. After a cancelled [`write_all`](Self::write_all) it tells how far that came.
    pub fn bytes_written(&self) -> u64 {
        self.written
    }

    /// Ends the stream after what was written. It does not wait for the delivery: see [`stopped`](Self::stopped).
    ///
    /// Where the last bytes are at hand, [`finish_with`](Self::finish_with) saves a packet: the end leaves with them.
    ///
    /// # Errors
    /// If the stream was already finished or reset.
    pub fn finish(&mut self) -> Result<(), ClosedStream> {
        if self.is_closed {
            return Err(ClosedStream);
        }
        self.is_closed = true;
        let mut state = self.connection.lock();
        // A stream that the peer stopped, or whose connection is over, has no end to announce any more.
        let _ = state.proto.streams().send(self.key.id).finish();
        self.connection.release(state);
        Ok(())
    }

    /// Abandons the stream: what was not delivered yet never will be, and the peer is told `code` (RESET_STREAM, RFC 9000 §19.4).
    /// A stream that was finished can still be reset. Who waits for its end ([`stopped`](Self::stopped)) waits no longer.
    ///
    /// # Errors
    /// If the stream was already reset, or delivered completely.
    pub fn reset(&mut self, code: VarInt) -> Result<(), ClosedStream> {
        let (mut state, mut wakers) = (self.connection.lock(), Vec::new());
        let result = state.proto.streams().send(self.key.id).reset(code);
        if result.is_ok() {
            state.streams.on_reset(self.key, &mut wakers);
        }
        self.connection.release(state);
        self.is_closed = true;
        wakers.into_iter().for_each(Waker::wake);
        self.connection.inner().notify(|changed| &changed.stream_ended);
        result.map_err(|_| ClosedStream)
    }

    /// Abandons the stream but for its first `reliable_size` bytes: they reach the peer, and its application reads them before it
    /// hears of the reset and of `code` (RESET_STREAM_AT, draft-ietf-quic-reliable-stream-reset). More than was written cannot
    /// be promised: `u64::MAX` means all of that. Where nothing is promised it is the same as [`reset`](Self::reset).
    ///
    /// A second call can only make it less; the code of the first one holds, also if [`reset`](Self::reset) follows.
    ///
    /// # Errors
    /// If the peer knows no such resets: then nothing has changed. If the stream was already reset as a whole, or delivered
    /// completely.
    pub fn reset_at(&mut self, code: VarInt, reliable_size: u64) -> Result<(), ResetAtError> {
        let (mut state, mut wakers) = (self.connection.lock(), Vec::new());
        let mut stream = state.proto.streams().send(self.key.id);
        let result = stream.reset_at(code, reliable_size);
        if result.is_ok() && stream.is_abandoned() {
            state.streams.on_reset(self.key, &mut wakers);
        }
        self.connection.release(state);
        self.is_closed |= result != Err(ResetAtError::UnsupportedByPeer);
        wakers.into_iter().for_each(Waker::wake);
        self.connection.inner().notify(|changed| &changed.stream_ended);
        result
    }

    /// Sets what becomes of this stream if it is dropped before it was finished or reset: with a code it is reset
    /// (RESET_STREAM, RFC 9000 §19.4), with `None` finished. Otherwise
    /// [`Connection::set_drop_codes`](crate::Connection::set_drop_codes) says.
    pub fn set_drop_code(&mut self, code: Option<VarInt>) {
        self.drop_code = Some(code);
    }

    /// Sets the priority of this stream against the others of the connection. It is a level, as streams of higher levels are
    /// sent first and those of the same level share, or the urgency of an HTTP response and whether it is incremental
    /// (RFC 9218): see [`Priority`]. The default is level 0.
    ///
    /// # Errors
    /// If the stream is delivered or reset.
    pub fn set_priority(&self, priority: impl Into<Priority>) -> Result<(), ClosedStream> {
        let mut state = self.connection.lock();
        let result = state.proto.streams().send(self.key.id).set_priority(priority);
        result.map_err(|_| ClosedStream)
    }

    /// Sets how much may be written ahead of what is sent, in bytes, one at least: writing waits while more is there than that, and goes on
    /// when half of it was sent. Without it all may be that `TransportConfig::send_window` allows, which on a fast path is far more than
    /// an application is late that is at hand. What is not written can still be something else, and takes no memory.
    ///
    /// # Errors
    /// If the stream is delivered or reset.
    pub fn set_unsent_max(&self, bytes: u64) -> Result<(), ClosedStream> {
        let mut state = self.connection.lock();
        let result = state.proto.streams().send(self.key.id).set_unsent_max(bytes);
        self.connection.release(state);
        result.map_err(|_| ClosedStream)
    }

    /// Sets what forward erasure correction does for what is sent on this stream from now on. The default is
    /// [`FecConfig::mode`](crate::FecConfig::mode). Without effect where erasure correction is off, or the peer does not have it.
    ///
    /// ```
    /// # use fulmar::{ClosedStream, Protection, SendStream};
    /// # fn protect(video: &SendStream, update: &SendStream) -> Result<(), ClosedStream> {
    /// // What is seen now is of no use when it comes late; a download is not worth the repair packets.
    /// video.set_protection(Protection::Deadline)?;
    /// update.set_protection(Protection::None)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the stream is delivered or reset.
    pub fn set_protection(&self, protection: Protection) -> Result<(), ClosedStream> {
        let mut state = self.connection.lock();
        let result = state.proto.streams().send(self.key.id).set_protection(protection);
        result.map_err(|_| ClosedStream)
    }

    /// The priority of this stream.
    ///
    /// # Errors
    /// If the stream is delivered or reset.
    pub fn priority(&self) -> Result<Priority, ClosedStream> {
        self.connection.lock().proto.streams().send(self.key.id).priority().map_err(|_| ClosedStream)
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let mut state = self.connection.lock();
        state.streams.completing(self.key).leave(&mut self.stopping);
        let mut wakers = Vec::new();
        if !self.is_closed && state.error.is_none() {
            let code = self.drop_code.unwrap_or(state.drop_codes.reset_stream);
            let mut stream = state.proto.streams().send(self.key.id);
            match code {
                Some(code) if stream.reset(code).is_ok() => state.streams.on_reset(self.key, &mut wakers),
                Some(_) => {}
                None => drop(stream.finish()),
            }
        }
        state.streams.release_writer(self.key);
        self.connection.release(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream").field("id", &self.key.id).finish_non_exhaustive()
    }
}
