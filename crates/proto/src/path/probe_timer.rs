//! The probe timer of a path: from when an acknowledgement is waited for, and how patiently (RFC 9002 §6.2).

use fulmar_base::Instant;

use crate::packed::packed;
use crate::rtt::TimerStyle;
use crate::space::PtoBackoff;

/// The probe timeouts of a path. Those of Initial and Handshake packets are path 0's.
#[derive(Debug)]
pub(crate) struct ProbeTimer {
    /// Probe timeouts in a row, common to all spaces that use the path.
    pub(crate) backoff: PtoBackoff,
    /// When the timeout was last started anew.
    pub(crate) started: Instant,
    /// Whether a packet without data shall ask whether the path is back.
    pub(crate) ping: bool,
}

packed!(ProbeTimer { backoff, started, ping });

impl ProbeTimer {
    pub(crate) fn new(now: Instant, style: TimerStyle) -> Self {
        Self { backoff: PtoBackoff::new(style), started: now, ping: false }
    }

    /// Starts anew, without backoff: keys were discarded (RFC 9002 §6.2.2), or the path has moved.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.backoff.reset();
        self.started = now;
    }
}
