//! How much the application may have buffered for sending.

use std::collections::VecDeque;

use fulmar_wire::StreamId;

/// A stream that holds less than this may be written to even if the other streams have used the window up: a
/// bulk transfer of low priority must not keep a request from being written.
pub(super) const STREAM_FLOOR_BYTES: u64 = 16 * 1024;

/// The memory that unsent and unacknowledged data of all streams takes. It is at most the window, plus
/// [`STREAM_FLOOR_BYTES`] for each open stream.
#[derive(Debug)]
pub(super) struct SendBudget {
    window: u64,
    held: u64,
    /// The streams whose application waits for room. At most one entry for each stream: its flag is
    /// [`super::send::SendHalf::queued_waiting`].
    waiting: VecDeque<StreamId>,
}

impl SendBudget {
    pub(super) fn new(window: u64) -> Self {
        Self { window, held: 0, waiting: VecDeque::new() }
    }

    /// What a stream that holds `stream_held` bytes may add.
    pub(super) fn room(&self, stream_held: u64) -> u64 {
        let shared = self.window.saturating_sub(self.held);
        shared.max(STREAM_FLOOR_BYTES.saturating_sub(stream_held))
    }

    /// Room for which it is worth waking an application. A stream that has drained always has that much.
    pub(super) fn wake_room(&self) -> u64 {
        (self.window / 8).clamp(1, STREAM_FLOOR_BYTES)
    }

    /// Whether there is room for which it is worth waking those who wait.
    pub(super) fn should_wake(&self) -> bool {
        !self.waiting.is_empty() && self.window.saturating_sub(self.held) >= self.wake_room()
    }

    pub(super) fn hold(&mut self, bytes: u64) {
        self.held += bytes;
    }

    pub(super) fn release(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.held, "only what is held is released");
        self.held -= bytes;
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
