//! Traffic of others.

use super::*;
use crate::{Change, CrossTraffic, QueueLimit, TrafficPattern};

fn shared(cross_traffic: CrossTraffic, queue: QueueLimit) -> LinkConfig {
    LinkConfig {
        rate_bps: Some(10_000_000),
        queue,
        cross_traffic: Some(cross_traffic),
        ..LinkConfig::default()
    }
}

/// Runs a line for a time and returns what was delivered.
fn run(line: &mut Line, end: Instant) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    while line.world.now() < end {
        line.world.advance(end);
        deliveries.extend(std::iter::from_fn(|| line.world.poll_delivery()));
    }
    deliveries
}

#[test]
fn it_is_never_delivered_and_keeps_its_rate() {
    let mut line = Line::new(1, shared(CrossTraffic::steady(5_000_000), QueueLimit::default()));
    assert_eq!(run(&mut line, Instant::from_millis(10_000)), []);
    // A packet every 2 ms, of which each takes 1 ms.
    assert_eq!(line.stats().cross_packets_carried, 5_000);
    assert_eq!(line.stats().packets_sent, 0);
}

#[test]
fn it_takes_rate_and_queue_from_others() {
    let queue = QueueLimit { bytes: Some(12_500), time: None };
    // Packets of another size, so that they do not always come at the same point of our own ones.
    let traffic = CrossTraffic { packet_size: 700, ..CrossTraffic::steady(5_000_000) };
    let mut line = Line::new(1, shared(traffic, queue));
    // 10 Mbit/s of our own: 15 Mbit/s in all.
    for n in 0..10_000 {
        line.send(n, 1_250);
        run(&mut line, Instant::from_millis(u64::from(n) + 1));
    }
    let stats = line.stats();
    let carried = stats.cross_packets_carried * 700 + stats.bytes_delivered;
    assert!((12_470_000..=12_500_000).contains(&carried), "{carried}");
    assert!(stats.cross_packets_dropped > 100 && stats.packets_dropped_in_all() > 2_000, "{stats:?}");
    assert!(stats.cross_packets_carried > 2_000 && stats.packets_delivered > 2_000, "{stats:?}");
}

#[test]
fn it_is_off_now_and_then() {
    let pattern = TrafficPattern::OnOff { on: millis(10), off: millis(30) };
    let traffic = CrossTraffic { pattern, ..CrossTraffic::steady(5_000_000) };
    let mut line = Line::new(1, shared(traffic, QueueLimit::default()));
    run(&mut line, Instant::from_millis(20));
    // At 0, 2, 4, 6 and 8 ms.
    assert_eq!(line.stats().cross_packets_carried, 5);
    run(&mut line, Instant::from_millis(400));
    assert_eq!(line.stats().cross_packets_carried, 50);
}

#[test]
fn turns_with_few_packets_keep_the_rate() {
    let carried = |rate_bps, on, off| {
        let pattern = TrafficPattern::OnOff { on: millis(on), off: millis(off) };
        let traffic = CrossTraffic { pattern, ..CrossTraffic::steady(rate_bps) };
        let mut line = Line::new(1, shared(traffic, QueueLimit::default()));
        run(&mut line, Instant::from_millis(30_000));
        line.stats().cross_packets_carried
    };
    // A packet every 10 ms of 11 in 30, and one every 100 ms of as many.
    assert_eq!([carried(1_000_000, 11, 19), carried(100_000, 11, 19)], [1_100, 110]);
    assert_eq!(carried(1_000_000, 0, 10), 1, "never on");
}

#[test]
fn random_turns_have_their_means() {
    let pattern = TrafficPattern::RandomOnOff { on_mean: millis(100), off_mean: millis(300) };
    let traffic = CrossTraffic { pattern, ..CrossTraffic::steady(5_000_000) };
    let mut line = Line::new(2, shared(traffic, QueueLimit::default()));
    run(&mut line, Instant::from_millis(400_000));
    // A quarter of 200,000.
    assert!((46_000..54_000).contains(&line.stats().cross_packets_carried), "{:?}", line.stats());
}

#[test]
fn it_may_come_and_go() {
    let traffic = CrossTraffic::steady(5_000_000);
    let config = LinkConfig { rate_bps: Some(10_000_000), ..LinkConfig::default() }
        .then(Instant::from_millis(100), Change::CrossTraffic(Some(traffic)))
        .then(Instant::from_millis(200), Change::CrossTraffic(None));
    let mut line = Line::new(1, config);
    // With an end, the world comes to rest.
    assert_eq!(line.drain(), []);
    assert_eq!(line.stats().cross_packets_carried, 50);
}

#[test]
fn traffic_that_hardly_ever_comes_ends_nothing() {
    for rate_bps in [0, 1] {
        let traffic = CrossTraffic { rate_bps, packet_size: u32::MAX, ..CrossTraffic::steady(0) };
        let mut line = Line::new(1, LinkConfig { cross_traffic: Some(traffic), ..LinkConfig::default() });
        run(&mut line, Instant::from_millis(1_000));
        assert_eq!(line.stats().cross_packets_carried, rate_bps);
    }
}
