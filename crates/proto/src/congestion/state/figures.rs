//! The figures of a tuple's congestion state, for whoever asks.

use fulmar_base::Instant;

use super::super::Controller;
use super::CongestionState;

impl CongestionState {
    /// Bytes in flight.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// The controller, for its figures.
    pub(crate) fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// What may be in flight: the window, and what bridges the stops of the path.
    pub(crate) fn window(&self) -> u64 {
        self.controller.window().saturating_add(self.bridge.as_ref().map_or(0, |bridge| bridge.get()))
    }

    /// Whether the window, or the rate, rises fast in search of what the path holds.
    pub(crate) fn is_searching(&self) -> bool {
        self.controller.is_searching()
    }

    /// The largest window so far.
    pub(crate) fn window_max(&self) -> u64 {
        self.window_max.max(self.window())
    }

    /// The pacing rate in bytes per second.
    pub(crate) fn pacing_rate(&self) -> u64 {
        self.pacer.rate()
    }

    /// The rate at which packets were acknowledged, by the last sample, in bytes per second; 0 before it.
    pub(crate) fn delivery_rate(&self) -> u64 {
        self.delivery_rate
    }

    /// When the packet left that was acknowledged by the last ACK frame, the newest of them; before the first, when the tuple came into being.
    pub(crate) fn newest_acked(&self) -> Instant {
        self.last_acked.0
    }

    /// Bytes that were acknowledged, and bytes that were declared lost.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.delivery.delivered(), self.delivery.lost())
    }
}
