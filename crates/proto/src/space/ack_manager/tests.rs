use fulmar_wire::{Ack, Dialect, Frame, frames};

use super::*;
use crate::packet::SentFrame;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Packets that elicit an ACK arrive one by one, a millisecond apart. Returns those after which one is due;
/// each is written at once.
fn due_after(policy: AckPolicy, arrivals: &[u64]) -> Vec<u64> {
    let mut acks = AckManager::new(policy);
    let mut due = Vec::new();
    for (i, &number) in arrivals.iter().enumerate() {
        let now = at(i as u64);
        acks.on_received(now, number, true, Ecn::NotEct);
        if acks.needs_ack(now) {
            due.push(number);
            write(&mut acks, now);
        }
    }
    due
}

fn write(acks: &mut AckManager, now: Instant) -> Vec<u8> {
    let mut buffer = [0; 1_200];
    let mut out = FrameWriter::new(&mut buffer, Dialect::SinglePath);
    assert!(acks.write(now, PathId::ZERO, now, 3, &mut out));
    let payload = out.finish();
    assert!(!payload.ack_eliciting);
    assert_eq!(
        payload.frames.as_slice(),
        [SentFrame::Ack { path: PathId::ZERO, largest: acks.ranges.max().unwrap() }]
    );
    buffer[..payload.len].to_vec()
}

fn decode(bytes: &[u8]) -> Ack<'_> {
    match frames(bytes, Dialect::SinglePath).next() {
        Some(Ok(Frame::Ack(ack))) => ack,
        other => panic!("not an ACK: {other:?}"),
    }
}

fn policy(ack_eliciting_threshold: u32, reordering_threshold: u64) -> AckPolicy {
    AckPolicy { ack_eliciting_threshold, reordering_threshold, ..AckPolicy::default() }
}

#[test]
fn how_many_packets_bring_an_ack() {
    let in_order: Vec<u64> = (0..10).collect();
    assert_eq!(due_after(AckPolicy::IMMEDIATE, &in_order), in_order);
    assert_eq!(due_after(AckPolicy::default(), &in_order), [1, 3, 5, 7, 9]);
    assert_eq!(due_after(policy(4, 1), &in_order), [3, 7]);
}

#[test]
fn gaps_and_late_packets_bring_an_ack_at_once() {
    // 3 is missing after 2; 6 after 5; then both come late.
    let arrivals = [0, 1, 2, 4, 5, 7, 8, 3, 6, 9];
    assert_eq!(due_after(policy(100, 1), &arrivals), [4, 7, 3, 6]);
}

#[test]
fn a_reordering_threshold_waits_for_so_many_later_packets() {
    let arrivals = [0, 1, 3, 4, 5, 6, 7, 8, 9, 10];
    assert_eq!(due_after(policy(100, 3), &arrivals), [5]);
    assert_eq!(due_after(policy(100, 5), &arrivals), [7]);
    assert_eq!(due_after(policy(100, 0), &arrivals), []);
    // 2 is overdue at 5; 6 at 9 and 7 at 10 (the example of draft-ietf-quic-ack-frequency).
    assert_eq!(due_after(policy(100, 3), &[0, 1, 3, 4, 5, 8, 9, 10]), [5, 9, 10]);
    // So late that the peer has taken it for lost.
    assert_eq!(due_after(policy(100, 3), &[0, 1, 3, 4, 5, 2]), [5, 2]);
    assert_eq!(due_after(policy(100, 0), &[0, 1, 3, 4, 5, 2]), []);
    // The first is missing, before anything was reported.
    assert_eq!(due_after(policy(100, 3), &[1, 2, 3, 4]), [3]);
    // Late within the threshold.
    assert_eq!(due_after(policy(100, 3), &[0, 1, 3, 2, 4, 5, 6, 7]), []);
}

#[test]
fn a_single_packet_is_acknowledged_within_the_delay() {
    let mut acks = AckManager::new(AckPolicy::default());
    acks.on_received(at(10), 0, true, Ecn::NotEct);
    assert!(!acks.needs_ack(at(10)) && acks.has_news());
    assert_eq!(acks.deadline(), Some(at(35)));
    assert!(!acks.needs_ack(at(34)));
    assert!(acks.needs_ack(at(35)));
    write(&mut acks, at(35));
    assert!(!acks.needs_ack(at(99)) && !acks.has_news());
    assert_eq!(acks.deadline(), None);
}

