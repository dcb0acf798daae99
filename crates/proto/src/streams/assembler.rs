//! Puts received stream data into order.
//!
//! Data that arrives in order is queued and read without any search. Data that arrives behind a gap waits in
//! [`OutOfOrder`] until the gap before it closes.
//!
//! **Memory.** Whatever the peer sends, an assembler holds at most a small multiple of what flow control lets
//! the peer send ahead of the application, plus a constant. Let `w` be that amount: everything held lies in
//! `w` consecutive offsets, and no offset is held twice.
//! - Shared slices have at least 256 bytes and at least half of the packet that they pin; one that was cut
//!   when its first part turned out to be known keeps at least half of itself. So slices pin at most `4 w`.
//! - Smaller data is copied. In order, copies are collected in buffers that double, or that are as large as the
//!   full one before them, at most `2 w`.
//! - Out-of-order copies may be as small as a byte, each with an entry in a tree. As soon as there are more than 64
//!   and they have fewer than 256 bytes on average, [`OutOfOrder`] turns to blocks of 4 KiB with one bit per byte.
//!   A block covers 4 KiB of offsets, so blocks take at most `9/8 (w + 8 KiB)`, however few bytes they hold.
//! - The record of what was read ahead of a gap has at most [`READ_AHEAD_RANGES_MAX`] entries.

use std::ops::Range;

use bytes::Bytes;
use fulmar_base::{RangeSet, ShortQueue};
use smallvec::SmallVec;

use self::out_of_order::OutOfOrder;
use super::segment::Segment;

mod blocks;
mod out_of_order;

/// How many separate ranges may be read ahead of gaps. An unordered reader that has reached the limit gets
/// data in order until gaps close.
const READ_AHEAD_RANGES_MAX: usize = 256;

/// The received and unread data of one stream.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    /// Data without a gap before it, in order.
    ready: ShortQueue<(u64, Segment)>,
    /// Everything below was received.
    ready_end: u64,
    /// Data above a gap.
    out_of_order: OutOfOrder,
    /// What was received above a gap and read already, by an unordered reader.
    read_ahead: RangeSet,
}

impl Assembler {
    /// Adds `data`, a part of `payload`, at `offset`. What was received before is ignored. Without a payload all
    /// is copied.
    pub(super) fn insert(&mut self, offset: u64, data: &[u8], payload: Option<&Bytes>) {
        let end = offset + data.len() as u64;
        if end <= self.ready_end {
            return;
        }
        let start = offset.max(self.ready_end);
        if start == self.ready_end && self.out_of_order.is_empty() && self.read_ahead.is_empty() {
            self.push_ready(&data[(start - offset) as usize..], payload);
            return;
        }
        for part in self.not_read_ahead(start..end) {
            // Catching up after an earlier part may have gone beyond the start of this one.
            let start = part.start.max(self.ready_end);
            if start >= part.end {
                continue;
            }
            let data = &data[(start - offset) as usize..(part.end - offset) as usize];
            if start == self.ready_end {
                self.push_ready(data, payload);
                self.catch_up();
            } else {
                let copy;
                let (data, payload) = match payload {
                    Some(payload) => (data, payload),
                    None => {
                        copy = Bytes::copy_from_slice(data);
                        (&copy[..], &copy)
                    }
                };
                self.out_of_order.insert(start, data, payload);
            }
        }
    }

    /// Bytes that wait to be read. What an unordered reader took beyond a gap counts again until all before it was read.
    #[inline]
    pub(super) fn held(&self) -> u64 {
        let ready = self.ready.front().map_or(0, |(offset, _)| self.ready_end - offset);
        ready + self.out_of_order.held()
    }

    /// Forgets what was received from `offset` on. Nothing from there on may be added afterwards.
    pub(super) fn truncate(&mut self, offset: u64) {
        while self.ready.back().is_some_and(|(start, _)| *start >= offset) {
            self.ready.pop_back();
        }
        if let Some((start, segment)) = self.ready.back_mut() {
            segment.truncate((offset - *start).try_into().unwrap_or(usize::MAX));
        }
        self.out_of_order.truncate(offset);
        self.ready_end = self.ready_end.min(offset);
    }

    /// Whether everything below `offset` was received and read.
    pub(super) fn is_read_to(&self, offset: u64) -> bool {
        self.ready.is_empty() && self.ready_end >= offset
    }

    /// Whether there is data to read, with `ordered` or without regard to gaps.
    pub(super) fn is_readable(&self, ordered: bool) -> bool {
        !self.ready.is_empty() || (!ordered && !self.out_of_order.is_empty() && self.may_read_ahead())
    }

    /// Whether everything below `size` was received.
    pub(super) fn is_complete(&self, size: u64) -> bool {
        self.ready_end == size
    }

    /// At most `max_len` bytes and their offset. Ordered reading takes what has no gap before it.
    #[inline]
    pub(super) fn read(&mut self, max_len: usize, ordered: bool) -> Option<(u64, Bytes)> {
        if let Some((offset, segment)) = self.ready.front_mut() {
            let at = *offset;
            if segment.len() > max_len {
                *offset += max_len as u64;
                return Some((at, segment.split_to(max_len)));
            }
            return self.ready.pop_front().map(|(_, segment)| (at, segment.into_bytes()));
        }
        if ordered || !self.may_read_ahead() {
            return None;
        }
        let (offset, bytes) = self.out_of_order.take_first(max_len)?;
        self.read_ahead.insert(offset..offset + bytes.len() as u64);
        Some((offset, bytes))
    }

    fn may_read_ahead(&self) -> bool {
        self.read_ahead.len() < READ_AHEAD_RANGES_MAX
    }

    /// The parts of `range` that were not read ahead.
    fn not_read_ahead(&self, range: Range<u64>) -> SmallVec<[Range<u64>; 4]> {
        let mut parts = SmallVec::new();
        let mut at = range.start;
        for known in self.read_ahead.iter() {
            if known.start >= range.end {
                break;
            }
            if at < known.start {
                parts.push(at..known.start);
            }
            at = at.max(known.end);
        }
        if at < range.end {
            parts.push(at..range.end);
        }
        parts
    }

    /// Appends the data at `ready_end`.
    fn push_ready(&mut self, data: &[u8], payload: Option<&Bytes>) {
        let start = self.ready_end;
        self.ready_end += data.len() as u64;
        let last = self.ready.back_mut().filter(|(offset, segment)| offset + segment.len() as u64 == start);
        if let Some(segment) = Segment::follow(last.map(|(_, segment)| segment), payload, data) {
            self.ready.push_back((start, segment));
        }
    }

    /// A gap may have closed: moves what follows to the ready data.
    fn catch_up(&mut self) {
        loop {
            if let Some(known) = self.read_ahead.first().filter(|known| known.start <= self.ready_end) {
                self.ready_end = self.ready_end.max(known.end);
                self.read_ahead.pop_first();
            } else if let Some(bytes) = self.out_of_order.take_at(self.ready_end) {
                self.push_ready(&bytes, Some(&bytes));
            } else {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
