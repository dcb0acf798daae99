//! Where the bytes of streams lie among all bytes that were sent.

use std::collections::BTreeMap;

/// No frame has more bytes than a datagram; what claims to is made shorter, so that sums stay small.
const FRAME_BYTES_MAX: u64 = 1 << 16;

/// The places of stream bytes, in the order in which they left for the first time.
#[derive(Debug, Default)]
pub(super) struct Positions {
    streams: BTreeMap<u64, Vec<Segment>>,
    end: u64,
}

/// Bytes of a stream that left one after another.
#[derive(Debug, Clone, Copy)]
struct Segment {
    offset: u64,
    len: u64,
    position: u64,
}

impl Segment {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }
}

impl Positions {
    /// Bytes so far.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The place of bytes that belong to no stream.
    pub(super) fn append(&mut self, len: u64) -> (u64, u64) {
        let start = self.end;
        self.end = start.saturating_add(len.min(FRAME_BYTES_MAX));
        (start, self.end)
    }

    /// Calls `found` for each contiguous place of the bytes: start, end, and whether they had left before.
    pub(super) fn place(
        &mut self,
        stream: u64,
        offset: u64,
        len: u64,
        mut found: impl FnMut(u64, u64, bool),
    ) {
        let end = offset.saturating_add(len.min(FRAME_BYTES_MAX));
        let mut at = offset;
        while at < end {
            let segments = self.streams.entry(stream).or_default();
            let next = segments.partition_point(|segment| segment.end() <= at);
            match segments.get(next).copied() {
                Some(known) if known.offset <= at => {
                    let until = known.end().min(end);
                    let position = known.position + (at - known.offset);
                    found(position, position + (until - at), true);
                    at = until;
                }
                later => {
                    let until = later.map_or(end, |later| later.offset.min(end));
                    let start = self.end;
                    self.end = self.end.saturating_add(until - at);
                    found(start, self.end, false);
                    insert(segments, next, Segment { offset: at, len: until - at, position: start });
                    at = until;
                }
            }
        }
    }
}

/// Adds a segment, to the one before it if it continues that.
fn insert(segments: &mut Vec<Segment>, at: usize, new: Segment) {
    if let Some(previous) = at.checked_sub(1).and_then(|index| segments.get_mut(index))
        && previous.end() == new.offset
        && previous.position + previous.len == new.position
    {
        previous.len += new.len;
        return;
    }
    segments.insert(at, new);
}
