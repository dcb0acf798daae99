//! The sending side of a stream.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use fulmar_proto::{ResetAtError, StreamId, VarInt};
use tokio::io::AsyncWrite;

use crate::error::{ClosedStream, StoppedError, WriteError};
use crate::shared::{ConnectionRef, Fate};

/// A stream that this end sends.
///
/// Bytes that were written are sent in order and repeated until they are acknowledged. Writing waits while the peer's flow
/// control (RFC 9000 §4) or `TransportConfig::send_window` allows no more.
///
/// Dropping the stream finishes it, if it was neither finished nor reset: everything that was written is still delivered, as
/// long as the connection lives. Whoever gives up in the middle should call [`reset`](Self::reset), so that the peer does
/// not take a part for the whole.
pub struct SendStream {
    connection: ConnectionRef,
    id: StreamId,
    fate: Arc<Fate>,
    written: u64,
    /// Finished or reset by this end.
    is_closed: bool,
}

impl SendStream {
    pub(crate) fn new(connection: ConnectionRef, id: StreamId) -> Self {
        let fate = connection.lock().streams.follow(id);
        Self { connection, id, fate, written: 0, is_closed: false }
    }

    /// The stream's number.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// How many bytes were accepted from the application so far. After a cancelled [`write_all`](Self::write_all) it tells how far that came.
    pub fn bytes_written(&self) -> u64 {
        self.written
    }

