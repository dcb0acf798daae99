//! What losses change in the model, and how that is undone when they were none.

use fulmar_base::Instant;

use super::super::units::percent;
use super::min_rtt::STOP_ROUND_TRIPS;
use super::probe_bw::HEADROOM_PERCENT;
use super::trial::LossTrial;
use super::{Bbr, Phase, Sample};
use crate::congestion::random_loss::RandomLoss;
use crate::congestion::{CongestionEvent, LostPacket};
use crate::packed::packed;

/// The share of what is in flight that may be lost while probing (BBR.LossThresh), in hundredths.
const LOSS_PERCENT: u64 = 2;

/// What is left after a round with losses, at least (BBR.Beta), in hundredths.
pub(super) const BETA_PERCENT: u64 = 70;

/// The bounds that losses set and the signals of the current round.
#[derive(Debug, Clone, Default)]
pub(super) struct Losses {
    /// The bandwidth that is safe for now, if losses have shown one (BBR.bw_shortterm).
    pub(super) short_bandwidth: Option<u64>,
    /// The flight that is safe for now (BBR.inflight_shortterm).
    pub(super) short_inflight: Option<u64>,
    /// The flight that a probe found to be too much (BBR.inflight_longterm).
    pub(super) long_inflight: Option<u64>,
    /// The maxima of the current round (BBR.bw_latest, BBR.inflight_latest).
    bandwidth_latest: u64,
    pub(super) inflight_latest: u64,
    /// Whether there were losses in the round.
    pub(super) in_round: bool,
    /// When the first of them was found, and how much was delivered then.
    pub(super) first_loss: Option<(Instant, u64)>,
    /// Whether some of them, or marks, were a sign of congestion.
    congested: bool,
    /// How many times losses were found in it.
    pub(super) events_in_round: u32,
    /// Whether more of a flight was marked in it than a probe may lose.
    pub(super) marked_too_high: bool,
    /// The round ends when a packet is acknowledged that was sent after so much was delivered.
    pub(super) round_end: u64,
    /// Whether the last acknowledgement began a round.
    pub(super) round_started: bool,
    /// Tells random losses from congestion.
    pub(super) random: RandomLoss,
    /// What is on trial of their reactions.
    pub(super) trial: LossTrial,
    /// The state that losses ended (BBR.undo_state).
    pub(super) undo_phase: Option<Phase>,
    undo_bandwidth: Option<u64>,
    undo_short_inflight: Option<u64>,
    undo_long_inflight: Option<u64>,
    /// The bandwidth before losses had it measured anew.
    undo_max_bandwidth: u64,
}

packed!(Losses {
    short_bandwidth,
    short_inflight,
    long_inflight,
    bandwidth_latest,
    inflight_latest,
    in_round,
    first_loss,
    congested,
    events_in_round,
    marked_too_high,
    round_end,
    round_started,
    random,
    trial,
    undo_phase,
    undo_bandwidth,
    undo_short_inflight,
    undo_long_inflight,
    undo_max_bandwidth,
});

impl Losses {
    pub(super) fn new() -> Self {
        Self { random: RandomLoss::answering_once(), ..Self::default() }
    }

    /// How much of a flight may be lost before it was too much.
    fn tolerated_of(&self, flight: u64) -> u64 {
        percent(flight, LOSS_PERCENT).max(self.random.tolerated_of(flight))
    }

    /// A probe for bandwidth begins: what it loses says nothing about the last reaction.
    pub(super) fn begin_probe(&mut self) {
        self.random.end_trial();
        self.reset_short_term();
        self.trial.on_probe();
    }

    /// Forgets the short-term bounds.
    pub(super) fn reset_short_term(&mut self) {
        self.short_bandwidth = None;
        self.short_inflight = None;
    }

    /// Forgets the signals of the round.
    pub(super) fn reset_signals(&mut self) {
        self.begin_lossless_round();
        self.bandwidth_latest = 0;
        self.inflight_latest = 0;
    }