#[test]
fn packets_that_elicit_nothing_never_provoke_an_ack() {
    let mut acks = AckManager::new(AckPolicy::IMMEDIATE);
    for number in [0, 1, 5, 3, 9] {
        acks.on_received(at(number), number, false, Ecn::Ce);
    }
    assert!(!acks.needs_ack(at(10_000)) && !acks.has_news());
    assert_eq!(acks.deadline(), None);
    // But they are acknowledged with others.
    acks.on_received(at(10), 10, true, Ecn::NotEct);
    let bytes = write(&mut acks, at(10));
    assert!(decode(&bytes).ranges().eq([9..=10, 5..=5, 3..=3, 0..=1]));
}

#[test]
fn a_mark_of_the_network_is_reported_at_once() {
    let mut acks = AckManager::new(AckPolicy::default());
    acks.on_received(at(0), 0, true, Ecn::Ect0);
    assert!(!acks.needs_ack(at(0)));
    acks.policy = policy(100, 1);
    acks.on_received(at(0), 1, true, Ecn::Ce);
    assert!(acks.needs_ack(at(0)));
    let bytes = write(&mut acks, at(0));
    assert_eq!(decode(&bytes).ecn, Some(EcnCounts { ect0: 1, ect1: 0, ce: 1 }));
    // Of marks in a row only the first is urgent, unless every second packet is acknowledged anyway.
    acks.on_received(at(1), 2, true, Ecn::Ce);
    assert!(!acks.needs_ack(at(1)));
    acks.on_received(at(1), 3, true, Ecn::Ect0);
    acks.on_received(at(1), 4, true, Ecn::Ce);
    assert!(acks.needs_ack(at(1)));
    write(&mut acks, at(1));
    acks.set_policy(AckPolicy::default());
    acks.on_received(at(2), 5, true, Ecn::Ce);
    assert!(acks.needs_ack(at(2)));
}

#[test]
fn an_ack_that_is_asked_for_does_not_wait() {
    let mut acks = AckManager::new(policy(100, 3));
    acks.on_received(at(0), 0, true, Ecn::NotEct);
    acks.demand();
    acks.on_received(at(0), 1, true, Ecn::NotEct);
    assert!(acks.needs_ack(at(0)));
    write(&mut acks, at(0));
    acks.on_received(at(0), 2, true, Ecn::NotEct);
    assert!(!acks.needs_ack(at(0)));
}

#[test]
fn a_new_policy_holds_for_what_waits_already() {
    let mut acks = AckManager::new(AckPolicy::default());
    acks.on_received(at(10), 0, true, Ecn::NotEct);
    assert_eq!(acks.deadline(), Some(at(35)));
    let delay = Duration::from_millis(5);
    acks.set_policy(AckPolicy { max_ack_delay: delay, ..policy(10, 1) });
    assert_eq!(acks.deadline(), Some(at(15)));
    for number in 1..9 {
        acks.on_received(at(11), number, true, Ecn::NotEct);
    }
    assert!(!acks.needs_ack(at(14)) && acks.needs_ack(at(15)));
    acks.on_received(at(12), 9, true, Ecn::NotEct);
    assert!(acks.needs_ack(at(12)));
}

#[test]
fn a_range_is_reported_four_times() {
    let mut acks = AckManager::new(AckPolicy::default());
    for number in [0, 1, 3] {
        acks.on_received(at(0), number, true, Ecn::NotEct);
    }
    for _ in 0..4 {
        assert!(decode(&write(&mut acks, at(0))).ranges().eq([3..=3, 0..=1]));
    }
    // The newest is never left out.
    assert!(decode(&write(&mut acks, at(0))).ranges().eq([3..=3]));
    acks.on_received(at(0), 5, true, Ecn::NotEct);
    // A range that grows is news.
    for _ in 0..3 {
        assert!(decode(&write(&mut acks, at(0))).ranges().eq([5..=5, 3..=3]));
    }
    acks.on_received(at(0), 2, true, Ecn::NotEct);
    for _ in 0..4 {
        assert!(decode(&write(&mut acks, at(0))).ranges().eq([5..=5, 2..=3]));
    }
    assert!(decode(&write(&mut acks, at(0))).ranges().eq([5..=5]));
}

#[test]
fn a_range_keeps_its_count_when_one_before_it_is_gone() {
    let mut acks = AckManager::new(AckPolicy::default());
    for number in [0, 2, 4] {
        acks.on_received(at(0), number, true, Ecn::NotEct);
    }
    for _ in 0..3 {
        assert!(decode(&write(&mut acks, at(0))).ranges().eq([4..=4, 2..=2, 0..=0]));
    }
    acks.on_received(at(0), 3, true, Ecn::NotEct);
    assert!(decode(&write(&mut acks, at(0))).ranges().eq([2..=4, 0..=0]));
    assert!(decode(&write(&mut acks, at(0))).ranges().eq([2..=4]));
}

