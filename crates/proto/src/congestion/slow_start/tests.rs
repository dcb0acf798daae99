use std::time::Duration;

use super::super::test_path::{SIZE, ack, rtt};
use super::super::{DeliverySnapshot, RateSample};
use super::*;

const RTT: Duration = Duration::from_millis(600);
const PACKET: u64 = SIZE as u64;

/// Sends a train and acknowledges it in pairs at 1.2 MB/s.
fn train(start: &mut SlowStart, sent: Instant, packets: u64, window: &mut u64) {
    for packet_number in 0..packets {
        start.on_sent(sent, &Sent { packet_number, bytes: PACKET, bytes_in_flight: 0, app_limited: false });
    }
    let rtt = rtt(RTT);
    for pair in 1..=packets / 2 {
        let now = sent + RTT + Duration::from_millis(2 * pair);
        start.probe_with_trains(now, &ack(2 * PACKET, sent, &rtt), PACKET, window);
    }
}

fn found() -> (SlowStart, u64) {
    let mut window = 10 * PACKET;
    let mut start = SlowStart::new(window);
    train(&mut start, Instant::ZERO, 10, &mut window);
    let packets = start.take_packet_train() / (2 * PACKET) * 2;
    train(&mut start, Instant::from_millis(700), packets, &mut window);
    (start, window)
}

#[test]
fn a_train_raises_the_window_to_what_the_path_holds() {
    let (start, window) = found();
    assert!((690_000..=740_000).contains(&window), "{window}");
    assert!(start.is_conservative());
}

#[test]
fn a_window_that_trains_have_found_grows_with_caution_until_the_delay_rises() {
    let (mut start, mut window) = found();
    let (before, mut ssthresh) = (window, None);
    let rtt = rtt(RTT);
    let now = Instant::from_millis(2_000);
    start.grow(now, &ack(4_000, now, &rtt), &mut window, &mut ssthresh);
    assert_eq!((window, ssthresh), (before + 1_000, None));
    for sample in 0..10 {
        let now = now + Duration::from_millis(30) * sample;
        let ack = AckEvent { rtt_sample: Some(RTT + Duration::from_millis(60)), ..ack(4_000, now, &rtt) };
        start.probe_with_trains(now, &ack, PACKET, &mut window);
    }
    start.grow(now, &ack(4_000, now, &rtt), &mut window, &mut ssthresh);
    assert_eq!(ssthresh, Some(before + 1_000));
}

/// A window of acknowledgements at `rate`, in bytes per second, on a path of 20 ms; returns the window that follows.
fn grow_at(rate: u64, window: u64) -> u64 {
    let rtt = rtt(Duration::from_millis(20));
    let (mut start, mut grown, mut ssthresh) = (SlowStart::new(10 * PACKET), window, None);
    let sample = RateSample {
        delivery_rate: rate,
        delivered: window,
        interval: Duration::from_millis(20),
        total_delivered: window,
        lost: 0,
        snapshot: DeliverySnapshot::NONE,
    };
    let now = Instant::from_millis(100);
    let ack = AckEvent { rate: Some(sample), ..ack(window, now, &rtt) };
    // Trains have found nothing.
    start.stop();
    start.probe_with_trains(now, &ack, PACKET, &mut grown);
    start.grow(now, &ack, &mut grown, &mut ssthresh);
    grown
}

#[test]
fn a_window_doubles_as_long_as_the_rate_of_delivery_follows() {
    // A window of 100 kB in 20 ms.
    assert_eq!(grow_at(5_000_000, 100_000), 200_000);
    assert_eq!(grow_at(50_000_000, 100_000), 200_000);
}

#[test]
fn a_window_grows_no_further_than_two_of_what_the_path_holds() {
    // Only 70 kB of it were delivered in 20 ms: the rest is a queue.
    assert_eq!(grow_at(3_500_000, 100_000), 140_000);
    // A window that is larger already stays as it is.
    assert_eq!(grow_at(1_750_000, 100_000), 100_000);
}

#[test]
fn a_bound_leaves_two_initial_windows() {
    assert_eq!(grow_at(1_000, 10 * PACKET), 20 * PACKET);
}

#[test]
fn congestion_ends_the_search() {
    let mut window = 10 * PACKET;
    let mut start = SlowStart::new(window);
    train(&mut start, Instant::ZERO, 10, &mut window);
    start.stop();
    assert_eq!((start.take_packet_train(), start.is_conservative()), (0, false));
}