    /// The bandwidth that losses have left for now, if they have changed it.
    pub(super) fn bandwidth(&self) -> Option<u64> {
        let trial = self.trial.bandwidth.filter(|_| self.random.is_on_trial());
        self.short_bandwidth.into_iter().chain(trial).min()
    }

    /// Whether losses or marks of the round were a sign of congestion.
    pub(super) fn congested(&self) -> bool {
        self.congested
    }

    /// Forgets the losses and the marks of the round.
    pub(super) fn begin_lossless_round(&mut self) {
        self.in_round = false;
        self.congested = false;
        self.events_in_round = 0;
        self.marked_too_high = false;
    }
}

impl Bbr {
    /// Whether too much of the flight was lost (IsInflightTooHigh).
    pub(super) fn inflight_too_high(&self, rs: &Sample) -> bool {
        rs.lost > self.losses.tolerated_of(rs.tx_in_flight)
    }

    /// Whether more of it was lost than a probe may lose.
    pub(super) fn probe_lost_too_much(&self, rs: &Sample) -> bool {
        rs.lost > self.tolerated_of_probe(rs.tx_in_flight)
    }

    /// How much of the flight of a probe may be lost. A departure from the draft, which has one bound for all: of the few packets of a small
    /// flight chance takes more now and then, and every probe would end with that. Where a lower pace has lost next to nothing, as with a
    /// policer, what a probe loses is no chance, however few packets that are.
    fn tolerated_of_probe(&self, flight: u64) -> u64 {
        let (losses, tolerated) = (&self.losses, self.losses.tolerated_of(flight));
        if losses.trial.has_passed() {
            return tolerated;
        }
        let chance = losses.random.chance_of(flight, self.control.packet);
        tolerated.max(losses.random.tolerated_of(flight).saturating_add(chance))
    }

    /// UpdateLatestDeliverySignals of the draft.
    pub(super) fn update_latest_signals(&mut self, rs: &Sample) {
        let losses = &mut self.losses;
        losses.bandwidth_latest = losses.bandwidth_latest.max(rs.delivery_rate.unwrap_or(0));
        losses.inflight_latest = losses.inflight_latest.max(rs.delivered);
        losses.round_started = rs.prior_delivered >= losses.round_end;
        if losses.round_started {
            losses.round_end = self.delivered;
        }
    }

    /// AdvanceLatestDeliverySignals of the draft, and the end of the round of losses.
    pub(super) fn advance_latest_signals(&mut self, rs: &Sample) {
        if self.losses.round_started {
            self.raise_lower_bounds();
            self.losses.bandwidth_latest = rs.delivery_rate.unwrap_or(0);
            self.losses.inflight_latest = rs.delivered;
            self.losses.begin_lossless_round();
        }
    }

    /// Once per round with losses, when nothing was probed: adapts to what the path delivered in it.
    pub(super) fn update_lower_bounds(&mut self, rs: &Sample) {
        if !self.losses.round_started || !self.losses.congested || self.phase.accelerates() {
            return;
        }
        self.begin_trial_if_due(rs.now);
        let max_bandwidth = self.max_bandwidth.get();
        let losses = &mut self.losses;
        let bandwidth = percent(losses.short_bandwidth.unwrap_or(max_bandwidth), BETA_PERCENT);
        losses.short_bandwidth = Some(bandwidth.max(losses.bandwidth_latest));
        let inflight = percent(losses.short_inflight.unwrap_or(self.control.window), BETA_PERCENT);
        losses.short_inflight = Some(inflight.max(losses.inflight_latest));
    }

    /// A departure from the draft, where only a round with losses can raise the bounds: no round leaves them below what was delivered
    /// in it. Losses in a small flight would otherwise keep the rate of that flight until the next probe, although a larger one was
    /// under way and has arrived.
    fn raise_lower_bounds(&mut self) {
        let losses = &mut self.losses;
        losses.short_bandwidth = losses.short_bandwidth.map(|bound| bound.max(losses.bandwidth_latest));
        if losses.short_inflight.is_some_and(|bound| bound < losses.inflight_latest) {
            losses.short_inflight = Some(losses.inflight_latest);
            self.control.window = self.control.window.max(losses.inflight_latest);
        }
    }

