//! The bytes of a stream that the peer has not acknowledged.

use std::ops::Range;

use bytes::{Buf, Bytes};
use fulmar_base::{RangeSet, ShortQueue};

/// The smallest buffer that is allocated for copied bytes.
const CHUNK_MIN: usize = 1024;
/// The largest buffer that is allocated for copied bytes. Buffers grow with what a stream holds, of which each is a
/// [`CHUNK_PART`], so that many small streams stay small, little is unused, and a large one allocates rarely. A buffer
/// stays as a whole until all of it is acknowledged or little of it is left.
const CHUNK_MAX: usize = 16 * 1024;
/// See [`CHUNK_MAX`].
const CHUNK_PART: usize = 4;
/// The part of the buffers for copied bytes that a stream holds at least, if they are more than two small ones. A peer that
/// acknowledges all but a byte makes this end keep a byte, then, and not [`CHUNK_MAX`].
const HELD_PART: u64 = 4;

/// What was written to a stream: acknowledged, lost, in flight or not yet sent.
///
/// Bytes lie in chunks, in the order of their offsets. New data is read at a cursor, so that finding its
/// chunk costs nothing; a lost range is found by binary search. Chunks are dropped as soon as all of their
/// bytes are acknowledged and none before them is missing.
#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    chunks: ShortQueue<Chunk>,
    /// Everything below is acknowledged.
    acked_prefix: u64,
    /// The first byte that was never sent.
    next: u64,
    /// The end of what was written.
    end: u64,
    /// The chunk that holds `next`, or the last one if `next` is its end.
    cursor: usize,
    /// Acknowledged ranges above the prefix.
    acked: RangeSet,
    /// Ranges to send again: sent, lost, and not acknowledged.
    lost: RangeSet,
    /// How many bytes they have.
    lost_bytes: u64,
    /// What the buffers for copied bytes take, in bytes.
    allocated: usize,
}

#[derive(Debug)]
struct Chunk {
    start: u64,
    data: ChunkData,
}

#[derive(Debug)]
enum ChunkData {
    /// Copied from the application. Has room for more as long as it is the last chunk.
    Copied(Vec<u8>),
    /// Handed over by the application.
    Shared(Bytes),
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match &self.data {
            ChunkData::Copied(data) => data,
            ChunkData::Shared(data) => data,
        }
    }

    fn end(&self) -> u64 {
        self.start + self.bytes().len() as u64
    }

    /// What its buffer takes, in bytes. What the application has handed over is the application's.
    fn allocated(&self) -> usize {
        match &self.data {
            ChunkData::Copied(data) => data.capacity(),
            ChunkData::Shared(_) => 0,
        }
    }

    /// Has a buffer as small as what it has from `offset` on. Returns how many bytes that saves.
    fn shrink(&mut self, offset: u64) -> usize {
        let before = self.allocated();
        if let ChunkData::Copied(data) = &mut self.data {
            let acked = offset.saturating_sub(self.start);
            self.start += acked;
            data.drain(..acked as usize);
            data.shrink_to_fit();
        }
        before - self.allocated()
    }
}

impl SendBuffer {
    /// Appends a copy of `data`.
    pub(super) fn write(&mut self, mut data: &[u8]) {
        if let Some(Chunk { data: ChunkData::Copied(tail), .. }) = self.chunks.back_mut() {
            let fits = data.len().min(tail.capacity() - tail.len());
            tail.extend_from_slice(&data[..fits]);
            self.end += fits as u64;
            data.advance(fits);
        }
        while !data.is_empty() {
            let held = usize::try_from(self.end - self.acked_prefix).unwrap_or(CHUNK_MAX);
            let capacity = data.len().max(held / CHUNK_PART).clamp(CHUNK_MIN, CHUNK_MAX);
            let mut chunk = Vec::with_capacity(capacity);
            let fits = data.len().min(capacity);
            chunk.extend_from_slice(&data[..fits]);
            self.push(ChunkData::Copied(chunk), fits);
            data.advance(fits);
        }
    }

    /// Appends `data` without a copy.
    pub(super) fn write_chunk(&mut self, data: Bytes) {
        let len = data.len();
        if len > 0 {
            self.push(ChunkData::Shared(data), len);
        }
    }

    fn push(&mut self, data: ChunkData, len: usize) {
        let chunk = Chunk { start: self.end, data };
        self.allocated += chunk.allocated();
        self.chunks.push_back(chunk);
        self.end += len as u64;
    }

