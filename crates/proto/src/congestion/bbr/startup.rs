//! STARTUP and DRAIN: finding the bandwidth, and emptying the queue that this made.

use std::time::Duration;

use fulmar_base::Instant;

use super::super::full_pipe::FullPipe;
use super::super::units::{percent, volume};
use super::probe_bw::HEADROOM_PERCENT;
use super::{Bbr, Phase, Sample};
use crate::congestion::AckEvent;
use crate::congestion::delay::least_rise;
use crate::congestion::train_probing::TrainProbing;
use crate::congestion::unvalidated_flight::SafeRetreat;
use crate::packed::packed;

/// The gain that doubles the rate in a round, 4 ln 2 (BBR.StartupPacingGain), in hundredths.
pub(super) const STARTUP_GAIN: u64 = 277;

/// STARTUP ends by loss when losses were found this many times in a round (BBRStartupFullLossCnt).
const FULL_LOSS_EVENTS: u32 = 6;

/// With this many of them, and a share of the flight lost that is larger than this many hundredths and than this many packets,
/// STARTUP does not wait for the end of the round. Less says little: three packets of the first flight are lost by
/// chance, too.
pub(super) const HEAVY_LOSS_EVENTS: u32 = 3;
const HEAVY_LOSS_PERCENT: u64 = 10;
const HEAVY_LOSS_PACKETS: u64 = 6;

/// DRAIN ends after this many rounds, whatever is in flight.
const DRAIN_ROUNDS: u64 = 3;

/// What left before the queue was empty takes a round to show its delay, and what follows another one.
const DOUBT_ROUNDS: u64 = 2;

/// The state of STARTUP and DRAIN.
#[derive(Debug, Clone)]
pub(super) struct Startup {
    pub(super) trains: TrainProbing,
    /// The round in which DRAIN began.
    drain_start: u64,
    /// After heavy losses, packets that were sent when so much was delivered show what the path really delivers.
    pub(super) remeasure_from: Option<u64>,
    /// After a flight that was refuted: a sample that begins before so much was delivered counts what had passed before the losses,
    /// such as the tokens of a policer.
    pub(super) valid_from: u64,
    /// Whether a rise of the delay has ended STARTUP.
    is_full_by_delay: bool,
    /// Whether losses have ended STARTUP.
    pub(super) is_full_by_losses: bool,
    /// Whether the next probe is due as soon as the queue is empty.
    pub(super) probes_soon: bool,
    pub(super) doubt: Option<Doubt>,
    /// The usual delay that was left when the flight had shrunk: a rise begins there, not at the smallest round-trip time.
    resting_delay: Option<Duration>,
}

packed!(Startup {
    trains,
    drain_start,
    remeasure_from,
    valid_from,
    is_full_by_delay,
    is_full_by_losses,
    probes_soon,
    doubt,
    resting_delay,
});

/// A rise of the delay has ended STARTUP, and it is not known yet whether the delay falls with the flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doubt {
    /// The usual delay when STARTUP ended.
    delay: Duration,
    /// The round in which the flight was that of an empty queue.
    pub(super) drained: Option<u64>,
}

packed!(Doubt { delay, drained });

impl Startup {
    /// A start with this window in bytes.
    pub(super) fn new(initial_window: u64) -> Self {
        let trains = TrainProbing::new(initial_window);
        Self {
            trains,
            drain_start: 0,
            remeasure_from: None,
            valid_from: 0,
            is_full_by_delay: false,
            is_full_by_losses: false,
            probes_soon: false,
            doubt: None,
            resting_delay: None,
        }
    }
}

impl Bbr {
    pub(super) fn enter_startup(&mut self) {
        self.phase = Phase::Startup;
        self.startup.is_full_by_losses = false;
        self.startup.probes_soon = false;
    }

    /// The bandwidth that a train of packets showed, until the rate of delivery shows it better. A rise of the delay confirms
    /// it: the first flight alone may have made the queue, before any rate of delivery is worth its name.
    pub(super) fn train_bandwidth(&self) -> u64 {
        let counts = self.phase == Phase::Startup || self.startup.is_full_by_delay;
        if counts { self.startup.trains.bandwidth() } else { 0 }
    }

