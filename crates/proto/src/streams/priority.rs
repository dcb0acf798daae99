//! Which stream sends next.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use fulmar_wire::StreamId;

/// How many bytes a stream sends before the next of the same priority has its turn. Some packets in a row
/// from one stream keep the peer's reads long and its per-stream work rare; 16 KiB are 12 packets.
pub(super) const QUANTUM_BYTES: u32 = 16 * 1024;

/// The streams that have something to send, in the order in which they may.
///
/// The policy: a higher priority goes first, strictly; it may starve lower ones for as long as it has data.
/// Within a priority streams take turns of [`QUANTUM_BYTES`], in the order in which they joined. A stream that
/// ran dry and comes back joins at the end. A packet that a stream cannot fill is filled by the next.
///
/// A stream is in the queue at most once; its owner keeps a flag for that, because only it is asked often.
#[derive(Debug, Default)]
pub(super) struct PriorityQueue {
    heap: BinaryHeap<Entry>,
    next_turn: u64,
}

#[derive(Debug)]
struct Entry {
    priority: i32,
    /// Lower goes first within a priority.
    turn: Reverse<u64>,
    /// Bytes sent in this turn.
    sent: u32,
    id: StreamId,
}

impl PriorityQueue {
    /// Whether no stream has anything to send.
    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The number of streams.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The stream whose turn it is.
    pub(super) fn first(&self) -> Option<StreamId> {
        self.heap.peek().map(|entry| entry.id)
    }

    /// Makes a stream a member of the queue, or not, according to `member`; `queued` is its flag.
    pub(super) fn set(&mut self, id: StreamId, priority: i32, member: bool, queued: &mut bool) {
        match (member, *queued) {
            (true, false) => self.push(id, priority),
            (false, true) => self.remove(id),
            (true, true) | (false, false) => {}
        }
        *queued = member;
    }

    fn push(&mut self, id: StreamId, priority: i32) {
        let turn = self.take_turn();
        self.heap.push(Entry { priority, turn, sent: 0, id });
    }

    /// Removes the stream whose turn it is.
    pub(super) fn pop(&mut self) {
        self.heap.pop();
    }

    /// The stream whose turn it is has sent `bytes`.
    pub(super) fn charge(&mut self, bytes: usize) {
        let turn = self.take_turn();
        let Some(mut first) = self.heap.peek_mut() else { return };
        first.sent = first.sent.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if first.sent >= QUANTUM_BYTES {
            first.sent = 0;
            // The end of the line within the priority; dropping `first` puts it there.
            first.turn = turn;
        }
    }

    /// Removes a stream, wherever it is. Takes time in proportion to the queue, for rare events.
    fn remove(&mut self, id: StreamId) {
        self.heap.retain(|entry| entry.id != id);
    }

    fn take_turn(&mut self) -> Reverse<u64> {
        self.next_turn += 1;
        Reverse(self.next_turn)
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.priority, self.turn).cmp(&(other.priority, other.turn))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests;
