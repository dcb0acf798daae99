//! A window that a loss halves: what NewReno and Prague have in common.
//!
//! Owns the window, its threshold, the period of recovery and the undoing of a reaction that had no cause (RFC 9002
//! §7.3). How the window grows, and what else shrinks it, its owner knows.

use fulmar_base::Instant;

use super::loss_round::{LossRound, Shown};
use super::rate_watch::RateWatch;
use super::recovery::{Before, Recovery};
use super::{
    AckEvent, Cause, CongestionEvent, CoupledShare, LostPacket, ResumeStep, SpuriousLoss, initial_window,
    minimum_window, threshold_after_outage, window_after_mtu_change,
};

/// How the window may grow by an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    /// Not at all.
    Nothing,
    /// As in slow start.
    SlowStart,
    /// As in congestion avoidance.
    Avoidance,
}

/// The window and its reactions to losses.
#[derive(Debug, Clone)]
pub(super) struct RenoWindow {
    max_datagram_size: u16,
    /// The window in bytes.
    pub(super) bytes: u64,
    /// The slow start threshold in bytes, once there is one.
    pub(super) ssthresh: Option<u64>,
    recovery: Recovery<WindowBefore>,
    loss_round: LossRound,
    rate: RateWatch,
    /// What a coupling with other paths leaves to it.
    pub(super) share: CoupledShare,
}

/// The window and the threshold before a reaction.
#[derive(Debug, Clone, Copy)]
struct WindowBefore {
    bytes: u64,
    ssthresh: Option<u64>,
}

impl Before for WindowBefore {
    fn window(&self) -> u64 {
        self.bytes
    }
}

impl RenoWindow {
    /// The initial window in bytes, or the one of RFC 9002 §7.2.
    pub(super) fn new(initial: Option<u64>, max_datagram_size: u16) -> Self {
        let bytes = initial.unwrap_or_else(|| initial_window(max_datagram_size));
        let bytes = bytes.max(minimum_window(max_datagram_size));
        Self {
            max_datagram_size,
            bytes,
            ssthresh: None,
            recovery: Recovery::default(),
            loss_round: LossRound::default(),
            rate: RateWatch::new(),
            share: CoupledShare::ALONE,
        }
    }

    /// The size of a full packet in bytes.
    pub(super) fn packet(&self) -> u64 {
        u64::from(self.max_datagram_size)
    }

