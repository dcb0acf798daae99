//! Careful resume: starting with what an earlier connection knew of the path (RFC 9959).
//!
//! The phases are those of the RFC. In reconnaissance the connection is like any other; when its first packets have
//! arrived, with the round-trip time that was saved, it jumps to half of the saved window, which is unvalidated while
//! its packets leave and being validated until they are acknowledged. If congestion shows meanwhile, the flow
//! retreats to half of what has arrived. The component decides and measures; what a window is, the controller
//! knows, and hears of it in [`Controller::on_resume`](super::Controller::on_resume).
//!
//! A departure: the RFC begins reconnaissance after the handshake, here the packets of the handshake are a part of it.
//! They are the first flight that shows the round-trip time and the absence of congestion, which is what
//! reconnaissance is for, and over a satellite each round trip counts.

use std::time::Duration;

use fulmar_base::Instant;

use super::SavedPath;
use crate::rtt::Rtt;

/// The jump goes to this part of the saved window (RFC 9959 §3.3).
const JUMP_DIVISOR: u64 = 2;

/// No jump goes further, in bytes (`max_jump`).
const JUMP_MAX: u64 = 64 << 20;

/// A round-trip time of up to this part of the saved one, or of this many times it, belongs to another path (RFC 9959
/// §3.2, §4.2.1).
const RTT_DIVISOR: u32 = 2;
const RTT_FACTOR: u32 = 10;

/// After a retreat slow start may go up to this part of what has arrived (RFC 9959 §3.5, beta).
const RETREAT_DIVISOR: u64 = 2;

/// What careful resume asks of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResumeStep {
    /// Let `window` bytes be in flight, paced over `rtt`: the path is believed to carry them.
    Jump {
        /// In bytes; smaller than the present window if that has grown meanwhile.
        window: u64,
        /// The smallest round-trip time of this connection.
        rtt: Duration,
    },
    /// All that was going to be sent after the jump has been: no more than `window` bytes were needed.
    Settle {
        /// In bytes.
        window: u64,
    },
    /// Congestion showed: go to `window` at most, and do not grow until packets that leave from now on arrive.
    Retreat {
        /// In bytes.
        window: u64,
    },
    /// The packets of the jump have left the path: slow start may go on up to `ssthresh`.
    SlowStartUpTo {
        /// In bytes.
        ssthresh: u64,
    },
}

/// The phase of a flow that has saved parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// The first packets are under way.
    Reconnaissance { confirmed: bool },
    /// The window is the jump, and not all of it has left.
    Unvalidated { since: Instant, window: u64 },
    /// All of it has left; the last packet at this time.
    Validating { last_sent: Instant },
    /// Congestion showed; what left until then is drained.
    SafeRetreat { last_sent: Instant },
    /// The controller is left alone.
    Normal,
}

/// The saved parameters and what becomes of them.
#[derive(Debug)]
pub(super) struct CarefulResume {
    saved: SavedPath,
    phase: Phase,
    /// The first packets: when they left, and how many bytes of them are not accounted for.
    first_flight: Option<(Instant, u64)>,
    /// What is known to fit the path (`PipeSize`).
    pipe: u64,
    initial_window: u64,
    last_sent: Instant,
}

impl CarefulResume {
    /// A flow that has sent nothing.
    pub(super) fn new(saved: SavedPath, initial_window: u64) -> Self {
        Self {
            saved,
            phase: Phase::Reconnaissance { confirmed: false },
            first_flight: None,
            pipe: 0,
            initial_window,
            last_sent: Instant::ZERO,
        }
    }

