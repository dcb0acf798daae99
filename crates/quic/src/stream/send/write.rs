//! Writing to a stream.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use fulmar_proto::SendHandle;
use tokio::io::AsyncWrite;

use super::SendStream;
use crate::error::WriteError;
use crate::shared::{Completion, State};

impl SendStream {
    /// Writes as much of `data` as there is room for, at least one byte, and returns how much. The bytes are copied.
    ///
    /// Cancellation safe: nothing is written unless it returns `Ok`.
    ///
    /// # Errors
    /// If the peer stopped the stream, the stream was closed or the connection is over.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write(cx, data)).await
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
            poll_fn(|cx| self.poll_write_chunks(cx, chunks)).await?;
        }
        Ok(())
    }

    /// Writes all of `data` without copying, and ends the stream: like [`write_chunk`](Self::write_chunk) and
    /// [`finish`](Self::finish), but the last bytes and the end leave in the same frame. It does not wait for the delivery.
    ///
    /// Cancelled, it has written a prefix of `data`, and the stream is not finished;
    /// [`bytes_written`](Self::bytes_written) tells how much.
    ///
    /// # Errors
    /// See [`write`](Self::write).
    pub async fn finish_with(&mut self, mut data: Bytes) -> Result<(), WriteError> {
        poll_fn(|cx| self.poll_finish_with(cx, &mut data)).await
    }

    /// Waits until there is room to write at least one byte, and returns for how many there is. Whoever makes data only then has none of
    /// it in memory for a peer that takes nothing. Room may be gone when it is used: other streams of the connection share it.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// See [`write`](Self::write).
    pub async fn ready(&mut self) -> Result<u64, WriteError> {
        poll_fn(|cx| self.poll_ready(cx)).await
    }

    /// For how many bytes there is room, if for any: see [`ready`](Self::ready).
    ///
    /// # Errors
    /// See [`write`](Self::write).
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<u64, WriteError>> {
        let mut state = self.connection.lock();
        self.attempt(&mut state, cx, |stream| stream.room())
    }

    /// Writes as much of `data` as there is room for: see [`write`](Self::write).
    ///
    /// # Errors
    /// See [`write`](Self::write).
    pub fn poll_write(&mut self, cx: &mut Context<'_>, data: &[u8]) -> Poll<Result<usize, WriteError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.poll_send(cx, |stream| stream.write(data))
    }

    /// Writes as much of `data` as there is room for, and cuts it off: see [`write_some`](Self::write_some).
    ///
    /// # Errors
    /// See [`write`](Self::write).
    pub fn poll_write_chunk(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Poll<Result<usize, WriteError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.poll_send(cx, |stream| stream.write_chunk(data))
    }

    /// Writes as much of `chunks` as there is room for, in order and without copying, cuts it off from them, and returns how
    /// many bytes that were.
    ///
    /// # Errors
    /// See [`write`](Self::write).
    pub fn poll_write_chunks(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<usize, WriteError>> {
        if chunks.iter().all(Bytes::is_empty) {
            return Poll::Ready(Ok(0));
        }
        self.poll_send(cx, |stream| stream.write_chunks(chunks))
    }

    /// Writes what there is room for of `data` and cuts it off; ready when all is written and the stream finished. To be
    /// called with what is left until then: see [`finish_with`](Self::finish_with).
    ///
    /// # Errors
    /// See [`write`](Self::write).
    pub fn poll_finish_with(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Poll<Result<(), WriteError>> {
        loop {
            match self.poll_send(cx, |stream| stream.finish_with(data)) {
                Poll::Ready(Ok(_)) if data.is_empty() => {
                    self.is_closed = true;
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Writes with `write`, which returns the number of bytes, and has the worker send them.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut SendHandle<'_>) -> Result<usize, fulmar_proto::WriteError>,
    ) -> Poll<Result<usize, WriteError>> {
        let mut state = self.connection.lock();
        let polled = self.attempt(&mut state, cx, write);
        if let Poll::Ready(Ok(written)) = polled {
            self.connection.release(state);
            self.written += written as u64;
        }
        polled
    }

    /// Does something with the stream, or notes that the task of `cx` waits for room to do it.
    fn attempt<T>(
        &self,
        state: &mut State,
        cx: &Context<'_>,
        call: impl FnOnce(&mut SendHandle<'_>) -> Result<T, fulmar_proto::WriteError>,
    ) -> Poll<Result<T, WriteError>> {
        state.check()?;
        if self.is_closed {
            return Poll::Ready(Err(WriteError::ClosedStream));
        }
        match call(&mut state.proto.streams().send(self.key.id)) {
            Ok(done) => Poll::Ready(Ok(done)),
            Err(fulmar_proto::WriteError::Blocked) => {
                state.streams.wait_to_write(self.key, cx);
                Poll::Pending
            }
            Err(fulmar_proto::WriteError::Stopped(code)) => Poll::Ready(Err(WriteError::Stopped(code))),
            // A stream that the core has forgotten without this handle's doing was stopped by the peer.
            Err(fulmar_proto::WriteError::ClosedStream) => match state.streams.completion(self.key) {
                Some(Completion::Stopped(code)) => Poll::Ready(Err(WriteError::Stopped(code))),
                Some(Completion::Received | Completion::Reset) | None => {
                    Poll::Ready(Err(WriteError::ClosedStream))
                }
            },
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Self::poll_write(self.get_mut(), cx, data).map_err(Into::into)
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