#[test]
fn ranges_for_which_there_was_no_room_are_not_counted() {
    let mut acks = AckManager::new(AckPolicy::default());
    for number in [0, 2, 4] {
        acks.on_received(at(0), number, true, Ecn::NotEct);
    }
    for _ in 0..6 {
        let mut buffer = [0; 7];
        let mut out = FrameWriter::new(&mut buffer, Dialect::SinglePath);
        assert!(acks.write(at(0), PathId::ZERO, at(0), 3, &mut out));
        assert!(decode(&buffer).ranges().count() < 3);
    }
    assert!(decode(&write(&mut acks, at(0))).ranges().any(|range| range == (0..=0)));
}

#[test]
fn an_ack_with_room_for_what_is_new_has_told_all_news() {
    let mut acks = AckManager::new(AckPolicy::default());
    acks.on_received(at(0), 0, true, Ecn::NotEct);
    write(&mut acks, at(0));
    for number in [2, 4] {
        acks.on_received(at(0), number, true, Ecn::NotEct);
    }
    let mut buffer = [0; 7];
    let mut out = FrameWriter::new(&mut buffer, Dialect::SinglePath);
    assert!(acks.write(at(0), PathId::ZERO, at(0), 3, &mut out));
    assert!(decode(&buffer).ranges().eq([4..=4, 2..=2]));
    acks.on_ack_acked(4);
    assert!(decode(&write(&mut acks, at(0))).ranges().eq([4..=4]));
}

#[test]
fn what_was_given_up_untold_is_no_news_any_more() {
    let mut acks = AckManager::new(AckPolicy::default());
    let largest = 2 * MAX_ACK_RANGES as u64;
    (0..=largest).step_by(2).for_each(|number| acks.on_received(at(0), number, true, Ecn::NotEct));
    write(&mut acks, at(0));
    acks.on_ack_acked(largest);
    assert!(decode(&write(&mut acks, at(0))).ranges().eq([largest..=largest]));
}

#[test]
fn packets_that_hundreds_overtake_are_all_acknowledged() {
    // Each is up to 400 places late.
    let mut rng = fulmar_base::Rng::from_u64(1);
    let mut arrivals: Vec<(u64, u64)> = (0..20_000).map(|number| (number + rng.below(400), number)).collect();
    arrivals.sort_unstable();
    // The peer hears of the ACKs, and acknowledges them when others of its packets have come; or it hears of none.
    for hears in [true, false] {
        let mut acks = AckManager::new(policy(64, 0));
        let (mut reported, mut largest) = (RangeSet::new(), 0);
        let (mut written, mut ranges_max) = (0, 0);
        for (i, &(_, number)) in arrivals.iter().enumerate() {
            acks.on_received(at(0), number, true, Ecn::NotEct);
            if acks.needs_ack(at(0)) {
                let bytes = write(&mut acks, at(0));
                let ack = decode(&bytes);
                for range in ack.ranges() {
                    reported.insert(*range.start()..range.end() + 1);
                }
                ranges_max = ranges_max.max(ack.ranges().count());
                (written, largest) = (written + 1, ack.largest.get());
            } else if hears && i % 64 == 30 {
                acks.on_ack_acked(largest);
            }
        }
        assert!(reported.contains_range(0..19_600), "{} ranges", reported.len());
        assert_eq!(written, 20_000 / 64, "the peer has asked for one in 64");
        assert!(ranges_max <= REPEATED_RANGES + 64, "{ranges_max}: what was told is left out");
    }
}

#[test]
fn what_came_late_and_was_not_told_outlives_an_older_ack() {
    let mut acks = AckManager::new(policy(100, 0));
    for number in [0, 5, 9] {
        acks.on_received(at(0), number, true, Ecn::NotEct);
    }
    write(&mut acks, at(0));
    acks.on_received(at(1), 3, true, Ecn::NotEct);
    acks.on_received(at(1), 10, true, Ecn::NotEct);
    acks.on_ack_acked(9);
    assert!(decode(&write(&mut acks, at(1))).ranges().any(|range| range == (3..=3)));
    acks.on_ack_acked(10);
    assert!(decode(&write(&mut acks, at(1))).ranges().eq([10..=10]), "the peer knows");
}

#[test]
fn ranges_beyond_those_that_are_repeated_stay_until_there_was_room() {
    let mut acks = AckManager::new(policy(1_000, 0));
    for number in (0..200).step_by(2) {
        acks.on_received(at(0), number, true, Ecn::NotEct);
    }
    let mut buffer = [0; 120];
    let mut out = FrameWriter::new(&mut buffer, Dialect::SinglePath);
    assert!(acks.write(at(0), PathId::ZERO, at(0), 3, &mut out));
    let first = decode(&buffer).ranges().count();
    assert!(first > REPEATED_RANGES && first < 100 - REPEATED_RANGES, "{first}");
    acks.on_ack_acked(198);
    let bytes = write(&mut acks, at(0));
    let ack = decode(&bytes);
    assert_eq!(ack.ranges().count(), REPEATED_RANGES + 100 - first);
    assert!(ack.ranges().any(|range| range == (0..=0)));
    assert_eq!(decode(&write(&mut acks, at(0))).ranges().count(), REPEATED_RANGES);
}

