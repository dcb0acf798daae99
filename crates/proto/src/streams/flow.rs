//! Flow control of one stream, or of the connection (RFC 9000 §4).
//!
//! Knows numbers only: the same two types serve a stream and the connection as a whole. Offsets and limits
//! count bytes from the start of the stream, or the sum over all streams.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::VarInt;

use super::demand::Demand;
use crate::reliable::Latest;

/// A window doubles while a round trip consumes one part in so many of it, or more. A sender in slow start needs
/// twice as much in the next round trip, credit needs half a window and another round trip to come back, and a
/// loss holds back the data of one more: with this much room none of that lets the window limit the peer.
const WINDOW_PARTS: u64 = 4;

/// A new limit is announced when at most this part of the window is used up, see [`ReceiveWindow::update_parts`].
const UPDATE_PARTS_MAX: u64 = 8;

/// As soon as the round-trip time is known, a window holds what comes in it at this rate, in bytes per second. A
/// sender may find the rate of a long path in a single round trip, and a window that had to double its way up there
/// would hold it back for seconds.
const OPENING_RATE: u64 = 125_000_000;

/// So many bytes come before a window is opened to that: a short exchange needs no more credit and no frame about it.
const OPENING_BYTES: u64 = 4096;

/// What the peer allows this end to send.
#[derive(Debug, Clone)]
pub(super) struct SendCredit {
    limit: u64,
    used: u64,
    /// The limit that a DATA_BLOCKED or STREAM_DATA_BLOCKED frame reports.
    blocked: Latest<u64>,
}

impl SendCredit {
    /// Nothing used of `limit` bytes.
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, used: 0, blocked: Latest::new(limit) }
    }

    /// Bytes that may still be sent.
    pub(super) fn available(&self) -> u64 {
        self.limit - self.used
    }

    /// Bytes that may be sent in all.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Counts `bytes` as sent; the caller has asked for what is available.
    pub(super) fn spend(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.available(), "flow control is checked before writing");
        self.used += bytes;
    }

    /// The peer allows `limit` bytes in all. Returns whether that is more than before: a smaller limit is an
    /// old one that was reordered, and is ignored (RFC 9000 §4.1).
    pub(super) fn raise(&mut self, limit: u64) -> bool {
        if limit <= self.limit {
            return false;
        }
        self.limit = limit;
        self.blocked.cancel();
        true
    }

    /// There is data that the limit holds back. The peer hears of each limit once (RFC 9000 §4.1).
    pub(super) fn on_blocked(&mut self) {
        if self.blocked.is_idle() {
            self.blocked.set(self.limit);
        }
    }

    /// The frame that reports the limit.
    pub(super) fn blocked_frame(&mut self) -> &mut Latest<u64> {
        &mut self.blocked
    }

    /// Whether the frame that reports the limit waits to be written.
    pub(super) fn is_blocked_pending(&self) -> bool {
        self.blocked.is_pending()
    }
}

/// What this end allows the peer to send.
#[derive(Debug, Clone)]
pub(super) struct ReceiveWindow {
    /// How far ahead of the application the peer may send.
    window: u64,
    window_max: u64,
    /// What memory allows of the window now.
    window_limit: u64,
    /// The end of what was received: the highest offset of a stream, or the sum of those.
    received: u64,
    /// What the application has read, or will never read.
    consumed: u64,
    /// The limit that the peer has, or gets with the next MAX_DATA or MAX_STREAM_DATA.
    limit: Latest<u64>,
    /// Whether the window has been opened to what the round-trip time asks for.
    opened: bool,
    epoch: Epoch,
    demand: Demand,
    /// When it was last tuned, and what had been consumed then.
    tuned: Option<(Instant, u64)>,
}

/// A stretch of time in which consumption is measured, to tune the window.
#[derive(Debug, Clone, Default)]
struct Epoch {
    start: Option<Instant>,
    consumed: u64,
}

impl ReceiveWindow {
    /// A window that starts with `window` bytes and may grow to `window_max`.
    pub(super) fn new(window: u64, window_max: u64) -> Self {
        Self {
            window,
            window_max: window_max.max(window),
            window_limit: u64::MAX,
            received: 0,
            consumed: 0,
            limit: Latest::new(window.min(VarInt::MAX.get())),
            opened: false,
            epoch: Epoch::default(),
            demand: Demand::default(),
            tuned: None,
        }
    }

    /// The end of what was received.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// What was received and not yet consumed.
    pub(super) fn unconsumed(&self) -> u64 {
        self.received - self.consumed
    }

    /// What was consumed.
    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// The most that was consumed in a round trip.
    pub(super) fn demand(&self) -> u64 {
        self.demand.most()
    }

    /// The current size of the window.
    #[cfg(test)]
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// Whether the peer may send `bytes` more than it has.
    pub(super) fn allows(&self, bytes: u64) -> bool {
        bytes <= self.limit.get() - self.received
    }

    /// Memory allows no more than this of the window from now on. Credit that the peer has is not taken back.
    #[inline]
    pub(super) fn set_window_limit(&mut self, bytes: u64) {
        self.window_limit = bytes;
    }

    /// Counts `bytes` as received; the caller has checked that they were allowed.
    pub(super) fn receive(&mut self, bytes: u64) {
        debug_assert!(self.allows(bytes), "flow control is checked before accepting");
        self.received += bytes;
    }

