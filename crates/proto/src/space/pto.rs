//! The probe timeout and its backoff (RFC 9002 §6.2).

use std::time::Duration;

use crate::packed::packed;
use crate::rtt::TimerStyle;
use fulmar_base::Instant;

/// The longest probe timeout is the idle timeout divided by this, so that a path that comes back is found
/// while the connection still lives.
const PROBES_PER_IDLE_TIMEOUT: u32 = 16;

/// The backoff never exceeds 2 to the power of this, where no idle timeout bounds it.
const MAX_BACKOFF_EXPONENT: u32 = 16;

/// After so many timeouts in a row, the path is more likely to be broken than to have lost the probes, and
/// PTO PINGs go between the timeouts.
const PTO_PING_TIMEOUTS: u32 = 3;

/// PTO PINGs are so many probe timeouts apart at least, and a silence divided by so many.
const PTO_PING_PTOS_MIN: u32 = 2;
const PTO_PINGS_PER_SILENCE: u32 = 16;

/// So often what arrives is taken for the return of the path while nothing is acknowledged. After that the backoff
/// holds: on a path that carries packets one way only, or acknowledgements much too late, probes would only add to
/// the queue.
const RETURNS_MAX: u32 = 4;

/// How many probe timeouts have passed in a row without an acknowledgement.
///
/// The backoff is common to all spaces of a path: a timeout in one doubles the timeout of the others
/// (RFC 9002 §6.2.1).
///
/// Three deviations from the RFC, on purpose, and off with [`TimerStyle::Classic`]. The second timeout is as long
/// as the first: a single lost packet is common, and a second probe at the same distance costs little. The
/// timeout stops growing at a sixteenth of the idle timeout, though never below one plain timeout. And after
/// some timeouts, PTO PINGs (without data) go between them.
#[derive(Debug, Clone)]
pub(crate) struct PtoBackoff {
    style: TimerStyle,
    count: u32,
    /// When the first of them passed; of no meaning without one.
    since: Instant,
    /// When the current timeout passes, while there are PTO PINGs in between.
    due: Option<Instant>,
    /// How often the path seemed to be back since something was acknowledged.
    returns: u32,
}

packed!(PtoBackoff { style, count, since, due, returns });

impl PtoBackoff {
    /// No timeout has passed.
    pub(crate) fn new(style: TimerStyle) -> Self {
        Self { style, count: 0, since: Instant::ZERO, due: None, returns: 0 }
    }

    /// The timeouts in a row.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Notes that the timeout passed.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.count == 0 {
            self.since = now;
        }
        self.count = self.count.saturating_add(1);
        self.due = None;
    }

    /// Whether the path seems to be broken, so that PTO PINGs go between the timeouts.
    pub(crate) fn sends_pings(&self) -> bool {
        self.style == TimerStyle::OncePerRtt && self.count >= PTO_PING_TIMEOUTS
    }

    /// The timeout that has just begun passes at `due`, whatever is sent meanwhile.
    pub(crate) fn begin_pings(&mut self, due: Instant) {
        self.due = Some(due);
    }

    /// Whether the timeout itself has passed, not only the time of a PTO PING.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| due <= now)
    }

    /// When the next PTO PING or probe leaves, after one at `last`; `None` without PTO PINGs.
    ///
    /// They are a sixteenth of the whole silence apart: so much of its length may pass, at most, from the end of
    /// an outage until a packet finds the path again. They cost a few dozens of bytes each, and their number
    /// grows with the logarithm of the silence.
    pub(crate) fn next_ping(&self, last: Instant, plain: Duration) -> Option<Instant> {
        let due = self.due?;
        let silence = last.saturating_since(self.since);
        Some(due.min(last + (silence / PTO_PINGS_PER_SILENCE).max(plain * PTO_PING_PTOS_MIN)))
    }

    /// Starts again: an acknowledgement came, or keys were discarded.
    pub(crate) fn reset(&mut self) {
        self.count = 0;
        self.due = None;
        self.returns = 0;
    }

    /// Starts again because the path seems to be back, though nothing was acknowledged yet.
    pub(crate) fn on_return(&mut self) {
        if self.returns < RETURNS_MAX {
            let returns = self.returns + 1;
            self.reset();
            self.returns = returns;
        }
    }

    /// How long to wait for an acknowledgement before the next probe.
    ///
    /// `plain` is the timeout without backoff: [`crate::rtt::Rtt::pto_base`] plus, in the space of
    /// application data, the longest delay the peer promised for acknowledgements. `idle_timeout` is the
    /// idle timeout in force, during the handshake the handshake timeout.
    pub(crate) fn delay(&self, plain: Duration, idle_timeout: Option<Duration>) -> Duration {
        if self.style == TimerStyle::Classic {
            return plain.saturating_mul(1 << self.count.min(MAX_BACKOFF_EXPONENT));
        }
        let exponent = self.count.saturating_sub(1).min(MAX_BACKOFF_EXPONENT);
        let delay = plain.saturating_mul(1 << exponent);
        delay.min(idle_timeout.map_or(Duration::MAX, |idle| probe_interval_max(idle, plain)))
    }
}

/// How far apart two probes are at most, however long nothing was answered: a small part of the time after which the peer is
/// given up, but no less than the timeout without backoff, `plain`.
pub(crate) fn probe_interval_max(until_given_up: Duration, plain: Duration) -> Duration {
    (until_given_up / PROBES_PER_IDLE_TIMEOUT).max(plain)
}

#[cfg(test)]
mod tests;
