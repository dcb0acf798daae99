use fulmar_base::Rng;

use super::*;
use crate::memory::CONNECTION_FLOOR_BYTES;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A sender on a path with a round trip of 80 ms, measured at 0 ms. The probe timeout is 240 ms.
struct Sender {
    loss: LossDetector,
    sent: RingMap<SentPacket>,
    numbers: TxNumbers,
    rng: Rng,
    rtt: Rtt,
    /// The tuple in use.
    tuple: TupleId,
    /// That of its endpoint.
    memory: Arc<SharedMemory>,
}

impl Sender {
    fn new() -> Self {
        let mut rng = Rng::from_u64(1);
        let mut rtt = Rtt::default();
        rtt.update(at(0), ms(80), Duration::ZERO, None);
        let numbers = TxNumbers::new(&mut rng);
        Self {
            loss: LossDetector::new(),
            sent: RingMap::new(),
            numbers,
            rng,
            rtt,
            tuple: TupleId(0),
            memory: SharedMemory::new(1 << 20),
        }
    }

    /// Sends packets at the given milliseconds and returns their numbers.
    fn send(&mut self, times: &[u64]) -> Vec<u64> {
        times.iter().map(|&time| self.send_packet(packet(time))).collect()
    }

    fn send_packet(&mut self, packet: SentPacket) -> u64 {
        let number = self.numbers.next();
        self.numbers.advance(&mut self.rng);
        self.sent.push(number, packet);
        number
    }

    fn acknowledge(&mut self, numbers: &[u64]) {
        for &number in numbers {
            assert!(self.sent.remove(number).is_some(), "{number} is outstanding");
        }
    }

    fn detect(&mut self, now: u64, largest_acked: u64) -> Vec<u64> {
        self.detect_persistent(now, largest_acked).0
    }

    fn detect_persistent(&mut self, now: u64, largest_acked: u64) -> (Vec<u64>, bool) {
        let mut lost = Vec::new();
        let cx =
            LossContext { rtt: &self.rtt, tuple: self.tuple, max_ack_delay: ms(25), memory: &self.memory };
        let persistent =
            self.loss.detect(at(now), largest_acked, &mut self.sent, &self.numbers, &cx, |number, _| {
                lost.push(number);
            });
        (lost, persistent)
    }

    fn take_spurious(&mut self, acked: RangeInclusive<u64>, largest_acked: u64) -> Vec<u64> {
        let mut spurious = Vec::new();
        self.loss.take_spurious(&acked, largest_acked, |number, _| spurious.push(number));
        spurious
    }
}

fn packet(time: u64) -> SentPacket {
    SentPacket::sent_at(at(time))
}

#[test]
fn three_packets_later_a_packet_is_lost() {
    let mut sender = Sender::new();
    let n = sender.send(&[10, 11, 12, 13, 14]);
    sender.acknowledge(&n[2..3]);
    assert_eq!(sender.detect(92, n[2]), []);
    sender.acknowledge(&n[3..4]);
    assert_eq!(sender.detect(93, n[3]), [n[0]]);
    sender.acknowledge(&n[4..5]);
    assert_eq!(sender.detect(94, n[4]), [n[1]]);
}

#[test]
fn reordering_within_the_thresholds_loses_nothing() {
    let mut sender = Sender::new();
    let n = sender.send(&[10, 11, 12]);
    sender.acknowledge(&n[1..3]);
    assert_eq!(sender.detect(92, n[2]), []);
    sender.acknowledge(&n[..1]);
    assert_eq!(sender.detect(93, n[2]), []);
    assert_eq!(sender.loss.deadline(), None);
}

#[test]
fn nine_eighths_of_a_round_trip_later_a_packet_is_lost() {
    let mut sender = Sender::new();
    let n = sender.send(&[10, 20]);
    sender.acknowledge(&n[1..]);
    assert_eq!(sender.detect(99, n[1]), []);
    assert_eq!(sender.loss.deadline(), Some(at(100)));
    assert_eq!(sender.detect(100, n[1]), [n[0]]);
    assert_eq!(sender.loss.deadline(), None);
}

