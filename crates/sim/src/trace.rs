//! What happens in one direction of a link over time, for plots.

use std::time::Duration;

use fulmar_base::Instant;

use crate::{DropReason, LinkStats, Packet};

/// The most entries of each kind; later ones are counted and not kept.
const ENTRIES_MAX: usize = 1 << 20;

/// The course of one direction of a link since the recording began.
///
/// Recording changes nothing in the world. Cross traffic is in `queue` and in nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTrace {
    /// The queue of the bottleneck, by time.
    pub queue: Vec<QueueSample>,
    /// Each packet that was dropped, by time.
    pub drops: Vec<DropSample>,
    /// When a packet was marked with [`Ecn::Ce`](crate::Ecn::Ce), by time.
    pub marks: Vec<Instant>,
    /// Entries that were not kept since there were a million of their kind.
    pub left_out: u64,
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

impl LinkTrace {
    pub(crate) const fn new(interval: Duration) -> Self {
        Self { queue: Vec::new(), drops: Vec::new(), marks: Vec::new(), left_out: 0, interval, peak_bytes: 0 }
    }

    fn on_queue(&mut self, at: Instant, bytes: u64) {
        self.peak_bytes = self.peak_bytes.max(bytes);
        let due = match self.queue.last() {
            // Without the second case a queue that empties for good would look full ever after.
            Some(last) => at.saturating_since(last.at) >= self.interval || (bytes == 0 && last.bytes > 0),
            None => true,
        };
        if due {
            let sample = QueueSample { at, bytes, bytes_max: self.peak_bytes };
            push(&mut self.queue, sample, &mut self.left_out);
            self.peak_bytes = bytes;
        }
    }
}

fn push<T>(entries: &mut Vec<T>, entry: T, left_out: &mut u64) {
    if entries.len() < ENTRIES_MAX {
        entries.push(entry);
    } else {
        *left_out += 1;
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
            let drop = DropSample { at, reason, size: packet.size(), index: packet.index };
            push(&mut trace.drops, drop, &mut trace.left_out);
        }
    }

    pub(crate) fn on_marked(&mut self, at: Instant, packet: &Packet) {
        if packet.filler > 0 {
            return;
        }
        self.stats.packets_marked += 1;
        if let Some(trace) = &mut self.trace {
            push(&mut trace.marks, at, &mut trace.left_out);
        }
    }

    pub(crate) fn on_queue(&mut self, at: Instant, bytes: u64) {
        self.stats.queue_bytes_max = self.stats.queue_bytes_max.max(bytes);
        if let Some(trace) = &mut self.trace {
            trace.on_queue(at, bytes);
        }
    }
}
