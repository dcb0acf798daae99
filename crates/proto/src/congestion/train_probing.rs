//! The start of a path: packet trains find the capacity, where slow start would double the rate many times.
//!
//! The first flight leaves as a train (see `packet_train`). The rate that it shows is the pace of the next round trip. That one
//! begins with another train, followed by a pause that pays for it.
//! This goes on until a train shows no more than the one before it. All controllers but Prague start like this.
//!
//! The method is our own, from two that are known: packet dispersion for the estimate, and for the flight that follows
//! it the steps of careful resume (RFC 9959), see `unvalidated_flight`.

use std::time::Duration;

use fulmar_base::Instant;

use super::full_pipe::FullPipe;
use super::hystart::MEANINGLESS_RTT;
use super::packet_train::PacketTrain;
use super::units::{percent, rate, volume};
use super::unvalidated_flight::{SafeRetreat, UnvalidatedFlight};
use super::{AckEvent, CongestionEvent, Sent};
use crate::packed::{Packed, packed};

/// The initial window of RFC 9002 is meant for a round-trip time of this order. On a longer path as much may leave
/// in each such time, evenly spaced, until acknowledgements tell more: nobody on the path sees more load from it than
/// from a flow with the shorter round-trip time.
const USUAL_RTT: Duration = Duration::from_millis(100);

/// The most that leaves before anything is acknowledged.
const MAX_FIRST_FLIGHT: u64 = 16 << 20;

/// A train is this part of what the path is taken to hold, which also small queues take, and at most this many packets.
const TRAIN_DIVISOR: u64 = 8;
const MAX_TRAIN_PACKETS: u64 = 512;
const MIN_TRAIN_PACKETS: u64 = 10;

/// A train that has shown nothing, because its acknowledgements came as one, is followed by one of twice the length, up to
/// this many times.
const MAX_DOUBLINGS: u32 = 5;

/// A train that shows less than this share of the estimate, in hundredths, confirms it.
const GROWTH_PERCENT: u64 = 125;

/// Once the rate of delivery has reached this share of the estimate, in hundredths, the path may be full.
const REACHED_PERCENT: u64 = 75;

/// From there on the gain of the pace exceeds one by this many hundredths, and by twice as much after each round
/// in which the rate has grown.
const CAUTIOUS_EXCESS: u16 = 25;

/// The excess grows no further; the gain is limited by that of the controller.
const MAX_EXCESS: u16 = 200;

/// The search for the capacity with packet trains, and what the start of a connection makes of the estimate.
#[derive(Debug, Clone)]
pub(super) struct TrainProbing {
    initial_window: u64,
    phase: Phase,
    /// Trains that have shown nothing.
    misses: u32,
    /// Bytes of a train that may leave at once, not yet handed to the pacer.
    due: u64,
    estimate: Option<Estimate>,
    /// The flight that follows the estimate, until it is acknowledged.
    unvalidated: Option<Box<UnvalidatedFlight>>,
    /// The excess of the gain once the estimate was reached, in hundredths, until the search has stopped.
    cautious_excess: Option<u16>,
}

packed!(TrainProbing { initial_window, phase, misses, due, estimate, unvalidated, cautious_excess });

/// Where the search stands. Trains are in boxes: most of the time there is none.
#[derive(Debug, Clone)]
enum Phase {
    /// Nothing is known of the path. What leaves may be a train all the same.
    Unknown(Option<Box<Probe>>),
    /// The next packet that leaves begins a train; this many bytes of it are to come.
    Waiting(u64),
    /// A train leaves, or its acknowledgements come in.
    Probing(Box<Probe>),
    /// A train has confirmed the estimate.
    Found,
    /// Something else has ended the search.
    Stopped,
}

impl Packed for Phase {
    fn pack(&self, out: &mut Vec<u8>) {
        match self {
            Self::Unknown(probe) => {
                0u8.pack(out);
                probe.pack(out);
            }
            Self::Waiting(until) => {
                1u8.pack(out);
                until.pack(out);
            }
            Self::Probing(probe) => {
                2u8.pack(out);
                probe.pack(out);
            }
            Self::Found => 3u8.pack(out),
            Self::Stopped => 4u8.pack(out),
        }
    }