    /// Writes as much of `data` as there is room for, at least one byte, and returns how much. The bytes are copied.
    ///
    /// Cancellation safe: nothing is written unless it returns `Ok`.
    ///
    /// # Errors
    /// If the peer stopped the stream, the stream was closed or the connection is over.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write_bytes(cx, data)).await
    }

    /// Writes all of `data`. The bytes are copied.
    ///
    /// Cancelled, it has written a prefix of `data`, in order and without gaps; [`bytes_written`](Self::bytes_written) tells how much.
    ///
    /// # Errors
    /// See [`write`](Self::write).
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        while !data.is_empty() {
            let written = self.write(data).await?;
            data = &data[written..];
        }
        Ok(())
    }

    /// Writes as much of `data` as there is room for, at least one byte, without copying, and cuts it off from `data`.
    ///
    /// Cancellation safe: what remains in `data` is what was not written.
    ///
    /// # Errors
    /// See [`write`](Self::write).
    pub async fn write_some(&mut self, data: &mut Bytes) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write_chunk(cx, data)).await
    }

    /// Writes all of `data` without copying.
    ///
    /// Cancelled, it has written a prefix of `data`; [`bytes_written`](Self::bytes_written) tells how much.
    ///
    /// # Errors
    /// See [`write`](Self::write).
    pub async fn write_chunk(&mut self, mut data: Bytes) -> Result<(), WriteError> {
        while !data.is_empty() {
            self.write_some(&mut data).await?;
        }
        Ok(())
    }

    /// Writes all `chunks` in order without copying. What was written is cut off from them.
    ///
    /// Cancellation safe: what remains in `chunks` is what was not written.
    ///
    /// # Errors
    /// See [`write`](Self::write).
    pub async fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<(), WriteError> {
        while chunks.iter().any(|chunk| !chunk.is_empty()) {
            poll_fn(|cx| self.poll_send(cx, |stream| stream.write_chunks(chunks))).await?;
        }
        Ok(())
    }

    /// Ends the stream after what was written. It does not wait for the delivery: see [`stopped`](Self::stopped).
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
        let _ = state.proto.streams().send(self.id).finish();
        self.connection.release(state);
        Ok(())
    }

    /// Abandons the stream: what was not delivered yet never will be, and the peer is told `code` (RESET_STREAM, RFC 9000 §19.4).
    /// A stream that was finished can still be reset.
    ///
    /// # Errors
    /// If the stream was already reset, or delivered completely.
    pub fn reset(&mut self, code: VarInt) -> Result<(), ClosedStream> {
        let mut state = self.connection.lock();
        let result = state.proto.streams().send(self.id).reset(code);
        self.connection.release(state);
        self.is_closed = true;
        result.map_err(|_| ClosedStream)
    }

    /// Abandons the stream but for its first `reliable_size` bytes: they reach the peer, and its application reads them before it
    /// hears of the reset and of `code` (RESET_STREAM_AT, draft-ietf-quic-reliable-stream-reset). More than was written cannot
    /// be promised: `u64::MAX` means all of that.
    ///
    /// A second call can only make it less; the code of the first one holds, also if [`reset`](Self::reset) follows.
    ///
    /// # Errors
    /// If the peer knows no such resets: then nothing has changed. If the stream was already reset as a whole, or delivered
    /// completely.
    pub fn reset_at(&mut self, code: VarInt, reliable_size: u64) -> Result<(), ResetAtError> {
        let mut state = self.connection.lock();
        let result = state.proto.streams().send(self.id).reset_at(code, reliable_size);
        self.connection.release(state);
        self.is_closed |= result != Err(ResetAtError::UnsupportedByPeer);
        result
    }

    /// Waits for the fate of the stream: `None` when the peer has received all of it, up to its end, or what
    /// [`reset_at`](Self::reset_at) has left of it; `Some(code)` when the peer
    /// asked to stop (STOP_SENDING, RFC 9000 §19.5).
    ///
    /// The future does not borrow the stream and may outlive it. Cancellation safe.
    ///
    /// # Errors
    /// If the connection ends first. The future is no handle: it does not keep the connection open.
    pub fn stopped(&self) -> impl Future<Output = Result<Option<VarInt>, StoppedError>> + Send + 'static {
        let fate = self.fate.clone();
        let connection = self.connection.inner().clone();
        async move {
            loop {
                let changed = fate.changed.notified();
                if let Some(outcome) = fate.outcome.get() {
                    return Ok(*outcome);
                }
                connection.lock().check()?;
                changed.await;
            }
        }
    }

    /// Sets the priority of this stream against the others of the connection: streams of a higher priority are sent first,
    /// those of equal priority share. The default is 0.
    ///
    /// # Errors
    /// If the stream is delivered or reset.
    pub fn set_priority(&self, priority: i32) -> Result<(), ClosedStream> {
        let mut state = self.connection.lock();
        let result = state.proto.streams().send(self.id).set_priority(priority);
        result.map_err(|_| ClosedStream)
    }

    /// The priority of this stream.
    ///
    /// # Errors
    /// If the stream is delivered or reset.
    pub fn priority(&self) -> Result<i32, ClosedStream> {
        self.connection.lock().proto.streams().send(self.id).priority().map_err(|_| ClosedStream)
    }

    fn poll_write_bytes(&mut self, cx: &mut Context<'_>, data: &[u8]) -> Poll<Result<usize, WriteError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.poll_send(cx, |stream| stream.write(data))
    }

    fn poll_write_chunk(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Poll<Result<usize, WriteError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.poll_send(cx, |stream| stream.write_chunk(data))
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut fulmar_proto::SendHandle<'_>) -> Result<usize, fulmar_proto::WriteError>,
    ) -> Poll<Result<usize, WriteError>> {
        let mut state = self.connection.lock();
        state.check()?;
        if self.is_closed {
            return Poll::Ready(Err(WriteError::ClosedStream));
        }
        match write(&mut state.proto.streams().send(self.id)) {
            Ok(written) => {
                self.connection.release(state);
                self.written += written as u64;
                Poll::Ready(Ok(written))
            }
            Err(fulmar_proto::WriteError::Blocked) => {
                state.streams.wait_to_write(self.id, cx);
                Poll::Pending
            }
            Err(fulmar_proto::WriteError::Stopped(code)) => Poll::Ready(Err(WriteError::Stopped(code))),
            Err(fulmar_proto::WriteError::ClosedStream) => Poll::Ready(Err(self.closed_error())),
        }
    }

    /// A stream that the core has forgotten without this handle's doing was stopped by the peer.
    fn closed_error(&self) -> WriteError {
        match self.fate.outcome.get() {
            Some(Some(code)) => WriteError::Stopped(*code),
            _ => WriteError::ClosedStream,
        }
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let mut state = self.connection.lock();
        state.streams.forget_sender(self.id, &self.fate);
        if !self.is_closed && state.error.is_none() {
            let _ = state.proto.streams().send(self.id).finish();
            self.connection.release(state);
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write_bytes(cx, data).map_err(Into::into)
    }

    /// Does nothing: what was written is sent as soon as the network allows.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Finishes the stream. It does not wait for the delivery.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().finish().or(Ok(())))
    }
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream").field("id", &self.id).finish_non_exhaustive()
    }
}