    /// The application has read `bytes`, or never will: the peer may send as much more.
    pub(super) fn consume(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.unconsumed(), "only what was received can be consumed");
        self.consumed += bytes;
        self.advance();
    }

    /// Opens the window to what the round-trip time asks for, once. Later doubles it if its part was consumed at the
    /// pace of one part a round trip. Never beyond the maximum. Called when data arrives, which is when the time is known: data that an application read late is then measured up to the
    /// arrival of the next, a round trip after the read, and not taken for fast.
    #[inline]
    pub(super) fn tune(&mut self, now: Instant, rtt: Duration) {
        // Another frame of the same batch changes nothing: nothing was read, and no time has passed.
        if !self.opened || self.tuned != Some((now, self.consumed)) {
            self.tune_at(now, rtt);
        }
    }

    fn tune_at(&mut self, now: Instant, rtt: Duration) {
        self.tuned = Some((now, self.consumed));
        self.demand.record(now, rtt, self.consumed);
        if !self.opened && self.received >= OPENING_BYTES {
            self.opened = true;
            self.grow_to(opening_window(rtt));
        }
        let start = *self.epoch.start.get_or_insert(now);
        let (elapsed, part) = (now - start, self.window.div_ceil(WINDOW_PARTS));
        let consumed = self.consumed - self.epoch.consumed;
        if consumed < part && elapsed < rtt {
            return;
        }
        // The pace counts, not whether a round trip has just ended: what a loss held back comes all at once.
        let pace = u128::from(consumed) * rtt.as_nanos();
        if consumed >= part && pace >= u128::from(part) * elapsed.as_nanos() {
            self.grow_to(self.window.saturating_mul(2));
        }
        self.epoch = Epoch { start: Some(now), consumed: self.consumed };
    }

    fn grow_to(&mut self, window: u64) {
        let window = window.min(self.window_max).min(self.window_limit);
        if window > self.window {
            self.window = window;
            self.advance();
        }
    }

    /// This is the window of all streams together, and `stream` that of one that has taken data. It may be that nobody reads that
    /// one, and it must not take all credit: the others go on with half as much again as it has (RFC 9000 §4.1).
    #[inline]
    pub(super) fn keep_beyond(&mut self, stream: &Self) {
        if !self.opened {
            return;
        }
        self.grow_to(stream.window.saturating_add(stream.window / 2));
        self.announce_with(stream);
    }

    /// Where the limit of `stream` is told, this one of all streams together is told in the same packet, if there is
    /// some gain: a little later it would take a packet of its own, and credit of the stream does not help the peer
    /// that the connection does not give.
    #[inline]
    pub(super) fn announce_with(&mut self, stream: &Self) {
        if !stream.limit.is_pending() || self.limit.is_pending() {
            return;
        }
        let limit = self.due_limit();
        if limit.saturating_sub(self.limit.get()) >= self.window.min(self.window_limit) / UPDATE_PARTS_MAX {
            self.limit.set(limit);
        }
    }

    /// What the peer may still send.
    fn left(&self) -> u64 {
        self.limit.get().saturating_sub(self.received)
    }

    /// The limit that could be announced now.
    fn due_limit(&self) -> u64 {
        self.consumed.saturating_add(self.window.min(self.window_limit)).min(VarInt::MAX.get())
    }

    /// A new limit is announced when this part of the window is used up. Half of it is often enough for a window that
    /// can grow. Of one that cannot, the peer has the use of as much as possible; so it has where losses hold back what was
    /// received, and so little credit is left that it would wait for more.
    fn update_parts(&self, window: u64) -> u64 {
        if window < self.window_max && self.left() >= window / 8 * 3 { 2 } else { UPDATE_PARTS_MAX }
    }

    /// Announces a new limit when a part of the window is used up: often enough that the peer does not stall,
    /// rarely enough that the frames cost nothing.
    fn advance(&mut self) {
        let window = self.window.min(self.window_limit);
        let limit = self.due_limit();
        let gain = limit.saturating_sub(self.limit.get());
        if gain == 0 || (gain < window / UPDATE_PARTS_MAX && !self.limit.is_pending()) {
            return;
        }
        if gain >= window / self.update_parts(window) || self.limit.is_pending() {
            self.limit.set(limit);
        }
    }

    /// The frame that tells the limit was lost. If the limit has moved meanwhile, the newest is told.
    pub(super) fn on_limit_lost(&mut self) {
        self.limit.on_lost();
        self.advance();
    }

    /// The frame that tells the limit.
    pub(super) fn limit_frame(&mut self) -> &mut Latest<u64> {
        &mut self.limit
    }

    /// Whether the frame that tells the limit is due.
    pub(super) fn is_limit_pending(&self) -> bool {
        self.limit.is_pending()
    }

    /// The limit that the peer has, or will have.
    #[cfg(test)]
    pub(super) fn limit(&self) -> u64 {
        self.limit.get()
    }
}

/// The window that a sender at [`OPENING_RATE`] does not fill within a round trip.
fn opening_window(rtt: Duration) -> u64 {
    let bytes = u128::from(OPENING_RATE) * rtt.as_micros() / 1_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