    fn unpack(input: &mut &[u8]) -> Self {
        match u8::unpack(input) {
            0 => Self::Unknown(Packed::unpack(input)),
            1 => Self::Waiting(Packed::unpack(input)),
            2 => Self::Probing(Packed::unpack(input)),
            3 => Self::Found,
            _ => Self::Stopped,
        }
    }
}

/// A train under way.
#[derive(Debug, Clone)]
struct Probe {
    train: PacketTrain,
    /// Bytes of it that are still to leave.
    left: u64,
    /// The estimate before it, in bytes per second; zero without one.
    known: u64,
}

packed!(Probe { train, left, known });

impl Probe {
    /// The train of `size` bytes that begins with a packet of `bytes`.
    fn new(now: Instant, bytes: u64, size: u64, known: u64) -> Self {
        Self { train: PacketTrain::new(now, bytes), left: size.saturating_sub(bytes), known }
    }

    /// Takes a packet that leaves; returns whether it belongs to the train.
    fn on_sent(&mut self, now: Instant, bytes: u64) -> bool {
        let belongs = self.left > 0 && self.train.on_sent(now, bytes);
        if belongs {
            self.left = self.left.saturating_sub(bytes);
        }
        belongs
    }

    /// How many bytes the train is to have.
    fn size(&self) -> u64 {
        self.train.bytes() + self.left
    }
}

/// What the trains have shown.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    /// Bytes per second.
    rate: u64,
    /// Until then the rate of delivery does not show it better.
    valid_until: Instant,
    valid: bool,
}

packed!(Estimate { rate, valid_until, valid });

impl TrainProbing {
    /// A start with this window in bytes.
    pub(super) fn new(initial_window: u64) -> Self {
        let phase = Phase::Unknown(None);
        Self {
            initial_window,
            phase,
            misses: 0,
            due: 0,
            estimate: None,
            unvalidated: None,
            cautious_excess: None,
        }
    }

    /// The bandwidth that trains showed, until the rate of delivery shows it better.
    pub(super) fn bandwidth(&self) -> u64 {
        self.estimate.filter(|estimate| estimate.valid).map_or(0, |estimate| estimate.rate)
    }

    /// The pace that is safe before anything is known, in bytes per second; zero once something is.
    pub(super) fn first_pace(&self) -> u64 {
        let searching = matches!(self.phase, Phase::Waiting(_) | Phase::Probing(_));
        if searching && self.estimate.is_none() { rate(self.initial_window, USUAL_RTT) } else { 0 }
    }

    /// Whether trains have found the capacity.
    pub(super) fn has_found(&self) -> bool {
        matches!(self.phase, Phase::Found)
    }

    /// Whether no train has shown anything as yet, and one may.
    pub(super) fn is_unsure(&self) -> bool {
        self.estimate.is_none() && !self.has_stopped()
    }

    /// Whether trains look for nothing, since delay says nothing on the path or something else has ended the search.
    pub(super) fn has_stopped(&self) -> bool {
        matches!(self.phase, Phase::Stopped)
    }

    /// Ends the search: losses, or a rise of the delay, tell more than trains.
    pub(super) fn stop(&mut self) {
        self.phase = Phase::Stopped;
        self.due = 0;
        // Whatever was reached, it was no estimate.
        self.cautious_excess = None;
    }

    /// The gain of the pace in hundredths, where `gain` is that of the controller and `max_bandwidth` was delivered.
    pub(super) fn gain(&self, gain: u64, max_bandwidth: u64) -> u64 {
        match self.cautious_excess {
            Some(excess) => (100 + u64::from(excess)).min(gain),
            None if self.has_stopped() || self.bandwidth() <= max_bandwidth / 2 => gain,
            // The pace of the estimate, however much of it was delivered as yet.
            None => 100,
        }
    }

    /// What counts as growth of the rate in a round, in hundredths. Where the gain is small, half of it counts.
    pub(super) fn growth_percent(&self) -> u64 {
        let usual = FullPipe::GROWTH_PERCENT;
        self.cautious_excess.map_or(usual, |excess| (100 + u64::from(excess) / 2).min(usual))
    }

