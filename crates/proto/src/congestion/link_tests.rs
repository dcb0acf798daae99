//! Whole transfers over a simulated bottleneck: spaces, loss detection, controllers and pacer together.

use std::collections::VecDeque;
use std::time::Duration;

use fulmar_base::{Instant, Rng};
use fulmar_wire::{Dialect, Frame, PathId, frames};

use super::{CongestionControl, CubicConfig, Flow, NewRenoConfig};
use crate::datagram::Ecn;
use crate::packet::{FrameWriter, SentFrames, SentPacket};
use crate::path::{Rtt, TupleId};
use crate::space::{AckOutcome, AckPolicy, LossContext, NumberSpace, PtoBackoff};

const SIZE: u16 = 1_250;
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// A bottleneck with a queue that drops what does not fit.
struct Link {
    bytes_per_second: u64,
    one_way: Duration,
    queue: Duration,
    /// Packets that are lost for no reason, one in so many on average.
    loss: Option<u64>,
    /// One packet in so many takes longer by `delay`.
    detour: Option<(u64, Duration)>,
    free_at: Instant,
}

impl Link {
    /// 10 Mbit/s, 10 ms each way, a queue of 20 ms.
    fn standard() -> Self {
        Self {
            bytes_per_second: 1_250_000,
            one_way: Duration::from_millis(10),
            queue: Duration::from_millis(20),
            loss: None,
            detour: None,
            free_at: Instant::ZERO,
        }
    }

    /// When a packet sent now arrives, if it does.
    fn carry(&mut self, now: Instant, bytes: u64, rng: &mut Rng) -> Option<Instant> {
        let start = self.free_at.max(now);
        if start.saturating_since(now) > self.queue || self.loss.is_some_and(|n| rng.below(n) == 0) {
            return None;
        }
        self.free_at = start + Duration::from_nanos(bytes * 1_000_000_000 / self.bytes_per_second);
        let detour = self.detour.filter(|(n, _)| rng.below(*n) == 0).map_or(Duration::ZERO, |(_, time)| time);
        Some(self.free_at + self.one_way + detour)
    }
}

/// A sender with a file, a receiver, and the link between them.
struct Transfer {
    now: Instant,
    rng: Rng,
    link: Link,
    sender: NumberSpace,
    flow: Flow,
    rtt: Rtt,
    pto: PtoBackoff,
    outcome: AckOutcome,
    packets_left: u64,
    receiver: NumberSpace,
    /// Packet numbers on their way to the receiver and encoded ACKs on their way back, by arrival.
    forward: VecDeque<(Instant, u64)>,
    back: VecDeque<(Instant, Vec<u8>)>,
    wake: Instant,
    packets_lost: u64,
    packets_spurious: u64,
    max_in_flight: u64,
}

impl Transfer {
    fn new(control: &CongestionControl, link: Link, packets: u64) -> Self {
        let mut rng = Rng::from_u64(7);
        let rtt = Rtt::default();
        Self {
            now: Instant::ZERO,
            link,
            sender: NumberSpace::new(AckPolicy::default(), &mut rng),
            flow: Flow::new(Instant::ZERO, control, SIZE, &rtt),
            rtt,
            pto: PtoBackoff::default(),
            outcome: AckOutcome::default(),
            packets_left: packets,
            receiver: NumberSpace::new(AckPolicy::default(), &mut rng),
            rng,
            forward: VecDeque::new(),
            back: VecDeque::new(),
            wake: Instant::FAR_FUTURE,
            packets_lost: 0,
            packets_spurious: 0,
            max_in_flight: 0,
        }
    }

    /// Runs until everything is acknowledged and returns the time it took.
    fn run(&mut self) -> Duration {
        self.send();
        while self.packets_left > 0 || self.flow.bytes_in_flight() > 0 {
            self.now = self.next_event();
            assert!(self.now < Instant::from_millis(600_000), "the transfer hangs");
            self.deliver();
            self.acknowledge();
            self.expire();
            self.send();
            let outstanding = self.sender.unacked().count() as u64;
            assert_eq!(self.flow.bytes_in_flight(), outstanding * u64::from(SIZE));
        }
        self.now.saturating_since(Instant::ZERO)
    }