    /// HandleLostPacket of the draft.
    pub(super) fn handle_lost_packet(&mut self, now: Instant, lost: &LostPacket) {
        self.recovery.on_lost(lost.bytes, lost.sent_time);
        if !self.recovery.covers(lost.sent_time) {
            self.recovery.enter_last(now);
            self.save_state();
        }
        // A departure from the draft: bounds follow what was delivered, and a sender that is held back by them delivers no
        // more. A loss by chance in PROBE_DOWN would keep its slow pace until the next probe.
        let own_queue = self.phase == Phase::ProbeDown && !self.cycle.takes_from_others;
        let by_chance = self.losses.random.tolerates(1, lost.sent_time, own_queue);
        self.on_loss_in_round(now, !by_chance);
        if self.is_found_late(now, lost) {
            self.probe_soon(now);
        }
        if !self.cycle.probe_sample {
            return;
        }
        let tx_in_flight = u64::from(lost.snapshot.in_flight);
        let lost_since = lost.total_lost.saturating_sub(lost.snapshot.lost);
        if lost_since > self.tolerated_of_probe(tx_in_flight) {
            let in_flight = inflight_at_loss(tx_in_flight, lost_since, lost.bytes);
            let bound = self.bound_after_loss(in_flight);
            self.handle_inflight_too_high(now, bound, lost.snapshot.app_limited);
        }
    }

    /// A departure from the draft, which keeps the flight that filled the queue, but for the headroom. A probe that takes from
    /// others would then leave them less than the one before. So the flight is lowered as theirs is, but not below what the
    /// path holds.
    fn bound_after_loss(&self, in_flight: u64) -> u64 {
        if self.cycle.takes_from_others {
            percent(in_flight, BETA_PERCENT).max(self.probe_target())
        } else {
            in_flight.max(self.least_bound_after_loss())
        }
    }

    /// A departure from the draft, which lets losses lower the bound to BETA of the target in any case: where the delay shows no
    /// queue, the flight was not too much for the path, and what was lost may have been lost by chance. A bound below what the path
    /// holds would keep the rate low until the next probe. So it leaves room for the target and the headroom. A radio that is silent for
    /// many times the smallest round-trip time holds more than that time says: what it hands over at once.
    fn least_bound_after_loss(&self) -> u64 {
        let base = self.min_rtt.get().filter(|_| !self.min_rtt.is_meaningless());
        if base.is_some_and(|base| !self.delay.has_risen(base)) {
            let held = self.probe_target().max(self.aggregation.extra().min(self.control.window));
            held * 100 / (100 - HEADROOM_PERCENT)
        } else {
            percent(self.probe_target(), BETA_PERCENT)
        }
    }

    /// What is in flight at the bandwidth, as far as the window allows it (BBRTargetInflight).
    pub(super) fn probe_target(&self) -> u64 {
        self.bdp(100).min(self.control.window)
    }

    /// Whether a loss was found so late that nothing can have arrived in between: the path stood still.
    fn is_found_late(&self, now: Instant, lost: &LostPacket) -> bool {
        let usual = self.delay.recent_min().max(self.min_rtt.get());
        usual.is_some_and(|usual| now.saturating_since(lost.sent_time) > usual * STOP_ROUND_TRIPS)
    }

    /// Marks are congestion as losses are (RFC 3168; the draft leaves the answer open but demands one): a round
    /// with marks is a round with losses, and a probe that is marked more than it may lose went too high, as STARTUP did.
    pub(super) fn handle_marks(&mut self, now: Instant, marked: u64, event: &CongestionEvent) {
        if !self.recovery.covers(event.largest_sent_time) {
            self.recovery.enter_last(now);
            self.save_state();
        }
        self.recovery.make_final();
        self.on_loss_in_round(now, true);
        self.losses.events_in_round += 1;
        let in_flight = u64::from(event.snapshot.in_flight);
        let too_high = marked * self.control.packet > percent(in_flight, LOSS_PERCENT);
        self.losses.marked_too_high |= too_high;
        if self.cycle.probe_sample && too_high {
            let bound = in_flight.max(percent(self.probe_target(), BETA_PERCENT));
            self.handle_inflight_too_high(now, bound, event.snapshot.app_limited);
        }
        self.losses.random.end_trial();
    }