    /// The bytes that may leave at once now, ahead of the pace; they are handed out once.
    pub(super) fn take_packet_train(&mut self) -> u64 {
        std::mem::take(&mut self.due)
    }

    /// Takes a packet that leaves, at any time: the flight that follows an estimate may still be on its way out when the start
    /// is over.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, sent: &Sent) {
        // Most packets leave long after the start.
        let is_over = matches!(self.phase, Phase::Found | Phase::Stopped);
        if !is_over || self.unvalidated.is_some() {
            self.on_sent_early(now, sent);
        }
    }

    fn on_sent_early(&mut self, now: Instant, sent: &Sent) {
        if let Some(unvalidated) = &mut self.unvalidated {
            unvalidated.on_sent(now);
        }
        let known = self.estimate.map_or(0, |estimate| estimate.rate);
        match &mut self.phase {
            Phase::Unknown(probe) => {
                // A train that is long enough is kept: what follows after a pause are probes, or what the application has written
                // later. A few packets long before the others show nothing.
                let belongs = |probe: &mut Box<Probe>| {
                    probe.on_sent(now, sent.bytes) || !probe.train.is_short(sent.bytes)
                };
                if !probe.as_mut().is_some_and(belongs) {
                    *probe = Some(Box::new(Probe::new(now, sent.bytes, self.initial_window, known)));
                }
            }
            Phase::Waiting(bytes) => {
                self.phase = Phase::Probing(Box::new(Probe::new(now, sent.bytes, *bytes, known)));
            }
            Phase::Probing(probe) => {
                // A few packets long before the others show nothing. They were probes of a new path, for example.
                if !probe.on_sent(now, sent.bytes) && probe.train.is_short(sent.bytes) {
                    **probe = Probe::new(now, sent.bytes, probe.size(), probe.known);
                }
            }
            Phase::Found | Phase::Stopped => {}
        }
    }

    /// An ACK frame has come during the start. Returns the smallest window that suits the path, if the trains say
    /// something about it. The window may go there at once: the path is empty, and the pacer spreads it.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        ack: &AckEvent<'_>,
        min_rtt: Option<Duration>,
        packet: u64,
    ) -> Option<u64> {
        let rtt = min_rtt?;
        if rtt <= MEANINGLESS_RTT {
            self.stop();
            return None;
        }
        let first = self.begin(rtt, packet);
        let Phase::Probing(probe) = &mut self.phase else { return first };
        probe.train.on_ack(now, ack, rtt, packet);
        let (shown, known) = (probe.train.rate(), probe.known);
        let over = probe.train.is_over(ack.largest_sent_time);
        let judged = shown.filter(|_| !probe.train.is_lower_bound());
        let window = shown.and_then(|shown| self.raise(now, shown, rtt));
        if over {
            self.end_train(judged, known, rtt, packet);
        }
        window.max(first)
    }

    /// An ACK frame has come, at any time; before [`TrainProbing::on_ack`]. Returns where to retreat to if the flight has
    /// shown that the estimate was wrong.
    pub(super) fn check_unvalidated(
        &mut self,
        now: Instant,
        ack: &AckEvent<'_>,
        packet: u64,
    ) -> Option<SafeRetreat> {
        if let Some(estimate) = &mut self.estimate {
            estimate.valid &= now <= estimate.valid_until;
        }
        let unvalidated = self.unvalidated.as_mut()?;
        unvalidated.on_ack(now, ack);
        let is_over = unvalidated.is_over(ack.largest_sent_time);
        let retreat = unvalidated.retreat(is_over, packet);
        if is_over {
            self.unvalidated = None;
        }
        retreat
    }

    /// Packets were lost, at any time. If that shows that the estimate was wrong, the search ends. Returns the bytes of the
    /// flight that have arrived then.
    pub(super) fn on_congestion(
        &mut self,
        now: Instant,
        event: &CongestionEvent,
        packet: u64,
    ) -> Option<u64> {
        let unvalidated = self.unvalidated.as_mut()?;
        unvalidated.on_lost(now, event, packet);
        let arrived = unvalidated.is_refuted().then(|| unvalidated.arrived())?;
        self.estimate = None;
        self.stop();
        Some(arrived)
    }

    /// Whether a flight at the rate of an estimate is under way.
    pub(super) fn has_unvalidated(&self) -> bool {
        self.unvalidated.is_some()
    }

    /// Whether losses have shown that the estimate was wrong, while a part of the flight is still under way.
    pub(super) fn is_refuted(&self) -> bool {
        self.unvalidated.as_ref().is_some_and(|unvalidated| unvalidated.is_refuted())
    }

    /// The round-trip time is known. What has left by now is the first train, if enough packets left together.
    /// Returns the window of the first flight.
    fn begin(&mut self, rtt: Duration, packet: u64) -> Option<u64> {
        let Phase::Unknown(probe) = &mut self.phase else { return None };
        let train = probe.take().filter(|probe| !probe.train.is_short(packet));
        self.phase = train.map_or(Phase::Waiting(self.initial_window), Phase::Probing);
        Some(self.first_flight(rtt))
    }

    fn first_flight(&self, rtt: Duration) -> u64 {
        let flight = volume(rate(self.initial_window, USUAL_RTT), rtt);
        flight.clamp(self.initial_window, MAX_FIRST_FLIGHT.max(self.initial_window))
    }

    /// Raises the estimate to what a train shows, and returns the window that it asks for.
    fn raise(&mut self, now: Instant, shown: u64, rtt: Duration) -> Option<u64> {
        let known = self.estimate.map_or(0, |estimate| estimate.rate);
        if shown <= known {
            return None;
        }
        // Packets leave at the rate for a round trip, their acknowledgements take another one, and the last of them
        // shows the rate.
        let valid_until = now + rtt * 2 + rtt / 8;
        self.estimate = Some(Estimate { rate: shown, valid_until, valid: true });
        self.unvalidated.get_or_insert_with(|| Box::new(UnvalidatedFlight::new(now)));
        Some(volume(shown, rtt))
    }

    /// Judges a train that was acknowledged, and plans the next one.
    fn end_train(&mut self, shown: Option<u64>, known: u64, rtt: Duration, packet: u64) {
        if let Some(shown) = shown
            && self.judge_train(shown, known, rtt)
        {
            return;
        }
        if shown.is_none() {
            self.misses = (self.misses + 1).min(MAX_DOUBLINGS);
        }
        let held = self.estimate.map_or(self.initial_window, |estimate| volume(estimate.rate, rtt));
        let shortest = (MIN_TRAIN_PACKETS * packet) << self.misses;
        let train = (held / TRAIN_DIVISOR).clamp(shortest, MAX_TRAIN_PACKETS * packet);
        self.due = train;
        self.phase = Phase::Waiting(train);
    }

    /// Whether a train was the last one, by what it has shown.
    ///
    /// Trains end where one confirms the estimate. They also end where the first one shows no more than slow start reaches in
    /// a round trip: then their spacing is that of something else than the bottleneck, a radio link that pauses for example, and
    /// slow start finds more.
    fn judge_train(&mut self, shown: u64, known: u64, rtt: Duration) -> bool {
        if known == 0 && shown < 2 * rate(self.initial_window, rtt) {
            self.stop();
        } else if known > 0 && shown < percent(known, GROWTH_PERCENT) {
            self.phase = Phase::Found;
        } else {
            return false;
        }
        true
    }

    /// Takes a sample of the rate of delivery in STARTUP.
    ///
    /// When it reaches the estimate, doubling it once more would only fill the queue: on a long path by
    /// thousands of packets before the first of them is missed. If the rate still grows, the estimate was too
    /// low, and the gain rises again.
    pub(super) fn on_rate(&mut self, rate: u64, round_started: bool, full: &mut FullPipe) {
        let Some(estimate) = self.estimate.filter(|_| !self.has_stopped()) else { return };
        match &mut self.cautious_excess {
            None if rate >= percent(estimate.rate, REACHED_PERCENT) => {
                self.cautious_excess = Some(CAUTIOUS_EXCESS);
                // What the pace until now explains is no growth.
                full.restart(rate.max(estimate.rate));
            }
            Some(excess) if round_started && full.is_growing() => *excess = (*excess * 2).min(MAX_EXCESS),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
