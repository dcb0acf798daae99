//! The flight in which the first slow start has overshot.

use super::*;

/// A loss ends the first slow start at 100,000 bytes; what still arrives, a packet each millisecond over 50 ms, is what
/// a path of 60,000 bytes delivers.
fn after_a_flight_that_was_too_large() -> Cubic {
    let (mut cubic, rtt) = (cubic(100_000), rtt(Duration::from_millis(50)));
    let flight = CongestionEvent { lost_bytes: 12_000, lost_packets: 10, ..loss(at(999)) };
    lose_all(&mut cubic, at(1_000), &flight);
    for n in 1..=20 {
        let rtt_sample = Some(Duration::from_millis(50));
        cubic.on_ack(at(1_000 + n), &AckEvent { rtt_sample, ..ack(1_200, at(950 + n), &rtt) });
        assert_eq!((cubic.window(), cubic.conserves()), (70_000, true));
    }
    cubic.on_ack(at(1_051), &ack(1_200, at(1_001), &rtt));
    cubic
}

#[test]
fn the_flight_that_was_too_large_shows_what_the_path_holds() {
    let cubic = after_a_flight_that_was_too_large();
    assert_eq!((cubic.window(), cubic.ssthresh(), cubic.conserves()), (60_000, Some(60_000), false));
}

#[test]
fn what_left_before_the_path_was_known_is_not_answered_again() {
    let mut cubic = after_a_flight_that_was_too_large();
    cubic.on_congestion(at(1_060), &loss(at(1_020)));
    assert_eq!(cubic.window(), 60_000);
    cubic.on_congestion(at(1_110), &loss(at(1_060)));
    assert_eq!(cubic.window(), 42_000);
}

#[test]
fn later_losses_take_their_part_whatever_arrives() {
    let mut cubic = after_a_flight_that_was_too_large();
    cubic.on_congestion(at(2_000), &loss(at(1_999)));
    assert_eq!((cubic.window(), cubic.conserves()), (42_000, true));
    let rtt = rtt(Duration::from_millis(50));
    let rtt_sample = Some(Duration::from_millis(50));
    for n in 1..=20 {
        // Half of the rate.
        cubic.on_ack(at(2_000 + n), &AckEvent { rtt_sample, ..ack(600, at(1_950 + n), &rtt) });
    }
    cubic.on_ack(at(2_051), &ack(1_200, at(2_001), &rtt));
    assert!(cubic.window() >= 42_000 && !cubic.conserves());
}

#[test]
fn losses_that_were_none_undo_what_the_flight_seemed_to_show() {
    let mut cubic = after_a_flight_that_was_too_large();
    cubic.on_spurious_loss(at(1_070), &SpuriousLoss { bytes: 12_000, ..spurious(at(999)) });
    assert_eq!((cubic.window(), cubic.ssthresh()), (100_000, None));
}

/// Sends so many packets at `now`.
fn send(cubic: &mut Cubic, now: Instant, packets: u64) {
    for packet_number in 0..packets {
        let sent = Sent { packet_number, bytes: 1_200, bytes_in_flight: 0, app_limited: false };
        cubic.on_sent(now, &sent);
    }
}

#[test]
fn losses_long_after_the_first_slow_start_do_not_refute_its_flight() {
    let (mut cubic, rtt) = (cubic(12_000), rtt(Duration::from_millis(100)));
    send(&mut cubic, at(0), 10);
    for n in 1..=10 {
        let rtt_sample = Some(Duration::from_millis(100));
        cubic.on_ack(at(100 + n), &AckEvent { rtt_sample, ..ack(1_200, at(0), &rtt) });
    }
    assert!(cubic.window() > 100_000, "the train shows 1.2 MB/s: {}", cubic.window());
    // A loss ends the start before the flight has begun, and what leaves then arrives.
    cubic.on_congestion(at(111), &loss(at(0)));
    for second in 1..10 {
        send(&mut cubic, at(second * 1_000), 50);
        cubic.on_ack(at(second * 1_000 + 100), &ack(60_000, at(second * 1_000), &rtt));
    }
    let before = cubic.window();
    send(&mut cubic, at(10_000), 50);
    let losses = CongestionEvent { lost_bytes: 60_000, lost_packets: 50, ..loss(at(10_000)) };
    cubic.on_congestion(at(10_200), &losses);
    assert_eq!(cubic.window(), before * 7 / 10);
}