#[test]
fn a_later_packet_must_be_acknowledged_first() {
    let mut sender = Sender::new();
    let n = sender.send(&[10, 11, 12]);
    sender.acknowledge(&n[..1]);
    assert_eq!(sender.detect(10_000, n[0]), []);
    assert_eq!(sender.loss.deadline(), None);
}

#[test]
fn the_latest_round_trip_counts_if_it_is_longer() {
    let mut sender = Sender::new();
    sender.rtt.update(at(5), ms(160), Duration::ZERO, None);
    let n = sender.send(&[10, 20]);
    sender.acknowledge(&n[1..]);
    sender.detect(100, n[1]);
    assert_eq!(sender.loss.deadline(), Some(at(190)));
}

#[test]
fn a_late_acknowledgement_is_recognised_and_raises_both_thresholds() {
    let mut sender = Sender::new();
    let n = sender.send(&[10, 11, 12, 13, 14, 15]);
    sender.acknowledge(&n[1..]);
    assert_eq!(sender.detect(95, n[5]), [n[0]]);
    assert_eq!(sender.take_spurious(n[0]..=n[5], n[5]), [n[0]]);
    assert_eq!(sender.take_spurious(n[0]..=n[5], n[5]), [], "once");
    assert_eq!(sender.loss.packet_threshold, 6);

    let n = sender.send(&[110, 111, 112, 113, 114, 115]);
    sender.acknowledge(&n[1..]);
    assert_eq!(sender.detect(195, n[5]), []);
    // Ten eighths now.
    assert_eq!(sender.loss.deadline(), Some(at(210)));
}

#[test]
fn the_thresholds_stay_bounded_and_return_after_real_losses() {
    let mut sender = Sender::new();
    for round in 0..20 {
        let n = sender.send(&vec![1_000 * round + 1; 1_000]);
        sender.acknowledge(&n[1..]);
        assert_eq!(sender.detect(1_000 * round + 500, n[999]), [n[0]]);
        assert_eq!(sender.take_spurious(n[0]..=n[0], n[999]), [n[0]]);
    }
    assert_eq!(sender.loss.packet_threshold, MAX_PACKET_THRESHOLD);
    assert_eq!(sender.loss.time_threshold, MAX_TIME_THRESHOLD);
    for round in 20..200 {
        let n = sender.send(&[1_000 * round, 1_000 * round + 1]);
        sender.acknowledge(&n[1..]);
        assert_eq!(sender.detect(1_000 * round + 500, n[1]), [n[0]]);
    }
    assert_eq!(sender.loss.packet_threshold, MIN_PACKET_THRESHOLD);
    assert_eq!(sender.loss.time_threshold, MIN_TIME_THRESHOLD);
}

#[test]
fn losses_are_remembered_for_a_time_and_in_a_bounded_number() {
    let mut sender = Sender::new();
    let n = sender.send(&vec![10; 5_000]);
    sender.acknowledge(&n[4_999..]);
    assert_eq!(sender.detect(200, n[4_999]).len(), 4_999);
    assert_eq!(sender.loss.remembered.len(), remembered::PACKETS_MAX);
    assert_eq!(sender.take_spurious(0..=n[0], n[4_999]), [], "forgotten");
    sender.detect(2_009, n[4_999]);
    assert_eq!(sender.loss.remembered.len(), remembered::PACKETS_MAX);
    sender.detect(2_011, n[4_999]);
    assert_eq!((sender.loss.remembered.len(), sender.memory.reserved()), (0, 0));
}

