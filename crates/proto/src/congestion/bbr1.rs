//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): a model of the path, blind to loss.
//!
//! Bandwidth and round-trip time are measured with the parts of version 3: rounds, the minimum of the round-trip time, the
//! search for a full pipe. The departures for very short and for long paths are the same, too.

use std::time::Duration;

use fulmar_base::{Instant, Rng};

use super::bbr::{Aggregation, AggregationInput, MinRtt, Rounds};
use super::delay::DelayWatch;
use super::full_pipe::FullPipe;
use super::recovery::Recovery;
use super::train_probing::TrainProbing;
use super::units::{packet_time, percent, rate, slowest_pace, volume};
use super::unvalidated_flight::SafeRetreat;
use super::{
    AckEvent, Cause, CongestionEvent, Controller, ControllerFactory, LostPacket, ResumeStep, Sent,
    SpuriousLoss, initial_window, window_after_mtu_change,
};

/// The gain that doubles the rate in a round, 2 / ln 2 (BBRHighGain), and its inverse, in hundredths.
const HIGH_GAIN: u64 = 289;
const DRAIN_GAIN: u64 = 35;

/// The gain of the window, in hundredths: twice the bandwidth-delay product.
const WINDOW_GAIN: u64 = 200;

/// The gains of the cycle in PROBE_BW, each for a round trip: faster, slower, even.
const CYCLE: [u64; 8] = [125, 75, 100, 100, 100, 100, 100, 100];

/// The bandwidth is the maximum over this many rounds (BtlBwFilterLen).
const FILTER_ROUNDS: usize = 10;

/// The smallest window, in packets (BBRMinPipeCwnd).
const MIN_PIPE_PACKETS: u64 = 4;

/// How long the flight is kept at that to measure the round-trip time (ProbeRTTDuration).
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

/// The pacer hands out what the rate gives in a millisecond; three times that is in flight at least, see `bbr`.
const QUANTA_TIME: Duration = Duration::from_millis(3);

/// The options of [`Bbr1`].
#[derive(Debug, Clone, Default)]
pub struct Bbr1Config {
    /// The initial window in bytes; without one, RFC 9002 §7.2 decides.
    pub initial_window: Option<u64>,
}

impl ControllerFactory for Bbr1Config {
    fn build(&self, now: Instant, max_datagram_size: u16) -> Box<dyn Controller> {
        Box::new(Bbr1::new(self, now, max_datagram_size))
    }
}

/// Sends at the bandwidth that it measured, and tests in one of eight round trips whether there is more.
#[derive(Debug, Clone)]
pub struct Bbr1 {
    phase: Phase,
    rounds: Rounds,
    /// The largest sample of each of the latest rounds, in bytes per second.
    samples: [u64; FILTER_ROUNDS],
    full: FullPipe,
    min_rtt: MinRtt,
    delay: DelayWatch,
    aggregation: Aggregation,
    trains: TrainProbing,
    recovery: Recovery,
    packet: u64,
    initial_window: u64,
    window: u64,
    /// The window before PROBE_RTT or recovery.
    prior_window: u64,
    pacing_rate: u64,
    delivered: u64,
    /// When everything in flight was lost, until something arrives that was sent later.
    timed_out: Option<Instant>,
    idle_restart: bool,
}

/// The states of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    /// In this phase of the cycle, since then.
    ProbeBw(usize, Instant),
    /// Until then, once the flight is small.
    ProbeRtt(Option<Instant>),
}

impl Bbr1 {
    /// A controller in STARTUP.
    pub fn new(config: &Bbr1Config, now: Instant, max_datagram_size: u16) -> Self {
        let packet = u64::from(max_datagram_size);
        let window = config.initial_window.unwrap_or_else(|| initial_window(max_datagram_size));
        let window = window.max(MIN_PIPE_PACKETS * packet);
        Self {
            phase: Phase::Startup,
            rounds: Rounds::default(),
            samples: [0; FILTER_ROUNDS],
            full: FullPipe::default(),
            min_rtt: MinRtt::new(now),
            delay: DelayWatch::default(),
            aggregation: Aggregation::new(now),
            trains: TrainProbing::new(window),
            recovery: Recovery::default(),
            packet,
            initial_window: window,
            window,
            prior_window: window,
            pacing_rate: percent(rate(window, Duration::from_millis(1)), HIGH_GAIN),
            delivered: 0,
            timed_out: None,
            idle_restart: false,
        }
    }

