//! The window and the pacing rate that follow from the model and the state.

use std::time::Duration;

use fulmar_base::Instant;

use super::super::units::{packet_time, percent, rate, slowest_pace, volume};
use super::startup::STARTUP_GAIN;
use super::{Bbr, Phase};
use crate::congestion::{minimum_window, window_after_mtu_change};
use crate::packed::packed;

/// The pace is this share of the bandwidth (100 - BBR.PacingMarginPercent), in hundredths, so that queues shrink.
const PACING_PERCENT: u64 = 99;

/// A delay that exceeds the smallest by less than this part of it, and by less than this many packets take, is
/// that of an empty queue.
const EMPTY_QUEUE_DIVISOR: u32 = 64;
const EMPTY_QUEUE_PACKETS: u32 = 2;

/// Where the delay varies without a queue, the smallest sample is that of the luckiest packet: the mean exceeds it by about so
/// many times the usual difference of two groups of samples.
const RESTING_JITTERS: u32 = 2;

/// The smallest window, in packets (BBR.MinPipeCwnd).
const MIN_PIPE_PACKETS: u64 = 4;

/// The round-trip time that is assumed for the first pace.
const FIRST_RTT: Duration = Duration::from_millis(1);

/// What leaves at once, where acknowledgements come more often than the pacer wakes, is what the rate gives in this time. At
/// 10 Gbit/s that is three of the kernel's largest batches. More would not be faster: what is under way no longer fits the
/// processors' caches, and in a network the switch would have to hold it.
const QUANTUM_TIME: Duration = Duration::from_micros(150);

/// This many quanta are in flight at least (BBR.offload_budget): one that leaves, one under way, and one that the
/// other side has not acknowledged yet. On very short paths this and not the bandwidth-delay product fills the pipe.
const QUANTA: u64 = 3;

/// The window, the pace, and how they are used.
#[derive(Debug, Clone)]
pub(super) struct Control {
    pub(super) window: u64,
    /// Bytes per second.
    pub(super) pacing_rate: u64,
    /// The size of a full packet.
    pub(super) packet: u64,
    initial_window: u64,
    /// The last window that neither PROBE_RTT nor losses made smaller.
    prior_window: Option<u64>,
    /// When everything in flight was lost, until something arrives that was sent later.
    pub(super) timed_out: Option<Instant>,
    /// Whether the whole window was used, in this round and in the last one.
    limited: bool,
    was_limited: bool,
    /// Whether the pace follows a measured bandwidth.
    pub(super) measured: bool,
}

packed!(Control {
    window,
    pacing_rate,
    packet,
    initial_window,
    prior_window,
    timed_out,
    limited,
    was_limited,
    measured,
});

impl Control {
    pub(super) fn new(window: u64, max_datagram_size: u16) -> Self {
        Self {
            window,
            pacing_rate: percent(rate(window, FIRST_RTT), STARTUP_GAIN),
            packet: u64::from(max_datagram_size),
            initial_window: window,
            prior_window: None,
            timed_out: None,
            limited: false,
            was_limited: false,
            measured: false,
        }
    }

    pub(super) fn on_sent(&mut self, in_flight: u64) {
        self.limited |= in_flight + self.packet > self.window;
    }

    pub(super) fn begin_round(&mut self) {
        self.was_limited = std::mem::take(&mut self.limited);
    }

    /// Whether the window was fully used at some time of the last round (C.is_cwnd_limited).
    pub(super) fn is_limited(&self) -> bool {
        self.limited || self.was_limited
    }

    pub(super) fn min_pipe(&self) -> u64 {
        MIN_PIPE_PACKETS * self.packet
    }

    /// The window that persistent congestion leaves (RFC 9002 §7.6.2).
    pub(super) fn smallest(&self) -> u64 {
        minimum_window(u16::try_from(self.packet).unwrap_or(u16::MAX))
    }

    pub(super) fn set_packet(&mut self, max_datagram_size: u16) {
        let old = u16::try_from(self.packet).unwrap_or(u16::MAX);
        self.window = window_after_mtu_change(self.window, old, max_datagram_size);
        self.packet = u64::from(max_datagram_size);
    }
}

impl Bbr {
    /// UpdateControlParameters of the draft.
    pub(super) fn update_control(&mut self, newly_acked: u64) {
        self.set_pacing_rate(self.pacing_gain());
        self.set_window(newly_acked);
    }

