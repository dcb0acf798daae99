//! A simulated bottleneck, and transfers over it: spaces, loss detection, controllers and pacer together.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fulmar_base::{Instant, Rng};
use fulmar_wire::{Dialect, Frame, PathId, frames};

use super::{CongestionState, ControllerFactory};
use crate::datagram::Ecn;
use crate::ids::TupleId;
use crate::memory::SharedMemory;
use crate::packet::{FrameWriter, SentPacket};
use crate::rtt::Rtt;
use crate::space::{AckOutcome, AckPolicy, LossContext, Losses, NumberSpace, PtoBackoff};

/// The size of each packet.
pub(super) const SIZE: u16 = 1_250;
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// A bottleneck with a queue that drops what does not fit.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) bytes_per_second: u64,
    pub(super) one_way: Duration,
    pub(super) queue: Duration,
    /// Packets that are lost for no reason, one in this many on average.
    pub(super) loss: Option<u64>,
    /// One packet in this many takes longer by `delay`.
    pub(super) detour: Option<(u64, Duration)>,
    /// Packets take up to so much longer, but stay in order.
    pub(super) jitter: Option<Duration>,
    pub(super) last_arrival: Instant,
    /// Nothing leaves the bottleneck until then.
    pub(super) stopped_until: Instant,
    /// ACKs come back at multiples of this time.
    pub(super) ack_slot: Option<Duration>,
    /// A policer: the bucket in bytes, which fills with `bytes_per_second`; the link itself is fast then.
    pub(super) policer: Option<u64>,
    pub(super) tokens_missing: u64,
    pub(super) policed_at: Instant,
    pub(super) free_at: Instant,
}

impl Link {
    /// 10 Mbit/s, 10 ms each way, a queue of 20 ms.
    pub(super) fn standard() -> Self {
        Self {
            bytes_per_second: 1_250_000,
            one_way: Duration::from_millis(10),
            queue: Duration::from_millis(20),
            loss: None,
            detour: None,
            jitter: None,
            last_arrival: Instant::ZERO,
            stopped_until: Instant::ZERO,
            ack_slot: None,
            policer: None,
            tokens_missing: 0,
            policed_at: Instant::ZERO,
            free_at: Instant::ZERO,
        }
    }

    /// A rate in Mbit/s, the delay of a direction and the length of the queue in milliseconds.
    pub(super) fn new(megabits: u64, one_way: u64, queue: u64) -> Self {
        Self {
            bytes_per_second: megabits * 125_000,
            one_way: Duration::from_millis(one_way),
            queue: Duration::from_millis(queue),
            ..Self::standard()
        }
    }

    /// For one transfer or several.
    pub(super) fn shared(self) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(self))
    }

    /// When a packet sent now arrives, if it does.
    fn carry(&mut self, now: Instant, bytes: u64, rng: &mut Rng) -> Option<Instant> {
        if self.policer.is_some() {
            return self.police(now, bytes).then_some(now + self.one_way);
        }
        let start = self.free_at.max(now).max(self.stopped_until);
        if start.saturating_since(now) > self.queue || self.loss.is_some_and(|n| rng.below(n) == 0) {
            return None;
        }
        self.free_at = start + Duration::from_nanos(bytes * 1_000_000_000 / self.bytes_per_second);
        let detour = self.detour.filter(|(n, _)| rng.below(*n) == 0).map_or(Duration::ZERO, |(_, time)| time);
        let arrival = self.free_at + self.one_way + detour;
        let Some(jitter) = self.jitter else { return Some(arrival) };
        let late = Duration::from_nanos(rng.below(jitter.as_nanos() as u64));
        self.last_arrival = self.last_arrival.max(arrival + late);
        Some(self.last_arrival)
    }

    fn police(&mut self, now: Instant, bytes: u64) -> bool {
        let micros = now.saturating_since(self.policed_at).as_micros() as u64;
        self.policed_at = now;
        self.tokens_missing = self.tokens_missing.saturating_sub(self.bytes_per_second * micros / 1_000_000);
        let passes = self.policer.is_some_and(|bucket| self.tokens_missing + bytes <= bucket);
        self.tokens_missing += if passes { bytes } else { 0 };
        passes
    }

    /// When an ACK sent now arrives.
    fn carry_back(&self, now: Instant) -> Instant {
        let at = now + self.one_way;
        let Some(slot) = self.ack_slot else { return at };
        let slot = slot.as_nanos() as u64;
        Instant::from_nanos(at.as_nanos().div_ceil(slot) * slot)
    }
}

