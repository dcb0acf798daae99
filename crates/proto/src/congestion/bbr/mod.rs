//! BBR version 3 (draft-ietf-ccwg-bbr): a model of the path instead of a reaction to loss.
//!
//! The model is the largest bandwidth and the smallest round-trip time seen lately; the window and the pacing
//! rate follow from it. A state machine tests the model: it sends faster for a while to see whether there is
//! more bandwidth, and slower to see whether the round-trip time is smaller without a queue.
//!
//! | file | owns |
//! |---|---|
//! | `bandwidth` | the maximum filter of the bandwidth |
//! | `min_rtt` | the minimum round-trip time and when it is due to be measured |
//! | `rounds` | round trips counted in packets |
//! | `aggregation` | how much more than expected is acknowledged at once |
//! | `startup` | the states STARTUP and DRAIN |
//! | `probe_bw`, `probe_rtt` | the other states |
//! | `loss` | what losses change in the model, and the undoing of it |
//! | `trial` | whether those losses were random |
//! | `resume` | careful resume |
//! | `control` | the window and the pacing rate that follow |
//!
//! Where this departs from the draft, the place says so and why. The departures are:
//!
//! - STARTUP: packet trains show the capacity, and the flight that follows shows it if they were wrong. A rise of the delay ends
//!   it, unless the delay does not fall with the flight; heavy losses end it at once and the bandwidth is measured anew, and marks
//!   end it as losses do. What jitter holds on the path has room in the window, and a round that a stop made slow shows no
//!   plateau.
//! - DRAIN ends earlier: half of an acknowledgement counts as gone already, and what jitter holds is no queue.
//! - Probing for bandwidth ends with a rise of the delay. The next probe is due soon after a stop of the path.
//! - Losses: few losses without a queue lower no bound, and no round leaves one below what was delivered in it. What losses change is
//!   on trial: where the path loses as much afterwards, bounds are lifted, and STARTUP goes on if losses have ended it. Nowhere do they
//!   lower that of a probe below what the path holds, but a probe that takes from others lowers it as they do.
//! - PROBE_RTT is rarer on long paths, and spared where the queue is empty. Where it shows that the path has become longer, that is
//!   believed at once.
//! - The pace has a lower bound, and no margin where there is no queue.
//! - The bandwidth: a path that has become much slower is believed after a round.
//! - The allowance for aggregation bridges silences, and the budget for offloading is smaller than what the pacer gives out
//!   at once.

mod aggregation;
mod bandwidth;
mod control;
mod longer_path;
mod loss;
mod min_rtt;
mod probe_bw;
mod probe_rtt;
mod resume;
mod rounds;
mod startup;
mod trial;

use std::time::Duration;

use fulmar_base::Instant;

pub(super) use self::aggregation::{Aggregation, AggregationInput, HELD_ROUND_TRIPS};
use self::bandwidth::{MaxBandwidth, RoundBest};
use self::control::Control;
use self::longer_path::LongerPath;
use self::loss::Losses;
pub(super) use self::min_rtt::MinRtt;
use self::probe_bw::Cycle;
use self::probe_rtt::ProbeRtt;
pub(super) use self::rounds::Rounds;
use self::startup::Startup;
use super::delay::DelayWatch;
use super::full_pipe::FullPipe;
use super::recovery::Recovery;
use super::units::packet_time;
use super::{
    AckEvent, Cause, CongestionEvent, Controller, ControllerFactory, LostPacket, Rested, ResumeStep, Sent,
    SpuriousLoss, initial_window, minimum_window,
};
use crate::packed::{packed, packed_names};

/// A path is much slower when it delivers less than this part of the bandwidth in a whole round.
const SLOWER_DIVISOR: u64 = 2;

/// The options of [`Bbr`].
#[derive(Debug, Clone, Default)]
pub struct BbrConfig {
    /// The initial window in bytes; without one, RFC 9002 §7.2 decides.
    pub initial_window: Option<u64>,
}