    /// The gain of the pace in STARTUP, in hundredths.
    pub(super) fn startup_gain(&self) -> u64 {
        self.startup.trains.gain(STARTUP_GAIN, self.max_bandwidth.get())
    }

    /// What counts as growth of the rate in a round.
    pub(super) fn growth_percent(&self) -> u64 {
        if self.phase == Phase::Startup {
            self.startup.trains.growth_percent()
        } else {
            FullPipe::GROWTH_PERCENT
        }
    }

    /// The pace before anything is known of the path; zero later.
    pub(super) fn first_pace(&self) -> u64 {
        if self.phase == Phase::Startup { self.startup.trains.first_pace() } else { 0 }
    }

    /// A departure from the draft: where a packet train has shown a wrong rate, most of the next flight is lost. The window
    /// and the maximum of the bandwidth would say so only rounds later.
    pub(super) fn check_unvalidated_flight(&mut self, now: Instant, ack: &AckEvent<'_>) {
        let retreat = self.startup.trains.check_unvalidated(now, ack, self.control.packet);
        if let Some(SafeRetreat::Delivers(rate)) = retreat {
            self.startup.remeasure_from = None;
            self.startup.valid_from = ack.total_delivered;
            self.max_bandwidth.replace(rate);
            self.losses.reset_short_term();
            // At that rate, whatever the pace of a trial is meanwhile; the headroom comes on top.
            let bdp = self.min_rtt.get().map_or_else(|| self.bdp(100), |rtt| volume(rate, rtt));
            self.losses.long_inflight = Some(bdp * 100 / (100 - HEADROOM_PERCENT));
            // Nothing of the flight is left that could make the window grow.
            self.control.window = self.control.window.max(bdp);
        }
    }

    /// A departure from the draft, see `train_probing`.
    pub(super) fn probe_with_trains(&mut self, now: Instant, ack: &AckEvent<'_>) {
        if self.phase != Phase::Startup {
            return;
        }
        let window = self.startup.trains.on_ack(now, ack, self.min_rtt.get(), self.control.packet);
        if let Some(window) = window {
            self.control.window = self.control.window.max(window);
        }
    }

    pub(super) fn check_startup_done(&mut self, rs: &Sample) {
        if self.phase != Phase::Startup {
            return;
        }
        if let Some(rate) = rs.delivery_rate {
            self.startup.trains.on_rate(rate, self.rounds.started(), &mut self.full);
        }
        self.check_startup_high_loss(rs);
        self.check_startup_delay();
        if self.full.reached {
            self.enter_drain();
        }
    }

    /// Too many losses in a round end STARTUP (draft-ietf-ccwg-bbr, "Exiting Startup Based on Packet Loss").
    ///
    /// The draft counts ranges of lost packets. Here the times are counted that losses were found: a burst of
    /// losses is one of them. The draft also waits for the end of the round, in which a policer, which has no queue,
    /// drops most of another flight: losses that are beyond doubt are not waited for. Where the delay shows no queue and the rate
    /// of delivery grows in spite of them, losses of less may be random, and end nothing.
    fn check_startup_high_loss(&mut self, rs: &Sample) {
        let losses = &self.losses;
        // What is lost of the few packets of a flight before any train has shown what the path holds may be one burst of noise, and
        // says nothing about the flight that follows the trains, which shows itself whether it was too much.
        let heavy = !self.startup.trains.has_unvalidated()
            && !self.startup.trains.is_unsure()
            && losses.events_in_round >= HEAVY_LOSS_EVENTS
            && rs.lost > percent(rs.tx_in_flight, HEAVY_LOSS_PERCENT)
            && rs.lost >= HEAVY_LOSS_PACKETS * self.control.packet;
        let heavy = heavy || self.startup.trains.is_refuted();
        let may_be_random = !rs.app_limited && self.full.is_growing() && losses.random.is_empty();
        let too_high = self.inflight_too_high(rs) && !may_be_random || losses.marked_too_high;
        let whole_round = losses.round_started && losses.events_in_round >= FULL_LOSS_EVENTS && too_high;
        if !losses.in_round || !(heavy || whole_round) {
            return;
        }
        self.startup.remeasure_from = heavy.then_some(losses.round_end);
        self.losses.undo_phase = Some(Phase::Startup);
        self.startup.is_full_by_losses = !self.full.reached;
        self.full.set_full();
        self.begin_trial(rs.now);
        self.losses.long_inflight = Some(self.bdp(100).max(self.losses.inflight_latest));
    }