    fn on_loss_in_round(&mut self, now: Instant, congested: bool) {
        if !self.losses.in_round {
            self.losses.first_loss = Some((now, self.delivered));
            self.losses.round_end = self.delivered;
        }
        self.losses.in_round = true;
        self.losses.congested |= congested;
    }

    /// HandleInflightTooHigh of the draft, with the new long-term bound.
    fn handle_inflight_too_high(&mut self, now: Instant, bound: u64, app_limited: bool) {
        self.cycle.too_high = true;
        // One reaction to each probe.
        self.cycle.probe_sample = false;
        if !app_limited {
            self.losses.long_inflight = Some(bound);
        }
        if self.phase == Phase::ProbeUp {
            self.losses.undo_phase = Some(Phase::ProbeUp);
            self.start_probe_down(now);
        }
    }

    /// The flight was lost as a whole (RFC 9002 §7.6): a single packet more than is in flight, until something
    /// arrives again (OnEnterRTO). But no window is smaller than two packets (RFC 9002 §7.2).
    pub(super) fn enter_timeout_recovery(&mut self, now: Instant, in_flight: u64) {
        self.save_window();
        self.control.window = (in_flight + self.control.packet).max(self.control.smallest());
        self.control.timed_out = Some(now);
    }

    /// What was sent after losses has arrived: the window is what it was before.
    pub(super) fn leave_recovery(&mut self, rs: &Sample) {
        if self.control.timed_out.is_some_and(|since| rs.sent_time >= since) {
            self.control.timed_out = None;
            self.restore_window();
        }
    }

    /// SaveStateUponLoss of the draft.
    fn save_state(&mut self) {
        self.save_window();
        let losses = &mut self.losses;
        losses.undo_phase = None;
        losses.undo_bandwidth = losses.short_bandwidth;
        losses.undo_short_inflight = losses.short_inflight;
        losses.undo_long_inflight = losses.long_inflight;
        losses.undo_max_bandwidth = self.max_bandwidth.get();
        losses.trial.on_recovery();
    }

    /// HandleSpuriousLossDetection of the draft: all losses of a recovery have arrived after all.
    pub(super) fn undo_losses(&mut self) {
        self.control.timed_out = None;
        self.restore_window();
        self.full.restart(0);
        self.end_trial_of_recovery();
        let losses = &mut self.losses;
        losses.begin_lossless_round();
        losses.short_bandwidth = larger_bound(losses.short_bandwidth, losses.undo_bandwidth);
        losses.short_inflight = larger_bound(losses.short_inflight, losses.undo_short_inflight);
        losses.long_inflight = larger_bound(losses.long_inflight, losses.undo_long_inflight);
        match losses.undo_phase.take() {
            Some(Phase::Startup) if self.phase != Phase::Startup => {
                self.full.reached = false;
                self.startup.remeasure_from = None;
                self.max_bandwidth.on_sample(self.losses.undo_max_bandwidth, false);
                if self.phase != Phase::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(Phase::ProbeUp) if !matches!(self.phase, Phase::ProbeUp | Phase::ProbeRtt) => {
                self.start_probe_refill();
            }
            _ => {}
        }
    }
}

/// The larger of two bounds; none is larger than any.
pub(super) fn larger_bound(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.max(other?))
}

/// How much was in flight when the losses came to be too many (BBRInflightAtLoss): the part `p` of the lost
/// packet for which `lost_before + p` is the tolerated share of `in_flight_before + p`.
fn inflight_at_loss(tx_in_flight: u64, lost: u64, bytes: u64) -> u64 {
    let before = tx_in_flight.saturating_sub(bytes);
    let tolerated = percent(before, LOSS_PERCENT).saturating_sub(lost.saturating_sub(bytes));
    before + tolerated * 100 / (100 - LOSS_PERCENT)
}

#[cfg(test)]
mod tests;