#[test]
fn ranges_are_reported_before_they_are_given_up() {
    let mut acks = AckManager::new(policy(1_000, 0));
    let mut reported = Vec::new();
    for number in (0..300).step_by(2) {
        acks.on_received(at(0), number, true, Ecn::NotEct);
        if acks.needs_ack(at(0)) {
            let bytes = write(&mut acks, at(0));
            reported.extend(decode(&bytes).ranges().map(|range| *range.start()));
        }
    }
    reported.sort_unstable();
    reported.dedup();
    assert!(reported.len() >= 128 && reported.into_iter().eq((0..).step_by(2).take_while(|n| *n < 2 * 128)));
}

#[test]
fn the_delay_is_in_scaled_microseconds() {
    let mut acks = AckManager::new(AckPolicy::default());
    acks.on_received(at(0), 0, true, Ecn::NotEct);
    let mut buffer = [0; 100];
    let mut out = FrameWriter::new(&mut buffer, Dialect::SinglePath);
    assert!(acks.write(at(20), PathId::ZERO, at(4), 3, &mut out));
    assert_eq!(decode(&buffer).delay.get(), 16_000 / 8);
    assert_eq!(scale_delay(Duration::MAX, 0), VarInt::MAX);
    assert_eq!(scale_delay(Duration::MAX, 255).get(), 1);
}

#[test]
fn what_the_peer_knows_is_not_repeated_but_the_largest_stays() {
    let mut acks = AckManager::new(AckPolicy::default());
    for number in [0, 1, 3, 4, 6] {
        acks.on_received(at(0), number, true, Ecn::NotEct);
    }
    write(&mut acks, at(0));
    acks.on_ack_acked(3);
    assert!(decode(&write(&mut acks, at(0))).ranges().eq([6..=6, 4..=4]));
    acks.on_ack_acked(6);
    assert!(decode(&write(&mut acks, at(0))).ranges().eq([6..=6]));
    // A very late packet is acknowledged, and the largest number does not fall.
    acks.on_received(at(1), 5, true, Ecn::NotEct);
    acks.on_received(at(1), 2, true, Ecn::NotEct);
    assert!(decode(&write(&mut acks, at(1))).ranges().eq([5..=6, 2..=2]));
}

#[test]
fn gaps_without_end_cost_a_bounded_memory_and_a_bounded_frame() {
    let mut acks = AckManager::new(AckPolicy::default());
    for number in (0..10_000).step_by(3) {
        acks.on_received(at(0), number, true, Ecn::NotEct);
        assert!(acks.ranges.len() <= MAX_ACK_RANGES);
    }
    let bytes = write(&mut acks, at(0));
    assert_eq!(decode(&bytes).ranges().count(), MAX_ACK_RANGES);
    assert_eq!(decode(&bytes).largest.get(), 9_999);
    assert_eq!(decode(&write(&mut acks, at(0))).ranges().count(), REPEATED_RANGES, "the others were told");
}

#[test]
fn without_room_or_news_nothing_changes() {
    let mut acks = AckManager::new(AckPolicy::IMMEDIATE);
    let mut buffer = [0; 3];
    let mut out = FrameWriter::new(&mut buffer, Dialect::SinglePath);
    assert!(!acks.write(at(0), PathId::ZERO, at(0), 3, &mut out));
    acks.on_received(at(0), 7, true, Ecn::NotEct);
    assert!(!acks.write(at(0), PathId::ZERO, at(0), 3, &mut out));
    assert!(acks.needs_ack(at(0)));
    assert!(out.is_empty());
}

#[test]
fn a_path_beside_others_begins_with_an_ack_for_every_second_packet() {
    let asked = AckPolicy { ack_eliciting_threshold: 10, ..AckPolicy::default() };
    let mut acks = AckManager::new(asked);
    acks.begin_beside_others();
    let mut gaps = Vec::new();
    let mut gap = 0;
    for number in 0..u64::from(YOUNG_PACKETS) + 20 {
        acks.on_received(at(0), number, true, Ecn::NotEct);
        gap += 1;
        if acks.needs_ack(at(0)) {
            write(&mut acks, at(0));
            gaps.push(gap);
            gap = 0;
        }
    }
    let (young, old) = gaps.split_at(YOUNG_PACKETS as usize / 2);
    assert!(young.iter().all(|gap| *gap == 2) && old == [10, 10], "{gaps:?}");
}
