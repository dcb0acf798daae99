//! How many streams there may be (RFC 9000 §4.6), per direction.

use std::ops::{Index, IndexMut, Range};

use fulmar_base::RangeSet;
use fulmar_wire::Dir;

use crate::reliable::Latest;

/// The number of streams that stream IDs have room for (RFC 9000 §4.6).
pub(super) const MAX_STREAMS: u64 = 1 << 60;

/// A value for each direction.
#[derive(Debug, Default)]
pub(super) struct PerDir<T> {
    pub(super) bi: T,
    pub(super) uni: T,
}

impl<T> Index<Dir> for PerDir<T> {
    type Output = T;
    fn index(&self, dir: Dir) -> &T {
        match dir {
            Dir::Bi => &self.bi,
            Dir::Uni => &self.uni,
        }
    }
}

impl<T> IndexMut<Dir> for PerDir<T> {
    fn index_mut(&mut self, dir: Dir) -> &mut T {
        match dir {
            Dir::Bi => &mut self.bi,
            Dir::Uni => &mut self.uni,
        }
    }
}

/// The streams of one direction that this end opens.
#[derive(Debug)]
pub(super) struct OutgoingStreams {
    /// How many the peer allows in all.
    limit: u64,
    /// How many were opened in all: the next index.
    opened: u64,
    /// The limit that STREAMS_BLOCKED reports.
    blocked: Latest<u64>,
    /// The application wanted one stream more than allowed, and waits for an event.
    waiting: bool,
}

impl OutgoingStreams {
    pub(super) fn new() -> Self {
        Self { limit: 0, opened: 0, blocked: Latest::new(0), waiting: false }
    }

    /// The index of a new stream, or `None` if the peer allows no more of them.
    pub(super) fn open(&mut self) -> Option<u64> {
        if self.opened < self.limit {
            self.opened += 1;
            return Some(self.opened - 1);
        }
        self.waiting = true;
        if self.blocked.is_idle() {
            // RFC 9000 §4.6: an endpoint that cannot open a stream SHOULD say so.
            self.blocked.set(self.limit);
        }
        None
    }

    /// Whether the peer allows the stream of this index. Only after [`OutgoingStreams::restart`] it may not, although
    /// it is open.
    pub(super) fn allows(&self, index: u64) -> bool {
        index < self.limit
    }

    /// The indices of the streams that are open, or were, and that the peer does not allow yet.
    pub(super) fn ahead(&self) -> Range<u64> {
        self.limit..self.opened.max(self.limit)
    }

    /// The peer knows of none of the streams, and allows `limit` of them. Returns whether the application waited for that.
    pub(super) fn restart(&mut self, limit: u64) -> bool {
        self.set_limit(limit)
    }

    /// Whether a stream of this index was opened, at any time.
    pub(super) fn was_opened(&self, index: u64) -> bool {
        index < self.opened
    }

    /// The peer allows `limit` streams in all. Returns whether the application waited for that.
    pub(super) fn raise(&mut self, limit: u64) -> bool {
        // RFC 9000 §4.6: MAX_STREAMS frames that do not increase the limit MUST be ignored.
        if limit <= self.limit {
            return false;
        }
        self.set_limit(limit)
    }

    fn set_limit(&mut self, limit: u64) -> bool {
        self.limit = limit.min(MAX_STREAMS);
        self.blocked.cancel();
        if self.opened < self.limit {
            return std::mem::take(&mut self.waiting);
        }
        if self.waiting {
            // What was said of another limit is void.
            self.blocked.set(self.limit);
        }
        false
    }

    /// Whether the frame that reports the limit waits to be written.
    pub(super) fn is_blocked_pending(&self) -> bool {
        self.blocked.is_pending()
    }

    /// The frame that reports the limit.
    pub(super) fn blocked_frame(&mut self) -> &mut Latest<u64> {
        &mut self.blocked
    }
}

