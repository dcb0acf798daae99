//! Rate and queue.

use super::*;
use crate::{Change, DropReason, QueueLimit};

/// 10 Mbit/s: 1,250 bytes take a millisecond.
fn ten_mbit(queue: QueueLimit) -> LinkConfig {
    LinkConfig { rate_bps: Some(10_000_000), queue, ..LinkConfig::default() }
}

fn unlimited() -> QueueLimit {
    QueueLimit::default()
}

#[test]
fn a_rate_serialises_packets() {
    let mut line = Line::new(1, ten_mbit(unlimited()));
    for n in 0..3 {
        line.send(n, 1_250);
    }
    line.send(3, 125);
    assert_eq!(times(&line.drain()), [1_000_000, 2_000_000, 3_000_000, 3_100_000]);
    assert_eq!(line.stats().queue_bytes_max, 2 * 1_250 + 125);
}

#[test]
fn fractions_of_a_nanosecond_are_not_lost() {
    let mut line = Line::new(1, LinkConfig { rate_bps: Some(7_000_000), ..LinkConfig::default() });
    for n in 0..7_000 {
        line.send(n, 1_000);
    }
    // 7,000 packets of 8,000 bits at 7 Mbit/s: eight seconds to the nanosecond, though one takes 1,142,857
    // and a seventh.
    assert_eq!(line.drain().last().map(|last| last.at), Some(Instant::from_millis(8_000)));
}

#[test]
fn a_transmitter_that_was_idle_starts_at_once() {
    let mut line = Line::new(1, ten_mbit(unlimited()));
    let deliveries = line.send_every(millis(5), 3, 1_250);
    assert_eq!(times(&deliveries), [1_000_000, 6_000_000, 11_000_000]);
}

#[test]
fn a_queue_in_bytes_drops_the_tail() {
    let mut line = Line::new(1, ten_mbit(QueueLimit { bytes: Some(2_500), time: None }));
    for n in 0..5 {
        line.send(n, 1_250);
    }
    // One is sent, two wait, two are dropped.
    assert_eq!(numbers(&line.drain()), [0, 1, 2]);
    assert_eq!(line.stats().packets_dropped(DropReason::QueueFull), 2);
}

#[test]
fn a_queue_in_time_drops_what_would_wait_longer() {
    let mut line = Line::new(1, ten_mbit(QueueLimit { bytes: None, time: Some(millis(3)) }));
    for n in 0..10 {
        line.send(n, 1_250);
    }
    // The fifth packet finds a wait of 4 ms.
    assert_eq!(numbers(&line.drain()), [0, 1, 2, 3]);
    assert_eq!(line.stats().packets_dropped(DropReason::QueueFull), 6);
}

#[test]
fn an_idle_transmitter_takes_any_packet() {
    let mut line = Line::new(1, ten_mbit(QueueLimit { bytes: Some(0), time: Some(Duration::ZERO) }));
    assert_eq!(line.send_every(millis(1), 10, 1_250).len(), 10);
}

#[test]
fn a_new_rate_holds_for_the_packet_in_transmission_too() {
    let slower = ten_mbit(unlimited()).then(Instant::from_micros(500), Change::Rate(Some(1_000_000)));
    let mut line = Line::new(1, slower);
    line.send(0, 1_250);
    line.send(1, 1_250);
    // Half of the first takes 0.5 ms, the other half 5 ms.
    assert_eq!(times(&line.drain()), [5_500_000, 15_500_000]);
}

#[test]
fn a_rate_of_zero_holds_packets_until_it_changes() {
    let pause = ten_mbit(unlimited())
        .then(Instant::from_micros(250), Change::Rate(Some(0)))
        .then(Instant::from_millis(100), Change::Rate(Some(10_000_000)));
    let mut line = Line::new(1, pause);
    line.send(0, 1_250);
    line.send(1, 1_250);
    assert_eq!(times(&line.drain()), [100_750_000, 101_750_000]);

    let mut line = Line::new(1, LinkConfig { rate_bps: Some(0), ..LinkConfig::default() });
    line.send(0, 1_250);
    assert_eq!(line.world.next_event(), None);
    line.world.change(line.link, line.a, &Change::Rate(None));
    assert_eq!(numbers(&line.drain()), [0]);
}

#[test]
fn a_queue_in_time_holds_as_much_while_the_link_stands_still() {
    // Half of the third packet has left when the silence begins.
    let silent = ten_mbit(QueueLimit { bytes: None, time: Some(millis(3)) })
        .then(Instant::from_micros(4_500), Change::Rate(Some(0)))
        .then(Instant::from_millis(100), Change::Rate(Some(10_000_000)));
    let mut line = Line::new(1, silent);
    let arrived = line.send_every(millis(2), 10, 1_250);
    // The next three have 0.5, 1.5 and 2.5 ms before them, at the rate that the link had.
    assert_eq!(numbers(&arrived), [0, 1, 2, 3, 4, 5]);
    assert_eq!(times(&arrived)[2..], [100_500_000, 101_500_000, 102_500_000, 103_500_000]);
    assert_eq!(line.stats().packets_dropped(DropReason::QueueFull), 4);
}

#[test]
fn a_link_that_has_not_moved_yet_keeps_what_comes() {
    let late = LinkConfig {
        rate_bps: Some(0),
        queue: QueueLimit { bytes: None, time: Some(millis(1)) },
        ..LinkConfig::default()
    };
    let mut line = Line::new(1, late.then(Instant::from_millis(50), Change::Rate(Some(10_000_000))));
    assert_eq!(times(&line.send_every(millis(5), 3, 1_250)), [51_000_000, 52_000_000, 53_000_000]);
}

#[test]
fn empty_packets_pass_a_rate() {
    let mut line = Line::new(1, ten_mbit(unlimited()));
    line.send(0, 0);
    line.send(0, 0);
    assert_eq!(times(&line.drain()), [0, 0]);
}

#[test]
fn the_mtu_counts_payload_bytes_and_may_change() {
    let config = LinkConfig { mtu: Some(1_452), ..LinkConfig::default() };
    let mut line = Line::new(1, config.then(Instant::from_millis(1), Change::Mtu(Some(1_300))));
    line.send(0, 1_452);
    line.send(1, 1_453);
    let mut arrived = numbers(&line.drain());
    line.send(2, 1_301);
    line.send(3, 1_300);
    arrived.extend(numbers(&line.drain()));
    assert_eq!(arrived, [0, 3]);
    assert_eq!(line.stats().packets_dropped(DropReason::TooLarge), 2);
}
