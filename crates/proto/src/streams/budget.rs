//! How much the application may have buffered for sending: on one connection, and on all connections of an endpoint.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulmar_wire::StreamId;

/// A stream that holds less than this may be written to even if the other streams have used the window up: a
/// bulk transfer of low priority must not keep a request from being written.
pub(super) const STREAM_FLOOR_BYTES: u64 = 16 * 1024;

/// What every connection may hold, however much the others do. It is also the step in which memory is reserved, so that
/// connections touch what they share rarely.
pub(super) const CONNECTION_FLOOR_BYTES: u64 = 16 * 1024;

/// The memory that all connections of an endpoint have together for data that is to be sent, beyond
/// [`CONNECTION_FLOOR_BYTES`] for each of them.
///
/// Peers that acknowledge nothing pin what was written for them, so this is what they fight for. A connection may
/// reserve as much as nobody has reserved, and no more: one that is alone gets half of the memory, the share of
/// each shrinks with their number, and something is always left for those who come later.
#[derive(Debug)]
pub(crate) struct SendMemory {
    bytes: u64,
    reserved: AtomicU64,
}

impl SendMemory {
    pub(crate) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self { bytes, reserved: AtomicU64::new(0) })
    }

    /// Bytes that connections have reserved.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    /// What a connection with this window may reserve in all. Alone it always has its window.
    fn share(&self, window: u64) -> u64 {
        self.bytes.max(window.saturating_mul(2)).saturating_sub(self.reserved())
    }

    /// Replaces a reservation. Counters of other threads may be a moment behind: the total can be exceeded by one
    /// write for each of them.
    fn exchange(&self, before: u64, after: u64) {
        if after > before {
            self.reserved.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.reserved.fetch_sub(before - after, Ordering::Relaxed);
        }
    }
}

/// The memory that unsent and unacknowledged data of all streams takes. It is at most the window, plus
/// [`STREAM_FLOOR_BYTES`] for each open stream, and less while the endpoint has not as much left.
#[derive(Debug)]
pub(super) struct SendBudget {
    window: u64,
    held: u64,
    memory: Arc<SendMemory>,
    /// What this connection has reserved of `memory`.
    reserved: u64,
    /// The streams whose application waits for room. At most one entry for each stream: its flag is
    /// [`super::send::SendHalf::queued_waiting`].
    waiting: VecDeque<StreamId>,
}

impl SendBudget {
    pub(super) fn new(window: u64, memory: Arc<SendMemory>) -> Self {
        Self { window, held: 0, memory, reserved: 0, waiting: VecDeque::new() }
    }

    /// What a stream that holds `stream_held` bytes may add.
    pub(super) fn room(&self, stream_held: u64) -> u64 {
        let floor = STREAM_FLOOR_BYTES.saturating_sub(stream_held);
        let shared = self.window.saturating_sub(self.held);
        shared.max(floor).min(self.endpoint_room())
    }

    /// What the endpoint lets this connection add.
    fn endpoint_room(&self) -> u64 {
        (CONNECTION_FLOOR_BYTES + self.memory.share(self.window)).saturating_sub(self.held)
    }

    /// Room for which it is worth waking an application. A connection that has drained always has that much.
    pub(super) fn wake_room(&self) -> u64 {
        (self.window / 8).clamp(1, STREAM_FLOOR_BYTES)
    }

    /// Whether there is room for which it is worth waking those who wait.
    pub(super) fn should_wake(&self) -> bool {
        let room = self.window.saturating_sub(self.held).min(self.endpoint_room());
        !self.waiting.is_empty() && room >= self.wake_room()
    }

    pub(super) fn hold(&mut self, bytes: u64) {
        self.held += bytes;
        self.reserve();
    }

    pub(super) fn release(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.held, "only what is held is released");
        self.held -= bytes;
        self.reserve();
    }

    /// Reserves what is held beyond the floor, and gives back what has not been needed for a step.
    fn reserve(&mut self) {
        let step = CONNECTION_FLOOR_BYTES;
        let needed = self.held.saturating_sub(CONNECTION_FLOOR_BYTES).next_multiple_of(step);
        if needed > self.reserved || needed + step < self.reserved {
            self.memory.exchange(self.reserved, needed);
            self.reserved = needed;
        }
    }

    /// Bytes held.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    pub(super) fn wait(&mut self, id: StreamId) {
        self.waiting.push_back(id);
    }

    pub(super) fn take_waiting(&mut self) -> VecDeque<StreamId> {
        std::mem::take(&mut self.waiting)
    }
}

impl Drop for SendBudget {
    /// What was held is gone with the streams.
    fn drop(&mut self) {
        self.memory.exchange(self.reserved, 0);
    }
}