    fn measured_bandwidth(&self) -> u64 {
        self.samples.iter().copied().max().unwrap_or(0)
    }

    fn bandwidth(&self) -> u64 {
        let trains = if self.phase == Phase::Startup { self.trains.bandwidth() } else { 0 };
        self.measured_bandwidth().max(trains)
    }

    /// This many hundredths of the bandwidth-delay product, and what keeps the pacer and the peer busy.
    fn inflight(&self, gain: u64) -> u64 {
        let Some(rtt) = self.min_rtt.get() else { return self.initial_window };
        let bandwidth = self.bandwidth();
        let quanta = volume(bandwidth, QUANTA_TIME);
        let quanta = if quanta > MIN_PIPE_PACKETS * self.packet { quanta } else { 0 };
        percent(volume(bandwidth, rtt), gain).max(quanta).max(MIN_PIPE_PACKETS * self.packet)
    }

    /// The pace before anything is known of the path; zero later.
    fn first_pace(&self) -> u64 {
        if self.phase == Phase::Startup { self.trains.first_pace() } else { 0 }
    }

    fn pacing_gain(&self) -> u64 {
        match self.phase {
            Phase::Startup => self.trains.gain(HIGH_GAIN, self.measured_bandwidth()),
            Phase::Drain => DRAIN_GAIN,
            Phase::ProbeBw(..) if self.idle_restart => 100,
            Phase::ProbeBw(index, _) => CYCLE[index],
            Phase::ProbeRtt(_) => 100,
        }
    }

    fn update_bandwidth(&mut self, ack: &AckEvent<'_>) {
        if self.rounds.on_ack(ack.snapshot.delivered, self.delivered) && !ack.snapshot.app_limited {
            // A round that the application limited does not push a better one out.
            self.samples.rotate_right(1);
            self.samples[0] = 0;
        }
        let Some(rate) = ack.rate.map(|rate| rate.delivery_rate) else { return };
        if !self.limited(ack) || rate >= self.measured_bandwidth() {
            self.samples[0] = self.samples[0].max(rate);
        }
        let growth = if self.phase == Phase::Startup {
            self.trains.growth_percent()
        } else {
            FullPipe::GROWTH_PERCENT
        };
        let started = self.rounds.started();
        let held = started && self.aggregation.take_growth();
        self.full.on_sample(rate, started, self.limited(ack) || held, growth);
        if self.phase == Phase::Startup {
            self.trains.on_rate(rate, self.rounds.started(), &mut self.full);
        }
    }

    /// Whether the rate of delivery was limited by the application or by PROBE_RTT.
    fn limited(&self, ack: &AckEvent<'_>) -> bool {
        ack.snapshot.app_limited || matches!(self.phase, Phase::ProbeRtt(_))
    }

    /// Version 1 as it was published has no allowance for aggregation; its implementation in Linux has one.
    fn update_aggregation(&mut self, now: Instant, acked_bytes: u64) {
        let input = AggregationInput {
            bandwidth: self.bandwidth(),
            pace: self.pacing_rate,
            acked_bytes,
            min_rtt: self.min_rtt.get().unwrap_or_default(),
            window: self.window,
            round: self.rounds.count(),
            full: self.full.reached,
        };
        self.aggregation.on_ack(now, &input);
    }

    fn update_phase(&mut self, now: Instant, ack: &AckEvent<'_>) {
        let in_flight = ack.bytes_in_flight;
        if self.phase == Phase::Startup {
            if let Some(window) = self.trains.on_ack(now, ack, self.min_rtt.get(), self.packet) {
                self.window = self.window.max(window);
            }
            let base = self.min_rtt.get().filter(|_| !self.min_rtt.is_meaningless());
            if base.is_some_and(|base| self.delay.has_risen(base)) {
                self.full.set_full();
            }
            if self.full.reached {
                self.phase = Phase::Drain;
            }
        }
        let drained = self.inflight(100).max(self.aggregation.extra());
        if self.phase == Phase::Drain && in_flight <= drained {
            self.enter_probe_bw(now);
        }
        if let Phase::ProbeBw(index, since) = self.phase {
            self.advance_cycle(now, index, since, ack);
        }
        self.check_probe_rtt(now, in_flight);
        self.idle_restart = false;
    }