    /// The first byte that was never sent: also the amount of flow control credit used.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The end of what was written.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes that were never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.end - self.next
    }

    /// Bytes to send again.
    pub(super) fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Bytes that are held: written, and not acknowledged up to the first gap.
    pub(super) fn held(&self) -> u64 {
        self.end - self.acked_prefix
    }

    /// Whether everything that was written is acknowledged.
    pub(super) fn is_all_acked(&self) -> bool {
        self.acked_prefix == self.end
    }

    /// The first range to send again.
    pub(super) fn first_lost(&self) -> Option<Range<u64>> {
        self.lost.first()
    }

    /// Nothing from `offset` on has to arrive: what was not sent of it never is, what is lost of it is not repeated.
    pub(super) fn abandon_from(&mut self, offset: u64) {
        let end = offset.max(self.next);
        while let Some(last) = self.chunks.back().filter(|last| last.start >= end) {
            self.allocated -= last.allocated();
            self.chunks.pop_back();
        }
        if let Some(last) = self.chunks.back_mut() {
            let len = (end - last.start).try_into().unwrap_or(usize::MAX);
            match &mut last.data {
                ChunkData::Copied(data) => data.truncate(len),
                ChunkData::Shared(data) => data.truncate(len),
            }
        }
        self.end = self.end.min(end);
        self.cursor = self.cursor.min(self.chunks.len().saturating_sub(1));
        self.lost_bytes -= self.lost.remove(offset..u64::MAX);
    }

    /// Whether everything below `offset` is acknowledged.
    pub(super) fn is_acked_to(&self, offset: u64) -> bool {
        self.acked_prefix >= offset
    }

    /// Nothing that was sent has arrived or ever will: all of it is new again.
    pub(super) fn restart(&mut self) {
        debug_assert!(self.acked_prefix == 0 && self.acked.is_empty(), "something was acknowledged");
        self.next = self.acked_prefix;
        self.cursor = 0;
        (self.lost, self.lost_bytes) = (RangeSet::new(), 0);
    }

    /// Copies new data from [`SendBuffer::next`] into a packet.
    #[inline]
    pub(super) fn copy_new(&self, out: &mut [u8]) {
        let chunk = self.chunks.get(self.cursor);
        let rest = chunk.and_then(|chunk| chunk.bytes().get((self.next - chunk.start) as usize..));
        match rest.and_then(|rest| rest.get(..out.len())) {
            // Most of it comes from one chunk.
            Some(bytes) => out.copy_from_slice(bytes),
            None => self.copy(self.cursor, self.next, out),
        }
    }

    /// Copies old data from `offset` into a packet.
    pub(super) fn copy_old(&self, offset: u64, out: &mut [u8]) {
        let index = self.chunks.partition_point(|chunk| chunk.end() <= offset);
        self.copy(index, offset, out);
    }

    /// Fills `out` with the bytes from `offset`, which lies in chunk `index` or at its end.
    fn copy(&self, mut index: usize, offset: u64, mut out: &mut [u8]) {
        let mut position = offset;
        while let Some(chunk) = self.chunks.get(index) {
            index += 1;
            let rest = &chunk.bytes()[(position - chunk.start) as usize..];
            let len = rest.len().min(out.len());
            let (now, left) = out.split_at_mut(len);
            now.copy_from_slice(&rest[..len]);
            position += len as u64;
            out = left;
            if out.is_empty() {
                return;
            }
        }
        debug_assert!(out.is_empty(), "only what was written is sent");
    }

    /// `len` bytes of new data were written into a packet.
    pub(super) fn on_new_sent(&mut self, len: usize) {
        self.next += len as u64;
        while self.cursor + 1 < self.chunks.len()
            && self.chunks.get(self.cursor).is_some_and(|chunk| chunk.end() <= self.next)
        {
            self.cursor += 1;
        }
    }

    /// A lost range was written into a packet again.
    pub(super) fn on_old_sent(&mut self, range: Range<u64>) {
        self.lost_bytes -= self.lost.remove(range);
    }

    /// A range was acknowledged. Returns how many bytes need no longer be held.
    pub(super) fn on_acked(&mut self, range: Range<u64>) -> u64 {
        if !self.lost.is_empty() {
            self.lost_bytes -= self.lost.remove(range.clone());
        }
        if range.start > self.acked_prefix {
            self.acked.insert(range);
            return 0;
        }
        let before = self.acked_prefix;
        self.acked_prefix = before.max(range.end);
        while let Some(first) = self.acked.first() {
            if first.start > self.acked_prefix {
                break;
            }
            self.acked_prefix = self.acked_prefix.max(first.end);
            self.acked.pop_first();
        }
        self.release();
        self.acked_prefix - before
    }

    /// Drops the chunks that are acknowledged as a whole, and what is acknowledged of the others if it is most of them.
    fn release(&mut self) {
        while let Some(first) = self.chunks.front() {
            if first.end() > self.acked_prefix {
                break;
            }
            self.allocated -= first.allocated();
            self.chunks.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
        }
        if self.allocated > 2 * CHUNK_MIN && self.allocated as u64 > HELD_PART * self.held() {
            self.shrink();
        }
    }

    /// Only the first chunk has bytes that are acknowledged, and only the last one is open for more.
    fn shrink(&mut self) {
        if let Some(first) = self.chunks.front_mut() {
            self.allocated -= first.shrink(self.acked_prefix);
        }
        if let Some(last) = self.chunks.back_mut() {
            self.allocated -= last.shrink(self.acked_prefix);
        }
    }

    /// A range was lost: what of it is not acknowledged has to be sent again.
    pub(super) fn on_lost(&mut self, range: Range<u64>) {
        let range = range.start.max(self.acked_prefix)..range.end;
        if range.is_empty() {
            return;
        }
        self.lost_bytes += self.lost.insert(range.clone());
        // Where packets are lost here and there, there are many ranges before this one.
        for acked in self.acked.iter_behind(range.start) {
            if acked.start >= range.end {
                break;
            }
            // Acknowledged in another packet; `lost` and `acked` stay disjoint.
            self.lost_bytes -= self.lost.remove(acked);
        }
    }
}

#[cfg(test)]
mod tests;