impl ControllerFactory for BbrConfig {
    fn build(&self, now: Instant, max_datagram_size: u16) -> Box<dyn Controller> {
        Box::new(Bbr::new(self, now, max_datagram_size))
    }
}

/// Sends at the rate of the bottleneck, with as little queue as it can.
#[derive(Debug, Clone)]
pub struct Bbr {
    phase: Phase,
    rounds: Rounds,
    max_bandwidth: MaxBandwidth,
    round_best: RoundBest,
    full: FullPipe,
    min_rtt: MinRtt,
    delay: DelayWatch,
    aggregation: Aggregation,
    startup: Startup,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    longer_path: LongerPath,
    losses: Losses,
    recovery: Recovery,
    control: Control,
    /// Bytes delivered on the tuple in all.
    delivered: u64,
    /// Whether the flow restarts from idle (BBR.idle_restart).
    idle_restart: bool,
}

packed!(Bbr {
    phase,
    rounds,
    max_bandwidth,
    round_best,
    full,
    min_rtt,
    delay,
    aggregation,
    startup,
    cycle,
    probe_rtt,
    longer_path,
    losses,
    recovery,
    control,
    delivered,
    idle_restart,
});

/// The states of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Doubles the rate in each round until the path is full.
    Startup,
    /// Empties the queue that STARTUP made.
    Drain,
    /// Sends slower, to empty the queue and to leave room for others.
    ProbeDown,
    /// Sends as fast as the path delivers.
    ProbeCruise,
    /// Fills the path, without a queue, before more is tried.
    ProbeRefill,
    /// Sends faster, to see whether there is more bandwidth.
    ProbeUp,
    /// Keeps little in flight, to measure the round-trip time without a queue.
    ProbeRtt,
}

packed_names!(Phase { Startup, Drain, ProbeDown, ProbeCruise, ProbeRefill, ProbeUp, ProbeRtt });

impl Phase {
    /// Whether this is one of the four states that probe for bandwidth (PROBE_BW).
    fn is_probe_bw(self) -> bool {
        matches!(self, Self::ProbeDown | Self::ProbeCruise | Self::ProbeRefill | Self::ProbeUp)
    }

    /// Whether what is sent now tests for more bandwidth: losses then say that it was too much.
    fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeRefill | Self::ProbeUp)
    }
}

/// What an ACK frame says, in the terms of the draft (RS).
#[derive(Debug, Clone, Copy)]
struct Sample {
    now: Instant,
    /// Bytes per second, if the frame says anything about it.
    delivery_rate: Option<u64>,
    /// Bytes delivered since the newest acknowledged packet was sent.
    delivered: u64,
    /// Bytes delivered before it was sent.
    prior_delivered: u64,
    /// Bytes lost since it was sent.
    lost: u64,
    /// Bytes in flight when it was sent.
    tx_in_flight: u64,
    app_limited: bool,
    newly_acked: u64,
    /// When it was sent.
    sent_time: Instant,
    /// Bytes in flight after the frame.
    in_flight: u64,
    rtt: Option<Duration>,
}

impl Bbr {
    /// A controller in STARTUP.
    pub fn new(config: &BbrConfig, now: Instant, max_datagram_size: u16) -> Self {
        let window = config.initial_window.unwrap_or_else(|| initial_window(max_datagram_size));
        let window = window.max(minimum_window(max_datagram_size));
        Self {
            phase: Phase::Startup,
            rounds: Rounds::default(),
            max_bandwidth: MaxBandwidth::default(),
            round_best: RoundBest::new(now),
            full: FullPipe::default(),
            min_rtt: MinRtt::new(now),
            delay: DelayWatch::default(),
            aggregation: Aggregation::new(now),
            startup: Startup::new(window),
            cycle: Cycle::new(now),
            probe_rtt: ProbeRtt::default(),
            longer_path: LongerPath::new(),
            losses: Losses::new(),
            recovery: Recovery::default(),
            control: Control::new(window, max_datagram_size),
            delivered: 0,
            idle_restart: false,
        }
    }

