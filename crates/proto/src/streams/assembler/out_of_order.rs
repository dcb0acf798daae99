//! Data that waits for a gap before it to close.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::blocks::Blocks;
use crate::slices::adopt;

/// Below this number, segments may be as small as they like.
const SMALL_SEGMENTS_MAX: usize = 64;
/// Above it, they must have at least this many bytes on average.
const AVERAGE_SEGMENT_MIN: usize = 256;

/// Out-of-order data: segments as they came, or blocks if the segments are too small for that.
///
/// Blocks remain until all of the out-of-order data is gone, so that a peer cannot make this structure change back
/// and forth at little cost.
#[derive(Debug)]
pub(super) enum OutOfOrder {
    Segments(Segments),
    Blocks(Blocks),
}

impl Default for OutOfOrder {
    fn default() -> Self {
        Self::Segments(Segments::default())
    }
}

impl OutOfOrder {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Segments(segments) => segments.map.is_empty(),
            // Empty blocks are turned into segments at once.
            Self::Blocks(_) => false,
        }
    }

    /// Bytes held: those of the data, or of the blocks that it lies in.
    #[inline]
    pub(super) fn held(&self) -> u64 {
        match self {
            Self::Segments(segments) => segments.len as u64,
            Self::Blocks(blocks) => blocks.held(),
        }
    }

    /// Adds `data`, a part of `payload`.
    pub(super) fn insert(&mut self, offset: u64, data: &[u8], payload: &Bytes) {
        match self {
            Self::Segments(segments) => {
                segments.insert(offset, data, payload);
                self.leave_small_segments();
            }
            Self::Blocks(blocks) => blocks.insert(offset, data),
        }
    }

    /// Forgets everything from `offset` on, in a time that depends on what that is, not on what remains.
    pub(super) fn truncate(&mut self, offset: u64) {
        match self {
            Self::Segments(segments) => {
                segments.truncate(offset);
                self.leave_small_segments();
            }
            Self::Blocks(blocks) => {
                blocks.truncate(offset);
                self.leave_empty_blocks();
            }
        }
    }

    /// Forgets everything below `offset`, and takes bytes that begin there, if there are any.
    pub(super) fn take_at(&mut self, offset: u64) -> Option<Bytes> {
        match self {
            Self::Segments(segments) => segments.take_at(offset),
            Self::Blocks(blocks) => {
                blocks.discard_below(offset);
                let taken = blocks.take_first(usize::MAX, Some(offset));
                self.leave_empty_blocks();
                taken.map(|(_, bytes)| bytes)
            }
        }
    }

    /// Takes at most `max_len` of the first bytes, and their offset.
    pub(super) fn take_first(&mut self, max_len: usize) -> Option<(u64, Bytes)> {
        match self {
            Self::Segments(segments) => segments.take_first(max_len),
            Self::Blocks(blocks) => {
                let taken = blocks.take_first(max_len, None);
                self.leave_empty_blocks();
                taken
            }
        }
    }

    /// Where the parts of what is held lie in memory, with their offsets.
    #[cfg(test)]
    pub(super) fn places(&self) -> Vec<(u64, *const u8)> {
        match self {
            Self::Segments(segments) => {
                segments.map.iter().map(|(&at, bytes)| (at, bytes.as_ptr())).collect()
            }
            Self::Blocks(blocks) => blocks.places(),
        }
    }

    /// Upper estimate of the memory that is held, if packets have `packet` bytes.
    #[cfg(test)]
    pub(super) fn memory(&self, packet: usize) -> usize {
        match self {
            Self::Segments(segments) => segments
                .map
                .values()
                .map(|bytes| 128 + if bytes.len() >= AVERAGE_SEGMENT_MIN { packet } else { bytes.len() })
                .sum(),
            Self::Blocks(blocks) => blocks.blocks() * (4096 + 512 + 32),
        }
    }

    fn leave_small_segments(&mut self) {
        let Self::Segments(segments) = self else { return };
        if segments.are_too_small() {
            let mut blocks = Blocks::default();
            for (offset, bytes) in std::mem::take(&mut segments.map) {
                blocks.insert(offset, &bytes);
            }
            *self = Self::Blocks(blocks);
        }
    }

    fn leave_empty_blocks(&mut self) {
        if matches!(self, Self::Blocks(blocks) if blocks.is_empty()) {
            *self = Self::default();
        }
    }
}

/// Disjoint segments under their offsets.
#[derive(Debug, Default)]
pub(super) struct Segments {
    map: BTreeMap<u64, Bytes>,
    /// The sum of their lengths.
    len: usize,
}

impl Segments {
    fn are_too_small(&self) -> bool {
        self.map.len() > SMALL_SEGMENTS_MAX && self.len < self.map.len() * AVERAGE_SEGMENT_MIN
    }

    /// Adds one segment at most: what is known at its ends is cut off, and segments within it are replaced.
    fn insert(&mut self, mut offset: u64, mut data: &[u8], payload: &Bytes) {
        let end = offset + data.len() as u64;
        if let Some((&start, before)) = self.map.range(..=offset).next_back() {
            let known = (start + before.len() as u64).saturating_sub(offset);
            if known >= data.len() as u64 {
                return;
            }
            offset += known;
            data = &data[known as usize..];
        }
        while let Some((&start, next)) = self.map.range(offset..end).next() {
            if start + next.len() as u64 > end {
                data = &data[..(start - offset) as usize];
                break;
            }
            self.remove(start);
        }
        if !data.is_empty() {
            self.len += data.len();
            self.map.insert(offset, adopt(payload, data));
        }
    }

    fn truncate(&mut self, offset: u64) {
        while let Some(last) = self.map.last_entry() {
            let (start, len) = (*last.key(), last.get().len());
            if start + len as u64 <= offset {
                return;
            }
            let bytes = last.remove();
            self.len -= len;
            if start < offset {
                let kept = &bytes[..(offset - start) as usize];
                self.len += kept.len();
                self.map.insert(start, adopt(&bytes, kept));
                return;
            }
        }
    }

    fn remove(&mut self, start: u64) -> Option<Bytes> {
        let bytes = self.map.remove(&start)?;
        self.len -= bytes.len();
        Some(bytes)
    }

    fn take_at(&mut self, offset: u64) -> Option<Bytes> {
        loop {
            let start =
                self.map.first_key_value().map(|(&start, _)| start).filter(|&start| start <= offset)?;
            let bytes = self.remove(start)?;
            let known = (offset - start) as usize;
            if known == 0 {
                return Some(bytes);
            }
            if known < bytes.len() {
                return Some(adopt(&bytes, &bytes[known..]));
            }
        }
    }

    fn take_first(&mut self, max_len: usize) -> Option<(u64, Bytes)> {
        let start = *self.map.first_key_value()?.0;
        let mut bytes = self.remove(start)?;
        if bytes.len() > max_len {
            let rest = bytes.split_off(max_len);
            self.len += rest.len();
            self.map.insert(start + max_len as u64, rest);
        }
        Some((start, bytes))
    }
}