    /// HandleRestartFromIdle of the draft.
    pub(super) fn restart_from_idle(&mut self, now: Instant) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.phase.is_probe_bw() {
            self.set_pacing_rate(100);
        } else if self.phase == Phase::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }

    /// The gain of the pace in hundredths.
    pub(super) fn pacing_gain(&self) -> u64 {
        match self.phase {
            Phase::Startup => self.startup_gain(),
            Phase::Drain => 50,
            Phase::ProbeDown => 90,
            Phase::ProbeCruise | Phase::ProbeRefill | Phase::ProbeRtt => 100,
            Phase::ProbeUp => 125,
        }
    }

    /// The gain of the window in hundredths.
    pub(super) fn window_gain(&self) -> u64 {
        match self.phase {
            Phase::ProbeUp => 225,
            Phase::ProbeRtt => 50,
            _ => 200,
        }
    }

    fn set_pacing_rate(&mut self, gain: u64) {
        if self.bandwidth() == 0 {
            self.set_first_pacing_rate();
            return;
        }
        let rate = percent(percent(self.bandwidth(), gain), self.pacing_percent()).max(self.first_pace());
        let rate = rate.max(slowest_pace(self.control.packet, self.min_rtt.get()));
        if self.full.reached || rate > self.control.pacing_rate || !self.control.measured {
            self.control.pacing_rate = rate;
        }
        self.control.measured = true;
    }

    /// A departure from the draft: the margin is spared where the delay shows that there is no queue to shrink,
    /// unless losses have set a bound: a policer has no queue either. Over a long transfer the margin would cost what
    /// it is, one part in a hundred.
    fn pacing_percent(&self) -> u64 {
        let needs_no_room = matches!(self.phase, Phase::Startup | Phase::ProbeCruise | Phase::ProbeRefill);
        let lossless = self.losses.long_inflight.is_none() && self.losses.short_bandwidth.is_none();
        // A full packet takes its time where a small one has shown the smallest delay.
        let noise = packet_time(self.control.packet, self.bandwidth()) * EMPTY_QUEUE_PACKETS;
        let is_empty = |base: Duration| {
            self.delay.recent_min().is_some_and(|recent| recent <= base + base / EMPTY_QUEUE_DIVISOR + noise)
        };
        let no_queue = self.min_rtt.get().is_some_and(is_empty);
        if needs_no_room && lossless && no_queue { 100 } else { PACING_PERCENT }
    }

    /// Without a sample of the bandwidth: the initial window in a round trip.
    fn set_first_pacing_rate(&mut self) {
        if let Some(rtt) = self.min_rtt.get() {
            let bandwidth = rate(self.control.initial_window, rtt.max(FIRST_RTT));
            self.control.pacing_rate = percent(bandwidth, STARTUP_GAIN).max(self.first_pace());
        }
    }

    /// This many hundredths of the bandwidth-delay product.
    pub(super) fn bdp(&self, gain: u64) -> u64 {
        match self.min_rtt.get() {
            Some(rtt) => percent(volume(self.bandwidth(), rtt), gain),
            None => self.control.initial_window,
        }
    }

    /// This many hundredths of the bandwidth-delay product, but enough to keep the machinery busy.
    pub(super) fn inflight(&self, gain: u64) -> u64 {
        self.quantized(self.bdp(gain))
    }

    /// What is in flight on the path without a queue, but enough to keep the machinery busy.
    pub(super) fn resting_flight(&self) -> u64 {
        self.quantized(self.bdp(100).saturating_add(self.held_by_jitter()))
    }

    /// What a path with jitter holds beyond the bandwidth-delay product, which is that of its luckiest packets.
    fn held_by_jitter(&self) -> u64 {
        volume(self.bandwidth(), self.delay.jitter() * RESTING_JITTERS)
    }

    /// What leaves at once at the pace.
    pub(super) fn quantum(&self) -> u64 {
        volume(self.bandwidth(), QUANTUM_TIME).max(2 * self.control.packet)
    }

    fn quantized(&self, inflight: u64) -> u64 {
        let quantum = self.quantum();
        // A quantum of two packets needs no reserve beyond the smallest window.
        let budget = if quantum > self.control.min_pipe() { QUANTA * quantum } else { quantum };
        let inflight = inflight.max(budget).max(self.control.min_pipe());
        if self.phase == Phase::ProbeUp { inflight + 2 * self.control.packet } else { inflight }
    }

    /// A departure from the draft: before the path was full, what its jitter holds counts as the bandwidth-delay product does. The
    /// rate could not grow in a window for the round trips of the luckiest packets where most take several of them; later the
    /// allowance for aggregation has seen what the path holds.
    pub(super) fn max_inflight(&self) -> u64 {
        let held = if self.full.reached { 0 } else { percent(self.held_by_jitter(), self.window_gain()) };
        let flight = self.bdp(self.window_gain()).saturating_add(held);
        self.quantized(flight.saturating_add(self.aggregation.extra()))
    }

    fn set_window(&mut self, newly_acked: u64) {
        if self.control.timed_out.is_some() {
            // Until something arrives again, the flight that was lost as a whole must not be repeated at once.
            return;
        }
        let max_inflight = self.max_inflight();
        let control = &mut self.control;
        let grown = control.window.saturating_add(newly_acked);
        if self.full.reached {
            control.window = grown.min(max_inflight);
        } else if control.window < max_inflight || self.delivered < control.initial_window {
            control.window = grown;
        }
        let cap = self.volume_cap();
        self.control.window = self.control.window.max(self.control.min_pipe()).min(cap);
    }

    /// What losses and PROBE_RTT allow in flight (BoundCwndForProbeRTT, BoundCwndForModel).
    fn volume_cap(&self) -> u64 {
        let long = self.losses.long_inflight.unwrap_or(u64::MAX);
        let cap = match self.phase {
            Phase::Startup | Phase::Drain => u64::MAX,
            Phase::ProbeDown | Phase::ProbeRefill | Phase::ProbeUp => long,
            Phase::ProbeCruise => self.inflight_with_headroom(),
            Phase::ProbeRtt => self.inflight_with_headroom().min(self.probe_rtt_window()),
        };
        cap.min(self.losses.short_inflight.unwrap_or(u64::MAX)).max(self.control.min_pipe())
    }

    /// Remembers the window before something makes it small.
    pub(super) fn save_window(&mut self) {
        let window = self.control.window;
        let modulated = self.phase == Phase::ProbeRtt || self.control.timed_out.is_some();
        let prior = self.control.prior_window.filter(|_| modulated);
        self.control.prior_window = Some(prior.map_or(window, |prior| prior.max(window)));
    }

    pub(super) fn restore_window(&mut self) {
        if let Some(prior) = self.control.prior_window {
            self.control.window = self.control.window.max(prior);
        }
    }
}
