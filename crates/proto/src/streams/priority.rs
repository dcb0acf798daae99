//! Which stream sends next.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use fulmar_wire::StreamId;

/// How many bytes an incremental stream sends before the next of the same priority has its turn. Some packets in a row
/// from one stream keep the peer's reads long and its per-stream work rare; 16 KiB are 12 packets.
pub(crate) const QUANTUM_BYTES: u32 = 16 * 1024;

/// The largest urgency, which is the least urgent one (RFC 9218 §4.1).
const URGENCY_MAX: u8 = 7;
/// The urgency of level 0: what HTTP assumes where nothing is said (RFC 9218 §4.1).
const URGENCY_DEFAULT: i32 = 3;

/// When a stream sends, compared with the others of its connection.
///
/// It has a level, higher ones first, and is incremental or not. Incremental streams of a level share what can be sent, in
/// turns of 16 KiB. Others of the level go before them and one after the other, in the order of their IDs: the peer can do
/// nothing with a part of them. A level may starve lower ones for as long as it has data.
///
/// Unreliable datagrams have levels as well ([`DatagramOptions::priority`](crate::DatagramOptions::priority)).
///
/// There are two ways to name a priority: a number for the level alone, incremental, or the parameters of HTTP
/// ([`Priority::new`]). Both fit together, as urgency 3, which is the default of HTTP, is level 0. Streams start with level 0 and
/// incremental: what they carry is not known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    level: i32,
    incremental: bool,
}

impl Priority {
    /// The priority of these parameters (RFC 9218 §4): an urgency from 0, the most urgent, to 7, and whether the peer can use
    /// parts of the stream before all of it is there. A larger urgency counts as 7.
    pub fn new(urgency: u8, incremental: bool) -> Self {
        Self { level: URGENCY_DEFAULT - i32::from(urgency.min(URGENCY_MAX)), incremental }
    }

    /// The level: higher ones send first. Urgency 0 is level 3, urgency 7 is level -4.
    pub fn level(self) -> i32 {
        self.level
    }

    /// The urgency, from 0 to 7. Levels beyond have that of the nearest.
    pub fn urgency(self) -> u8 {
        let urgency = URGENCY_DEFAULT.saturating_sub(self.level).clamp(0, i32::from(URGENCY_MAX));
        u8::try_from(urgency).unwrap_or(URGENCY_MAX)
    }

    /// Whether the stream shares with others of its level.
    pub fn is_incremental(self) -> bool {
        self.incremental
    }

    /// Compares priorities: streams of the larger one go first.
    fn rank(self) -> (i32, bool) {
        (self.level, !self.incremental)
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::from(0)
    }
}

impl From<i32> for Priority {
    /// The incremental priority of this level.
    fn from(level: i32) -> Self {
        Self { level, incremental: true }
    }
}

/// What is buffered on the streams of each level and of those above, at a moment.
#[derive(Debug)]
pub(super) struct HeldByLevel {
    /// The highest level first, one entry for each stream.
    sums: Vec<(i32, u64)>,
}

impl FromIterator<(i32, u64)> for HeldByLevel {
    /// From the level of each stream and the bytes that it holds.
    fn from_iter<I: IntoIterator<Item = (i32, u64)>>(streams: I) -> Self {
        let mut sums: Vec<_> = streams.into_iter().collect();
        sums.sort_unstable_by_key(|(level, _)| Reverse(*level));
        let mut sum = 0;
        for (_, held) in &mut sums {
            sum += *held;
            *held = sum;
        }
        Self { sums }
    }
}

impl HeldByLevel {
    /// What is held on streams of this level and of higher ones.
    pub(super) fn at_least(&self, level: i32) -> u64 {
        let streams = self.sums.partition_point(|(other, _)| *other >= level);
        streams.checked_sub(1).map_or(0, |last| self.sums[last].1)
    }
}