#[test]
fn losses_are_remembered_as_far_as_the_endpoint_has_memory() {
    let memory = SharedMemory::new(1 << 20);
    let mut senders: Vec<Sender> =
        (0..100).map(|_| Sender { memory: memory.clone(), ..Sender::new() }).collect();
    for sender in &mut senders {
        let n = sender.send(&vec![10; 3_000]);
        sender.acknowledge(&n[2_999..]);
        assert_eq!(sender.detect(200, n[2_999]).len(), 2_999);
        let remembered = sender.loss.remembered.len();
        assert!(remembered >= 32, "{remembered}");
        assert_eq!(sender.loss.oldest_remembered(), Some(n[2_999 - remembered]), "the newest are remembered");
    }
    let bytes = |sender: &Sender| sender.loss.remembered.len() as u64 * remembered::PACKET_BYTES;
    assert_eq!(senders[0].loss.remembered.len(), remembered::PACKETS_MAX);
    let held: u64 = senders.iter().map(bytes).sum();
    assert!(held <= (1 << 20) + 100 * CONNECTION_FLOOR_BYTES, "{held}");
    senders.clear();
    assert_eq!(memory.reserved(), 0);
}

#[test]
fn a_packet_of_acknowledgements_alone_is_removed_but_not_remembered() {
    let mut sender = Sender::new();
    let number = sender.send_packet(SentPacket { in_flight: false, ack_eliciting: false, ..packet(10) });
    let n = sender.send(&[11, 12, 13]);
    sender.acknowledge(&n);
    assert_eq!(sender.detect(95, n[2]), [number]);
    assert!(sender.loss.remembered.len() == 0 && sender.sent.is_empty());
}

/// The probe timeout of [`Sender`] is 80 + 4 * 40 ms, plus 25 ms of acknowledgement delay; persistent
/// congestion takes three of them.
const PERSISTENT: u64 = 795;

#[test]
fn losses_over_three_timeouts_are_persistent_congestion() {
    for (span, expected) in [(PERSISTENT, false), (PERSISTENT + 1, true)] {
        let mut sender = Sender::new();
        let n = sender.send(&[10, 200, 400, 600, 10 + span, 20 + span]);
        sender.acknowledge(&n[5..]);
        let (lost, persistent) = sender.detect_persistent(2_000, n[5]);
        assert_eq!((lost.len(), persistent), (5, expected), "over {span} ms");
    }
}

#[test]
fn a_packet_that_arrived_between_proves_that_congestion_is_not_persistent() {
    let mut sender = Sender::new();
    let n = sender.send(&[10, 500, 1_000, 1_001]);
    sender.acknowledge(&[n[1], n[3]]);
    assert_eq!(sender.detect_persistent(2_000, n[3]), (vec![n[0], n[2]], false));
}

#[test]
fn the_period_may_be_found_in_pieces_and_over_skipped_numbers() {
    let mut sender = Sender::new();
    let n = sender.send(&[10, 11, 1_300]);
    sender.acknowledge(&n[2..]);
    assert_eq!(sender.detect_persistent(1_301, n[2]), (vec![n[0], n[1]], false));
    // The next loss follows an acknowledged packet.
    let n = sender.send(&[1_400]);
    sender.numbers.skip();
    let m = sender.send(&[1_800, 2_300, 2_301, 2_302, 2_303]);
    sender.acknowledge(&m[2..3]);
    assert_eq!(sender.detect_persistent(2_310, m[2]), (vec![n[0], m[0]], false));
    sender.acknowledge(&m[3..5]);
    assert_eq!(sender.detect_persistent(2_400, m[4]), (vec![m[1]], true));
}

#[test]
fn before_the_first_sample_congestion_is_not_persistent() {
    let mut sender = Sender::new();
    sender.rtt = Rtt::default();
    sender.rtt.update(at(3_000), ms(80), Duration::ZERO, None);
    let n = sender.send(&[10, 500, 1_000, 2_000, 2_001]);
    sender.acknowledge(&n[4..]);
    assert_eq!(sender.detect_persistent(3_000, n[4]), (vec![n[0], n[1], n[2], n[3]], false));
}

#[test]
fn packets_that_elicit_nothing_do_not_bound_the_period() {
    let mut sender = Sender::new();
    let quiet = SentPacket { ack_eliciting: false, ..packet(10) };
    sender.send_packet(quiet);
    let n = sender.send(&[500, 1_000, 1_001]);
    sender.acknowledge(&n[2..]);
    let (lost, persistent) = sender.detect_persistent(2_000, n[2]);
    assert_eq!((lost.len(), persistent), (3, false));
}