    fn sample(&self, now: Instant, ack: &AckEvent<'_>) -> Sample {
        Sample {
            now,
            delivery_rate: ack.rate.map(|rate| rate.delivery_rate),
            delivered: ack.total_delivered.saturating_sub(ack.snapshot.delivered),
            prior_delivered: ack.snapshot.delivered,
            lost: ack.total_lost.saturating_sub(ack.snapshot.lost),
            tx_in_flight: u64::from(ack.snapshot.in_flight),
            app_limited: ack.snapshot.app_limited || self.probe_rtt.limited(ack.snapshot.delivered),
            newly_acked: ack.acked_bytes,
            sent_time: ack.largest_sent_time,
            in_flight: ack.bytes_in_flight,
            rtt: ack.rtt_sample,
        }
    }

    /// UpdateModelAndState of the draft, in its order.
    fn update_model_and_state(&mut self, rs: &Sample) {
        self.update_latest_signals(rs);
        self.update_bandwidth(rs);
        self.update_lower_bounds(rs);
        self.update_aggregation(rs);
        self.check_full_bandwidth(rs);
        self.check_startup_done(rs);
        self.remeasure(rs);
        self.check_drain_done(rs);
        self.check_delay_doubt(rs);
        self.update_probe_bw(rs);
        let packet_time = packet_time(self.control.packet, self.bandwidth());
        self.min_rtt.on_sample(rs.now, rs.rtt, packet_time);
        self.check_probe_rtt(rs);
        self.advance_latest_signals(rs);
    }

    fn update_bandwidth(&mut self, rs: &Sample) {
        if self.rounds.on_ack(rs.prior_delivered, self.delivered) {
            self.cycle.rounds_since_up += 1;
            self.control.begin_round();
        }
        if let Some(rate) = rs.delivery_rate {
            if rs.prior_delivered >= self.startup.valid_from {
                self.max_bandwidth.on_sample(rate, rs.app_limited);
            }
            let base = self.min_rtt.get().unwrap_or_default();
            let best = self.round_best.on_sample(
                rs.now,
                rs.sent_time,
                base,
                rate,
                self.rounds.started(),
                rs.app_limited,
            );
            self.check_slower_path(rs.now, best);
        }
    }

    /// A departure from the draft: a path that has become much slower is believed after a round. The maximum
    /// would be kept for two cycles, in which the window fills the queue with what was the bandwidth-delay
    /// product, and a cycle lasts long when the queue makes the rounds long. That the delay has risen while
    /// acknowledgements came evenly tells such a path from one that stops. PROBE_RTT tells it from one that has become longer.
    fn check_slower_path(&mut self, now: Instant, best: Option<u64>) {
        let Some(best) = best.filter(|_| self.phase.is_probe_bw()) else { return };
        let Some(base) = self.min_rtt.get().filter(|_| !self.min_rtt.is_meaningless()) else { return };
        let before = self.max_bandwidth.get();
        if !self.delay.has_risen(base) {
            self.longer_path.rest(before);
            return;
        }
        if best * SLOWER_DIVISOR < before {
            self.max_bandwidth.replace(best);
            self.start_probe_down(now);
        }
        self.doubt_slower_path(now, best, before);
    }

    fn update_aggregation(&mut self, rs: &Sample) {
        let input = AggregationInput {
            bandwidth: self.bandwidth(),
            pace: self.control.pacing_rate,
            acked_bytes: rs.newly_acked,
            min_rtt: self.min_rtt.get().unwrap_or_default(),
            window: self.control.window,
            round: self.rounds.count(),
            full: self.full.reached,
        };
        self.aggregation.on_ack(rs.now, &input);
    }

    fn check_full_bandwidth(&mut self, rs: &Sample) {
        if let Some(rate) = rs.delivery_rate {
            let growth = self.growth_percent();
            let started = self.rounds.started();
            // Neither a window too small for the silences of the path nor a rate that a stop made small shows a plateau of the path.
            let held = started && self.aggregation.take_growth() && !self.full.reached;
            let has_stopped = |base| self.round_best.has_stopped(base);
            let depressed =
                started && self.full.has_fallen(rate, growth) && self.min_rtt.get().is_some_and(has_stopped);
            self.full.on_sample(rate, started, rs.app_limited || held || depressed, growth);
        }
    }

