//! The recovery period (RFC 9002 §7.3.2), and whether its cause was a spurious loss.

use fulmar_base::Instant;

/// A period of recovery (RFC 9002 §7.3.2): one reaction to congestion per round trip.
///
/// It begins with the reaction and ends when a packet sent after that is acknowledged. The bytes lost in it
/// are counted, so that the reaction can be undone when all of them arrive after all.
#[derive(Debug, Clone, Default)]
pub(super) struct Recovery {
    /// When the last reaction was; packets sent until then are part of its period.
    start: Option<Instant>,
    /// Whether acknowledgements of those packets may grow the window nevertheless.
    released: bool,
    /// When the reaction before it was: packets sent until then are not.
    previous: Option<Instant>,
    /// Bytes lost in the period and not arrived since; `None` once the reaction cannot be undone.
    lost_bytes: Option<u64>,
}

impl Recovery {
    /// Whether a packet sent at `sent_time` left before the last reaction.
    pub(super) fn covers(&self, sent_time: Instant) -> bool {
        self.start.is_some_and(|start| sent_time <= start)
    }

    /// Whether the acknowledgement of a packet sent at `sent_time` must not grow the window.
    pub(super) fn holds(&self, sent_time: Instant) -> bool {
        !self.released && self.covers(sent_time)
    }

    /// Begins a period.
    pub(super) fn enter(&mut self, now: Instant) {
        self.previous = self.start;
        self.start = Some(now);
        self.released = false;
        self.lost_bytes = Some(0);
    }

    /// The reaction takes into account all that was sent until now.
    pub(super) fn extend(&mut self, now: Instant) {
        self.start = self.start.max(Some(now));
    }

    /// Counts bytes lost in the current period.
    pub(super) fn on_lost(&mut self, bytes: u64) {
        if let Some(lost) = &mut self.lost_bytes {
            *lost += bytes;
        }
    }

    /// Makes the last reaction final, because something else than loss confirmed it.
    pub(super) fn make_final(&mut self) {
        self.lost_bytes = None;
    }

    /// Lets the window grow by packets sent before the last reaction, too. Losses among them still cause
    /// no second reaction.
    pub(super) fn release(&mut self) {
        self.released = true;
    }

    /// Takes a loss back. Returns true when that was the last one of the period: the reaction had no cause.
    pub(super) fn on_spurious(&mut self, bytes: u64, sent_time: Instant) -> bool {
        let older = self.previous.is_some_and(|previous| sent_time <= previous);
        let Some(lost) = self.lost_bytes.filter(|&lost| lost > 0 && !older) else {
            return false;
        };
        let left = lost.saturating_sub(bytes);
        self.lost_bytes = (left > 0).then_some(left);
        left == 0
    }
}

#[cfg(test)]
mod tests;
