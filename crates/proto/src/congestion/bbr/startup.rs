//! STARTUP and DRAIN: finding the bandwidth, and emptying the queue that this made.

use super::bandwidth::GROWTH_PERCENT;
use super::train::{LONG_RTT, PacketTrain};
use super::units::{percent, volume};
use super::{Bbr, Phase, Sample};

/// The gain that doubles the rate in a round, 4 ln 2 (BBR.StartupPacingGain), in hundredths.
pub(super) const STARTUP_GAIN: u64 = 277;

/// STARTUP ends by loss when losses were found so many times in a round (BBRStartupFullLossCnt).
const FULL_LOSS_EVENTS: u32 = 6;

/// DRAIN ends after so many rounds, whatever is in flight.
const DRAIN_ROUNDS: u64 = 3;

/// Once the rate of delivery has reached this share of what a train of packets showed, in hundredths, the path
/// may be full.
const TRAIN_REACHED_PERCENT: u64 = 75;

/// From there on the gain of the pace exceeds one by so many hundredths, and by twice as much after each round
/// in which the rate has grown.
const CAUTIOUS_EXCESS: u64 = 25;

/// The state of STARTUP and DRAIN.
#[derive(Debug, Clone, Default)]
pub(super) struct Startup {
    train: PacketTrain,
    estimate: Option<Estimate>,
    /// The excess of the gain once the estimate was reached, in hundredths.
    cautious_excess: Option<u64>,
    /// The round in which DRAIN began.
    drain_start: u64,
}

/// What a train of packets showed.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    /// Bytes per second.
    rate: u64,
    /// The round in which it was found.
    round: u64,
}

impl Bbr {
    pub(super) fn enter_startup(&mut self) {
        self.phase = Phase::Startup;
    }

    /// The bandwidth that a train of packets showed, until the rate of delivery shows it better.
    pub(super) fn train_bandwidth(&self) -> u64 {
        // The packets that were sent at that rate are acknowledged in the next round.
        let fresh = |estimate: &Estimate| self.rounds.count() <= estimate.round + 1;
        let estimate = self.startup.estimate.filter(|_| self.phase == Phase::Startup);
        estimate.filter(fresh).map_or(0, |estimate| estimate.rate / 2)
    }

    /// The gain of the pace in STARTUP, in hundredths.
    pub(super) fn startup_gain(&self) -> u64 {
        if let Some(excess) = self.startup.cautious_excess {
            return (100 + excess).min(STARTUP_GAIN);
        }
        // Twice the half of the estimate, and no more.
        if self.train_bandwidth() > self.max_bandwidth.get() { 200 } else { STARTUP_GAIN }
    }

    /// What counts as growth of the rate in a round: half of what the gain could bring where it is small.
    pub(super) fn growth_percent(&self) -> u64 {
        match self.startup.cautious_excess {
            Some(excess) if self.phase == Phase::Startup => (100 + excess / 2).min(GROWTH_PERCENT),
            _ => GROWTH_PERCENT,
        }
    }

    pub(super) fn check_startup_done(&mut self, rs: &Sample) {
        if self.phase != Phase::Startup {
            return;
        }
        self.watch_train(rs);
        self.check_startup_high_loss(rs);
        self.check_startup_delay();
        if self.full.reached {
            self.enter_drain();
        }
    }

    /// Too many losses in a round end STARTUP (draft-ietf-ccwg-bbr, "Exiting Startup Based on Packet Loss").
    ///
    /// The draft counts ranges of lost packets. Here the times are counted that losses were found: a burst of
    /// losses is one of them.
    fn check_startup_high_loss(&mut self, rs: &Sample) {
        let losses = &self.losses;
        let whole_round = losses.round_started && losses.in_round;
        if !whole_round || losses.events_in_round < FULL_LOSS_EVENTS || !rs.inflight_too_high() {
            return;
        }
        self.losses.undo_phase = Some(Phase::Startup);
        self.full.set_full();
        self.losses.long_inflight = Some(self.bdp(100).max(self.losses.inflight_latest));
    }

    /// A departure from the draft: a rise of the delay ends STARTUP, too. The queue of a path over a satellite
    /// that is filled for three rounds overflows by thousands of packets, and with the path's delay the answer
    /// comes late. The rate may still be underestimated then; DRAIN is measured, too, while the queue lasts.
    fn check_startup_delay(&mut self) {
        let Some(base) = self.min_rtt.get().filter(|_| !self.min_rtt.is_meaningless()) else { return };
        if self.delay.has_risen(base) {
            self.full.set_full();
        }
    }

    /// A departure from the draft for long paths, see `train`.
    fn watch_train(&mut self, rs: &Sample) {
        self.update_caution(rs);
        let Some(rtt) = self.min_rtt.get().filter(|&rtt| rtt >= LONG_RTT) else { return };
        if self.startup.estimate.is_some_and(|estimate| self.rounds.count() > estimate.round) {
            return;
        }
        let packet = self.control.packet;
        if let Some(rate) = self.startup.train.on_ack(rs.now, rs.sent_time, rs.newly_acked, packet) {
            let rate = self.startup.estimate.map_or(rate, |estimate| estimate.rate.max(rate));
            self.startup.estimate = Some(Estimate { rate, round: self.rounds.count() });
            // The window need not wait for acknowledgements to grow: the path is empty, and the pacer spreads
            // it over a round trip.
            self.control.window = self.control.window.max(volume(rate, rtt));
        }
    }

    /// When the rate reaches the estimate, doubling it once more would only fill the queue: on a long path by
    /// thousands of packets before the first of them is missed. If the rate still grows, the estimate was too
    /// low, and the gain rises again.
    fn update_caution(&mut self, rs: &Sample) {
        let Some(estimate) = self.startup.estimate else { return };
        let reached = percent(estimate.rate, TRAIN_REACHED_PERCENT);
        match &mut self.startup.cautious_excess {
            None if rs.delivery_rate.is_some_and(|rate| rate >= reached) => {
                self.startup.cautious_excess = Some(CAUTIOUS_EXCESS);
                self.full.restart(rs.delivery_rate.unwrap_or(0));
            }
            Some(excess) if self.rounds.started() && self.full.is_growing() => {
                *excess = (*excess * 2).min(STARTUP_GAIN)
            }
            _ => {}
        }
    }

    fn enter_drain(&mut self) {
        self.phase = Phase::Drain;
        self.startup.drain_start = self.rounds.count();
    }

    pub(super) fn check_drain_done(&mut self, rs: &Sample) {
        let overdue = self.rounds.count() > self.startup.drain_start + DRAIN_ROUNDS;
        if self.phase == Phase::Drain && (rs.in_flight <= self.inflight(100) || overdue) {
            self.start_probe_down(rs.now);
        }
    }
}
