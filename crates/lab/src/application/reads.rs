//! When an application has read, and how much.

use std::time::Duration;

use fulmar_base::Instant;

/// What was read of all streams. The end of a stream counts as well.
#[derive(Debug, Default)]
pub(super) struct Reads {
    pub(super) first: Option<Instant>,
    pub(super) last: Option<Instant>,
    /// The longest time between two of them.
    pub(super) gap_max: Option<Duration>,
    pub(super) bytes: u64,
}

impl Reads {
    pub(super) fn note(&mut self, now: Instant, bytes: u64) {
        self.first.get_or_insert(now);
        let gap = self.last.map(|last| now - last);
        self.gap_max = self.gap_max.max(gap);
        self.last = Some(now);
        self.bytes += bytes;
    }
}