/// A sender with a file, a receiver, and the link between them.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) now: Instant,
    rng: Rng,
    link: Rc<RefCell<Link>>,
    sender: NumberSpace,
    pub(super) congestion: CongestionState,
    pub(super) rtt: Rtt,
    memory: Arc<SharedMemory>,
    pto: PtoBackoff,
    pub(super) packets_left: u64,
    receiver: NumberSpace,
    /// Packet numbers on their way to the receiver and encoded ACKs on their way back, by arrival.
    forward: VecDeque<(Instant, u64)>,
    back: VecDeque<(Instant, Vec<u8>)>,
    wake: Instant,
    pub(super) packets_lost: u64,
    pub(super) packets_spurious: u64,
    pub(super) max_in_flight: u64,
    pub(super) packets_acked: u64,
    /// The application has another packet each so often; without it, all of `packets_left` from the beginning.
    pub(super) app_interval: Option<Duration>,
    app_next: Instant,
}

impl Transfer {
    pub(super) fn new(control: &dyn ControllerFactory, link: &Rc<RefCell<Link>>, packets: u64) -> Self {
        let mut rng = Rng::from_u64(7);
        let rtt = Rtt::default();
        Self {
            now: Instant::ZERO,
            link: link.clone(),
            sender: NumberSpace::new(AckPolicy::default(), &mut rng),
            congestion: CongestionState::new(Instant::ZERO, control, SIZE, &rtt),
            rtt,
            memory: SharedMemory::new(1 << 30),
            pto: PtoBackoff::new(Default::default()),
            packets_left: packets,
            receiver: NumberSpace::new(AckPolicy::default(), &mut rng),
            rng,
            forward: VecDeque::new(),
            back: VecDeque::new(),
            wake: Instant::FAR_FUTURE,
            packets_lost: 0,
            packets_spurious: 0,
            max_in_flight: 0,
            packets_acked: 0,
            app_interval: None,
            app_next: Instant::FAR_FUTURE,
        }
    }

    /// Runs until everything is acknowledged and returns the time it took.
    pub(super) fn run(&mut self) -> Duration {
        self.send();
        while self.packets_left > 0 || self.congestion.bytes_in_flight() > 0 {
            assert!(self.now < Instant::from_millis(600_000), "the transfer hangs");
            self.step();
        }
        self.now.saturating_since(Instant::ZERO)
    }

