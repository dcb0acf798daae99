use std::time::Duration;

use super::super::test_path::{SIZE, ack, loss, rtt};
use super::*;

const RTT: Duration = Duration::from_millis(100);
const PACKET: u64 = SIZE as u64;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A flight whose packets left at 0 to 9 ms.
fn flight() -> UnvalidatedFlight {
    let mut flight = UnvalidatedFlight::new(at(0));
    flight.on_sent(at(9));
    flight
}

/// Losses and, each millisecond, the arrival of one packet, from 100 ms on.
fn judge(flight: &mut UnvalidatedFlight, arrivals: u64, losses_each: u64) {
    let rtt = rtt(RTT);
    for millis in 0..arrivals {
        flight.on_ack(at(100 + millis), &ack(PACKET, at(millis.min(8)), &rtt));
        let losses = CongestionEvent { lost_bytes: losses_each * PACKET, ..loss(at(millis.min(8))) };
        if losses_each > 0 {
            flight.on_lost(at(100 + millis), &losses, PACKET);
        }
    }
}

#[test]
fn few_losses_refute_nothing() {
    let mut flight = flight();
    judge(&mut flight, 100, 1);
    assert!(!flight.is_refuted(), "as many as arrive may be lost");
    assert_eq!(flight.retreat(true, PACKET), None);
}

#[test]
fn a_few_packets_that_are_all_lost_refute_nothing() {
    let mut flight = flight();
    judge(&mut flight, 1, 15);
    assert!(!flight.is_refuted());
}

#[test]
fn what_arrives_between_losses_is_what_the_path_delivers() {
    let mut flight = flight();
    // A bucket of 20 packets passes first.
    flight.on_ack(at(100), &ack(20 * PACKET, at(0), &rtt(RTT)));
    assert_eq!(flight.arrived(), 20 * PACKET);
    judge(&mut flight, 60, 9);
    assert_eq!(flight.retreat(false, PACKET), Some(SafeRetreat::Arrived(80 * PACKET)));
    let delivers = flight.retreat(true, PACKET);
    assert_eq!(delivers, Some(SafeRetreat::Delivers(PACKET * 1_000)), "a packet each millisecond");
    assert_eq!(delivers.map(|it| it.window(&rtt(RTT))), Some(100 * PACKET));
}

#[test]
fn a_refuted_flight_is_over_when_its_last_packet_was_judged() {
    let mut flight = flight();
    judge(&mut flight, 10, 9);
    flight.on_sent(at(120));
    assert!(!flight.is_over(at(8)));
    assert!(flight.is_over(at(9)));
    let shown = flight.retreat(true, PACKET);
    flight.on_ack(at(220), &ack(PACKET, at(120), &rtt(RTT)));
    assert_eq!(flight.retreat(true, PACKET), shown, "what left after the refutation belongs to no flight");
}

#[test]
fn a_flight_that_arrives_is_over_when_something_later_does() {
    let mut flight = flight();
    assert!(!flight.is_over(at(10)), "nothing of it was answered");
    judge(&mut flight, 10, 0);
    flight.on_sent(at(100));
    assert!(!flight.is_over(at(9)), "its last losses are not known");
    assert!(flight.is_over(at(10)));
}

#[test]
fn what_left_before_is_no_part_of_it() {
    let mut flight = UnvalidatedFlight::new(at(50));
    flight.on_ack(at(120), &ack(PACKET, at(49), &rtt(RTT)));
    flight.on_lost(at(120), &CongestionEvent { lost_bytes: 100 * PACKET, ..loss(at(49)) }, PACKET);
    assert_eq!((flight.arrived(), flight.is_refuted()), (0, false));
}

#[test]
fn without_an_arrival_after_the_losses_what_arrived_is_all_that_is_known() {
    let mut flight = flight();
    flight.on_ack(at(100), &ack(10 * PACKET, at(0), &rtt(RTT)));
    flight.on_lost(at(100), &CongestionEvent { lost_bytes: 100 * PACKET, ..loss(at(9)) }, PACKET);
    assert_eq!(flight.retreat(true, PACKET), Some(SafeRetreat::Arrived(10 * PACKET)));
}

#[test]
fn what_is_lost_of_later_packets_refutes_nothing() {
    let mut flight = flight();
    judge(&mut flight, 2, 0);
    let losses = CongestionEvent { lost_bytes: 100 * PACKET, ..loss(at(150)) };
    flight.on_lost(at(300), &losses, PACKET);
    assert!(!flight.is_refuted());
}

#[test]
fn the_window_of_an_uneven_path_has_room_for_twice_the_unevenness() {
    let mut path = rtt(RTT);
    let delivers = SafeRetreat::Delivers(1_000_000);
    assert_eq!(delivers.window(&path), 100_000);
    path.update(at(10), RTT + Duration::from_millis(30), Duration::ZERO, None);
    assert_eq!(delivers.window(&path), 160_000);
    assert_eq!(SafeRetreat::Arrived(5_000).window(&path), 5_000);
}
