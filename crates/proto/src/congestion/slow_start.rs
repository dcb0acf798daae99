//! The first slow start of NewReno and CUBIC: packet trains that find the capacity, HyStart++ (RFC 9406) where they find none,
//! and a bound that follows the rate of delivery.

use fulmar_base::Instant;

use super::delay::DelayWatch;
use super::hystart::HyStart;
use super::train_probing::TrainProbing;
use super::units::volume;
use super::unvalidated_flight::SafeRetreat;
use super::{AckEvent, CongestionEvent, Sent};

/// Once trains of packets have found the capacity, the window grows by this part of what is acknowledged.
const FOUND_DIVISOR: u64 = 4;

/// The window does not rise beyond this many times what the fastest delivery seen holds in a round trip. While the path
/// delivers twice as much in each round, that is where doubling leads; when it does not, all beyond is a queue, and twice
/// the window that the path holds is what a first loss may halve.
const BOUND_FACTOR: u64 = 2;

/// No bound is below this many packets, two initial windows: on a short or slow path their queue is no harm.
const BOUND_MIN_PACKETS: u64 = 20;

/// How the window of a tuple rises for the first time, and to the threshold later.
#[derive(Debug, Clone)]
pub(super) struct SlowStart {
    hystart: HyStart,
    trains: TrainProbing,
    delay: DelayWatch,
    /// The fastest delivery, in bytes per second.
    best_rate: u64,
    /// What the window may rise to by doubling, in bytes, once the rate of delivery is known.
    bound: Option<u64>,
}

impl SlowStart {
    /// A slow start from this window in bytes.
    pub(super) fn new(initial_window: u64) -> Self {
        Self {
            hystart: HyStart::new(),
            trains: TrainProbing::new(initial_window),
            delay: DelayWatch::default(),
            best_rate: 0,
            bound: None,
        }
    }

    /// Whether the window grows with caution, since the path may be full.
    pub(super) fn is_conservative(&self) -> bool {
        self.hystart.is_conservative() || self.trains.has_found()
    }

    /// Takes a packet that leaves, at any time.
    pub(super) fn on_sent(&mut self, now: Instant, sent: &Sent) {
        self.trains.on_sent(now, sent);
    }

    /// The bytes that may leave at once now, see [`super::Controller::take_packet_train`].
    pub(super) fn take_packet_train(&mut self) -> u64 {
        self.trains.take_packet_train()
    }

    /// The controller reacts to congestion: what trains, or the delay, would show is known better now.
    pub(super) fn stop(&mut self) {
        self.trains.stop();
        self.hystart.confirm_exit();
    }

    /// See [`HyStart::on_unused`].
    pub(super) fn on_unused(&mut self, now: Instant) {
        self.hystart.on_unused(now);
    }

    /// See [`HyStart::resumes`].
    pub(super) fn resumes(&mut self, now: Instant, ack: &AckEvent<'_>) -> bool {
        let resumes = self.hystart.resumes(now, ack);
        if resumes {
            self.delay.forget_samples();
        }
        resumes
    }

    /// Takes losses at any time, see [`TrainProbing::on_congestion`].
    pub(super) fn on_congestion(
        &mut self,
        now: Instant,
        event: &CongestionEvent,
        packet: u64,
    ) -> Option<u64> {
        self.trains.on_congestion(now, event, packet)
    }

    /// Takes an ACK frame at any time, see [`TrainProbing::check_unvalidated`].
    pub(super) fn check_unvalidated(
        &mut self,
        now: Instant,
        ack: &AckEvent<'_>,
        packet: u64,
    ) -> Option<SafeRetreat> {
        self.trains.check_unvalidated(now, ack, packet)
    }

    /// Takes an ACK frame in the first slow start, whether the window may grow by it or not, and raises `window` to
    /// what trains of packets have shown.
    pub(super) fn probe_with_trains(
        &mut self,
        now: Instant,
        ack: &AckEvent<'_>,
        packet: u64,
        window: &mut u64,
    ) {
        let min_rtt = ack.rtt.min();
        if let Some(sample) = ack.rtt_sample {
            self.delay.on_sample(now, sample, min_rtt);
        }
        if let Some(shown) = self.trains.on_ack(now, ack, Some(min_rtt), packet) {
            *window = shown.max(*window);
        }
        self.watch_rate(ack, packet);
    }

    /// Follows the rate of delivery where trains do not find it. The round-trip time counts with twice its jitter: where
    /// acknowledgements come in bunches, a window is spread over more than the mean.
    fn watch_rate(&mut self, ack: &AckEvent<'_>, packet: u64) {
        let Some(sample) = ack.rate.filter(|_| self.trains.has_stopped()) else { return };
        self.best_rate = self.best_rate.max(sample.delivery_rate);
        let held = volume(self.best_rate, ack.rtt.smoothed() + 2 * ack.rtt.jitter());
        self.bound = Some((BOUND_FACTOR * held).max(BOUND_MIN_PACKETS * packet));
    }

    /// Grows `window` by an ACK frame, and sets `ssthresh` where the first slow start ends.
    ///
    /// Once trains have found the capacity, the rest is done in small steps until the delay rises: doubling once more
    /// would fill the queue of a long path by thousands of packets before the first of them is missed.
    pub(super) fn grow(
        &mut self,
        now: Instant,
        ack: &AckEvent<'_>,
        window: &mut u64,
        ssthresh: &mut Option<u64>,
    ) {
        if ssthresh.is_some() || !self.trains.has_found() {
            self.double(now, ack, window, ssthresh);
        } else if self.delay.has_risen(ack.rtt.min()) {
            *ssthresh = Some(*window);
            self.hystart.on_exit(now, self.delay.recent_min());
        } else {
            *window += ack.acked_bytes / FOUND_DIVISOR;
        }
    }

    /// Slow start as usual. Where it has become cautious it needs no bound.
    fn double(&mut self, now: Instant, ack: &AckEvent<'_>, window: &mut u64, ssthresh: &mut Option<u64>) {
        let before = *window;
        self.hystart.grow(now, ack, window, ssthresh);
        if let Some(bound) = self.bound.filter(|_| ssthresh.is_none() && !self.hystart.is_conservative()) {
            *window = (*window).min(bound.max(before));
        }
    }
}

#[cfg(test)]
mod tests;
