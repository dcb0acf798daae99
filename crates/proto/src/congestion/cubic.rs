//! CUBIC (RFC 9438), with HyStart++ in the first slow start.
//!
//! Windows are in bytes and times in microseconds, all in integers, so that a run is the same on every
//! machine.

use fulmar_base::Instant;

use self::curve::{BETA_TENTHS, Curve, Reduction};
use self::stage::Stage;
use super::loss_round::{LossRound, Shown};
use super::random_loss::RandomLoss;
use super::rate_watch::RateWatch;
use super::recovery::Recovery;
use super::slow_start::SlowStart;
use super::{
    AckEvent, Cause, CongestionEvent, Controller, ControllerFactory, CoupledShare, LostPacket, ResumeStep,
    Sent, SpuriousLoss, initial_window, minimum_window, threshold_after_outage, window_after_mtu_change,
};

mod curve;
mod stage;

/// The options of [`Cubic`].
#[derive(Debug, Clone)]
pub struct CubicConfig {
    /// The initial window in bytes; without one, RFC 9002 §7.2 decides.
    pub initial_window: Option<u64>,
    /// Whether a flow whose window shrinks makes room for others faster (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// Whether losses that come without a rise of the delay, and are less than one in 50 or as many after a reaction as before
    /// it, are taken for chance and not for congestion. RFC 9438 knows no such exception; with `false` it is
    /// followed strictly. Default true: over a radio link that loses one packet in 64, the strict reaction leaves a
    /// small part of the capacity, over a satellite a thousandth.
    pub tolerate_random_loss: bool,
}

impl Default for CubicConfig {
    fn default() -> Self {
        Self { initial_window: None, fast_convergence: true, tolerate_random_loss: true }
    }
}

impl ControllerFactory for CubicConfig {
    fn build(&self, _now: Instant, max_datagram_size: u16) -> Box<dyn Controller> {
        Box::new(Cubic::new(self, max_datagram_size))
    }
}

/// Grows the window along a cubic curve that is flat around the window of the last loss.
#[derive(Debug, Clone)]
pub struct Cubic {
    max_datagram_size: u16,
    fast_convergence: bool,
    recovery: Recovery<Curve>,
    loss_round: LossRound,
    slow_start: SlowStart,
    rate: RateWatch,
    /// Tells losses by chance from congestion, if that is wanted.
    random_loss: Option<RandomLoss>,
    /// Whether the last losses were taken for chance.
    took_for_chance: bool,
    /// When the application began to leave the window unused, if it does.
    limited_since: Option<Instant>,
    /// What a coupling with other paths leaves to it.
    share: CoupledShare,
    state: Curve,
    /// The state before the first of the reactions that are on trial.
    before_trial: Curve,
}

impl Cubic {
    /// A controller in slow start.
    pub fn new(config: &CubicConfig, max_datagram_size: u16) -> Self {
        let window = config.initial_window.unwrap_or_else(|| initial_window(max_datagram_size));
        let window = window.max(minimum_window(max_datagram_size));
        let state = Curve {
            window,
            ssthresh: None,
            plateau: None,
            prior_window: window,
            stage: None,
            ended_by_losses: false,
        };
        Self {
            max_datagram_size,
            fast_convergence: config.fast_convergence,
            recovery: Recovery::default(),
            loss_round: LossRound::default(),
            slow_start: SlowStart::new(window),
            rate: RateWatch::new(),
            random_loss: config.tolerate_random_loss.then(RandomLoss::default),
            took_for_chance: false,
            limited_since: None,
            share: CoupledShare::ALONE,
            before_trial: state.clone(),
            state,
        }
    }

    fn in_slow_start(&self) -> bool {
        self.state.ssthresh.is_none_or(|ssthresh| self.state.window < ssthresh)
    }

    fn grow_in_slow_start(&mut self, now: Instant, ack: &AckEvent<'_>) {
        let state = &mut self.state;
        let first = state.ssthresh.is_none();
        self.slow_start.grow(now, ack, &mut state.window, &mut state.ssthresh);
        if first && state.ssthresh.is_some() {
            // RFC 9438 §4.10: the curve begins at its plateau, since no loss has set one.
            state.prior_window = state.window;
            state.plateau = None;
        }
    }

    fn grow_in_congestion_avoidance(&mut self, now: Instant, ack: &AckEvent<'_>) {
        let (size, state) = (self.max_datagram_size, &mut self.state);
        let window = state.window;
        let begin = || Stage::new(now, window, state.plateau, size, self.share);
        let stage = state.stage.get_or_insert_with(begin);
        if let Some(since) = self.limited_since.take() {
            stage.pass_over(now.saturating_since(since));
        }
        stage.grow_reno(self.share.grown(ack.acked_bytes), window, state.prior_window, size);
        if stage.curve(now, size) < stage.reno_window() {
            // RFC 9438 §4.3: the Reno-friendly region.
            state.window = window.max(stage.reno_window());
            return;
        }
        // RFC 9438 §4.4, §4.5: towards where the curve will be after the next round trip, per window
        // acknowledged, and never faster than half a window per window.
        let target = stage.curve(now + ack.rtt.smoothed(), size).clamp(window, window + window / 2);
        let growth = u128::from(target - window) * u128::from(ack.acked_bytes) / u128::from(window);
        state.window += u64::try_from(growth).unwrap_or(u64::MAX).min(target - window);
    }