    /// Begins with any phase of the cycle but the slow one, so that flows do not probe together.
    fn enter_probe_bw(&mut self, now: Instant) {
        let mut rng = Rng::from_u64(now.as_nanos() ^ self.delivered.rotate_left(32));
        let index = (rng.below(CYCLE.len() as u64 - 1) + 2) as usize % CYCLE.len();
        self.phase = Phase::ProbeBw(index, now);
    }

    fn advance_cycle(&mut self, now: Instant, index: usize, since: Instant, ack: &AckEvent<'_>) {
        let whole = now.saturating_since(since) > self.min_rtt.get().unwrap_or_default();
        let gain = CYCLE[index];
        let done = if gain > 100 {
            // Until the flight is what the gain aims at, unless losses show that it cannot be.
            let lost = ack.total_lost > ack.snapshot.lost;
            whole && (lost || ack.prior_in_flight >= self.inflight(gain))
        } else if gain < 100 {
            whole || ack.prior_in_flight <= self.inflight(100)
        } else {
            whole
        };
        if done {
            self.phase = Phase::ProbeBw((index + 1) % CYCLE.len(), now);
        }
    }

    fn check_probe_rtt(&mut self, now: Instant, in_flight: u64) {
        if self.min_rtt.expired() {
            if self.idle_restart {
                self.min_rtt.on_probed(now);
            } else if !matches!(self.phase, Phase::ProbeRtt(_)) {
                self.prior_window = self.window;
                self.phase = Phase::ProbeRtt(None);
            }
        }
        match self.phase {
            Phase::ProbeRtt(None) if in_flight <= MIN_PIPE_PACKETS * self.packet => {
                self.rounds.restart(self.delivered);
                let time = PROBE_RTT_DURATION.max(self.min_rtt.get().unwrap_or_default());
                self.phase = Phase::ProbeRtt(Some(now + time));
            }
            Phase::ProbeRtt(Some(end)) if now >= end => {
                self.min_rtt.on_probed(now);
                self.window = self.window.max(self.prior_window);
                self.phase = Phase::Startup;
                if self.full.reached {
                    self.enter_probe_bw(now);
                }
            }
            _ => {}
        }
    }

    fn update_control(&mut self, acked: u64) {
        let bandwidth = self.bandwidth();
        if bandwidth > 0 {
            let slowest = slowest_pace(self.packet, self.min_rtt.get()).max(self.first_pace());
            let pace = percent(bandwidth, self.pacing_gain()).max(slowest);
            if self.full.reached || pace > self.pacing_rate || self.delivered <= self.initial_window {
                self.pacing_rate = pace;
            }
        } else if let Some(rtt) = self.min_rtt.get() {
            self.pacing_rate = percent(rate(self.initial_window, rtt), HIGH_GAIN).max(self.first_pace());
        }
        if self.timed_out.is_some() {
            return;
        }
        let target = self.inflight(WINDOW_GAIN) + self.aggregation.extra() + 3 * self.packet;
        let grown = self.window.saturating_add(acked);
        if self.full.reached {
            self.window = grown.min(target);
        } else if self.window < target || self.delivered < self.initial_window {
            self.window = grown;
        }
        let smallest = MIN_PIPE_PACKETS * self.packet;
        let cap = if matches!(self.phase, Phase::ProbeRtt(_)) { smallest } else { u64::MAX };
        self.window = self.window.max(smallest).min(cap);
    }
}

