//! Reading from a stream.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::MutexGuard;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};

use super::sink::{Many, One, Sink};
use super::{Chunk, End, RecvStream};
use crate::error::{ReadError, ReadExactError, ReadToEndError};
use crate::shared::State;

impl RecvStream {
    /// Reads what is there into `buffer` and returns how many bytes, at least one unless the buffer is empty, or `None` at the end of
    /// the stream.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// If the peer reset the stream, this end stopped it, or the connection is over and everything that arrived was read.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ReadError> {
        poll_fn(|cx| self.poll_read(cx, buffer)).await
    }

    /// Reads the next chunk of at most `max_len` bytes (at least one) without copying it, or `None` at the end of the stream.
    ///
    /// With `ordered`, chunks come in the order of the stream. Without, they come as they arrive. The two can be mixed: every
    /// byte is read once.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub async fn read_chunk(&mut self, max_len: usize, ordered: bool) -> Result<Option<Chunk>, ReadError> {
        poll_fn(|cx| self.poll_read_chunk(cx, max_len, ordered)).await
    }

    /// Reads the chunks that are there, in order and without copying, into `chunks` and returns how many, at least one unless
    /// `chunks` is empty, or `None` at the end of the stream.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        poll_fn(|cx| self.poll_read_chunks(cx, chunks)).await
    }

    /// Reads what is there into `buffer`: see [`read`](Self::read).
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        let mut buffer = ReadBuf::new(buffer);
        let more = ready!(self.poll_into(cx, true, &mut buffer))?;
        Poll::Ready(Ok(more.then(|| buffer.filled().len())))
    }

    /// Reads the next chunk: see [`read_chunk`](Self::read_chunk).
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max_len: usize,
        ordered: bool,
    ) -> Poll<Result<Option<Chunk>, ReadError>> {
        let mut one = One { max_len: max_len.max(1), chunk: None };
        ready!(self.poll_into(cx, ordered, &mut one))?;
        Poll::Ready(Ok(one.chunk))
    }

    /// Reads the chunks that are there: see [`read_chunks`](Self::read_chunks).
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub fn poll_read_chunks(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        let mut many = Many { chunks, filled: 0 };
        let more = ready!(self.poll_into(cx, true, &mut many))?;
        Poll::Ready(Ok(more.then_some(many.filled)))
    }

    /// Fills `buffer`.
    ///
    /// Cancellation safe: until it returns `Ok`, the bytes stay in the stream.
    ///
    /// # Errors
    /// If the stream ends before, or see [`read`](Self::read). What was received can still be read.
    pub async fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ReadExactError> {
        let have = self.gather(buffer.len()).await?;
        if have < buffer.len() {
            return Err(ReadExactError::FinishedEarly(have));
        }
        let mut rest = buffer;
        while !rest.is_empty() {
            let Some(chunk) = self.take_unread(rest.len()) else { break };
            let (filled, unfilled) = rest.split_at_mut(chunk.bytes.len());
            filled.copy_from_slice(&chunk.bytes);
            rest = unfilled;
        }
        Ok(())
    }

    /// Reads the stream to its end, if it is no longer than `limit` bytes.
    ///
    /// Cancellation safe: until it returns `Ok`, the bytes stay in the stream.
    ///
    /// # Errors
    /// If the stream is longer, or see [`read`](Self::read). What was received can still be read.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        // One byte more than allowed tells that the stream is too long.
        let have = self.gather(limit.saturating_add(1)).await?;
        if have > limit {
            return Err(ReadToEndError::TooLong(limit));
        }
        let mut all = Vec::with_capacity(have);
        for chunk in self.unread.drain(..) {
            all.extend_from_slice(&chunk.bytes);
        }
        Ok(all)
    }

    /// Collects bytes in `unread` until there are `wanted` or the stream ends. Returns how many there are.
    async fn gather(&mut self, wanted: usize) -> Result<usize, ReadError> {
        let mut have: usize = self.unread.iter().map(|chunk| chunk.bytes.len()).sum();
        while have < wanted {
            let Some(bytes) = poll_fn(|cx| self.poll_gather(cx, wanted - have)).await? else { break };
            have += bytes;
        }
        Ok(have)
    }

    /// Takes the next chunk from the core into `unread`. Returns its length.
    fn poll_gather(
        &mut self,
        cx: &mut Context<'_>,
        max_len: usize,
    ) -> Poll<Result<Option<usize>, ReadError>> {
        match self.end {
            Some(End::Finished) => return Poll::Ready(Ok(None)),
            Some(End::Reset(code)) => return Poll::Ready(Err(ReadError::Reset(code))),
            Some(End::Stopped) => return Poll::Ready(Err(ReadError::ClosedStream)),
            None => {}
        }
        let mut one = One { max_len, chunk: None };
        ready!(self.poll_core(cx, true, &mut one, false))?;
        match one.chunk {
            Some(chunk) => {
                let len = chunk.bytes.len();
                self.unread.push_back(chunk);
                Poll::Ready(Ok(Some(len)))
            }
            // The end was found just now.
            None => self.poll_gather(cx, max_len),
        }
    }

    /// At most `max_len` bytes of what was read before and not delivered.
    fn take_unread(&mut self, max_len: usize) -> Option<Chunk> {
        let first = self.unread.front_mut()?;
        if first.bytes.len() > max_len {
            let taken = Chunk { offset: first.offset, bytes: first.bytes.split_to(max_len), fin: false };
            first.offset += max_len as u64;
            return Some(taken);
        }
        let mut chunk = self.unread.pop_front()?;
        // Where the end came alone, it is known by now.
        chunk.fin = self.is_finished();
        Some(chunk)
    }

    /// Moves bytes into `sink` until it is full or no more are there. Returns false at the end of the stream.
    fn poll_into(
        &mut self,
        cx: &mut Context<'_>,
        ordered: bool,
        sink: &mut impl Sink,
    ) -> Poll<Result<bool, ReadError>> {
        let mut any = sink.room() == 0;
        while sink.room() > 0
            && let Some(chunk) = self.take_unread(sink.room())
        {
            sink.put(chunk);
            any = true;
        }
        if sink.room() == 0 {
            return Poll::Ready(Ok(true));
        }
        if self.end.is_none() {
            any |= ready!(self.poll_core(cx, ordered, sink, any))?;
        }
        match self.end {
            _ if any => Poll::Ready(Ok(true)),
            Some(End::Reset(code)) => Poll::Ready(Err(ReadError::Reset(code))),
            Some(End::Stopped) => Poll::Ready(Err(ReadError::ClosedStream)),
            Some(End::Finished) | None => Poll::Ready(Ok(false)),
        }
    }

    /// The part of [`poll_into`](Self::poll_into) that needs the connection: one lock, however many chunks there are.
    /// `any` says whether something was read already, so that there is no need to wait. Returns whether anything was read.
    fn poll_core(
        &mut self,
        cx: &mut Context<'_>,
        ordered: bool,
        sink: &mut impl Sink,
        any: bool,
    ) -> Poll<Result<bool, ReadError>> {
        let mut state = self.connection.lock();
        let mut stream = state.proto.streams().recv(self.key.id);
        // It cannot be asked when the end was read.
        self.is_early |= stream.is_early_data();
        let mut read = false;
        let mut is_closed = false;
        while sink.room() > 0 {
            match stream.read(sink.room(), ordered) {
                Ok(Some(chunk)) => {
                    sink.put(Chunk { offset: chunk.offset, bytes: chunk.bytes, fin: chunk.fin });
                    read = true;
                    if chunk.fin {
                        // What was read last frees what the stream holds.
                        let after = stream.read(1, ordered);
                        debug_assert_eq!(after, Ok(None), "nothing follows the end");
                        self.end = Some(End::Finished);
                        break;
                    }
                }
                Ok(None) => {
                    self.end = Some(End::Finished);
                    break;
                }
                Err(fulmar_proto::ReadError::Reset(code)) => {
                    self.end = Some(End::Reset(code));
                    break;
                }
                Err(fulmar_proto::ReadError::Blocked) => break,
                Err(fulmar_proto::ReadError::ClosedStream) => {
                    is_closed = true;
                    break;
                }
            }
        }
        if read || self.end.is_some() {
            if self.end.is_some() {
                state.streams.release_reader(self.key);
            }
            self.release(state);
            return Poll::Ready(Ok(read));
        }
        if any {
            return Poll::Ready(Ok(false));
        }
        state.check()?;
        if is_closed {
            return Poll::Ready(Err(ReadError::ClosedStream));
        }
        state.streams.wait_to_read(self.key, cx);
        if state.readers.on_wait() {
            self.connection.release(state);
        }
        Poll::Pending
    }

    /// Releases the lock after something was read. To wake the worker costs more than to read, and there is nothing for it to do unless
    /// flow control has credit to give back or it waits for readers.
    fn release(&self, mut state: MutexGuard<'_, State>) {
        let unread = state.proto.unread();
        if state.readers.on_read(unread) || self.end.is_some() || state.proto.has_stream_frames() {
            self.connection.release(state);
        }
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // At the end of the stream the buffer is left as it is, which is how this trait tells it.
        self.get_mut().poll_into(cx, true, buffer).map(|result| Ok(result.map(|_| ())?))
    }
}
