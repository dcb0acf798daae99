use super::super::test_path::{SIZE, ack, loss, rtt};
use super::*;

const RTT: Duration = Duration::from_millis(100);
const PACKET: u64 = SIZE as u64;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A flight whose packets left at 0 to 9 ms.
fn flight() -> Leap {
    let mut leap = Leap::new(at(0));
    leap.on_sent(at(9));
    leap
}

/// Losses and, each millisecond, the arrival of one packet, from 100 ms on.
fn judge(leap: &mut Leap, arrivals: u64, losses_each: u64) {
    let rtt = rtt(RTT);
    for millis in 0..arrivals {
        leap.on_ack(at(100 + millis), &ack(PACKET, at(millis.min(8)), &rtt));
        let losses = CongestionEvent { lost_bytes: losses_each * PACKET, ..loss(at(millis.min(8))) };
        if losses_each > 0 {
            leap.on_lost(at(100 + millis), &losses, PACKET);
        }
    }
}

#[test]
fn few_losses_refute_nothing() {
    let mut leap = flight();
    judge(&mut leap, 100, 1);
    assert!(!leap.is_refuted(), "as many as arrive may be lost");
    assert_eq!(leap.retreat(true, PACKET), None);
}

#[test]
fn a_few_packets_that_are_all_lost_refute_nothing() {
    let mut leap = flight();
    judge(&mut leap, 1, 15);
    assert!(!leap.is_refuted());
}

#[test]
fn what_arrives_between_losses_is_what_the_path_delivers() {
    let mut leap = flight();
    // A bucket of 20 packets passes first.
    leap.on_ack(at(100), &ack(20 * PACKET, at(0), &rtt(RTT)));
    assert_eq!(leap.arrived(), 20 * PACKET);
    judge(&mut leap, 60, 9);
    assert_eq!(leap.retreat(false, PACKET), Some(Retreat::Arrived(80 * PACKET)));
    let delivers = leap.retreat(true, PACKET);
    assert_eq!(delivers, Some(Retreat::Delivers(PACKET * 1_000)), "a packet each millisecond");
    assert_eq!(delivers.map(|it| it.window(RTT)), Some(100 * PACKET));
}

#[test]
fn a_refuted_flight_is_over_when_its_last_packet_was_judged() {
    let mut leap = flight();
    judge(&mut leap, 10, 9);
    leap.on_sent(at(120));
    assert!(!leap.is_over(at(8)));
    assert!(leap.is_over(at(9)));
    let shown = leap.retreat(true, PACKET);
    leap.on_ack(at(220), &ack(PACKET, at(120), &rtt(RTT)));
    assert_eq!(leap.retreat(true, PACKET), shown, "what left after the refutation belongs to no flight");
}

#[test]
fn a_flight_that_arrives_is_over_when_something_later_does() {
    let mut leap = flight();
    assert!(!leap.is_over(at(10)), "nothing of it was answered");
    judge(&mut leap, 10, 0);
    leap.on_sent(at(100));
    assert!(!leap.is_over(at(9)), "its last losses are not known");
    assert!(leap.is_over(at(10)));
}

#[test]
fn what_left_before_is_no_part_of_it() {
    let mut leap = Leap::new(at(50));
    leap.on_ack(at(120), &ack(PACKET, at(49), &rtt(RTT)));
    leap.on_lost(at(120), &CongestionEvent { lost_bytes: 100 * PACKET, ..loss(at(49)) }, PACKET);
    assert_eq!((leap.arrived(), leap.is_refuted()), (0, false));
}

#[test]
fn without_an_arrival_after_the_losses_what_arrived_is_all_that_is_known() {
    let mut leap = flight();
    leap.on_ack(at(100), &ack(10 * PACKET, at(0), &rtt(RTT)));
    leap.on_lost(at(100), &CongestionEvent { lost_bytes: 100 * PACKET, ..loss(at(9)) }, PACKET);
    assert_eq!(leap.retreat(true, PACKET), Some(Retreat::Arrived(10 * PACKET)));
}
