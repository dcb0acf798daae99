//! Where read bytes go.

use bytes::Bytes;
use tokio::io::ReadBuf;

use super::Chunk;

/// Takes the bytes of a stream.
pub(super) trait Sink {
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
pub(super) struct One {
    pub(super) max_len: usize,
    pub(super) chunk: Option<Chunk>,
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
pub(super) struct Many<'a> {
    pub(super) chunks: &'a mut [Bytes],
    pub(super) filled: usize,
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
