//! What happens in one direction of a link over time, for plots.

use std::time::Duration;

use fulmar_base::Instant;

use crate::{DropReason, LinkStats, Packet};

/// The most entries of each kind. When there are so many, every second one goes, and of later ones as many: what is kept covers the
/// whole run, however long it is.
const ENTRIES_MAX: usize = 1 << 20;

/// The course of one direction of a link since the recording began.
///
/// Recording changes nothing in the world. Cross traffic is in `queue` and in nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTrace {
    /// The queue of the bottleneck, by time.
    pub queue: Vec<QueueSample>,
    /// Each packet that was dropped, by time; of more than a million, every second one, or fewer.
    pub drops: Vec<DropSample>,
    /// When a packet was marked with [`Ecn::Ce`](crate::Ecn::Ce), by time; of more than a million, every second one, or fewer.
    pub marks: Vec<Instant>,
    /// Drops and marks that were not kept since there were a million of their kind.
    pub left_out: u64,
    /// Which of the drops and of the marks are kept.
    thinning: [Thinning; 2],
    interval: Duration,
    /// The most bytes since the last sample.
    peak_bytes: u64,
}

/// How full a queue was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSample {
    /// When.
    pub at: Instant,
    /// Payload bytes that waited for the transmitter then.
    pub bytes: u64,
    /// The most that waited since the sample before, this one included.
    pub bytes_max: u64,
}

/// A packet that was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropSample {
    /// When.
    pub at: Instant,
    /// Why.
    pub reason: DropReason,
    /// Payload bytes of the packet.
    pub size: u64,
    /// The position of the packet among those that were sent into this direction, from 0.
    pub index: u64,
}

/// Which entries of a kind are kept: one of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thinning {
    each: u64,
    seen: u64,
}

impl LinkTrace {
    pub(crate) const fn new(interval: Duration) -> Self {
        Self {
            queue: Vec::new(),
            drops: Vec::new(),
            marks: Vec::new(),
            left_out: 0,
            thinning: [Thinning { each: 1, seen: 0 }; 2],
            interval,
            peak_bytes: 0,
        }
    }

    fn on_queue(&mut self, at: Instant, bytes: u64) {
        self.peak_bytes = self.peak_bytes.max(bytes);
        let due = match self.queue.last() {
            // Without the second case a queue that empties for good would look full ever after.
            Some(last) => at.saturating_since(last.at) >= self.interval || (bytes == 0 && last.bytes > 0),
            None => true,
        };
        if due {
            if self.queue.len() >= ENTRIES_MAX {
                self.thin_queue();
            }
            self.queue.push(QueueSample { at, bytes, bytes_max: self.peak_bytes });
            self.peak_bytes = bytes;
        }
    }

    /// Of two samples, the later one stays, with the peak of both; later ones are as far apart.
    fn thin_queue(&mut self) {
        let pairs = self.queue.chunks_exact(2);
        let joined =
            pairs.map(|two| QueueSample { bytes_max: two[0].bytes_max.max(two[1].bytes_max), ..two[1] });
        self.queue = joined.collect();
        let span =
            self.queue.last().map_or(Duration::ZERO, |last| last.at.saturating_since(self.queue[0].at));
        self.interval = self.interval.max(span / ENTRIES_MAX as u32) * 2;
    }

    fn on_drop(&mut self, drop: DropSample) {
        self.left_out += self.thinning[0].push(&mut self.drops, drop);
    }

    fn on_mark(&mut self, at: Instant) {
        self.left_out += self.thinning[1].push(&mut self.marks, at);
    }
}

impl Thinning {
    /// Takes an entry, unless it is one of those that are left out. Returns how many entries that costs.
    fn push<T>(&mut self, entries: &mut Vec<T>, entry: T) -> u64 {
        let number = self.seen;
        self.seen += 1;
        let mut left_out = 0;
        if number.is_multiple_of(self.each) && entries.len() >= ENTRIES_MAX {
            self.each *= 2;
            let mut numbers = 0..;
            entries.retain(|_| numbers.next().is_some_and(|number: u64| number.is_multiple_of(2)));
            left_out = (ENTRIES_MAX - entries.len()) as u64;
        }
        match number.is_multiple_of(self.each) {
            true => entries.push(entry),
            false => left_out += 1,
        }
        left_out
    }
}

/// The counters of one direction, and its trace if one is wanted.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) stats: LinkStats,
    pub(crate) trace: Option<LinkTrace>,
}

impl Record {
    pub(crate) fn on_dropped(&mut self, at: Instant, packet: &Packet, reason: DropReason) {
        if packet.filler > 0 {
            self.stats.cross_packets_dropped += 1;
            return;
        }
        self.stats.on_dropped(reason);
        if let Some(trace) = &mut self.trace {
            trace.on_drop(DropSample { at, reason, size: packet.size(), index: packet.index });
        }
    }

    pub(crate) fn on_marked(&mut self, at: Instant, packet: &Packet) {
        if packet.filler > 0 {
            return;
        }
        self.stats.packets_marked += 1;
        if let Some(trace) = &mut self.trace {
            trace.on_mark(at);
        }
    }

    pub(crate) fn on_queue(&mut self, at: Instant, bytes: u64) {
        self.stats.queue_bytes_max = self.stats.queue_bytes_max.max(bytes);
        if let Some(trace) = &mut self.trace {
            trace.on_queue(at, bytes);
        }
    }
}

#[cfg(test)]
mod tests;
