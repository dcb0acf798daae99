//! Silence: when it ends a connection, and how it is prevented (RFC 9000 §10.1).

use std::time::Duration;

use fulmar_base::{Instant, Timer};

/// An idle timeout lasts at least so many probe timeouts, so that losses alone cannot cause it
/// (RFC 9000 §10.1).
const PROBES_MIN: u32 = 3;

/// A PING that keeps the connection alive leaves after this part of the idle timeout at the latest: its loss, and what a NAT
/// has forgotten, can be made up for in the rest.
const KEEP_ALIVE_DIVISOR: u32 = 2;

/// A silence is long after this time, and after so many round trips.
const LONG_SILENCE: Duration = Duration::from_secs(5);
const LONG_SILENCE_RTTS: u32 = 3;

/// The idle timeout and keep-alive of a connection.
#[derive(Debug)]
pub(super) struct Idle {
    /// The smaller of both ends' timeouts; `None`: never.
    timeout: Option<Duration>,
    timer: Timer,
    /// Whether the handshake is complete. Before, the handshake timeout decides alone: it may be far longer, for
    /// a peer on another planet, or shorter.
    established: bool,
    /// Whether something that elicits an answer was sent since something was last received.
    asked: bool,
    /// When something was last received, or sent that elicits an answer.
    last_activity: Instant,
    /// When something was last received.
    last_received: Instant,
    /// Whether the timers were started by what was last received, and the probe timeout is still the same.
    is_current: bool,
    keep_alive: Option<Duration>,
    keep_alive_timer: Timer,
}

impl Idle {
    /// Starts with this end's own timeout; the peer's is not known yet.
    pub(super) fn new(now: Instant, timeout: Option<Duration>, keep_alive: Option<Duration>) -> Self {
        Self {
            timeout,
            timer: Timer::new(),
            established: false,
            asked: false,
            last_activity: now,
            last_received: now,
            is_current: false,
            keep_alive,
            keep_alive_timer: Timer::new(),
        }
    }

    /// The peer's timeout is known: the smaller one counts.
    pub(super) fn negotiate(&mut self, peer: Option<Duration>) {
        self.timeout = match (self.timeout, peer) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
    }

    /// The handshake is complete: silence counts from now on.
    pub(super) fn on_established(&mut self, now: Instant, pto: Duration) {
        self.established = true;
        self.restart(now, pto);
    }

    /// The timeout in force.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// A packet was received and authenticated.
    pub(super) fn on_received(&mut self, now: Instant, pto: impl FnOnce() -> Duration) {
        if !self.asked && self.is_current && self.last_received == now {
            // Another packet of the same batch.
            return;
        }
        self.asked = false;
        self.last_activity = now;
        self.last_received = now;
        self.restart(now, pto());
        self.is_current = true;
    }

    /// A packet that elicits an answer was sent. Only the first one after a reception counts: otherwise an end
    /// that keeps asking a dead peer would never give up.
    pub(super) fn on_ack_eliciting_sent(&mut self, now: Instant, pto: impl FnOnce() -> Duration) {
        self.last_activity = now;
        if !self.asked {
            self.asked = true;
            self.restart(now, pto());
        }
    }

    /// The probe timeout may have changed: the next packet starts the timers anew, also at the same instant.
    pub(super) fn on_pto_changed(&mut self) {
        self.is_current = false;
    }

    /// How long nothing was received.
    pub(super) fn since_received(&self, now: Instant) -> Duration {
        now.saturating_since(self.last_received)
    }

    /// Whether nothing has happened for so long that the network may have changed meanwhile. Waiting for an
    /// answer is no silence, however far the peer is.
    pub(super) fn is_long_silent(&self, now: Instant, rtt_min: Duration) -> bool {
        now.saturating_since(self.last_activity) > LONG_SILENCE.max(rtt_min * LONG_SILENCE_RTTS)
    }

    fn restart(&mut self, now: Instant, pto: Duration) {
        if !self.established {
            return;
        }
        match self.timeout {
            Some(timeout) => self.timer.set(now + timeout.max(pto * PROBES_MIN)),
            None => self.timer.cancel(),
        }
        if let Some(interval) = self.keep_alive {
            // The peer's timeout may be shorter than what this end had in mind.
            let latest = self.timeout.map_or(interval, |timeout| timeout / KEEP_ALIVE_DIVISOR);
            self.keep_alive_timer.set(now + interval.min(latest.max(pto)));
        }
    }

    /// When the connection ends if nothing happens.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }

    /// When a PING keeps the connection alive.
    pub(super) fn keep_alive_deadline(&self) -> Option<Instant> {
        self.keep_alive_timer.deadline()
    }

    /// Returns true if the connection has timed out.
    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        self.timer.take_expired(now)
    }

    /// Returns true if a PING should be sent.
    pub(super) fn on_keep_alive(&mut self, now: Instant) -> bool {
        self.keep_alive_timer.take_expired(now)
    }

    pub(super) fn stop(&mut self) {
        self.timer.cancel();
        self.keep_alive_timer.cancel();
    }
}

#[cfg(test)]
mod tests;
