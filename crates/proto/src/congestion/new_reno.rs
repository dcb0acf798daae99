//! NewReno (RFC 9002 §7), with HyStart++ in the first slow start.

use fulmar_base::Instant;

use super::reno_window::{Growth, RenoWindow};
use super::slow_start::SlowStart;
use super::{
    AckEvent, Cause, CongestionEvent, Controller, ControllerFactory, CoupledShare, LostPacket, ResumeStep,
    Sent, SpuriousLoss,
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
    window: RenoWindow,
    /// Bytes acknowledged in congestion avoidance that have not grown the window yet.
    acked: u64,
    slow_start: SlowStart,
}

impl NewReno {
    /// A controller in slow start.
    pub fn new(config: &NewRenoConfig, max_datagram_size: u16) -> Self {
        let window = RenoWindow::new(config.initial_window, max_datagram_size);
        Self { slow_start: SlowStart::new(window.bytes), window, acked: 0 }
    }

    fn grow_in_congestion_avoidance(&mut self, ack: &AckEvent<'_>) {
        // RFC 9002 §7.3.3: at most one datagram for each window that is acknowledged.
        self.acked += self.window.share.grown(ack.acked_bytes);
        while self.acked >= self.window.bytes {
            self.acked -= self.window.bytes;
            self.window.bytes += self.window.packet();
        }
    }

    fn react(&mut self, now: Instant, cause: Cause) {
        self.slow_start.stop();
        // RFC 9002 §7.3.2 and appendix B.1: kLossReductionFactor is one half.
        self.window.react(now, self.window.half_of(self.window.bytes), cause);
        self.acked = 0;
    }
}

impl Controller for NewReno {
    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        self.slow_start.on_sent(now, sent);
    }

    fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>) {
        if let Some(retreat) = self.slow_start.check_unvalidated(now, ack, self.window.packet()) {
            self.window.retreat(retreat.window(ack.rtt));
            return;
        }
        let window = &mut self.window;
        if window.ssthresh.is_none() {
            self.slow_start.probe_with_trains(now, ack, window.packet(), &mut window.bytes);
        }
        match window.on_ack(now, ack) {
            Growth::Nothing => self.slow_start.on_unused(now),
            Growth::SlowStart => {
                self.slow_start.grow(now, ack, &mut window.bytes, &mut window.ssthresh);
            }
            Growth::Avoidance if self.slow_start.resumes(now, ack) => window.ssthresh = None,
            Growth::Avoidance => self.grow_in_congestion_avoidance(ack),
        }
    }

    fn on_packet_lost(&mut self, _now: Instant, lost: &LostPacket) {
        self.window.on_packet_lost(lost);
    }

    fn on_congestion(&mut self, now: Instant, event: &CongestionEvent) {
        let reacts = !self.window.covers(event.largest_sent_time);
        if reacts {
            self.react(now, event.cause);
        }
        if let Some(arrived) = self.slow_start.on_congestion(now, event, self.window.packet()) {
            self.window.shrink_to(arrived);
        }
        match event.cause {
            Cause::Loss => self.window.on_lost(event, reacts),
            Cause::Ecn { .. } => self.window.make_final(),
        }
    }

    fn on_spurious_loss(&mut self, _now: Instant, spurious: &SpuriousLoss) {
        self.window.on_spurious_loss(spurious);
    }

    fn on_resume(&mut self, now: Instant, step: ResumeStep) {
        self.window.on_resume(now, step);
    }

    fn couple(&mut self, share: CoupledShare) {
        self.window.share = share;
    }

    fn on_mtu(&mut self, max_datagram_size: u16) {
        self.window.on_mtu(max_datagram_size);
    }

    fn window(&self) -> u64 {
        self.window.bytes
    }

    fn conserves(&self) -> bool {
        self.window.conserves()
    }

    fn take_packet_train(&mut self) -> u64 {
        self.slow_start.take_packet_train()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.window.ssthresh
    }

    fn state(&self) -> &'static str {
        match (self.window.in_slow_start(), self.slow_start.is_conservative()) {
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