    fn next_event(&self) -> Instant {
        let pto =
            self.sender.pto_deadline(self.pto_delay()).filter(|_| self.sender.loss_deadline().is_none());
        [
            self.forward.front().map(|(at, _)| *at),
            self.back.front().map(|(at, _)| *at),
            self.sender.loss_deadline(),
            pto,
            self.receiver.ack_deadline(),
            Some(self.wake),
        ]
        .into_iter()
        .flatten()
        .min()
        .expect("something is going to happen")
    }

    fn pto_delay(&self) -> Duration {
        self.pto.delay(self.rtt.pto_base() + MAX_ACK_DELAY, Some(Duration::from_secs(30)))
    }

    fn send(&mut self) {
        self.wake = Instant::FAR_FUTURE;
        while self.packets_left > 0 && self.flow.window_left() >= u64::from(SIZE) {
            if self.flow.pacing_budget(self.now) < u64::from(SIZE) {
                self.wake = self.flow.pacing_time(self.now, u64::from(SIZE));
                break;
            }
            self.send_packet();
        }
        self.flow.end_round(self.packets_left == 0);
    }

    fn send_packet(&mut self) {
        let number = self.sender.next_number();
        let packet = SentPacket {
            time_sent: self.now,
            size: SIZE,
            tuple: TupleId(0),
            ack_eliciting: true,
            in_flight: true,
            mtu_probe: false,
            repeated: false,
            ecn: Ecn::NotEct,
            delivered: self.flow.on_sent(self.now, number, SIZE),
            frames: SentFrames::new(),
        };
        self.sender.on_sent(number, packet, &mut self.rng);
        self.packets_left = self.packets_left.saturating_sub(1);
        self.max_in_flight = self.max_in_flight.max(self.flow.bytes_in_flight());
        if let Some(at) = self.link.carry(self.now, u64::from(SIZE), &mut self.rng) {
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
        self.back.push_back((self.now + self.link.one_way, buffer[..len].to_vec()));
    }

    fn acknowledge(&mut self) {
        while let Some(bytes) = arrived(&mut self.back, self.now) {
            let Some(Ok(Frame::Ack(ack))) = frames(&bytes, Dialect::SinglePath).next() else {
                panic!("an ACK was sent");
            };
            self.outcome.clear();
            self.sender.on_ack(self.now, &ack, 3, &mut self.outcome).expect("it is legal");
            if let Some(sample) = self.outcome.rtt_sample {
                self.rtt.update(self.now, sample.rtt, sample.ack_delay, Some(MAX_ACK_DELAY));
                self.pto.reset();
            }
            self.detect_lost();
        }
    }

    fn expire(&mut self) {
        if self.sender.loss_deadline().is_some_and(|at| at <= self.now) {
            self.outcome.clear();
            self.detect_lost();
        } else if self.sender.pto_deadline(self.pto_delay()).is_some_and(|at| at <= self.now) {
            self.pto.on_timeout();
            self.send_packet();
        }
    }

    fn detect_lost(&mut self) {
        let cx = LossContext { rtt: &self.rtt, max_ack_delay: MAX_ACK_DELAY };
        self.sender.detect_lost(self.now, &cx, &mut self.outcome);
        let outcome = &self.outcome;
        outcome.acked.iter().for_each(|(_, packet)| self.flow.packet_acked(packet));
        self.flow.end_ack(self.now, outcome.rtt_sample.map(|sample| sample.rtt), &self.rtt);
        outcome.lost.iter().for_each(|(_, packet)| self.flow.packet_lost(packet));
        self.flow.end_loss(self.now, outcome.persistent_congestion, &self.rtt);
        for (_, packet) in &outcome.spurious {
            self.flow.on_spurious(self.now, packet, &self.rtt);
        }
        self.packets_left += outcome.lost.len() as u64;
        self.packets_lost += outcome.lost.len() as u64;
        self.packets_spurious += outcome.spurious.len() as u64;
    }
}

/// Takes what has arrived at `now` from the front of a queue.
fn arrived<T>(queue: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<T> {
    queue.front().filter(|(at, _)| *at <= now)?;
    queue.pop_front().map(|(_, item)| item)
}

fn both() -> [CongestionControl; 2] {
    [CongestionControl::Cubic(CubicConfig::default()), CongestionControl::NewReno(NewRenoConfig::default())]
}

#[test]
fn a_clean_bottleneck_is_filled() {
    // 10 MB take 8 s at the rate of the link.
    for control in both() {
        let mut transfer = Transfer::new(&control, Link::standard(), 8_000);
        let time = transfer.run();
        assert!(time < Duration::from_millis(8_600), "{control:?}: {time:?}");
        assert!(transfer.packets_lost < 300, "{control:?}: {} lost", transfer.packets_lost);
    }
}

#[test]
fn a_long_link_is_filled_without_a_flood_of_losses() {
    // 50 Mbit/s and 100 ms: slow start that only ends with a loss would lose over 1,400 packets.
    for control in both() {
        let link = Link {
            bytes_per_second: 6_250_000,
            one_way: Duration::from_millis(50),
            queue: Duration::from_millis(100),
            ..Link::standard()
        };
        let mut transfer = Transfer::new(&control, link, 32_000);
        let time = transfer.run();
        // 6.4 s at the rate of the link.
        assert!(time < Duration::from_millis(7_400), "{control:?}: {time:?}");
        assert!(transfer.packets_lost < 600, "{control:?}: {} lost", transfer.packets_lost);
    }
}

#[test]
fn random_losses_hang_nothing_and_are_repeated() {
    for control in both() {
        for loss in [50, 5, 2] {
            let link = Link { loss: Some(loss), ..Link::standard() };
            let mut transfer = Transfer::new(&control, link, 400);
            transfer.run();
            assert!(transfer.packets_lost > 4, "{control:?}, one in {loss}: {}", transfer.packets_lost);
        }
    }
}

#[test]
fn reordering_is_learnt() {
    // One packet in twenty is overtaken by up to 15 others: a few are taken for lost, then none.
    for control in both() {
        let link = Link {
            bytes_per_second: 6_250_000,
            queue: Duration::from_millis(200),
            detour: Some((20, Duration::from_millis(3))),
            ..Link::standard()
        };
        let mut transfer = Transfer::new(&control, link, 8_000);
        let time = transfer.run();
        assert!(transfer.packets_spurious > 0 && transfer.packets_spurious < 30, "{control:?}");
        assert_eq!(transfer.packets_lost, transfer.packets_spurious, "{control:?}");
        // 1.6 s at the rate of the link.
        assert!(time < Duration::from_millis(1_900), "{control:?}: {time:?}");
    }
}

#[test]
fn the_flight_never_exceeds_the_window_by_more_than_a_probe() {
    for control in both() {
        let mut transfer = Transfer::new(&control, Link::standard(), 2_000);
        transfer.run();
        // Bandwidth-delay product and queue, and the doubling of the last round of slow start.
        assert!(transfer.max_in_flight < 2 * 50_000 + 10_000, "{control:?}: {}", transfer.max_in_flight);
    }
}

#[test]
fn the_same_seed_gives_the_same_transfer() {
    let run = || {
        let link = Link { loss: Some(30), ..Link::standard() };
        let mut transfer = Transfer::new(&CongestionControl::default(), link, 1_000);
        (transfer.run(), transfer.packets_lost, transfer.max_in_flight)
    };
    assert_eq!(run(), run());
}