    /// A departure from the draft: heavy losses show that the path does not deliver what it seemed to. A policer with a
    /// bucket of tokens lets a burst pass at any rate, which the maximum would keep for two cycles; the round after
    /// the first losses shows its true rate.
    pub(super) fn remeasure(&mut self, rs: &Sample) {
        let Some(rate) = rs.delivery_rate else { return };
        if self.startup.remeasure_from.is_none_or(|from| rs.prior_delivered < from) {
            return;
        }
        self.startup.remeasure_from = None;
        if !rs.app_limited {
            self.max_bandwidth.replace(rate);
            // What was sent faster lost more.
            self.losses.random.restart_trial(rs.now);
        }
    }

    /// A departure from the draft: a rise of the delay ends STARTUP, too. The queue of a path over a satellite
    /// that is filled for three rounds overflows by thousands of packets, and with the path's delay the answer
    /// comes late. The rate may still be underestimated then; DRAIN is measured, too, while the queue lasts. On a short
    /// path a queue of a round trip is full within milliseconds: there the earliest sign counts, unless it may come from
    /// a stop of the path.
    fn check_startup_delay(&mut self) {
        let Some(base) = self.min_rtt.get().filter(|_| !self.min_rtt.is_meaningless()) else { return };
        let base = self.startup.resting_delay.map_or(base, |resting| resting.max(base));
        let is_rising = || !self.round_best.has_stopped(base) && self.delay.is_rising(base);
        if self.delay.has_risen(base) || is_rising() {
            self.startup.is_full_by_delay = !self.full.reached;
            if self.startup.is_full_by_delay {
                self.startup.doubt = self.delay.recent_mean().map(|delay| Doubt { delay, drained: None });
            }
            self.full.set_full();
        }
    }

    /// A departure from the draft, which has no end by delay: it is undone where the delay does not fall with the flight. A
    /// radio link that keeps the order of packets delays all by what the slowest of them takes, and the more packets are on it,
    /// the slower is the slowest of a round trip. Losses keep the flight that they have shown to be enough. While the application
    /// sends less than it may, as where the peer's credit is late, the answer waits.
    pub(super) fn check_delay_doubt(&mut self, rs: &Sample) {
        let Some(doubt) = &mut self.startup.doubt else { return };
        let round = self.rounds.count();
        if self.losses.congested() || matches!(self.phase, Phase::Startup | Phase::ProbeUp | Phase::ProbeRtt)
        {
            self.startup.doubt = None;
            return;
        }
        if rs.app_limited || self.phase == Phase::Drain {
            return;
        }
        let drained = *doubt.drained.get_or_insert(round);
        if round < drained + DOUBT_ROUNDS {
            return;
        }
        // Between a fall to the smallest delay and none; less than a rise is no reason to doubt.
        let base = self.min_rtt.get().unwrap_or_default();
        let fallen = ((doubt.delay + base) / 2).max(base + least_rise(base));
        self.startup.doubt = None;
        let delay = self.delay.recent_mean();
        if delay.is_some_and(|delay| delay > fallen) {
            self.startup.resting_delay = delay;
            self.full.reached = false;
            self.full.restart(self.max_bandwidth.get());
            self.enter_startup();
        }
    }

    pub(super) fn enter_drain(&mut self) {
        self.phase = Phase::Drain;
        self.startup.drain_start = self.rounds.count();
    }

    /// What jitter holds on the path is no queue, and sending slower does not shrink it. And of what this acknowledgement
    /// takes out of the flight, on average half had left the path before: DRAIN would end so much too late.
    pub(super) fn check_drain_done(&mut self, rs: &Sample) {
        let overdue = self.rounds.count() > self.startup.drain_start + DRAIN_ROUNDS;
        if self.phase == Phase::Drain
            && (rs.in_flight <= self.resting_flight() + rs.newly_acked / 2 || overdue)
        {
            self.start_probe_down(rs.now);
            if std::mem::take(&mut self.startup.probes_soon) {
                self.probe_soon(rs.now);
            }
        }
    }
}
