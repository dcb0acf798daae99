//! PROBE_RTT: little in flight for a moment, so that the queue is empty and the round-trip time shows.

use std::time::Duration;

use fulmar_base::Instant;

use super::longer_path::Answer;
use super::probe_bw::AckPhase;
use super::{Bbr, Phase, Sample};
use crate::packed::packed;

/// How long the flight is kept small (BBR.ProbeRTTDuration).
const DURATION: Duration = Duration::from_millis(200);

/// The share of the bandwidth-delay product that stays in flight (BBR.ProbeRTTCwndGain), in hundredths.
const WINDOW_PERCENT: u64 = 50;

/// The state of PROBE_RTT.
#[derive(Debug, Clone, Default)]
pub(super) struct ProbeRtt {
    /// When it may end, once the flight is small.
    done: Option<Instant>,
    round_done: bool,
    /// Packets sent when between so much and so much was delivered show a rate that was limited here.
    limited: Option<(u64, u64)>,
}

packed!(ProbeRtt { done, round_done, limited });

impl ProbeRtt {
    /// Whether a packet sent when `delivered` bytes had been delivered was held back by PROBE_RTT.
    pub(super) fn limited(&self, delivered: u64) -> bool {
        self.limited.is_some_and(|(from, to)| (from..=to).contains(&delivered))
    }
}

impl Bbr {
    pub(super) fn check_probe_rtt(&mut self, rs: &Sample) {
        if self.phase != Phase::ProbeRtt && self.min_rtt.expired() && !self.idle_restart {
            self.enter_probe_rtt();
        }
        if self.phase == Phase::ProbeRtt {
            self.handle_probe_rtt(rs);
        }
        if self.idle_restart && self.min_rtt.expired() {
            // Silence has emptied the queue as well as PROBE_RTT would.
            self.min_rtt.on_probed(rs.now);
        }
        self.idle_restart = false;
    }

    pub(super) fn enter_probe_rtt(&mut self) {
        self.save_window();
        self.phase = Phase::ProbeRtt;
        self.longer_path.begin();
        self.probe_rtt =
            ProbeRtt { done: None, round_done: false, limited: Some((self.delivered, self.delivered)) };
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.begin_round();
    }

    fn handle_probe_rtt(&mut self, rs: &Sample) {
        if let Some((_, to)) = &mut self.probe_rtt.limited {
            *to = self.delivered + rs.in_flight;
        }
        if self.probe_rtt.done.is_none() {
            if rs.in_flight <= self.probe_rtt_window() {
                // A question about the flow's own queue is answered after a round; those of others take their time.
                let time = if self.longer_path.is_asked() { Duration::ZERO } else { DURATION };
                self.probe_rtt.done = Some(rs.now + time);
                self.probe_rtt.round_done = false;
                self.begin_round();
            }
            return;
        }
        self.longer_path.on_sample(rs.rtt);
        self.probe_rtt.round_done |= self.rounds.started();
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(rs.now);
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_rtt.done.is_none_or(|done| now <= done) {
            return;
        }
        match self.answer_doubt(now) {
            // What losses have shown of a slower path stays.
            Some(Answer::Slower) => {}
            Some(Answer::Longer) => self.losses.reset_short_term(),
            None => {
                self.min_rtt.on_probed(now);
                self.losses.reset_short_term();
            }
        }
        self.restore_window();
        if self.full.reached {
            // The clock of the probing for bandwidth begins anew, and the queue is empty already.
            self.start_probe_down(now);
            self.start_probe_cruise();
        } else {
            self.enter_startup();
        }
    }

    /// The window in PROBE_RTT.
    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp(WINDOW_PERCENT).max(self.control.min_pipe())
    }
}

#[cfg(test)]
mod tests {
    use super::super::BbrConfig;
    use super::*;
    use crate::congestion::test_path::SIZE;

    #[test]
    fn the_time_of_probe_rtt_begins_when_the_flight_is_as_small_as_its_window() {
        let mut bbr = Bbr::new(&BbrConfig::default(), Instant::ZERO, SIZE);
        bbr.enter_probe_rtt();
        let window = bbr.probe_rtt_window();
        let sample = Sample {
            now: Instant::from_millis(100),
            delivery_rate: None,
            delivered: 0,
            prior_delivered: 0,
            lost: 0,
            tx_in_flight: 0,
            app_limited: false,
            newly_acked: 0,
            sent_time: Instant::ZERO,
            in_flight: window + 1,
            rtt: None,
        };
        bbr.handle_probe_rtt(&sample);
        assert_eq!(bbr.probe_rtt.done, None);
        bbr.handle_probe_rtt(&Sample { in_flight: window, ..sample });
        assert!(bbr.probe_rtt.done.is_some_and(|done| done > sample.now));
    }
}