    /// The window is large enough: congestion avoidance goes on from it.
    fn hold(&mut self) {
        if self.in_slow_start() {
            self.state.ssthresh = Some(self.state.window);
            self.state.prior_window = self.state.window;
            self.state.plateau = None;
        }
    }

    /// A departure from the RFC: whether losses may be chance.
    fn is_tolerated(&mut self, event: &CongestionEvent) -> bool {
        let lost = event.lost_packets;
        if let Some(random_loss) = self.random_loss.as_mut().filter(|_| lost > 0) {
            random_loss.on_burst(lost, event.largest_sent_time);
        }
        let tolerated =
            self.random_loss.as_mut().is_some_and(|it| it.tolerates(lost, event.largest_sent_time, false));
        tolerated && event.cause == Cause::Loss && !event.persistent
    }

    fn reduction(&self) -> Reduction {
        Reduction {
            fast_convergence: self.fast_convergence,
            share: self.share,
            smallest: minimum_window(self.max_datagram_size),
        }
    }

    fn react(&mut self, now: Instant, cause: Cause) {
        self.recovery.enter(now, self.state.clone());
        // If the trial shows that this reaction was in vain, so was one whose trial it has cut short.
        let is_on_trial = self.random_loss.as_ref().is_some_and(RandomLoss::is_on_trial);
        self.end_trial();
        if cause == Cause::Loss {
            if let Some(random_loss) = &mut self.random_loss {
                // Half of the step back.
                random_loss.on_reaction(now, self.state.window * (10 + BETA_TENTHS) / 20);
            }
            self.loss_round.begin(now, self.state.ssthresh.is_none());
        }
        self.rate.restart(now);
        self.slow_start.stop();
        if !(is_on_trial && cause == Cause::Loss) {
            self.before_trial = self.state.clone();
        }
        self.limited_since = None;
        self.state = self.reduction().of(&self.state, cause);
    }

    /// A departure from the RFC: the flight with which the first slow start ended has shown what the path held. That is
    /// the plateau, not a window that was never carried. What was too much is gone, so half of the usual step below the
    /// plateau is enough, and none where there is no queue.
    fn settle(&mut self, now: Instant, shown: Shown) {
        let window = shown.pipe.max(shown.held * (10 + BETA_TENTHS) / 20);
        if window < self.state.window {
            self.retreat(window);
            self.state.prior_window = shown.held;
            self.state.plateau = Some(shown.held);
            self.recovery.extend(now);
        }
    }

    /// A reaction had no cause (RFC 9438 §4.9.2): a window that has grown beyond the old one stays. Where another one has followed, that
    /// one's period of recovery goes on.
    fn return_to(&mut self, before: Curve, is_latest: bool) {
        if self.state.window < before.window {
            self.state = before;
            if is_latest {
                self.recovery.release();
                self.loss_round.end();
            }
        }
    }

    /// Losses were random: their reactions are undone, and if they have ended the first slow start, it goes on. The first of them may
    /// have come before the window was worth anything.
    fn undo_trial(&mut self) {
        self.return_to(self.before_trial.clone(), true);
        if std::mem::take(&mut self.state.ended_by_losses) {
            self.state.ssthresh = None;
            self.state.plateau = None;
            self.state.stage = None;
        }
    }

    /// What losses show from now on says nothing about the last reaction, and must not undo it.
    fn end_trial(&mut self) {
        if let Some(random_loss) = &mut self.random_loss {
            random_loss.end_trial();
        }
    }

    /// Goes to `window`, from a window that the path never carried: that one is nothing to return to.
    fn retreat(&mut self, window: u64) {
        self.end_trial();
        let state = &mut self.state;
        state.ended_by_losses = false;
        state.window = window.max(minimum_window(self.max_datagram_size));
        state.ssthresh = Some(state.window);
        state.prior_window = state.window;
        state.plateau = None;
        state.stage = None;
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        self.slow_start.on_sent(now, sent);
    }

    fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>) {
        if let Some(random_loss) = &mut self.random_loss {
            random_loss.on_ack(now, ack);
            if random_loss.trial_was_in_vain(self.state.window) {
                self.undo_trial();
            }
        }
        if let Some(retreat) = self.slow_start.check_unvalidated(now, ack, u64::from(self.max_datagram_size))
        {
            self.loss_round.end();
            self.retreat(retreat.window(ack.rtt));
            return;
        }
        if let Some(shown) = self.loss_round.on_ack(now, ack, u64::from(self.max_datagram_size)) {
            self.settle(now, shown);
        }
        if self.state.ssthresh.is_none() {
            let packet = u64::from(self.max_datagram_size);
            self.slow_start.probe_with_trains(now, ack, packet, &mut self.state.window);
        }
        if ack.app_limited {
            // RFC 9438 §5.8: a window that is not used does not grow.
            self.slow_start.on_unused(now);
            if self.state.stage.is_some() {
                self.limited_since.get_or_insert(now);
            }
        } else if self.recovery.holds(ack.largest_sent_time) {
            // RFC 9002 §7.3.2: the window stays as it is in recovery.
        } else if !self.rate.may_grow(now, ack, self.in_slow_start()) {
            self.hold();
            if self.state.stage.is_some() {
                self.limited_since.get_or_insert(now);
            }
        } else if self.in_slow_start() {
            self.grow_in_slow_start(now, ack);
        } else if self.slow_start.resumes(now, ack) {
            (self.state.ssthresh, self.state.plateau, self.state.stage) = (None, None, None);
        } else {
            self.grow_in_congestion_avoidance(now, ack);
        }
    }

    fn on_packet_lost(&mut self, _now: Instant, lost: &LostPacket) {
        self.recovery.on_lost(lost.bytes, lost.sent_time);
    }

    fn on_congestion(&mut self, now: Instant, event: &CongestionEvent) {
        let tolerated = self.is_tolerated(event);
        self.took_for_chance = tolerated;
        let reacts = !tolerated && !self.recovery.covers(event.largest_sent_time);
        if reacts {
            self.react(now, event.cause);
        }
        let packet = u64::from(self.max_datagram_size);
        if let Some(arrived) = self.slow_start.on_congestion(now, event, packet) {
            self.retreat(arrived);
        }
        match event.cause {
            Cause::Loss => {
                self.recovery.end_losses();
                self.loss_round.on_lost(event);
            }
            Cause::Ecn { .. } => self.recovery.make_final(),
        }
        if event.persistent {
            // RFC 9002 §7.6.2 and RFC 9438 §4.8: slow start from the minimum; the next stage begins at its
            // plateau.
            self.end_trial();
            self.state.window = minimum_window(self.max_datagram_size);
            self.state.plateau = None;
            self.state.stage = None;
            if let Some(before) = self.recovery.before().filter(|_| reacts) {
                self.state.ssthresh = threshold_after_outage(before.window, before.ssthresh);
            }
            self.recovery.release();
            self.loss_round.end();
        }
    }

    fn took_for_chance(&self) -> bool {
        self.took_for_chance
    }

    fn on_spurious_loss(&mut self, _now: Instant, spurious: &SpuriousLoss) {
        if let Some(random_loss) = self.random_loss.as_mut().filter(|_| spurious.dropped_for_mark) {
            random_loss.forget_losses();
        }
        let reduction = self.reduction();
        let reduced = |before: &Curve| reduction.of(before, Cause::Loss);
        if let Some(undone) = self.recovery.on_spurious(spurious, reduced) {
            self.end_trial();
            self.return_to(undone.state, undone.is_latest);
        }
    }

    fn on_resume(&mut self, now: Instant, step: ResumeStep) {
        let smallest = minimum_window(self.max_datagram_size);
        let state = &mut self.state;
        match step {
            ResumeStep::Jump { window, .. } => state.window = state.window.max(window),
            ResumeStep::Settle { window } => state.window = state.window.min(window).max(smallest),
            ResumeStep::Retreat { window } => {
                if !self.recovery.covers(now) {
                    self.recovery.enter(now, state.clone());
                }
                self.recovery.make_final();
                self.retreat(self.state.window.min(window));
            }
            ResumeStep::SlowStartUpTo { ssthresh } => state.ssthresh = Some(ssthresh.max(state.window)),
        }
    }

    fn couple(&mut self, share: CoupledShare) {
        self.share = share;
    }

    fn on_mtu(&mut self, max_datagram_size: u16) {
        let state = &mut self.state;
        state.window = window_after_mtu_change(state.window, self.max_datagram_size, max_datagram_size);
        self.max_datagram_size = max_datagram_size;
    }

    fn window(&self) -> u64 {
        self.state.window
    }

    fn conserves(&self) -> bool {
        self.loss_round.is_under_way()
    }

    fn take_packet_train(&mut self) -> u64 {
        self.slow_start.take_packet_train()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.state.ssthresh
    }

    fn state(&self) -> &'static str {
        match (self.in_slow_start(), self.slow_start.is_conservative()) {
            (true, false) => "slow start",
            (true, true) => "conservative slow start",
            (false, _) => "congestion avoidance",
        }
    }

    fn name(&self) -> &'static str {
        "cubic"
    }
}

#[cfg(test)]
mod tests;
