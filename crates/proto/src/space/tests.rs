mod repeats;

use fulmar_base::RangeSet;
use fulmar_wire::{
    AckEncoder, Dialect, Dir, EcnCounts, PathId, Side, StreamId, TransportErrorCode, VarInt, Writer, frames,
};

use super::*;
use crate::datagram::Ecn;
use crate::ids::TupleId;
use crate::memory::SharedMemory;
use crate::packet::{FrameWriter, SentFrame};
use crate::rtt::Rtt;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A space and its generator.
struct Fixture {
    space: NumberSpace,
    rng: Rng,
    rtt: Rtt,
    out: Out,
}

impl Fixture {
    fn new() -> Self {
        let mut rng = Rng::from_u64(11);
        let space = NumberSpace::new(AckPolicy::default(), &mut rng);
        let mut rtt = Rtt::default();
        rtt.update(at(0), ms(80), Duration::ZERO, None);
        Self { space, rng, rtt, out: Out::default() }
    }

    fn send_packet(&mut self, packet: SentPacket) -> u64 {
        let number = self.space.next_number();
        self.space.on_sent(number, packet, &mut self.rng);
        number
    }

    fn send(&mut self, count: usize, millis: u64) -> Vec<u64> {
        (0..count).map(|_| self.send_packet(packet(millis))).collect()
    }

    /// The peer acknowledges `numbers`.
    fn receive(&mut self, millis: u64, numbers: &[u64]) -> Result<(), TransportError> {
        self.receive_with(millis, numbers, 0, None)
    }

    fn receive_with(
        &mut self,
        millis: u64,
        numbers: &[u64],
        delay: u32,
        ecn: Option<EcnCounts>,
    ) -> Result<(), TransportError> {
        let bytes = encode(numbers, delay, ecn);
        let Some(Ok(Frame::Ack(ack))) = frames(&bytes, Dialect::SinglePath).next() else {
            panic!("an ACK can be decoded");
        };
        self.out = Out::default();
        let (mut outcome, out) = (AckOutcome::default(), &mut self.out);
        let on_acked = |number, packet: &SentPacket| out.acked.push((number, packet.clone()));
        let result = self.space.on_ack(at(millis), &ack, 3, &mut outcome, on_acked);
        self.out.take_in(outcome);
        result?;
        self.detect(millis);
        Ok(())
    }

    /// Bytes in flight.
    fn bytes(&self) -> u64 {
        self.space.unacked().map(|(_, packet)| u64::from(packet.size)).sum()
    }

    fn detect(&mut self, millis: u64) {
        let cx = LossContext {
            rtt: &self.rtt,
            tuple: TupleId(4),
            max_ack_delay: ms(25),
            memory: &SharedMemory::new(1 << 20),
        };
        let mut losses = Losses::default();
        self.space.detect_lost(at(millis), &cx, &mut losses);
        self.out.lost.extend(losses.lost);
        self.out.persistent_congestion |= losses.persistent_congestion;
    }
}

/// What the last ACK, and the detection of losses since, brought about.
#[derive(Debug, Default)]
struct Out {
    acked: Vec<(u64, SentPacket)>,
    lost: Vec<(u64, SentPacket)>,
    spurious: Vec<(u64, SentPacket)>,
    rtt_sample: Option<RttSample>,
    ecn: Option<EcnFeedback>,
    persistent_congestion: bool,
}

impl Out {
    fn take_in(&mut self, outcome: AckOutcome) {
        let AckOutcome { packets, bytes, ack_eliciting, frames: _, spurious, rtt_sample, ecn } = outcome;
        assert_eq!(packets, self.acked.len());
        assert_eq!(bytes, self.acked.iter().map(|(_, packet)| u64::from(packet.size)).sum::<u64>());
        assert_eq!(ack_eliciting, self.acked.iter().any(|(_, packet)| packet.ack_eliciting));
        (self.spurious, self.rtt_sample, self.ecn) = (spurious, rtt_sample, ecn);
    }
}

fn encode(numbers: &[u64], delay: u32, ecn: Option<EcnCounts>) -> Vec<u8> {
    let mut ranges = RangeSet::new();
    numbers.iter().for_each(|&number| {
        ranges.insert_one(number);
    });
    let delay = VarInt::from_u32(delay);
    let ack = AckEncoder { path: PathId::ZERO, delay, ranges: &ranges, ecn, max_ranges: usize::MAX };
    let mut buffer = vec![0; 100_000];
    let mut writer = Writer::new(&mut buffer);
    ack.encode_within(Dialect::SinglePath, 0, &mut writer).expect("it fits");
    let len = writer.len();
    buffer.truncate(len);
    buffer
}

fn packet(millis: u64) -> SentPacket {
    SentPacket { size: 1_000, tuple: TupleId(4), ..SentPacket::sent_at(at(millis)) }
}

/// A packet of ACKs alone.
fn quiet_packet(millis: u64) -> SentPacket {
    SentPacket { ack_eliciting: false, in_flight: false, ..packet(millis) }
}

