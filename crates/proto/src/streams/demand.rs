//! How much credit a peer makes use of, so that its next connection can begin with it.

use std::time::Duration;

use fulmar_base::Instant;

/// What a peer may send ahead of the application, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReceiveCredit {
    /// On a stream.
    pub(crate) stream: u64,
    /// On all streams together.
    pub(crate) connection: u64,
}

impl ReceiveCredit {
    /// The larger of each.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { stream: self.stream.max(other.stream), connection: self.connection.max(other.connection) }
    }

    /// Whether one of them is twice as much as in `before`, or more.
    pub(crate) fn has_doubled_since(&self, before: &Self) -> bool {
        self.stream / 2 >= before.stream.max(1) || self.connection / 2 >= before.connection.max(1)
    }
}

/// The most that was read in a round trip. What a window has opened to says less: it may never have been used.
#[derive(Debug, Clone, Default)]
pub(super) struct Demand {
    /// When the round began in which is counted, and what had been read then.
    round: Option<(Instant, u64)>,
    most: u64,
}

impl Demand {
    /// Data has come at `now`, when `consumed` bytes had been read in all.
    pub(super) fn record(&mut self, now: Instant, rtt: Duration, consumed: u64) {
        let (start, before) = *self.round.get_or_insert((now, consumed));
        let elapsed = now - start;
        if elapsed < rtt || elapsed.is_zero() {
            return;
        }
        let read = u128::from(consumed - before) * rtt.as_nanos() / elapsed.as_nanos();
        self.most = self.most.max(u64::try_from(read).unwrap_or(u64::MAX));
        self.round = Some((now, consumed));
    }

    /// The most that was read in a round trip, in bytes.
    pub(super) fn most(&self) -> u64 {
        self.most
    }
}

#[cfg(test)]
mod tests;
