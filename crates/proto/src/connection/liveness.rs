//! Whether the peer is still there: the idle timeout and keep-alive, and a client's watch over a steady flow.

use fulmar_base::Instant;

use super::idle::Idle;
use super::watchdog::Watchdog;
use crate::config::TransportConfig;

/// The timers of silence.
#[derive(Debug)]
pub(super) struct Liveness {
    pub(super) idle: Idle,
    pub(super) watchdog: Watchdog,
}

impl Liveness {
    pub(super) fn new(now: Instant, config: &TransportConfig) -> Self {
        Self {
            idle: Idle::new(now, config.max_idle_timeout, config.keep_alive_interval),
            watchdog: Watchdog::default(),
        }
    }

    /// The connection is over: its silence means nothing any more.
    pub(super) fn stop(&mut self) {
        self.idle.stop();
        self.watchdog.stop();
    }
}
