//! PROBE_BW: slower, even, faster, to follow the bandwidth and to share it.

use std::time::Duration;

use fulmar_base::{Instant, Rng};

use super::super::units::percent;
use super::{Bbr, Phase, Sample};
use crate::packed::{packed, packed_names};

/// The share of the long-term bound that is left to others (BBR.Headroom), in hundredths.
pub(super) const HEADROOM_PERCENT: u64 = 15;

/// The wait between two probes is so long, and up to [`MAX_EXTRA_WAIT`] longer.
const MIN_WAIT: Duration = Duration::from_secs(2);
const MAX_EXTRA_WAIT: Duration = Duration::from_secs(1);

/// On long paths the wait is this many round trips: a cycle needs more than one of them, and a sender that probed
/// each 2 s there would do nothing else.
const MIN_WAIT_ROUND_TRIPS: u32 = 6;

/// The wait after a stop of the path, in round trips.
const WAIT_ROUND_TRIPS_AFTER_STOP: u32 = 2;

/// After this many rounds the next probe is due in any case, so that Reno and CUBIC find the same chances as
/// among themselves.
pub(super) const MAX_WAIT_ROUNDS: u8 = 63;

/// The growth of the bound doubles so often at most.
const MAX_GROWTH_ROUNDS: u32 = 30;

/// What acknowledgements mean for the probing (BBR.ack_phase).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// Nothing: no probe is under way.
    Init,
    /// The path is being filled.
    Refilling,
    /// The probe has begun.
    ProbeStarting,
    /// The acknowledgements are those of the probe.
    ProbeFeedback,
    /// The probe has ended, its acknowledgements are still coming.
    ProbeStopping,
}

packed_names!(AckPhase { Init, Refilling, ProbeStarting, ProbeFeedback, ProbeStopping });

/// The state of the cycle.
#[derive(Debug, Clone)]
pub(super) struct Cycle {
    /// When it began.
    stamp: Instant,
    /// How long it waits before the next probe.
    wait: Duration,
    pub(super) rounds_since_up: u64,
    pub(super) ack_phase: AckPhase,
    /// Whether losses show what a probe did (BBR.is_bw_probe_sample).
    pub(super) probe_sample: bool,
    /// Whether the last probe lost too much.
    pub(super) too_high: bool,
    /// Whether the last probe was ended before it could.
    precautionary: bool,
    /// Rounds in which the bound has grown.
    up_rounds: u32,
    /// Bytes acknowledged that have not raised it yet, and bytes for each packet of growth.
    up_acked: u64,
    acked_per_packet: u64,
    /// The round-trip time when the probe began.
    rtt_before: Option<Duration>,
    /// Whether the wait was shorter than Reno and CUBIC need to grow back.
    short_wait: bool,
    /// Whether it was, and others held a queue when the probe began: what it makes them lose they cannot win back.
    pub(super) takes_from_others: bool,
}

packed!(Cycle {
    stamp,
    wait,
    rounds_since_up,
    ack_phase,
    probe_sample,
    too_high,
    precautionary,
    up_rounds,
    up_acked,
    acked_per_packet,
    rtt_before,
    short_wait,
    takes_from_others,
});

impl Cycle {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            stamp: now,
            wait: MIN_WAIT,
            rounds_since_up: 0,
            ack_phase: AckPhase::Init,
            probe_sample: false,
            too_high: false,
            precautionary: false,
            up_rounds: 0,
            up_acked: 0,
            acked_per_packet: u64::MAX,
            rtt_before: None,
            short_wait: false,
            takes_from_others: false,
        }
    }
}

impl Bbr {
    pub(super) fn start_probe_down(&mut self, now: Instant) {
        self.losses.reset_signals();
        self.cycle.acked_per_packet = u64::MAX;
        self.pick_wait(now);
        self.cycle.stamp = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.begin_round();
        self.phase = Phase::ProbeDown;
    }

    pub(super) fn start_probe_cruise(&mut self) {
        self.phase = Phase::ProbeCruise;
    }

    pub(super) fn start_probe_refill(&mut self) {
        self.losses.begin_probe();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0;
        self.cycle.precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.begin_round();
        self.phase = Phase::ProbeRefill;
    }

