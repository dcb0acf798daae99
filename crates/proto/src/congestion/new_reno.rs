//! NewReno (RFC 9002 §7), with HyStart++ in the first slow start.

use fulmar_base::Instant;

use super::rate_watch::RateWatch;
use super::recovery::Recovery;
use super::slow_start::SlowStart;
use super::{
    AckEvent, Cause, CongestionEvent, Controller, ControllerFactory, ResumeStep, Sent, SpuriousLoss,
    initial_window, minimum_window, window_after_mtu_change,
};

/// The options of [`NewReno`].
#[derive(Debug, Clone, Default)]
pub struct NewRenoConfig {
    /// The initial window in bytes; without one, RFC 9002 §7.2 decides.
    pub initial_window: Option<u64>,
}

impl ControllerFactory for NewRenoConfig {
    fn build(&self, _now: Instant, max_datagram_size: u16) -> Box<dyn Controller> {
        Box::new(NewReno::new(self, max_datagram_size))
    }
}

/// Halves the window at a loss and adds a datagram to it per round trip.
#[derive(Debug, Clone)]
pub struct NewReno {
    max_datagram_size: u16,
    window: u64,
    ssthresh: Option<u64>,
    /// Bytes acknowledged in congestion avoidance that have not grown the window yet.
    acked: u64,
    recovery: Recovery,
    /// The window and the threshold before the last reaction.
    undo: (u64, Option<u64>),
    slow_start: SlowStart,
    rate: RateWatch,
}

impl NewReno {
    /// A controller in slow start.
    pub fn new(config: &NewRenoConfig, max_datagram_size: u16) -> Self {
        let window = config.initial_window.unwrap_or_else(|| initial_window(max_datagram_size));
        Self {
            max_datagram_size,
            window: window.max(minimum_window(max_datagram_size)),
            ssthresh: None,
            acked: 0,
            recovery: Recovery::default(),
            undo: (window, None),
            slow_start: SlowStart::new(window),
            rate: RateWatch::new(),
        }
    }

    fn in_slow_start(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.window < ssthresh)
    }

    fn grow_in_congestion_avoidance(&mut self, ack: &AckEvent<'_>) {
        // RFC 9002 §7.3.3: at most one datagram for each window that is acknowledged.
        self.acked += ack.acked_bytes;
        while self.acked >= self.window {
            self.acked -= self.window;
            self.window += u64::from(self.max_datagram_size);
        }
    }

    fn react(&mut self, now: Instant) {
        self.recovery.enter(now);
        self.rate.restart(now);
        self.slow_start.on_congestion();
        self.undo = (self.window, self.ssthresh);
        // RFC 9002 §7.3.2 and appendix B.1: kLossReductionFactor is one half.
        self.window = (self.window / 2).max(minimum_window(self.max_datagram_size));
        self.ssthresh = Some(self.window);
        self.acked = 0;
    }
}

impl Controller for NewReno {
    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        if self.ssthresh.is_none() {
            self.slow_start.on_sent(now, sent);
        }
    }

    fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>) {
        if self.ssthresh.is_none() {
            let packet = u64::from(self.max_datagram_size);
            self.slow_start.watch_train(now, ack, packet, &mut self.window);
        }
        // RFC 9002 §7.8: a window that was not used is not tested. §7.3.2: nor does it grow in recovery.
        if ack.app_limited || self.recovery.holds(ack.largest_sent_time) {
            return;
        }
        let slow_start = self.in_slow_start();
        if !self.rate.may_grow(now, ack, slow_start) {
            // The window that is left is the threshold, so that congestion avoidance goes on from it.
            self.ssthresh = Some(self.ssthresh.map_or(self.window, |ssthresh| ssthresh.min(self.window)));
        } else if slow_start {
            self.slow_start.grow(now, ack, &mut self.window, &mut self.ssthresh);
        } else {
            self.grow_in_congestion_avoidance(ack);
        }
    }

    fn on_congestion(&mut self, now: Instant, event: &CongestionEvent) {
        if !self.recovery.covers(event.largest_sent_time) {
            self.react(now);
        }
        match event.cause {
            Cause::Loss => self.recovery.on_lost(event.lost_bytes),
            Cause::Ecn { .. } => self.recovery.make_final(),
        }
        if event.persistent {
            // RFC 9002 §7.6.2: back to the minimum, and to slow start.
            self.window = minimum_window(self.max_datagram_size);
            self.recovery.release();
        }
    }

    fn on_spurious_loss(&mut self, _now: Instant, spurious: &SpuriousLoss) {
        if self.recovery.on_spurious(spurious.bytes, spurious.sent_time) {
            let (window, ssthresh) = self.undo;
            self.window = self.window.max(window);
            self.ssthresh = ssthresh;
            self.recovery.release();
        }
    }

    fn on_resume(&mut self, now: Instant, step: ResumeStep) {
        let smallest = minimum_window(self.max_datagram_size);
        match step {
            ResumeStep::Jump { window, .. } => self.window = self.window.max(window),
            ResumeStep::Settle { window } => self.window = self.window.min(window).max(smallest),
            ResumeStep::Retreat { window } => {
                if !self.recovery.covers(now) {
                    self.recovery.enter(now);
                }
                self.recovery.make_final();
                self.window = self.window.min(window).max(smallest);
                self.ssthresh = Some(self.window);
            }
            ResumeStep::SlowStartUpTo { ssthresh } => self.ssthresh = Some(ssthresh.max(self.window)),
        }
    }

    fn on_mtu(&mut self, max_datagram_size: u16) {
        self.window = window_after_mtu_change(self.window, self.max_datagram_size, max_datagram_size);
        self.max_datagram_size = max_datagram_size;
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn take_train(&mut self) -> u64 {
        self.slow_start.take_train()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.ssthresh
    }

    fn state(&self) -> &'static str {
        match (self.in_slow_start(), self.slow_start.is_conservative()) {
            (true, false) => "slow start",
            (true, true) => "conservative slow start",
            (false, _) => "congestion avoidance",
        }
    }

    fn name(&self) -> &'static str {
        "newreno"
    }
}

#[cfg(test)]
mod tests;