    /// Whether there is nothing more to do.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Normal
    }

    /// The window that is going to be tried, in bytes; zero if that was done, or is not to be done.
    pub(super) fn jump(&self) -> u64 {
        match self.phase {
            Phase::Reconnaissance { .. } => (self.saved.window / JUMP_DIVISOR).min(JUMP_MAX),
            _ => 0,
        }
    }

    /// The phase in a word or two.
    pub(super) fn state(&self) -> &'static str {
        match self.phase {
            Phase::Reconnaissance { .. } => "reconnaissance",
            Phase::Unvalidated { .. } => "unvalidated",
            Phase::Validating { .. } => "validating",
            Phase::SafeRetreat { .. } => "safe retreat",
            Phase::Normal => "normal",
        }
    }

    /// A packet left. `in_flight` are the bytes in flight with it.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        bytes: u64,
        in_flight: u64,
        packet: u64,
    ) -> Option<ResumeStep> {
        self.last_sent = now;
        match self.phase {
            Phase::Reconnaissance { confirmed: false } => {
                let (at, open) = self.first_flight.get_or_insert((now, 0));
                if *at == now {
                    *open += bytes;
                }
                None
            }
            Phase::Unvalidated { window, .. } if in_flight + packet > window => self.validate(in_flight),
            _ => None,
        }
    }

    /// A packet was acknowledged, or is of no interest any more since its keys are gone: the peer has got it.
    pub(super) fn on_arrived(&mut self, bytes: u64, sent: Instant) {
        if let Some((at, open)) = &mut self.first_flight
            && *at == sent
        {
            *open = open.saturating_sub(bytes);
        }
        if !matches!(self.phase, Phase::Reconnaissance { .. }) {
            self.pipe += bytes;
        }
    }

    /// An ACK frame was processed whose newest packet left at `sent`.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        in_flight: u64,
        rtt: &Rtt,
    ) -> Option<ResumeStep> {
        match self.phase {
            Phase::Reconnaissance { .. } => {
                let arrived = self.first_flight.is_some_and(|(_, open)| open == 0) && rtt.has_sample();
                if rtt.has_sample() && !self.is_same_path(rtt.min()) {
                    self.phase = Phase::Normal;
                } else if arrived {
                    self.phase = Phase::Reconnaissance { confirmed: true };
                }
                None
            }
            Phase::Unvalidated { since, .. } => {
                if !self.is_same_path(rtt.min()) {
                    return Some(self.retreat());
                }
                let acknowledged = sent >= since;
                let overdue = now.saturating_since(since) > rtt.smoothed();
                if acknowledged || overdue { self.validate(in_flight) } else { None }
            }
            Phase::Validating { last_sent } if sent >= last_sent => {
                self.phase = Phase::Normal;
                // A departure: the RFC lets slow start go on without a bound. What filled the path an hour ago fills
                // it now, and the doubling beyond that would be lost.
                self.saved.full.then_some(ResumeStep::SlowStartUpTo { ssthresh: self.saved.window })
            }
            Phase::SafeRetreat { last_sent } if sent >= last_sent => {
                self.phase = Phase::Normal;
                Some(ResumeStep::SlowStartUpTo { ssthresh: (self.pipe / RETREAT_DIVISOR).max(1) })
            }
            _ => None,
        }
    }

    /// There is more to send than the window or the pacer lets leave. The jump waits for that, since before it would
    /// prove nothing.
    pub(super) fn on_blocked(
        &mut self,
        now: Instant,
        in_flight: u64,
        window: u64,
        rtt: &Rtt,
    ) -> Option<ResumeStep> {
        if self.phase != (Phase::Reconnaissance { confirmed: true }) {
            return None;
        }
        let jump = self.jump();
        if jump <= window {
            // The flow is as fast already.
            self.phase = Phase::Normal;
            return None;
        }
        self.pipe = in_flight;
        self.phase = Phase::Unvalidated { since: now, window: jump };
        Some(ResumeStep::Jump { window: jump, rtt: rtt.min() })
    }

    /// Packets were lost, `by_chance` as the controller sees it. RFC 9959 §3.4 retreats if the sender determines that there is congestion;
    /// before the jump every loss is a reason not to try it.
    pub(super) fn on_losses(&mut self, by_chance: bool) -> Option<ResumeStep> {
        let has_jumped = !matches!(self.phase, Phase::Reconnaissance { .. });
        if by_chance && has_jumped { None } else { self.on_congestion() }
    }

    /// Packets were lost or marked: there is congestion.
    pub(super) fn on_congestion(&mut self) -> Option<ResumeStep> {
        match self.phase {
            Phase::Reconnaissance { .. } => {
                self.phase = Phase::Normal;
                None
            }
            Phase::Unvalidated { .. } | Phase::Validating { .. } => Some(self.retreat()),
            Phase::SafeRetreat { .. } | Phase::Normal => None,
        }
    }

    /// RFC 9959 §3.2: a much shorter or much longer round-trip time is another path's.
    fn is_same_path(&self, min_rtt: Duration) -> bool {
        min_rtt > self.saved.rtt / RTT_DIVISOR && min_rtt < self.saved.rtt * RTT_FACTOR
    }

    /// The jump has left, as far as it was needed.
    fn validate(&mut self, in_flight: u64) -> Option<ResumeStep> {
        if in_flight < self.initial_window || in_flight <= self.pipe {
            // RFC 9959 §3.3: the application did not need it, so it is not known to fit.
            self.phase = Phase::Normal;
            return Some(ResumeStep::Settle { window: self.pipe.max(self.initial_window) });
        }
        self.phase = Phase::Validating { last_sent: self.last_sent };
        Some(ResumeStep::Settle { window: in_flight })
    }

    fn retreat(&mut self) -> ResumeStep {
        self.phase = Phase::SafeRetreat { last_sent: self.last_sent };
        ResumeStep::Retreat { window: self.pipe / RETREAT_DIVISOR }
    }
}

#[cfg(test)]
mod tests;
