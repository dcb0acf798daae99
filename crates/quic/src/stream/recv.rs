//! The receiving side of a stream.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use fulmar_proto::{StreamId, VarInt};
use tokio::io::{AsyncRead, ReadBuf};

use crate::error::{ClosedStream, ReadError, ReadExactError, ReadToEndError};
use crate::shared::ConnectionRef;

/// A run of bytes of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The position of the first byte in the stream.
    pub offset: u64,
    /// The bytes. They are a slice of a receive buffer that cannot be reused before they are dropped.
    pub bytes: Bytes,
}

/// A stream that the peer sends.
///
/// All ways of reading can be mixed, and all futures are cancellation safe: no byte is lost.
///
/// Dropping the stream before its end was read asks the peer to stop, with code 0 (STOP_SENDING, RFC 9000 §19.5).
pub struct RecvStream {
    connection: ConnectionRef,
    id: StreamId,
    /// Chunks that `read_exact` or `read_to_end` took from the core and could not deliver, because they were cancelled or failed.
    unread: VecDeque<Chunk>,
    end: Option<End>,
}

/// How the stream ended for this handle.
#[derive(Clone, Copy)]
enum End {
    Finished,
    Reset(VarInt),
    Stopped,
}

impl RecvStream {
    pub(crate) fn new(connection: ConnectionRef, id: StreamId) -> Self {
        Self { connection, id, unread: VecDeque::new(), end: None }
    }

    /// Whether a part of what was received came before the handshake was complete (0-RTT): then an attacker may have
    /// recorded and repeated it, and what it asks for must do no harm when it is done twice (RFC 9001 §9.2). To be asked
    /// before the end of the stream is read.
    pub fn is_early_data(&self) -> bool {
        self.connection.lock().proto.streams().recv(self.id).is_early_data()
    }

    /// The stream's number.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Reads what is there into `buffer` and returns how many bytes, at least one unless the buffer is empty, or `None` at the end of
    /// the stream.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// If the peer reset the stream, this end stopped it, or the connection is over and everything that arrived was read.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ReadError> {
        let mut buffer = ReadBuf::new(buffer);
        let more = poll_fn(|cx| self.poll_into(cx, true, &mut buffer)).await?;
        Ok(more.then(|| buffer.filled().len()))
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
        let mut one = One { max_len: max_len.max(1), chunk: None };
        poll_fn(|cx| self.poll_into(cx, ordered, &mut one)).await?;
        Ok(one.chunk)
    }

    /// Reads the chunks that are there, in order and without copying, into `chunks` and returns how many, at least one unless
    /// `chunks` is empty, or `None` at the end of the stream.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        let mut many = Many { chunks, filled: 0 };
        let more = poll_fn(|cx| self.poll_into(cx, true, &mut many)).await?;
        Ok(more.then_some(many.filled))
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
        let result = state.proto.streams().recv(self.id).stop(code);
        self.connection.release(state);
        result.map_err(|_| ClosedStream)
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
        if first.bytes.len() <= max_len {
            return self.unread.pop_front();
        }
        let taken = Chunk { offset: first.offset, bytes: first.bytes.split_to(max_len) };
        first.offset += max_len as u64;
        Some(taken)
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
        let mut read = false;
        let stall = loop {
            let room = sink.room();
            if room == 0 {
                break None;
            }
            match state.proto.streams().recv(self.id).read(room, ordered) {
                Ok(Some(chunk)) => {
                    sink.put(Chunk { offset: chunk.offset, bytes: chunk.bytes });
                    read = true;
                }
                Ok(None) => {
                    self.end = Some(End::Finished);
                    break None;
                }
                Err(fulmar_proto::ReadError::Reset(code)) => {
                    self.end = Some(End::Reset(code));
                    break None;
                }
                Err(fulmar_proto::ReadError::Blocked) => break Some(None),
                Err(fulmar_proto::ReadError::ClosedStream) => break Some(Some(ReadError::ClosedStream)),
            }
        };
        if read || self.end.is_some() {
            // Flow control has credit to give back.
            self.connection.release(state);
            return Poll::Ready(Ok(read));
        }
        if any {
            return Poll::Ready(Ok(false));
        }
        state.check()?;
        match stall {
            Some(Some(error)) => Poll::Ready(Err(error)),
            _ => {
                state.streams.wait_to_read(self.id, cx);
                Poll::Pending
            }
        }
    }
}

/// Where read bytes go.
trait Sink {
    /// How many bytes the next chunk may have; zero when no more is wanted.
    fn room(&self) -> usize;
    /// Takes a chunk of at most [`room`](Self::room) bytes.
    fn put(&mut self, chunk: Chunk);
}

impl Sink for ReadBuf<'_> {
    fn room(&self) -> usize {
        self.remaining()
    }

    fn put(&mut self, chunk: Chunk) {
        self.put_slice(&chunk.bytes);
    }
}

/// A single chunk of limited length.
struct One {
    max_len: usize,
    chunk: Option<Chunk>,
}

impl Sink for One {
    fn room(&self) -> usize {
        if self.chunk.is_some() { 0 } else { self.max_len }
    }

    fn put(&mut self, chunk: Chunk) {
        self.chunk = Some(chunk);
    }
}

/// A list of chunks of any length.
struct Many<'a> {
    chunks: &'a mut [Bytes],
    filled: usize,
}

impl Sink for Many<'_> {
    fn room(&self) -> usize {
        if self.filled < self.chunks.len() { usize::MAX } else { 0 }
    }

    fn put(&mut self, chunk: Chunk) {
        self.chunks[self.filled] = chunk.bytes;
        self.filled += 1;
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        let mut state = self.connection.lock();
        state.streams.forget_reader(self.id);
        if self.end.is_none() && state.error.is_none() {
            let _ = state.proto.streams().recv(self.id).stop(VarInt::ZERO);
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

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream").field("id", &self.id).finish_non_exhaustive()
    }
}
