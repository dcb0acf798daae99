//! Prague: many small reactions to the marks of an L4S network (draft-briscoe-iccrg-prague-congestion-control,
//! RFC 9330, RFC 9331).
//!
//! An L4S queue marks early and often, so a mark is no alarm: the window shrinks in proportion to the share of
//! packets that were marked, as an average over rounds (`alpha`), and it grows by a datagram per round as Reno's
//! does. Where the network is not of that kind - packets are lost, or marks come late from a queue that is deep -
//! Prague reacts as NewReno does.

mod marks;

use std::time::Duration;

use fulmar_base::Instant;

use self::marks::{Marks, Round};
use super::hystart::HyStart;
use super::reno_window::{Growth, RenoWindow};
use super::{
    AckEvent, Cause, CongestionEvent, Controller, ControllerFactory, CoupledShare, LostPacket, ResumeStep,
    Sent, SpuriousLoss,
};
use crate::datagram::Ecn;

/// Flows with a shorter round-trip time behave as if it were this (the draft's RTT_virt), so that they leave
/// longer ones a fair share.
const VIRTUAL_RTT: Duration = Duration::from_millis(25);

/// After this many rounds of congestion avoidance the rate does not depend on the round-trip time any more: short
/// flows are not slowed down.
const INDEPENDENT_AFTER_ROUNDS: u32 = 500;

/// After silence so much of the rate leaves at once.
const BURST_TIME: Duration = Duration::from_micros(250);

/// Shares are counted in this fraction.
const ONE: u64 = 1 << 20;

/// The options of [`Prague`].
#[derive(Debug, Clone, Default)]
pub struct PragueConfig {
    /// The initial window in bytes; without one, RFC 9002 §7.2 decides.
    pub initial_window: Option<u64>,
}

impl ControllerFactory for PragueConfig {
    fn build(&self, _now: Instant, max_datagram_size: u16) -> Box<dyn Controller> {
        Box::new(Prague::new(self, max_datagram_size))
    }
}

/// Shrinks the window by half the share of marked packets, once per round.
#[derive(Debug, Clone)]
pub struct Prague {
    window: RenoWindow,
    /// Bytes acknowledged without a mark that have not grown the window yet, in fractions of [`ONE`].
    credit: u128,
    marks: Marks,
    /// When marks last shrank the window, and the window before that.
    reacted: Option<(Instant, u64)>,
    hystart: HyStart,
    /// Rounds of congestion avoidance.
    rounds: u32,
    smoothed_rtt: Duration,
}

impl Prague {
    /// A controller in slow start.
    pub fn new(config: &PragueConfig, max_datagram_size: u16) -> Self {
        Self {
            window: RenoWindow::new(config.initial_window, max_datagram_size),
            credit: 0,
            marks: Marks::new(),
            reacted: None,
            hystart: HyStart::new(),
            rounds: 0,
            smoothed_rtt: Duration::ZERO,
        }
    }

    /// Whether the rate is to be that of a flow with [`VIRTUAL_RTT`].
    fn is_rtt_independent(&self) -> bool {
        self.rounds >= INDEPENDENT_AFTER_ROUNDS && self.smoothed_rtt < VIRTUAL_RTT
    }

    /// How long a round is: reactions and the average of marks move once in this time.
    fn round_time(&self) -> Duration {
        if self.is_rtt_independent() { VIRTUAL_RTT } else { Duration::ZERO }
    }

    /// What a window of acknowledgements adds to the window, as a share of a datagram: a flow with half of the
    /// virtual round-trip time has twice as many rounds, and a window half as large for the same rate.
    fn growth(&self) -> u64 {
        if !self.is_rtt_independent() {
            return ONE;
        }
        let share = self.smoothed_rtt.as_nanos() * u128::from(ONE) / VIRTUAL_RTT.as_nanos();
        let share = u64::try_from(share).unwrap_or(ONE).min(ONE);
        (share * share / ONE).max(1)
    }

    fn grow_in_congestion_avoidance(&mut self, ack: &AckEvent<'_>) {
        // Packets that were marked do not grow the window.
        let unmarked = ack.acked_packets.saturating_sub(ack.ce_packets);
        let bytes = u128::from(ack.acked_bytes) * u128::from(unmarked) / u128::from(ack.acked_packets.max(1));
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.credit += u128::from(self.window.share.grown(bytes)) * u128::from(self.growth());
        let price = u128::from(self.window.bytes) * u128::from(ONE);
        if self.credit >= price {
            self.credit -= price;
            self.window.bytes += self.window.packet();
        }
    }

