//! How much the application may have buffered for sending: on one connection, and on all connections of an endpoint.

use std::sync::Arc;

use fulmar_wire::StreamId;

use crate::memory::{Reservation, SharedMemory};

/// A stream that holds less than this may be written to even if the other streams have used the window up: a
/// bulk transfer of low priority must not keep a request from being written.
pub(super) const STREAM_FLOOR_BYTES: u64 = 16 * 1024;

/// What may be written before anything is known of the path: more than the first flights take.
const WINDOW_MIN: u64 = 64 * 1024;

/// The window in flights of the paths: one is under way, the acknowledgements of one wait behind a loss, and one is there to be
/// sent when these come.
const FLIGHTS: u64 = 3;

/// The memory that unsent and unacknowledged data of all streams takes. It is at most the window, plus
/// [`STREAM_FLOOR_BYTES`] for each open stream, and less while the endpoint has not as much left.
///
/// The window follows what the paths have room for, up to a maximum. So a peer makes this end hold much only if it has
/// acknowledged much, and a long path is full all the same.
#[derive(Debug)]
pub(super) struct SendBudget {
    window: u64,
    reservation: Reservation,
    /// The streams whose application waits for room. At most one entry for each stream: its flag is
    /// [`super::send::SendHalf::queued_waiting`].
    waiting: Vec<StreamId>,
}

impl SendBudget {
    /// A window that may grow to `window_max` bytes.
    pub(super) fn new(window_max: u64, memory: Arc<SharedMemory>) -> Self {
        let window = WINDOW_MIN.min(window_max);
        Self { window, reservation: Reservation::new(memory), waiting: Vec::new() }
    }

    pub(super) fn memory(&self) -> &Arc<SharedMemory> {
        self.reservation.memory()
    }

    /// So many bytes may be in flight over all paths: the window follows them, up to `window_max`.
    #[inline]
    pub(super) fn set_flight(&mut self, bytes: u64, window_max: u64) {
        self.window = bytes.saturating_mul(FLIGHTS).max(WINDOW_MIN).min(window_max);
    }

    /// What a stream that holds `stream_held` bytes may add.
    pub(super) fn room(&self, stream_held: u64) -> u64 {
        self.room_beside(stream_held, self.held())
    }

    /// Whether there is little room beyond what each stream may hold in any case.
    pub(super) fn is_scarce(&self) -> bool {
        self.window.saturating_sub(self.held()) < STREAM_FLOOR_BYTES
    }

    /// The same, where streams that may send before it or at the same time hold `peers_held` bytes with it.
    pub(super) fn room_beside(&self, stream_held: u64, peers_held: u64) -> u64 {
        let floor = STREAM_FLOOR_BYTES.saturating_sub(stream_held);
        let shared = self.window.saturating_sub(peers_held);
        shared.max(floor).min(self.endpoint_room())
    }

    /// What the endpoint lets this connection add. What it has reserved counts against it: something is always left for
    /// those who come later.
    fn endpoint_room(&self) -> u64 {
        self.reservation.left(self.window).saturating_sub(self.held())
    }

    /// Room for which it is worth waking an application. A connection that has drained always has that much.
    pub(super) fn wake_room(&self) -> u64 {
        (self.window / 8).clamp(1, STREAM_FLOOR_BYTES)
    }

    /// Whether there is room for which it is worth waking those who wait.
    pub(super) fn should_wake(&self) -> bool {
        let room = self.window.saturating_sub(self.held()).min(self.endpoint_room());
        !self.waiting.is_empty() && room >= self.wake_room()
    }

    pub(super) fn hold(&mut self, bytes: u64) {
        self.reservation.set_held(self.held() + bytes);
    }

    pub(super) fn release(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.held(), "only what is held is released");
        self.reservation.set_held(self.held() - bytes);
    }

    /// Bytes held.
    pub(super) fn held(&self) -> u64 {
        self.reservation.held()
    }

    pub(super) fn wait(&mut self, id: StreamId) {
        self.waiting.push(id);
    }

    pub(super) fn take_waiting(&mut self) -> Vec<StreamId> {
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests;