fn numbers(list: &[(u64, SentPacket)]) -> Vec<u64> {
    let mut numbers: Vec<u64> = list.iter().map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn an_acknowledgement_is_news_once() {
    let mut f = Fixture::new();
    let n = f.send(4, 10);
    assert_eq!(f.bytes(), 4_000);
    f.receive(60, &[n[0], n[2]]).unwrap();
    assert_eq!(numbers(&f.out.acked), [n[0], n[2]]);
    assert_eq!(f.bytes(), 2_000);
    f.receive(70, &n).unwrap();
    assert_eq!(numbers(&f.out.acked), [n[1], n[3]]);
    f.receive(80, &n).unwrap();
    assert!(f.out.acked.is_empty());
    assert_eq!(f.bytes(), 0);
    assert!(!f.space.has_ack_eliciting_in_flight());
}

#[test]
fn the_largest_newly_acknowledged_gives_the_sample() {
    let mut f = Fixture::new();
    let n = f.send(2, 10);
    f.receive_with(60, &n[1..], 250, None).unwrap();
    assert_eq!(f.out.rtt_sample, Some(RttSample { rtt: ms(50), ack_delay: ms(2), tuple: TupleId(4) }));
    f.receive(70, &n).unwrap();
    assert_eq!(numbers(&f.out.acked), [n[0]]);
    assert_eq!(f.out.rtt_sample, None, "the largest is not news");
}

#[test]
fn without_a_packet_that_elicits_an_ack_there_is_no_sample() {
    let mut f = Fixture::new();
    let quiet = f.send_packet(quiet_packet(10));
    f.receive(60, &[quiet]).unwrap();
    assert_eq!((f.out.acked.len(), f.out.rtt_sample), (1, None));
    let loud = f.send(1, 20)[0];
    let quiet = f.send_packet(quiet_packet(30));
    f.receive(80, &[loud, quiet]).unwrap();
    assert_eq!(f.out.rtt_sample.map(|sample| sample.rtt), Some(ms(50)));
}

#[test]
fn an_absurd_delay_overflows_nothing() {
    assert_eq!(unscale_delay((1 << 62) - 1, 20), Duration::from_micros(u64::MAX));
    assert_eq!(unscale_delay(5, 255), Duration::from_micros(5 << 20));
}

#[test]
fn numbers_that_were_never_sent_are_a_violation() {
    let mut f = Fixture::new();
    let n = f.send(3, 10);
    let error = f.receive(60, &[n[2] + 1]).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
    assert!(error.frame.is_some());
    assert_eq!(f.bytes(), 3_000, "nothing was taken");
    assert!(Fixture::new().receive(60, &[0]).is_err());
}

#[test]
fn skipped_numbers_are_a_violation() {
    let mut f = Fixture::new();
    let first = f.send(1, 10)[0];
    let skipped = f.space.next_number();
    f.space.numbers.skip();
    let last = f.send(1, 10)[0];
    f.receive(60, &[first, last]).unwrap();
    let error = f.receive(60, &[first, skipped, last]).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn a_peer_that_acknowledges_blindly_is_caught() {
    let mut f = Fixture::new();
    let mut caught = false;
    for round in 0..200 {
        f.send(10, round);
        let all: Vec<u64> = (0..f.space.next_number()).collect();
        caught |= f.receive(round, &all).is_err();
    }
    assert!(caught);
}

#[test]
fn thousands_of_ranges_are_processed_once_each() {
    let mut f = Fixture::new();
    let n = f.send(20_000, 10);
    let every_second: Vec<u64> = n.iter().copied().step_by(2).collect();
    f.receive(60, &every_second).unwrap();
    assert_eq!(f.out.acked.len(), 10_000);
    // All but the last three of the others are lost by the packet threshold.
    assert_eq!(f.out.lost.len() + f.space.unacked().count(), 10_000);
    assert!(f.space.unacked().count() <= 3);
    f.receive(61, &every_second).unwrap();
    assert!(f.out.acked.is_empty() && f.out.lost.is_empty() && f.out.spurious.is_empty());
}

#[test]
fn a_late_acknowledgement_is_spurious_and_no_news() {
    let mut f = Fixture::new();
    let n = f.send(5, 10);
    f.receive(60, &n[1..]).unwrap();
    assert_eq!(numbers(&f.out.lost), [n[0]]);
    assert_eq!(f.bytes(), 0);
    f.receive(65, &n).unwrap();
    assert_eq!(numbers(&f.out.spurious), [n[0]]);
    assert!(f.out.acked.is_empty() && f.out.rtt_sample.is_none());
}

#[test]
fn the_loss_timer_finds_what_the_ack_left_open() {
    let mut f = Fixture::new();
    let n = f.send(2, 10);
    f.receive(60, &n[1..]).unwrap();
    assert!(f.out.lost.is_empty());
    assert_eq!(f.space.loss_deadline(), Some(at(100)));
    f.out = Out::default();
    f.detect(100);
    assert_eq!(numbers(&f.out.lost), [n[0]]);
    assert_eq!(f.space.loss_deadline(), None);
}

#[test]
fn probes_are_due_after_the_last_packet_that_elicits_an_ack() {
    let mut f = Fixture::new();
    assert_eq!(f.space.pto_deadline(ms(250)), None);
    let n = f.send(1, 10);
    f.send_packet(quiet_packet(20));
    assert_eq!(f.space.pto_deadline(ms(250)), Some(at(260)));
    f.receive(60, &n).unwrap();
    assert_eq!(f.space.pto_deadline(ms(250)), None);
}

#[test]
fn lost_packets_of_acknowledgements_alone_vanish_in_silence() {
    let mut f = Fixture::new();
    f.send_packet(quiet_packet(10));
    let n = f.send(3, 10);
    f.receive(60, &n).unwrap();
    assert!(f.out.lost.is_empty() && !f.out.persistent_congestion);
    assert_eq!(f.space.unacked().count(), 0);
    assert_eq!(f.space.outstanding, Outstanding::default());
}

#[test]
fn records_of_acknowledgements_alone_are_bounded() {
    let mut f = Fixture::new();
    for i in 0..10_000 {
        f.send_packet(quiet_packet(i));
    }
    assert!(f.space.wants_ping());
    assert_eq!(f.space.unacked().count(), MAX_ACK_ONLY_RECORDS);
    let n = f.send(1, 10_000);
    assert!(!f.space.wants_ping());
    f.receive(10_050, &n).unwrap();
    assert_eq!(numbers(&f.out.acked), n);
    f.detect(11_000);
    assert_eq!(f.space.outstanding, Outstanding::default());
}

#[test]
fn discarding_gives_all_records_back() {
    let mut f = Fixture::new();
    let n = f.send(3, 10);
    f.receive(60, &n[2..]).unwrap();
    assert_eq!(f.space.discard().map(|(number, _)| number).collect::<Vec<_>>(), n[..2]);
    assert_eq!((f.bytes(), f.space.loss_deadline()), (0, None));
    assert_eq!(f.space.pto_deadline(ms(1)), None);
}

#[test]
fn marks_are_judged_by_acks_that_raise_the_largest() {
    let mut f = Fixture::new();
    let mark = Ecn::Ect0;
    let n: Vec<u64> = (0..4).map(|_| f.send_packet(SentPacket { ecn: mark, ..packet(10) })).collect();
    let counts = |ect0, ce| Some(EcnCounts { ect0, ect1: 0, ce });
    f.receive_with(60, &n[..3], 0, counts(2, 1)).unwrap();
    assert_eq!(f.out.ecn, Some(EcnFeedback::Valid { ce: 1, validated: 3 }));
    f.receive_with(61, &n[..2], 0, counts(2, 0)).unwrap();
    assert_eq!(f.out.ecn, None, "an ACK that was overtaken");
    f.receive_with(62, &n, 0, None).unwrap();
    assert_eq!(f.out.ecn, Some(EcnFeedback::Invalid));
}

#[test]
fn duplicates_are_neither_acknowledged_nor_counted() {
    let mut f = Fixture::new();
    f.space.on_received(at(1), 7, true, Ecn::Ect0);
    assert!(f.space.is_duplicate(7) && !f.space.is_duplicate(6));
    f.space.on_received(at(2), 7, true, Ecn::Ect0);
    assert_eq!(f.space.largest_received(), Some(7));
    let mut buffer = [0; 100];
    let mut out = FrameWriter::new(&mut buffer, Dialect::SinglePath);
    assert!(f.space.write_ack(at(9), PathId::ZERO, 0, &mut out));
    let Some(Ok(Frame::Ack(ack))) = frames(&buffer, Dialect::SinglePath).next() else {
        panic!("an ACK was written");
    };
    assert_eq!(ack.ecn.map(|ecn| ecn.ect0), Some(1));
    assert_eq!(ack.delay.get(), 8_000, "since the first arrival");
}

#[test]
fn the_largest_acknowledged_number_never_falls() {
    let mut f = Fixture::new();
    assert_eq!(f.space.largest_acked(), None);
    let n = f.send(6, 0);
    f.receive(50, &n[..5]).unwrap();
    assert_eq!(f.space.largest_acked(), Some(n[4]));
    f.receive(51, &n[..2]).unwrap();
    assert_eq!(f.space.largest_acked(), Some(n[4]));
}

#[test]
fn the_first_packet_of_all_may_have_been_taken_for_lost_wrongly() {
    let mut f = Fixture::new();
    let n = f.send(5, 0);
    assert_eq!((n[0], f.space.packet_threshold()), (0, 3));
    f.receive(50, &n[4..]).unwrap();
    assert_eq!(numbers(&f.out.lost), n[..2]);
    f.receive(51, &[n[0], n[4]]).unwrap();
    assert_eq!(numbers(&f.out.spurious), [0]);
    assert_eq!(f.space.packet_threshold(), n[4] + 1, "so far one was overtaken");
}