    /// Marks came in: at most one reaction in a round.
    fn react_to_marks(&mut self, now: Instant, sent: Instant) {
        let recent = self.reacted.is_some_and(|(at, _)| {
            sent <= at || now.saturating_since(at) < self.round_time().max(self.smoothed_rtt / 2)
        });
        // A loss of the same round has had its reaction, which was stronger.
        if recent || self.window.covers(sent) {
            return;
        }
        self.hystart.confirm_exit();
        let share = self.marks.reduction();
        let window = self.window.bytes;
        self.reacted = Some((now, window));
        let reduction = u128::from(window) * u128::from(share) / u128::from(2 * ONE);
        let reduction = u64::try_from(reduction).unwrap_or(window);
        self.window.shrink_to(window - reduction.min(window));
        self.window.make_final();
        self.credit = 0;
    }

    fn react_to_loss(&mut self, now: Instant) {
        self.hystart.confirm_exit();
        // Marks of the same round may have shrunk the window already: together, it is halved once.
        let window = self.window.bytes;
        let recent = self.reacted.filter(|(at, _)| now.saturating_since(*at) <= self.smoothed_rtt);
        let before = recent.map_or(window, |(_, before)| before.max(window));
        self.window.react(now, self.window.half_of(before).min(window), Cause::Loss);
        self.credit = 0;
    }
}

impl Controller for Prague {
    fn on_sent(&mut self, _now: Instant, _sent: &Sent) {}

    fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>) {
        self.smoothed_rtt = ack.rtt.smoothed();
        if ack.ce_packets > 0 {
            self.react_to_marks(now, ack.largest_sent_time);
        }
        let round = Round { time: self.round_time(), min_rtt: ack.rtt.min() };
        if self.marks.on_ack(now, ack, round) && !self.window.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
        let window = &mut self.window;
        match window.on_ack(now, ack) {
            Growth::Nothing => self.hystart.on_unused(now),
            Growth::SlowStart => self.hystart.grow(now, ack, &mut window.bytes, &mut window.ssthresh),
            Growth::Avoidance if self.hystart.resumes(now, ack) => window.ssthresh = None,
            Growth::Avoidance => self.grow_in_congestion_avoidance(ack),
        }
    }

    fn on_packet_lost(&mut self, _now: Instant, lost: &LostPacket) {
        self.window.on_packet_lost(lost);
    }

    fn on_congestion(&mut self, now: Instant, event: &CongestionEvent) {
        // Marks had their reaction with the acknowledgement that told of them.
        let Cause::Loss = event.cause else { return };
        let reacts = !self.window.covers(event.largest_sent_time);
        if reacts {
            self.react_to_loss(now);
        }
        self.window.on_lost(event, reacts);
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

    /// In congestion avoidance exactly a window per round trip: with more, packets would gather in the queue for
    /// no other reason than that they left early, and be marked.
    fn pacing_rate(&self) -> Option<u64> {
        if self.window.in_slow_start() || self.smoothed_rtt.is_zero() {
            return None;
        }
        let rate = u128::from(self.window.bytes) * 1_000_000_000 / self.smoothed_rtt.as_nanos();
        Some(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// What the rate gives in a quarter of a millisecond: a longer train alone would fill an L4S queue to its mark.
    fn burst(&self) -> Option<u64> {
        // Before the first measurement the pacer lets two packets leave.
        if self.smoothed_rtt.is_zero() {
            return Some(0);
        }
        let rtt = self.smoothed_rtt.max(BURST_TIME).as_nanos();
        let burst = u128::from(self.window.bytes) * BURST_TIME.as_nanos() / rtt;
        Some(u64::try_from(burst).unwrap_or(u64::MAX))
    }

    fn ssthresh(&self) -> Option<u64> {
        self.window.ssthresh
    }

    /// RFC 9331 §4.1: ECT(1) asks for the treatment that this controller can use.
    fn ecn_codepoint(&self) -> Ecn {
        Ecn::Ect1
    }

    fn state(&self) -> &'static str {
        match (self.window.in_slow_start(), self.marks.are_classic()) {
            (true, _) => "slow start",
            (false, false) => "congestion avoidance",
            (false, true) => "classic congestion avoidance",
        }
    }

    fn name(&self) -> &'static str {
        "prague"
    }
}

#[cfg(test)]
mod tests;
