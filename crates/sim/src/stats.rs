//! What happened to the packets of one direction of a link.

use crate::element::DropReason;
use crate::{Distribution, Packet};

/// Counters of one direction of a link, since the world began. Cross traffic has its own, but for
/// `queue_bytes_max`, where it counts like the rest.
///
/// When nothing is under way any more, `packets_sent + packets_duplicated` equals
/// `packets_delivered + packets_dropped_in_all()`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets that a node put into the link.
    pub packets_sent: u64,
    /// Payload bytes of those.
    pub bytes_sent: u64,
    /// Packets that came out at the far end, copies included.
    pub packets_delivered: u64,
    /// Payload bytes of those.
    pub bytes_delivered: u64,
    /// Of those, the bytes of copies that the link made.
    pub bytes_of_copies: u64,
    /// Copies that the link made.
    pub packets_duplicated: u64,
    /// Packets whose bytes the link changed.
    pub packets_corrupted: u64,
    /// Packets that came out after a packet that was sent later.
    pub packets_reordered: u64,
    /// Packets that a queue marked with [`Ecn::Ce`](crate::Ecn::Ce).
    pub packets_marked: u64,
    /// Packets of cross traffic that the transmitter sent.
    pub cross_packets_carried: u64,
    /// Packets of cross traffic that were dropped.
    pub cross_packets_dropped: u64,
    /// The most payload bytes that ever waited for the transmitter.
    pub queue_bytes_max: u64,
    /// How long packets waited for the transmitter, those that found it idle included. Of links without a rate it is empty.
    pub queue_delays: Distribution,
    dropped: [u64; DropReason::ALL.len()],
    index_max: Option<u64>,
}

impl LinkStats {
    /// Packets that the link dropped for `reason`.
    pub fn packets_dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Packets that the link dropped, for whatever reason.
    pub fn packets_dropped_in_all(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Counts what happened on another link as if it had happened on this one; the longest queue is that of either.
    pub fn merge(&mut self, other: &Self) {
        self.packets_sent += other.packets_sent;
        self.bytes_sent += other.bytes_sent;
        self.packets_delivered += other.packets_delivered;
        self.bytes_delivered += other.bytes_delivered;
        self.bytes_of_copies += other.bytes_of_copies;
        self.packets_duplicated += other.packets_duplicated;
        self.packets_corrupted += other.packets_corrupted;
        self.packets_reordered += other.packets_reordered;
        self.packets_marked += other.packets_marked;
        self.cross_packets_carried += other.cross_packets_carried;
        self.cross_packets_dropped += other.cross_packets_dropped;
        self.queue_bytes_max = self.queue_bytes_max.max(other.queue_bytes_max);
        self.queue_delays.merge(&other.queue_delays);
        for (own, other) in self.dropped.iter_mut().zip(other.dropped) {
            *own += other;
        }
    }

    pub(crate) fn on_sent(&mut self, size: u64) {
        self.packets_sent += 1;
        self.bytes_sent += size;
    }

    pub(crate) fn on_dropped(&mut self, reason: DropReason) {
        self.dropped[reason as usize] += 1;
    }

    pub(crate) fn on_delivered(&mut self, packet: &Packet) {
        self.packets_delivered += 1;
        self.bytes_delivered += packet.size();
        self.bytes_of_copies += if packet.is_copy { packet.size() } else { 0 };
        if self.index_max.is_some_and(|max| packet.index < max) {
            self.packets_reordered += 1;
        } else {
            self.index_max = Some(packet.index);
        }
    }
}