    /// The bandwidth of the model in bytes per second (BBR.bw).
    fn bandwidth(&self) -> u64 {
        let long_term = self.max_bandwidth.get().max(self.train_bandwidth());
        self.losses.bandwidth().map_or(long_term, |short| short.min(long_term))
    }

    fn begin_round(&mut self) {
        self.rounds.restart(self.delivered);
    }
}

impl Controller for Bbr {
    fn rest(&self) -> Option<Rested> {
        Some(Rested::of(self))
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        if sent.bytes_in_flight == sent.bytes && sent.app_limited {
            self.restart_from_idle(now);
        }
        self.control.on_sent(sent.bytes_in_flight);
        self.startup.trains.on_sent(now, sent);
    }

    fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>) {
        self.delivered = ack.total_delivered;
        self.check_unvalidated_flight(now, ack);
        self.losses.random.on_ack(now, ack);
        self.check_trial();
        let rs = self.sample(now, ack);
        if let Some(rtt) = rs.rtt {
            self.delay.on_sample(now, rtt, self.min_rtt.get().unwrap_or(rtt));
        }
        self.update_model_and_state(&rs);
        self.probe_with_trains(now, ack);
        self.leave_recovery(&rs);
        self.update_control(rs.newly_acked);
    }

    fn on_packet_lost(&mut self, now: Instant, lost: &LostPacket) {
        self.delivered = lost.total_delivered;
        self.handle_lost_packet(now, lost);
    }

    fn on_congestion(&mut self, now: Instant, event: &CongestionEvent) {
        self.startup.trains.on_congestion(now, event, self.control.packet);
        match event.cause {
            Cause::Loss => {
                self.losses.events_in_round += 1;
                self.losses.random.on_burst(event.lost_packets, event.largest_sent_time);
            }
            Cause::Ecn { ce } => self.handle_marks(now, ce, event),
        }
        if event.persistent {
            self.enter_timeout_recovery(now, event.bytes_in_flight);
        }
        self.update_control(0);
    }

    fn took_for_chance(&self) -> bool {
        !self.losses.congested()
    }

    fn on_spurious_loss(&mut self, _now: Instant, spurious: &SpuriousLoss) {
        if spurious.dropped_for_mark {
            self.losses.random.forget_losses();
        }
        if self.recovery.on_spurious(spurious, |()| ()).is_some() {
            self.undo_losses();
            self.update_control(0);
        }
    }

    fn on_resume(&mut self, now: Instant, step: ResumeStep) {
        self.follow_resume(now, step);
    }

    fn on_mtu(&mut self, max_datagram_size: u16) {
        self.control.set_packet(max_datagram_size);
    }

    fn window(&self) -> u64 {
        self.control.window
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.control.pacing_rate)
    }

    /// PROBE_RTT leaves gaps that the window makes. A train that made up for them would fill the queue again that was emptied.
    fn burst(&self) -> Option<u64> {
        (self.phase == Phase::ProbeRtt).then(|| self.quantum())
    }

    fn is_searching(&self) -> bool {
        self.phase == Phase::Startup
    }

    fn take_packet_train(&mut self) -> u64 {
        self.startup.trains.take_packet_train()
    }

    fn state(&self) -> &'static str {
        match self.phase {
            Phase::Startup => "startup",
            Phase::Drain => "drain",
            Phase::ProbeDown => "probe down",
            Phase::ProbeCruise => "probe cruise",
            Phase::ProbeRefill => "probe refill",
            Phase::ProbeUp => "probe up",
            Phase::ProbeRtt => "probe rtt",
        }
    }

    fn name(&self) -> &'static str {
        "bbr"
    }
}

#[cfg(test)]
mod tests;