/// The streams of one direction that the peer opens.
///
/// A frame for a stream opens all streams of lower index as well (RFC 9000 §3.2). No state is made for those
/// until a frame or the application touches them: they are remembered as ranges of indices. Every range in
/// `untouched` holds a stream that counts against the limit, and it takes a frame to split one, so there are
/// never more ranges than concurrent streams.
#[derive(Debug)]
pub(super) struct IncomingStreams {
    /// How many may be open at once.
    concurrent_max: u64,
    /// How many have ended.
    closed: u64,
    /// How many the peer may open in all.
    limit: Latest<u64>,
    /// How many the peer has opened in all.
    opened: u64,
    /// How many the application has accepted.
    accepted: u64,
    /// Opened without a frame of their own, and without state.
    untouched: RangeSet,
}

/// What the index in a frame from the peer means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// The peer may not open this stream.
    BeyondLimit,
    /// The stream needs state now. `news` if there is something new to accept.
    Create { news: bool },
    /// The stream had state, and has ended if there is none now.
    Known,
}

impl IncomingStreams {
    pub(super) fn new(concurrent_max: u64) -> Self {
        let concurrent_max = concurrent_max.min(MAX_STREAMS);
        Self {
            concurrent_max,
            closed: 0,
            limit: Latest::new(concurrent_max),
            opened: 0,
            accepted: 0,
            untouched: RangeSet::new(),
        }
    }

    pub(super) fn rest(&mut self) {
        self.untouched.shrink();
    }

    /// A frame for the stream of this index has arrived.
    pub(super) fn touch(&mut self, index: u64) -> Touch {
        if index >= self.limit.get() {
            return Touch::BeyondLimit;
        }
        if index >= self.opened {
            self.untouched.insert(self.opened..index);
            self.opened = index + 1;
            self.advance();
            return Touch::Create { news: true };
        }
        if self.untouched.contains(index) {
            self.untouched.remove(index..index + 1);
            return Touch::Create { news: false };
        }
        Touch::Known
    }

    /// The index of the next stream for the application, and whether it needs state now.
    pub(super) fn accept(&mut self) -> Option<(u64, bool)> {
        if self.accepted == self.opened {
            return None;
        }
        let index = self.accepted;
        self.accepted += 1;
        let create = self.untouched.min() == Some(index);
        if create {
            self.untouched.remove(index..index + 1);
        }
        Some((index, create))
    }

    /// Changes how many may be open at once. More are told at once; fewer take nothing back: the peer gets no new ones until
    /// enough of its streams have ended (RFC 9000 §4.6).
    pub(super) fn set_concurrent_max(&mut self, concurrent_max: u64) {
        self.concurrent_max = concurrent_max.min(MAX_STREAMS);
        let limit = self.due_limit();
        if limit > self.limit.get() {
            self.limit.set(limit);
        }
    }

    /// A stream has ended on both sides: the peer may open another. The peer hears of it when half of what it may open
    /// was used up, so that a long sequence of short streams neither stalls nor costs a frame for each.
    pub(super) fn on_closed(&mut self) {
        self.closed += 1;
        self.advance();
    }

    /// The frame that tells the limit was lost. If the limit has moved meanwhile, the newest is told.
    pub(super) fn on_limit_lost(&mut self) {
        self.limit.on_lost();
        self.advance();
    }

    /// How many the peer could be allowed to open in all; less than it was allowed once fewer may be open.
    fn due_limit(&self) -> u64 {
        self.closed.saturating_add(self.concurrent_max).min(MAX_STREAMS)
    }

    fn advance(&mut self) {
        let limit = self.due_limit();
        let gain = limit.saturating_sub(self.limit.get());
        // Streams that stay open leave the peer less than half of the concurrency, which it would wait for without end:
        // what counts is how many it can still open (RFC 9000 §4.6).
        let left = self.limit.get().saturating_sub(self.opened);
        if gain > 0 && (gain >= left || gain >= self.concurrent_max / 2 || self.limit.is_pending()) {
            self.limit.set(limit);
        }
    }

    /// Whether the frame that tells the limit waits to be written.
    pub(super) fn is_limit_pending(&self) -> bool {
        self.limit.is_pending()
    }

    /// The frame that tells the limit.
    pub(super) fn limit_frame(&mut self) -> &mut Latest<u64> {
        &mut self.limit
    }
}

#[cfg(test)]
mod tests;