impl Controller for Bbr1 {
    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        self.trains.on_sent(now, sent);
        if sent.bytes_in_flight == sent.bytes && sent.app_limited {
            self.idle_restart = true;
            self.aggregation.restart(now);
            if matches!(self.phase, Phase::ProbeBw(..)) {
                self.pacing_rate = self.bandwidth().max(slowest_pace(self.packet, self.min_rtt.get()));
            }
        }
    }

    fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>) {
        self.delivered = ack.total_delivered;
        if let Some(SafeRetreat::Delivers(rate)) = self.trains.check_unvalidated(now, ack, self.packet) {
            self.samples = [0; FILTER_ROUNDS];
            self.samples[0] = rate;
        }
        if let Some(rtt) = ack.rtt_sample {
            self.delay.on_sample(now, rtt, self.min_rtt.get().unwrap_or(rtt));
        }
        self.update_bandwidth(ack);
        self.update_aggregation(now, ack.acked_bytes);
        self.min_rtt.on_sample(now, ack.rtt_sample, packet_time(self.packet, self.bandwidth()));
        self.update_phase(now, ack);
        if self.timed_out.is_some_and(|since| ack.largest_sent_time >= since) {
            self.timed_out = None;
            self.window = self.window.max(self.prior_window);
        }
        self.update_control(ack.acked_bytes);
    }

    fn on_packet_lost(&mut self, _now: Instant, lost: &LostPacket) {
        self.recovery.on_lost(lost.bytes, lost.sent_time);
    }

    /// Losses change the model by nothing; a round trip of them keeps the flight what the path delivers. Only where they
    /// show that a train has misled, STARTUP is over.
    fn on_congestion(&mut self, now: Instant, event: &CongestionEvent) {
        if self.trains.on_congestion(now, event, self.packet).is_some() && self.phase == Phase::Startup {
            self.full.set_full();
            self.phase = Phase::Drain;
        }
        if !self.recovery.covers(event.largest_sent_time) {
            self.recovery.enter_last(now);
        }
        match event.cause {
            Cause::Loss => self.recovery.end_losses(),
            Cause::Ecn { .. } => {
                // RFC 3168 §5: a mark must be answered. The window grows back with what is delivered.
                self.recovery.make_final();
                self.window = event.bytes_in_flight.max(MIN_PIPE_PACKETS * self.packet).min(self.window);
            }
        }
        if event.persistent && self.timed_out.is_none() {
            // RFC 9002 §7.6: a single packet more than is in flight, until something arrives again, but at least the
            // minimum (§7.2).
            self.prior_window = self.window;
            self.window = (event.bytes_in_flight + self.packet).max(2 * self.packet);
            self.timed_out = Some(now);
        }
    }

    fn on_spurious_loss(&mut self, _now: Instant, spurious: &SpuriousLoss) {
        let undone = self.recovery.on_spurious(spurious, |()| ());
        if undone.is_some() && self.timed_out.take().is_some() {
            self.window = self.window.max(self.prior_window);
        }
    }

    fn on_resume(&mut self, _now: Instant, step: ResumeStep) {
        match step {
            ResumeStep::Jump { window, rtt } if self.phase == Phase::Startup => {
                self.pacing_rate = self.pacing_rate.max(rate(window, rtt));
                self.window = self.window.max(window);
            }
            ResumeStep::Retreat { window } => {
                if self.phase == Phase::Startup {
                    self.full.set_full();
                    self.phase = Phase::Drain;
                }
                self.recovery.make_final();
                self.window = self.window.min(window).max(MIN_PIPE_PACKETS * self.packet);
            }
            _ => {}
        }
    }

    fn on_mtu(&mut self, max_datagram_size: u16) {
        let old = u16::try_from(self.packet).unwrap_or(u16::MAX);
        self.window = window_after_mtu_change(self.window, old, max_datagram_size);
        self.packet = u64::from(max_datagram_size);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pacing_rate)
    }

    fn take_packet_train(&mut self) -> u64 {
        self.trains.take_packet_train()
    }

    fn is_searching(&self) -> bool {
        self.phase == Phase::Startup
    }

    fn state(&self) -> &'static str {
        match self.phase {
            Phase::Startup => "startup",
            Phase::Drain => "drain",
            Phase::ProbeBw(..) => "probe bandwidth",
            Phase::ProbeRtt(_) => "probe rtt",
        }
    }

    fn name(&self) -> &'static str {
        "bbr1"
    }
}

#[cfg(test)]
mod tests;
