use std::time::Duration;

use super::super::test_path::{SIZE, ack, loss, rtt};
use super::*;

const PACKET: u64 = SIZE as u64;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Acknowledges a packet each millisecond for `packets`, and then one that was sent after the reaction at 100 ms.
fn shown_by(packets: u64, lost: u64, judges: bool) -> Option<Shown> {
    let rtt = rtt(Duration::from_millis(50));
    let mut round = LossRound::default();
    round.begin(at(100), judges);
    round.on_lost(&CongestionEvent { lost_bytes: lost * PACKET, lost_packets: lost, ..loss(at(99)) });
    for n in 1..=packets {
        let sample = Some(Duration::from_millis(60 + n));
        let ack = AckEvent { rtt_sample: sample, ..ack(PACKET, at(50 + n), &rtt) };
        assert_eq!(round.on_ack(at(100 + n), &ack, PACKET), None);
        assert!(round.is_under_way());
    }
    let shown = round.on_ack(at(151), &ack(PACKET, at(101), &rtt), PACKET);
    assert!(!round.is_under_way());
    shown
}

#[test]
fn the_rate_is_that_of_what_still_arrives() {
    // The last acknowledgement, of what was sent later, and the silence before it are no part of it.
    assert_eq!(shown_by(20, 10, true), Some(Shown { pipe: 50 * PACKET, held: 80 * PACKET }));
}

#[test]
fn few_packets_say_nothing_and_neither_does_a_flight_that_was_not_to_judge() {
    assert_eq!(shown_by(MEASURED_PACKETS - 1, 10, true), None);
    assert_eq!(shown_by(20, 10, false), None);
}

#[test]
fn a_flight_that_has_lost_little_says_nothing() {
    assert_eq!(shown_by(30, 10, true), None);
    assert!(shown_by(29, 10, true).is_some());
    // What was sent after the reaction is another flight.
    let mut round = LossRound::default();
    round.begin(at(100), true);
    round.on_lost(&CongestionEvent { lost_bytes: 90 * PACKET, ..loss(at(101)) });
    let rtt = rtt(Duration::from_millis(50));
    for n in 1..=20 {
        round.on_ack(at(100 + n), &ack(PACKET, at(50 + n), &rtt), PACKET);
    }
    assert_eq!(round.on_ack(at(151), &ack(PACKET, at(101), &rtt), PACKET), None);
}

#[test]
fn a_stop_of_the_path_is_no_part_of_the_time() {
    let rtt = rtt(Duration::from_millis(50));
    let mut round = LossRound::default();
    round.begin(at(100), true);
    round.on_lost(&CongestionEvent { lost_bytes: 10 * PACKET, ..loss(at(99)) });
    for n in 1..=20 {
        // A radio link stops for 40 ms, and what it has held then arrives at once.
        let time = if n < 10 { 100 + n } else { 140 + n };
        round.on_ack(at(time), &ack(PACKET, at(50 + n), &rtt), PACKET);
    }
    let shown = round.on_ack(at(170), &ack(PACKET, at(101), &rtt), PACKET).unwrap();
    assert_eq!(shown.pipe, 50 * PACKET);
}

#[test]
fn a_silence_that_most_of_the_flight_has_come_after_says_nothing() {
    let rtt = rtt(Duration::from_millis(50));
    let mut round = LossRound::default();
    round.begin(at(100), true);
    round.on_lost(&CongestionEvent { lost_bytes: 60 * PACKET, ..loss(at(99)) });
    round.on_ack(at(120), &ack(100 * PACKET, at(90), &rtt), PACKET);
    round.on_ack(at(121), &ack((MEASURED_PACKETS - 1) * PACKET, at(91), &rtt), PACKET);
    assert_eq!(round.on_ack(at(150), &ack(PACKET, at(101), &rtt), PACKET), None);
}

#[test]
fn a_flight_that_is_shorter_than_twice_the_unevenness_of_its_path_says_nothing() {
    let shown = |step: u64| {
        let mut rtt = rtt(Duration::from_millis(50));
        rtt.update(at(90), Duration::from_millis(50 + step), Duration::ZERO, None);
        let mut round = LossRound::default();
        round.begin(at(100), true);
        round.on_lost(&CongestionEvent { lost_bytes: 10 * PACKET, ..loss(at(99)) });
        for n in 1..=20 {
            round.on_ack(at(100 + n), &ack(PACKET, at(50 + n), &rtt), PACKET);
        }
        round.on_ack(at(151), &ack(PACKET, at(101), &rtt), PACKET)
    };
    // It has come within 20 ms, of which one counts as a silence.
    assert!(shown(9).is_some());
    assert_eq!(shown(10), None);
}
