//! The receiving side of a stream.

mod read;
mod sink;

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::Bytes;
use fulmar_proto::{ConnectionError, StreamId, VarInt};

use crate::error::ClosedStream;
use crate::shared::{ConnectionRef, SlotKey};

/// A run of bytes of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The position of the first byte in the stream.
    pub offset: u64,
    /// The bytes, at least one. They are a slice of a receive buffer that cannot be reused before they are dropped.
    pub bytes: Bytes,
    /// Whether the stream has ended with this chunk: everything else was read before, and nothing follows. There is no need to
    /// read again; who does gets `None`. A stream whose end comes after its last bytes has no such chunk.
    pub fin: bool,
}

/// A stream that the peer sends.
///
/// All ways of reading can be mixed, and all futures are cancellation safe: no byte is lost.
///
/// Dropping the stream before its end was read asks the peer to stop (STOP_SENDING, RFC 9000 §19.5), with code 0 if
/// [`set_drop_code`](Self::set_drop_code) and
/// [`Connection::set_drop_codes`](crate::Connection::set_drop_codes) say nothing else.
///
/// The `poll_*` methods do what the async ones do, for hand-written futures and adapters. Of those that return `Pending`, the
/// task that polled last is woken.
pub struct RecvStream {
    connection: ConnectionRef,
    /// Of the slot that the stream has until its end.
    key: SlotKey,
    /// Chunks that `read_exact` or `read_to_end` took from the core and could not deliver, because they were cancelled or failed.
    unread: VecDeque<Chunk>,
    end: Option<End>,
    /// A part of what was read came as early data.
    is_early: bool,
    /// What to stop with when this is dropped. If nothing is set, the connection says.
    drop_code: Option<VarInt>,
}

/// How the stream ended for this handle.
#[derive(Clone, Copy)]
enum End {
    Finished,
    Reset(VarInt),
    Stopped,
}

impl RecvStream {
    pub(crate) fn new(connection: ConnectionRef, key: SlotKey) -> Self {
        Self { connection, key, unread: VecDeque::new(), end: None, is_early: false, drop_code: None }
    }

    /// Whether a part of what was received came before the handshake was complete (0-RTT): then an attacker may have
    /// recorded and repeated it, and what it asks for must do no harm when it is done twice (RFC 9001 §9.2).
    pub fn is_early_data(&self) -> bool {
        self.is_early || self.connection.lock().proto.streams().recv(self.key.id).is_early_data()
    }

    /// The stream's number.
    pub fn id(&self) -> StreamId {
        self.key.id
    }

    /// Whether the stream was read to its end: there is nothing more to read, and it was not reset.
    pub fn is_finished(&self) -> bool {
        self.unread.is_empty() && matches!(self.end, Some(End::Finished))
    }

    /// Asks the peer to stop sending, for the reason `code` (STOP_SENDING, RFC 9000 §19.5). What was not read is discarded.
    ///
    /// # Errors
    /// If the end of the stream was read or it was stopped before.
    pub fn stop(&mut self, code: VarInt) -> Result<(), ClosedStream> {
        if self.end.is_some() {
            return Err(ClosedStream);
        }
        self.end = Some(End::Stopped);
        self.unread.clear();
        let mut state = self.connection.lock();
        let result = state.proto.streams().recv(self.key.id).stop(code);
        state.streams.release_reader(self.key);
        self.connection.release(state);
        result.map_err(|_| ClosedStream)
    }

    /// Sets the code with which the peer is asked to stop if this stream is dropped before its end was read. Otherwise
    /// [`Connection::set_drop_codes`](crate::Connection::set_drop_codes) says.
    pub fn set_drop_code(&mut self, code: VarInt) {
        self.drop_code = Some(code);
    }

    /// Waits until the peer resets the stream, and returns its code; what came before may be unread. `None` if it is too late
    /// for a reset: everything has arrived, or this end has stopped the stream.
    ///
    /// A server learns in this way that nobody waits for what it is working on. Cancellation safe.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn received_reset(&mut self) -> Result<Option<VarInt>, ConnectionError> {
        poll_fn(|cx| self.poll_received_reset(cx)).await
    }

    /// Whether the peer has reset the stream: see [`received_reset`](Self::received_reset).
    ///
    /// # Errors
    /// If the connection is over.
    pub fn poll_received_reset(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<VarInt>, ConnectionError>> {
        match self.end {
            Some(End::Reset(code)) => return Poll::Ready(Ok(Some(code))),
            Some(End::Finished | End::Stopped) => return Poll::Ready(Ok(None)),
            None => {}
        }
        let mut state = self.connection.lock();
        match state.proto.streams().recv(self.key.id).received_reset() {
            Ok(code) => Poll::Ready(Ok(code)),
            Err(fulmar_proto::ReadError::Reset(code)) => Poll::Ready(Ok(Some(code))),
            Err(fulmar_proto::ReadError::ClosedStream) => Poll::Ready(Ok(None)),
            Err(fulmar_proto::ReadError::Blocked) => {
                state.check()?;
                state.streams.wait_to_read(self.key, cx);
                Poll::Pending
            }
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if self.end.is_some() {
            return;
        }
        let mut state = self.connection.lock();
        state.streams.release_reader(self.key);
        if state.error.is_none() {
            let code = self.drop_code.unwrap_or(state.drop_codes.stop_sending);
            let _ = state.proto.streams().recv(self.key.id).stop(code);
            self.connection.release(state);
        }
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream").field("id", &self.id()).finish_non_exhaustive()
    }
}