    /// Runs until `done` says so, or for `limit`; returns whether it was `done`.
    pub(super) fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now + limit;
        self.send();
        while self.next_event() < end {
            self.step();
            if done(self) {
                return true;
            }
        }
        self.now = end;
        false
    }

    /// Lets the next thing happen.
    pub(super) fn step(&mut self) {
        self.now = self.next_event();
        self.deliver();
        self.acknowledge();
        self.expire();
        self.send();
        let outstanding = self.sender.unacked().count() as u64;
        assert_eq!(self.congestion.bytes_in_flight(), outstanding * u64::from(SIZE));
    }

    /// When something will happen.
    pub(super) fn next_event(&self) -> Instant {
        let pto =
            self.sender.pto_deadline(self.pto_delay()).filter(|_| self.sender.loss_deadline().is_none());
        [
            self.forward.front().map(|(at, _)| *at),
            self.back.front().map(|(at, _)| *at),
            self.sender.loss_deadline(),
            pto,
            self.receiver.ack_deadline(),
            Some(self.wake),
            self.app_interval.map(|_| self.app_next),
        ]
        .into_iter()
        .flatten()
        .min()
        .expect("something is going to happen")
    }

    fn pto_delay(&self) -> Duration {
        self.pto.delay(self.rtt.pto_base() + MAX_ACK_DELAY, Some(Duration::from_secs(30)))
    }

    pub(super) fn send(&mut self) {
        if let Some(interval) =
            self.app_interval.filter(|_| self.app_next <= self.now || self.app_next == Instant::FAR_FUTURE)
        {
            self.packets_left += 1;
            self.app_next = self.now + interval;
        }
        self.wake = Instant::FAR_FUTURE;
        while self.packets_left > 0 && self.congestion.window_left() >= u64::from(SIZE) {
            if self.congestion.pacing_budget(self.now) < u64::from(SIZE) {
                self.wake = self.congestion.pacing_time(self.now, u64::from(SIZE));
                break;
            }
            self.send_packet();
        }
        if self.congestion.end_round(self.now, self.packets_left == 0, &self.rtt) {
            self.send();
        }
    }

    fn send_packet(&mut self) {
        let number = self.sender.next_number();
        let delivered = self.congestion.on_sent(self.now, number, SIZE);
        let packet = SentPacket { size: SIZE, delivered, ..SentPacket::sent_at(self.now) };
        self.sender.on_sent(number, packet, &mut self.rng);
        self.packets_left = self.packets_left.saturating_sub(1);
        self.max_in_flight = self.max_in_flight.max(self.congestion.bytes_in_flight());
        let arrival = self.link.borrow_mut().carry(self.now, u64::from(SIZE), &mut self.rng);
        if let Some(at) = arrival {
            let index = self.forward.partition_point(|(other, _)| *other <= at);
            self.forward.insert(index, (at, number));
        }
    }

    fn deliver(&mut self) {
        while let Some(number) = arrived(&mut self.forward, self.now) {
            self.receiver.on_received(self.now, number, true, Ecn::NotEct);
            if self.receiver.needs_ack(self.now) {
                self.send_ack();
            }
        }
        if self.receiver.needs_ack(self.now) {
            self.send_ack();
        }
    }

    fn send_ack(&mut self) {
        let mut buffer = [0; 1_000];
        let mut out = FrameWriter::new(&mut buffer, Dialect::SinglePath);
        assert!(self.receiver.write_ack(self.now, PathId::ZERO, 3, &mut out));
        let len = out.finish().len;
        self.back.push_back((self.link.borrow().carry_back(self.now), buffer[..len].to_vec()));
    }

    fn acknowledge(&mut self) {
        while let Some(bytes) = arrived(&mut self.back, self.now) {
            let Some(Ok(Frame::Ack(ack))) = frames(&bytes, Dialect::SinglePath).next() else {
                panic!("an ACK was sent");
            };
            let mut outcome = AckOutcome::default();
            let congestion = &mut self.congestion;
            let on_acked = |_, packet: &SentPacket| congestion.packet_acked(&packet.for_congestion());
            self.sender.on_ack(self.now, &ack, 3, &mut outcome, on_acked).expect("it is legal");
            if let Some(sample) = outcome.rtt_sample {
                self.rtt.update(self.now, sample.rtt, sample.ack_delay, Some(MAX_ACK_DELAY));
                self.pto.reset();
            }
            self.detect_lost(&outcome);
        }
    }

    fn expire(&mut self) {
        if self.sender.loss_deadline().is_some_and(|at| at <= self.now) {
            self.detect_lost(&AckOutcome::default());
        } else if self.sender.pto_deadline(self.pto_delay()).is_some_and(|at| at <= self.now) {
            self.pto.on_timeout(self.now);
            self.send_packet();
        }
    }

    fn detect_lost(&mut self, outcome: &AckOutcome) {
        let mut losses = Losses::default();
        let cx = LossContext {
            rtt: &self.rtt,
            tuple: TupleId(0),
            max_ack_delay: MAX_ACK_DELAY,
            memory: &self.memory,
        };
        self.sender.detect_lost(self.now, &cx, &mut losses);
        let (sample, delay) = outcome.rtt_sample.map(|sample| (sample.rtt, sample.ack_delay)).unzip();
        self.congestion.end_ack(self.now, sample, [delay.unwrap_or_default(), Duration::ZERO], 0, &self.rtt);
        losses
            .lost
            .iter()
            .for_each(|(_, packet)| self.congestion.packet_lost(self.now, &packet.for_congestion()));
        self.congestion.end_loss(self.now, losses.persistent_congestion, &self.rtt);
        for (_, packet) in &outcome.spurious {
            self.congestion.on_spurious(self.now, &packet.for_congestion(), &self.rtt);
        }
        self.packets_acked += outcome.packets as u64;
        self.packets_left += losses.lost.len() as u64;
        self.packets_lost += losses.lost.len() as u64;
        self.packets_spurious += outcome.spurious.len() as u64;
    }
}

/// Takes what has arrived at `now` from the front of a queue.
fn arrived<T>(queue: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<T> {
    queue.front().filter(|(at, _)| *at <= now)?;
    queue.pop_front().map(|(_, item)| item)
}

/// Lets several transfers over one link run until `end`, each event at its time.
pub(super) fn run_together(transfers: &mut [Transfer], end: Instant) {
    transfers.iter_mut().for_each(Transfer::send);
    while let Some(next) = transfers.iter_mut().min_by_key(|transfer| transfer.next_event()) {
        if next.next_event() >= end {
            return;
        }
        next.step();
    }
}
