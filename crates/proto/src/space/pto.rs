//! The probe timeout and its backoff (RFC 9002 §6.2).

use std::time::Duration;

use crate::config::TimerStyle;

/// The longest probe timeout is the idle timeout divided by this, so that a path that comes back is found
/// while the connection still lives.
const PROBES_PER_IDLE_TIMEOUT: u32 = 16;

/// The backoff never exceeds 2 to the power of this, where no idle timeout bounds it.
const MAX_BACKOFF_EXPONENT: u32 = 16;

/// How many probe timeouts have passed in a row without an acknowledgement.
///
/// The backoff is common to all spaces of a path: a timeout in one doubles the timeout of the others
/// (RFC 9002 §6.2.1).
///
/// Two deviations from the RFC, both on purpose, and off with [`TimerStyle::Classic`]. The second timeout is as long as the first: a single lost
/// packet is common, and a second probe at the same distance costs little. And the timeout stops growing at
/// a sixteenth of the idle timeout, though never below one plain timeout.
#[derive(Debug, Clone, Default)]
pub(crate) struct PtoBackoff {
    style: TimerStyle,
    count: u32,
}

impl PtoBackoff {
    /// No timeout has passed.
    pub(crate) fn new(style: TimerStyle) -> Self {
        Self { style, count: 0 }
    }

    /// The timeouts in a row.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Notes that the timer rang.
    pub(crate) fn on_timeout(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// Starts again: an acknowledgement came, or keys were discarded.
    pub(crate) fn reset(&mut self) {
        self.count = 0;
    }

    /// How long to wait for an acknowledgement before the next probe.
    ///
    /// `plain` is the timeout without backoff: [`crate::path::Rtt::pto_base`] plus, in the space of
    /// application data, the longest delay the peer promised for acknowledgements. `idle_timeout` is the
    /// idle timeout in force, during the handshake the handshake timeout.
    pub(crate) fn delay(&self, plain: Duration, idle_timeout: Option<Duration>) -> Duration {
        if self.style == TimerStyle::Classic {
            return plain.saturating_mul(1 << self.count.min(MAX_BACKOFF_EXPONENT));
        }
        let exponent = self.count.saturating_sub(1).min(MAX_BACKOFF_EXPONENT);
        let delay = plain.saturating_mul(1 << exponent);
        let cap = idle_timeout.map_or(Duration::MAX, |idle| idle / PROBES_PER_IDLE_TIMEOUT);
        delay.min(cap.max(plain))
    }
}

#[cfg(test)]
mod tests;