/// The streams that have something to send, in the order in which they may.
///
/// [`Priority`] describes the policy. An incremental stream that ran dry and comes back joins at the end of its level. A
/// packet that a stream cannot fill is filled by the next.
///
/// A stream is in the queue at most once; its owner keeps a flag for that, because only it is asked often.
///
/// Streams whose priority nobody has set take turns, and need no sorting: they stand in a line.
#[derive(Debug, Default)]
pub(super) struct PriorityQueue {
    /// Those of the default priority, in the order of their turns.
    line: VecDeque<Turn>,
    /// All others.
    heap: BinaryHeap<Entry>,
    next_turn: u64,
}

/// A stream in the line.
#[derive(Debug)]
struct Turn {
    id: StreamId,
    /// Bytes sent in this turn.
    sent: u32,
}

#[derive(Debug)]
struct Entry {
    priority: Priority,
    /// Lower goes first within a priority: the turn of an incremental stream, the ID of another.
    order: Reverse<u64>,
    /// Bytes sent in this turn.
    sent: u32,
    id: StreamId,
}

impl PriorityQueue {
    /// Whether no stream has anything to send.
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty() && self.heap.is_empty()
    }

    /// Whether any of the streams has another priority than the default.
    #[inline]
    pub(super) fn has_ranks(&self) -> bool {
        !self.heap.is_empty()
    }

    /// The number of streams.
    pub(super) fn len(&self) -> usize {
        self.line.len() + self.heap.len()
    }

    pub(super) fn rest(&mut self) {
        self.line.shrink_to_fit();
        self.heap.shrink_to_fit();
    }

    /// The stream whose turn it is.
    pub(super) fn first(&self) -> Option<StreamId> {
        match self.line.front() {
            Some(turn) if self.is_line_before_heap() => Some(turn.id),
            _ => self.heap.peek().map(|entry| entry.id),
        }
    }

    /// Whether it is the turn of the line, if anybody stands there.
    #[inline]
    fn is_line_before_heap(&self) -> bool {
        self.heap.peek().is_none_or(|entry| entry.priority.rank() < Priority::default().rank())
    }

    /// Makes a stream a member of the queue, or not, according to `member`; `queued` is its flag.
    #[inline]
    pub(super) fn set(&mut self, id: StreamId, priority: Priority, member: bool, queued: &mut bool) {
        if member == *queued {
            return;
        }
        match member {
            true => self.push(id, priority),
            false => self.remove(id),
        }
        *queued = member;
    }

    fn push(&mut self, id: StreamId, priority: Priority) {
        if priority == Priority::default() {
            self.line.push_back(Turn { id, sent: 0 });
            return;
        }
        let order = if priority.incremental { self.next_turn() } else { id.as_u64() };
        self.heap.push(Entry { priority, order: Reverse(order), sent: 0, id });
    }

    /// Removes the stream whose turn it is.
    pub(super) fn pop(&mut self) {
        if !self.is_line_before_heap() || self.line.pop_front().is_none() {
            self.heap.pop();
        }
    }

    /// The stream whose turn it is has sent `bytes`.
    pub(super) fn charge(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if self.is_line_before_heap()
            && let Some(first) = self.line.front_mut()
        {
            first.sent = first.sent.saturating_add(bytes);
            if first.sent >= QUANTUM_BYTES {
                first.sent = 0;
                self.line.rotate_left(1);
            }
            return;
        }
        let turn = self.next_turn();
        let Some(mut first) = self.heap.peek_mut() else { return };
        if !first.priority.incremental {
            return;
        }
        first.sent = first.sent.saturating_add(bytes);
        if first.sent >= QUANTUM_BYTES {
            first.sent = 0;
            // The end of the line within the priority; dropping `first` puts it there.
            first.order = Reverse(turn);
        }
    }

    /// Removes a stream, wherever it is. Takes time in proportion to the queue, for rare events.
    fn remove(&mut self, id: StreamId) {
        self.line.retain(|turn| turn.id != id);
        self.heap.retain(|entry| entry.id != id);
    }

    fn next_turn(&mut self) -> u64 {
        self.next_turn += 1;
        self.next_turn
    }
}

impl Entry {
    /// Compares where two entries stand: the larger one goes first.
    fn key(&self) -> ((i32, bool), Reverse<u64>) {
        // RFC 9218 §10: in the order of the IDs, except for those that share.
        (self.priority.rank(), self.order)
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
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