#[test]
fn a_packet_is_not_lost_before_timers_can_tell() {
    // RFC 9002 §6.1.2: kGranularity.
    let mut sender = Sender::new();
    sender.rtt = Rtt::default();
    sender.rtt.update(at(0), Duration::from_micros(100), Duration::ZERO, None);
    let n = sender.send(&[10, 10]);
    sender.acknowledge(&n[1..]);
    let half = at(10) + Duration::from_micros(500);
    let Sender { loss, sent, numbers, rtt, tuple, memory, .. } = &mut sender;
    let cx = LossContext { rtt, tuple: *tuple, max_ack_delay: Duration::ZERO, memory };
    loss.detect(half, n[1], sent, numbers, &cx, |number, _| panic!("{number} is lost"));
    assert_eq!(sender.loss.deadline(), Some(at(11)));
    assert_eq!(sender.detect(11, n[1]), [n[0]]);
}

#[test]
fn the_period_of_persistent_congestion_has_the_granularity_of_timers() {
    // RFC 9002 §7.6.1: (80 + 1 + 25 ms) * 3, where the round trips do not vary.
    for (span, expected) in [(318, false), (319, true)] {
        let mut sender = Sender::new();
        (0..100).for_each(|n| sender.rtt.update(at(1_000 * n), ms(80), Duration::ZERO, None));
        assert!(sender.rtt.variance() * 4 < ms(1));
        let n = sender.send(&[200_000, 200_000 + span, 200_400]);
        sender.acknowledge(&n[2..]);
        assert_eq!(sender.detect_persistent(201_000, n[2]).1, expected, "over {span} ms");
    }
}

#[test]
fn probes_for_larger_datagrams_do_not_bound_the_period() {
    // RFC 9000 §14.4.
    let probe = |time| SentPacket { mtu_probe: true, ..packet(time) };
    for probe_first in [true, false] {
        let mut sender = Sender::new();
        let mut all = [packet(10), packet(10 + 2 * PERSISTENT)];
        all[usize::from(!probe_first)].mtu_probe = true;
        for packet in all {
            sender.send_packet(packet);
        }
        let n = sender.send(&[3_000]);
        sender.acknowledge(&n);
        let (lost, persistent) = sender.detect_persistent(4_000, n[0]);
        assert_eq!((lost.len(), persistent), (2, false), "{probe_first}");
    }
    // Between others that were lost, one interrupts nothing.
    let mut sender = Sender::new();
    for packet in [packet(10), probe(300), packet(10 + 2 * PERSISTENT)] {
        sender.send_packet(packet);
    }
    let n = sender.send(&[3_000]);
    sender.acknowledge(&n);
    assert!(sender.detect_persistent(4_000, n[0]).1);
}

#[test]
fn losses_on_two_tuples_are_no_persistent_congestion_of_one() {
    // RFC 9000 §9.4: what was lost on the way to the old address says nothing of the new one.
    let elsewhere = |time| SentPacket { tuple: TupleId(1), ..packet(time) };
    let mut sender = Sender::new();
    for packet in [packet(10), packet(500), elsewhere(600), elsewhere(10 + PERSISTENT + 10)] {
        sender.send_packet(packet);
    }
    let n = sender.send(&[3_000]);
    sender.acknowledge(&n);
    let (lost, persistent) = sender.detect_persistent(4_000, n[0]);
    assert_eq!((lost.len(), persistent), (4, false));
    // The whole period on one of them is, if that is the one in use.
    for (used, expected) in [(TupleId(1), true), (TupleId(0), false)] {
        let mut sender = Sender { tuple: used, ..Sender::new() };
        for packet in [packet(10), elsewhere(600), elsewhere(600 + PERSISTENT + 1)] {
            sender.send_packet(packet);
        }
        let n = sender.send(&[3_000]);
        sender.acknowledge(&n);
        assert_eq!(sender.detect_persistent(4_000, n[0]).1, expected);
    }
}
