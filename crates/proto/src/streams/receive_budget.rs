//! How much of what was received may wait for the application: on one connection, and on all connections of an endpoint.

use std::sync::Arc;

use fulmar_wire::{FrameType, TransportErrorCode};

use crate::TransportError;
use crate::memory::{Reservation, SharedMemory};

/// The memory that received and unread data of all streams takes.
///
/// Flow control bounds it for a connection. What all connections of an endpoint hold together is bounded in two steps. As the
/// first half of their memory runs out, windows shrink with what is left of it, so that no new credit is given. Credit that was
/// given cannot be taken back, and the second half is for that. A connection whose peer uses credit when nothing is left at all,
/// and that holds more than every connection may, is closed.
#[derive(Debug)]
pub(super) struct ReceiveBudget {
    reservation: Reservation,
}

impl ReceiveBudget {
    pub(super) fn new(memory: Arc<SharedMemory>) -> Self {
        Self { reservation: Reservation::new(memory) }
    }

    /// How large the window of the connection may be now, which may grow to `window_max`. It never falls below what every
    /// connection may hold, so that a peer whose data is read goes on.
    #[inline]
    pub(super) fn window_limit(&self, window_max: u64) -> u64 {
        self.reservation.limit_of_half(window_max)
    }

    /// A stream holds `after` bytes in place of `before`.
    ///
    /// # Errors
    /// If that is more than others leave. The connection is to be closed.
    #[inline]
    pub(super) fn exchange(
        &mut self,
        before: u64,
        after: u64,
        window_max: u64,
    ) -> Result<(), TransportError> {
        let held = self.reservation.held() - before + after;
        if after > before && !self.reservation.covers(held) && held > self.reservation.limit(window_max) {
            let reason = "no memory is left for received data";
            return Err(
                TransportError::new(TransportErrorCode::INTERNAL_ERROR, reason).with_frame(FrameType::STREAM)
            );
        }
        self.reservation.set_held(held);
        Ok(())
    }

    /// A stream holds `bytes` less.
    #[inline]
    pub(super) fn release(&mut self, bytes: u64) {
        self.reservation.set_held(self.reservation.held() - bytes);
    }
}

#[cfg(test)]
mod tests;