    fn start_probe_up(&mut self, rs: &Sample) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.begin_round();
        self.full.restart(rs.delivery_rate.unwrap_or(0));
        self.phase = Phase::ProbeUp;
        self.cycle.rtt_before = self.delay.recent_min();
        self.cycle.takes_from_others = self.cycle.short_wait && self.shares_queue();
        self.raise_slope();
    }

    /// Whether others hold a queue that this flow does not make between its probes. In a queue of more than a round trip they
    /// hold more than their part, since the window here is that of two. The smallest round-trip time of all counts: while others
    /// keep a queue, the minimum of the model forgets what the path is like without one.
    fn shares_queue(&self) -> bool {
        let base = self.losses.random.min_rtt();
        self.delay.shows_queue(base) && self.delay.recent_min().is_some_and(|recent| recent < base * 2)
    }

    /// UpdateProbeBWCyclePhase of the draft.
    pub(super) fn update_probe_bw(&mut self, rs: &Sample) {
        if !self.full.reached || self.adapt_long_term(rs) {
            return;
        }
        match self.phase {
            Phase::ProbeDown | Phase::ProbeCruise if self.is_time_to_probe(rs.now) => {
                self.cycle.short_wait = !self.has_waited_rounds();
                self.start_probe_refill()
            }
            Phase::ProbeDown if self.is_time_to_cruise(rs.in_flight) => self.start_probe_cruise(),
            // After one round in which the path was filled.
            Phase::ProbeRefill if self.rounds.started() => {
                self.cycle.probe_sample = true;
                self.start_probe_up(rs);
            }
            Phase::ProbeUp => self.check_probe_up_done(rs),
            _ => {}
        }
    }

    fn check_probe_up_done(&mut self, rs: &Sample) {
        if self.is_time_to_go_down(rs) {
            self.cycle.too_high = false;
            self.start_probe_down(rs.now);
        }
    }

    /// Follows the acknowledgements of a probe, and raises the long-term bound. Returns whether that has decided
    /// about the next state.
    fn adapt_long_term(&mut self, rs: &Sample) -> bool {
        match self.cycle.ack_phase {
            AckPhase::ProbeStarting if self.rounds.started() => {
                self.cycle.ack_phase = AckPhase::ProbeFeedback;
            }
            AckPhase::ProbeStopping if self.rounds.started() => {
                self.cycle.probe_sample = false;
                self.cycle.ack_phase = AckPhase::Init;
                self.end_cycle(rs);
                if self.phase.is_probe_bw() && self.cycle.precautionary && !self.cycle.too_high {
                    // The cautious probe lost nothing: another one, without caution.
                    self.start_probe_refill();
                    return true;
                }
            }
            _ => {}
        }
        if let Some(bound) = self.losses.long_inflight.filter(|_| !self.probe_lost_too_much(rs)) {
            self.losses.long_inflight = Some(bound.max(rs.tx_in_flight));
            if self.phase == Phase::ProbeUp {
                self.raise_long_inflight(rs.newly_acked);
            }
        }
        false
    }

    /// The next cycle forgets what is older than this one. A departure from the draft: not if the path stopped all the time. Where a
    /// round trip and a small flight take little, a cycle may be shorter than a stop, and two of them would forget what the path
    /// can carry.
    fn end_cycle(&mut self, rs: &Sample) {
        if self.phase.is_probe_bw() && !rs.app_limited && self.round_best.take_shown() {
            self.max_bandwidth.advance();
        }
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        now > self.cycle.stamp + self.cycle.wait || self.has_waited_rounds()
    }

    /// Whether the wait has lasted so long that Reno and CUBIC have grown back.
    fn has_waited_rounds(&self) -> bool {
        let target = self.probe_target() / self.control.packet;
        self.cycle.rounds_since_up >= target.min(MAX_WAIT_ROUNDS.into())
    }

    fn is_time_to_cruise(&self, in_flight: u64) -> bool {
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(100)
    }

    fn is_time_to_go_down(&mut self, rs: &Sample) -> bool {
        let bound = self.losses.long_inflight.unwrap_or(u64::MAX);
        if self.cycle.too_high && rs.in_flight >= bound {
            self.cycle.precautionary = true;
            return true;
        }
        if self.control.is_limited() && self.control.window >= bound {
            // It is the bound that limits the rate, not the path.
            self.full.restart(rs.delivery_rate.unwrap_or(0));
            return false;
        }
        self.full.now || self.probe_has_filled_queue()
    }

    /// A departure from the draft: a probe ends when the delay has risen since it began. The draft waits for
    /// three rounds without growth, in which a queue of a whole round trip builds up. Where others keep the
    /// queue full the delay is high before, too, so that they do not end the probe.
    fn probe_has_filled_queue(&self) -> bool {
        let base = self.cycle.rtt_before.filter(|_| !self.min_rtt.is_meaningless());
        base.is_some_and(|base| self.delay.has_risen(base))
    }

    /// Decides, in part by chance, how long to wait before the next probe, so that flows that share a path do
    /// not probe together. A controller is given no generator; what time it is and what was delivered differ
    /// enough between flows, and repeat with the run.
    fn pick_wait(&mut self, now: Instant) {
        let mut rng = Rng::from_u64(now.as_nanos() ^ self.delivered.rotate_left(32));
        self.cycle.rounds_since_up = rng.below(2);
        let extra = MAX_EXTRA_WAIT.as_micros() as u64;
        let long = self.min_rtt.get().unwrap_or_default() * MIN_WAIT_ROUND_TRIPS;
        self.cycle.wait = MIN_WAIT.max(long) + Duration::from_micros(rng.below(extra));
    }

    /// A departure from the draft: what is lost while the path stands still says little about what it can carry, and
    /// the bounds that follow from it may be far too low. So the next probe is due after a few round trips, not
    /// after the usual wait.
    pub(super) fn probe_soon(&mut self, now: Instant) {
        let soon = now + self.min_rtt.get().unwrap_or_default() * WAIT_ROUND_TRIPS_AFTER_STOP;
        self.cycle.wait = self.cycle.wait.min(soon.saturating_since(self.cycle.stamp));
    }

    /// The long-term bound, less what is left to others (BBRInflightWithHeadroom).
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        let Some(bound) = self.losses.long_inflight else { return u64::MAX };
        let headroom = percent(bound, HEADROOM_PERCENT).max(self.control.packet);
        bound.saturating_sub(headroom).max(self.control.min_pipe())
    }

    /// The growth of the bound in this round is twice that of the round before.
    fn raise_slope(&mut self) {
        let growth = 1 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MAX_GROWTH_ROUNDS);
        self.cycle.acked_per_packet = (self.control.window / growth).max(self.control.packet);
    }

    fn raise_long_inflight(&mut self, acked: u64) {
        let Some(bound) = self.losses.long_inflight else { return };
        if !self.control.is_limited() || self.control.window < bound {
            return;
        }
        self.cycle.up_acked += acked;
        let packets = self.cycle.up_acked / self.cycle.acked_per_packet;
        self.cycle.up_acked -= packets * self.cycle.acked_per_packet;
        self.losses.long_inflight = Some(bound.saturating_add(packets * self.control.packet));
        if self.rounds.started() {
            self.raise_slope();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::BbrConfig;
    use super::*;
    use crate::congestion::test_path::{SIZE, ack, rtt};

    #[test]
    fn the_bound_rises_only_while_the_window_reaches_it() {
        let mut bbr = Bbr::new(&BbrConfig::default(), Instant::ZERO, SIZE);
        let packet = u64::from(SIZE);
        bbr.losses.long_inflight = Some(20 * packet);
        bbr.cycle.acked_per_packet = packet;
        for (window, bound) in [(10, 20), (20, 24), (30, 28)] {
            bbr.control.window = window * packet;
            bbr.control.on_sent(window * packet);
            bbr.control.begin_round();
            bbr.raise_long_inflight(4 * packet);
            assert_eq!(bbr.losses.long_inflight, Some(bound * packet), "a window of {window} packets");
        }
    }

    #[test]
    fn others_share_a_queue_of_less_than_a_round_trip() {
        let base = Duration::from_millis(40);
        let shares = |delay: Duration| {
            let mut bbr = Bbr::new(&BbrConfig::default(), Instant::ZERO, SIZE);
            let rtt = rtt(base);
            bbr.losses.random.on_ack(Instant::ZERO, &ack(0, Instant::ZERO, &rtt));
            for n in 0..1_000 {
                bbr.delay.on_sample(Instant::ZERO + Duration::from_millis(n), delay, base);
            }
            bbr.shares_queue()
        };
        assert!(!shares(base), "nobody queues");
        assert!(shares(base * 3 / 2));
        assert!(!shares(base * 3), "they hold more than their part");
    }
}