    /// Whether the window is below its threshold.
    pub(super) fn in_slow_start(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.bytes < ssthresh)
    }

    /// Whether a packet sent at `sent_time` left before the last reaction to a loss.
    pub(super) fn covers(&self, sent_time: Instant) -> bool {
        self.recovery.covers(sent_time)
    }

    /// Takes an ACK frame and says how the window may grow by it.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>) -> Growth {
        if let Some(shown) = self.loss_round.on_ack(now, ack, self.packet()) {
            self.settle(now, shown);
        }
        // RFC 9002 §7.8: a window that was not used is not tested. §7.3.2: nor does it grow in recovery.
        if ack.app_limited || self.recovery.holds(ack.largest_sent_time) {
            return Growth::Nothing;
        }
        let slow_start = self.in_slow_start();
        if !self.rate.may_grow(now, ack, slow_start) {
            // The window that is left is the threshold, so that congestion avoidance goes on from it.
            self.ssthresh = Some(self.ssthresh.map_or(self.bytes, |ssthresh| ssthresh.min(self.bytes)));
            return Growth::Nothing;
        }
        if slow_start { Growth::SlowStart } else { Growth::Avoidance }
    }

    /// Half of a window, or what a coupling makes of that.
    pub(super) fn half_of(&self, bytes: u64) -> u64 {
        self.share.reduced(bytes, bytes / 2)
    }

    /// Goes to a window that is known to suit the path.
    pub(super) fn retreat(&mut self, bytes: u64) {
        self.loss_round.end();
        self.shrink_to(bytes);
    }

    /// Shrinks the window, and makes what is left the threshold.
    pub(super) fn shrink_to(&mut self, bytes: u64) {
        self.bytes = bytes.max(minimum_window(self.max_datagram_size));
        self.ssthresh = Some(self.bytes);
    }

    /// The flight with which the first slow start ended has shown what the path held. Half of a window that was never
    /// carried may be more than that. What was too much is gone, so half of the usual step below is enough, and none where
    /// there is no queue.
    fn settle(&mut self, now: Instant, shown: Shown) {
        let window = shown.pipe.max(shown.held * 3 / 4);
        if window < self.bytes {
            self.shrink_to(window);
            self.recovery.extend(now);
        }
    }

    /// Whether no more may leave than arrives, see [`LossRound`].
    pub(super) fn conserves(&self) -> bool {
        self.loss_round.is_under_way()
    }

    /// Begins a period of recovery with this window.
    pub(super) fn react(&mut self, now: Instant, bytes: u64, cause: Cause) {
        self.recovery.enter(now, WindowBefore { bytes: self.bytes, ssthresh: self.ssthresh });
        if cause == Cause::Loss {
            self.loss_round.begin(now, self.ssthresh.is_none());
        }
        self.rate.restart(now);
        self.shrink_to(bytes);
    }

    /// Notes a lost packet, before the losses are summed up.
    pub(super) fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.recovery.on_lost(lost.bytes, lost.sent_time);
    }

    /// Notes losses, after the reaction to them if they are a sign of their own (`reacted`).
    pub(super) fn on_lost(&mut self, event: &CongestionEvent, reacted: bool) {
        self.recovery.end_losses();
        self.loss_round.on_lost(event);
        if event.persistent {
            // RFC 9002 §7.6.2: back to the minimum, and to slow start.
            self.bytes = minimum_window(self.max_datagram_size);
            if let Some(before) = self.recovery.before().filter(|_| reacted) {
                self.ssthresh = threshold_after_outage(before.bytes, before.ssthresh);
            }
            self.recovery.release();
            self.loss_round.end();
        }
    }

    /// Marks confirm the last reaction: it cannot be undone.
    pub(super) fn make_final(&mut self) {
        self.recovery.make_final();
    }

    /// A packet declared lost has arrived: undoes a reaction if that was the last of its losses.
    pub(super) fn on_spurious_loss(&mut self, spurious: &SpuriousLoss) {
        let (share, smallest) = (self.share, minimum_window(self.max_datagram_size));
        let undone = self.recovery.on_spurious(spurious, |before| {
            let bytes = share.reduced(before.bytes, before.bytes / 2).max(smallest);
            WindowBefore { bytes, ssthresh: Some(bytes) }
        });
        let Some(undone) = undone else { return };
        self.bytes = self.bytes.max(undone.state.bytes);
        if undone.is_latest {
            self.ssthresh = undone.state.ssthresh;
            self.recovery.release();
            self.loss_round.end();
        } else {
            self.ssthresh = self.ssthresh.max(undone.state.ssthresh);
        }
    }

    /// Follows careful resume (RFC 9959).
    pub(super) fn on_resume(&mut self, now: Instant, step: ResumeStep) {
        let smallest = minimum_window(self.max_datagram_size);
        match step {
            ResumeStep::Jump { window, .. } => self.bytes = self.bytes.max(window),
            ResumeStep::Settle { window } => self.bytes = self.bytes.min(window).max(smallest),
            ResumeStep::Retreat { window } => {
                if !self.recovery.covers(now) {
                    self.recovery.enter(now, WindowBefore { bytes: self.bytes, ssthresh: self.ssthresh });
                }
                self.recovery.make_final();
                self.shrink_to(self.bytes.min(window));
            }
            ResumeStep::SlowStartUpTo { ssthresh } => self.ssthresh = Some(ssthresh.max(self.bytes)),
        }
    }

    /// The largest size of a datagram changed, in bytes of UDP payload.
    pub(super) fn on_mtu(&mut self, max_datagram_size: u16) {
        self.bytes = window_after_mtu_change(self.bytes, self.max_datagram_size, max_datagram_size);
        self.max_datagram_size = max_datagram_size;
    }
}
