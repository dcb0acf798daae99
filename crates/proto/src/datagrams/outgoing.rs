//! The queue of datagrams to send: their order, and which of them are dropped instead.
//!
//! Each drop is counted by its reason, and a notice is kept for the application.

use std::collections::VecDeque;

use bytes::Bytes;
use fulmar_base::Instant;

use super::{DatagramDropReason, DatagramId, DatagramOptions, DroppedDatagram, OVERHEAD_BYTES};
use crate::packet::Protection;

/// Notices of dropped datagrams that wait for the application. When there are more, the oldest are forgotten, and
/// counted.
const NOTICES_MAX: usize = 1_024;

/// The queue: the larger priorities first, and of a priority the oldest first.
#[derive(Debug)]
pub(super) struct Outgoing {
    queue: VecDeque<Waiting>,
    /// The sum of the lengths, with [`OVERHEAD_BYTES`] for each.
    bytes: usize,
    limit: usize,
    next_id: u64,
    /// The earliest deadline, or an earlier one of a datagram that has left the queue.
    late_at: Option<Instant>,
    /// What was dropped, once something was.
    dropped: Option<Box<Dropped>>,
}

/// A datagram that waits.
#[derive(Debug)]
struct Waiting {
    id: DatagramId,
    data: Bytes,
    priority: i32,
    deadline: Option<Instant>,
    protection: Option<Protection>,
}

/// Datagrams that were dropped.
#[derive(Debug, Default)]
struct Dropped {
    /// Those that the application has not heard of.
    notices: VecDeque<DroppedDatagram>,
    counts: Drops,
}

/// How many datagrams were dropped, by reason.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Drops {
    pub(super) late: u64,
    pub(super) displaced: u64,
    pub(super) too_large: u64,
    pub(super) notices_lost: u64,
}

impl Outgoing {
    pub(super) fn new(limit: usize) -> Self {
        Self { queue: VecDeque::new(), bytes: 0, limit, next_id: 0, late_at: None, dropped: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The bytes of the datagrams that wait.
    pub(super) fn waiting(&self) -> usize {
        self.bytes - OVERHEAD_BYTES * self.queue.len()
    }

    /// The longest datagram that fits the empty queue.
    pub(super) fn len_max(&self) -> usize {
        self.limit.saturating_sub(OVERHEAD_BYTES)
    }

    /// How long a datagram can be that finds room without one being dropped.
    pub(super) fn room(&self) -> usize {
        self.limit.saturating_sub(self.bytes + OVERHEAD_BYTES)
    }

    /// Whether so little waits that it is worth waking an application that has more.
    pub(super) fn is_half_empty(&self) -> bool {
        self.bytes <= self.limit / 2
    }

    /// The datagram that leaves next.
    pub(super) fn first(&self) -> Option<&Bytes> {
        self.queue.front().map(|waiting| &waiting.data)
    }

    /// The priority of the datagram that leaves next.
    pub(super) fn first_priority(&self) -> Option<i32> {
        self.queue.front().map(|waiting| waiting.priority)
    }

    /// When the datagram that leaves next is of no use any more.
    pub(super) fn first_deadline(&self) -> Option<Instant> {
        self.queue.front().and_then(|waiting| waiting.deadline)
    }

    /// What was chosen for the protection of the datagram that leaves next.
    pub(super) fn first_protection(&self) -> Option<Protection> {
        self.queue.front().and_then(|waiting| waiting.protection)
    }

    /// The first datagram was sent.
    pub(super) fn on_sent(&mut self) {
        self.remove(0);
    }

    /// The first datagram fits no packet any more.
    pub(super) fn drop_first_as_too_large(&mut self) {
        self.drop_one(0, DatagramDropReason::TooLarge);
    }

    /// Adds a datagram behind those of its priority. Gives it back, and drops nothing, if there is no room and none
    /// can be made.
    pub(super) fn push(&mut self, data: Bytes, options: &DatagramOptions) -> Result<DatagramId, Bytes> {
        let cost = data.len() + OVERHEAD_BYTES;
        if self.bytes + cost > self.limit && !(options.makes_room && self.make_room(cost, options.priority)) {
            return Err(data);
        }
        let id = DatagramId(self.next_id);
        self.next_id += 1;
        let DatagramOptions { priority, deadline, protection, .. } = *options;
        let place = self.queue.partition_point(|other| other.priority >= priority);
        self.queue.insert(place, Waiting { id, data, priority, deadline, protection });
        self.bytes += cost;
        self.late_at = self.late_at.into_iter().chain(deadline).min();
        Ok(id)
    }

    /// Drops datagrams until there is room for `cost` bytes: of the smallest priority first, and of those the
    /// oldest; none that is worth more than `priority`. Drops nothing and returns false if that is not enough.
    fn make_room(&mut self, cost: usize, priority: i32) -> bool {
        let kept = self.queue.partition_point(|other| other.priority > priority);
        let kept_bytes: usize = self.queue.range(..kept).map(Waiting::cost).sum();
        if kept_bytes + cost > self.limit {
            return false;
        }
        while self.bytes + cost > self.limit
            && let Some(lowest) = self.queue.back().map(|waiting| waiting.priority)
        {
            let oldest = self.queue.partition_point(|other| other.priority > lowest);
            self.drop_one(oldest, DatagramDropReason::Displaced);
        }
        true
    }

    /// When a datagram may be late; `None` if none that waits has a deadline.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.late_at
    }

    /// Drops what is late.
    pub(super) fn drop_late(&mut self, now: Instant) {
        if self.late_at.is_none_or(|at| now < at) {
            return;
        }
        let mut index = 0;
        while let Some(waiting) = self.queue.get(index) {
            match waiting.deadline.is_some_and(|deadline| deadline <= now) {
                true => self.drop_one(index, DatagramDropReason::Late),
                false => index += 1,
            }
        }
        self.late_at = self.queue.iter().filter_map(|waiting| waiting.deadline).min();
    }

    /// The oldest notice that nobody has read.
    pub(super) fn pop_notice(&mut self) -> Option<DroppedDatagram> {
        self.dropped.as_mut()?.notices.pop_front()
    }

    pub(super) fn has_notices(&self) -> bool {
        self.dropped.as_ref().is_some_and(|dropped| !dropped.notices.is_empty())
    }

    /// How many were dropped.
    pub(super) fn drops(&self) -> Drops {
        self.dropped.as_ref().map(|dropped| dropped.counts).unwrap_or_default()
    }

    fn drop_one(&mut self, index: usize, reason: DatagramDropReason) {
        let Some(Waiting { id, .. }) = self.remove(index) else { return };
        let Dropped { notices, counts } = &mut **self.dropped.get_or_insert_default();
        match reason {
            DatagramDropReason::Late => counts.late += 1,
            DatagramDropReason::Displaced => counts.displaced += 1,
            DatagramDropReason::TooLarge => counts.too_large += 1,
        }
        if notices.len() == NOTICES_MAX {
            notices.pop_front();
            counts.notices_lost += 1;
        }
        notices.push_back(DroppedDatagram { id, reason });
    }

    fn remove(&mut self, index: usize) -> Option<Waiting> {
        let waiting = self.queue.remove(index)?;
        self.bytes -= waiting.cost();
        if self.queue.is_empty() {
            self.late_at = None;
        }
        Some(waiting)
    }
}

impl Waiting {
    fn cost(&self) -> usize {
        self.data.len() + OVERHEAD_BYTES
    }
}
