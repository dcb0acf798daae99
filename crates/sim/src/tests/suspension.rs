//! Links that stop for a while.

use super::*;
use crate::{Change, DropReason, QueueLimit, SuspendedSide, Suspension};

/// 10 Mbit/s and 3 ms: 1,250 bytes take a millisecond to send.
fn radio() -> LinkConfig {
    LinkConfig { rate_bps: Some(10_000_000), delay: millis(3), ..LinkConfig::default() }
}

fn stop(duration_ms: u64, side: SuspendedSide) -> Suspension {
    Suspension { duration: millis(duration_ms), side }
}

fn stopped_at(at_ms: u64, config: LinkConfig, suspension: Suspension) -> LinkConfig {
    config.then(Instant::from_millis(at_ms), Change::Suspend(suspension))
}

/// The arrivals, in microseconds, of one packet of 1,250 bytes every 2 ms.
fn arrivals(config: LinkConfig, count: u32) -> Vec<u64> {
    let deliveries = Line::new(1, config).send_every(millis(2), count, 1_250);
    assert!(numbers(&deliveries).is_sorted());
    times(&deliveries).iter().map(|nanos| nanos / 1_000).collect()
}

#[test]
fn a_transmitter_that_stops_goes_on_in_the_middle_of_a_packet() {
    let config = LinkConfig { delay: Duration::ZERO, ..radio() };
    let config = config.then(Instant::from_micros(2_250), Change::Suspend(stop(100, SuspendedSide::Send)));
    // A quarter of the second packet is out when it stops; the third and the fourth wait.
    assert_eq!(arrivals(config, 4), [1_000, 103_000, 104_000, 105_000]);
}

#[test]
fn what_has_left_the_transmitter_arrives_during_the_stop() {
    let config = stopped_at(3, radio(), stop(50, SuspendedSide::Send));
    assert_eq!(arrivals(config, 3), [4_000, 6_000, 57_000]);
}

#[test]
fn a_receiver_that_stops_gets_everything_together() {
    let config = stopped_at(5, radio(), stop(10, SuspendedSide::Receive));
    // Before the stop, during it, at its very end, and afterwards.
    assert_eq!(arrivals(config, 8), [4_000, 15_000, 15_000, 15_000, 15_000, 15_000, 16_000, 18_000]);
}

#[test]
fn both_sides_stop_together() {
    let config = stopped_at(5, radio(), stop(10, SuspendedSide::Both));
    // The third packet was in transmission from 4 to 5 ms; those from 6 ms on wait for the transmitter.
    assert_eq!(arrivals(config, 5), [4_000, 15_000, 15_000, 19_000, 20_000]);
}

#[test]
fn stops_that_overlap_last_until_the_latest_end() {
    let config = stopped_at(1, radio(), stop(20, SuspendedSide::Both));
    let config = stopped_at(5, config, stop(10, SuspendedSide::Both));
    assert_eq!(arrivals(config, 2), [21_000, 25_000]);
}

#[test]
fn a_series_stops_each_time() {
    let config = radio().suspended(Instant::from_millis(5), millis(20), 3, stop(10, SuspendedSide::Receive));
    let arrivals = arrivals(config, 40);
    for end in [15_000, 35_000, 55_000] {
        assert!(arrivals.iter().filter(|at| **at == end).count() >= 5, "{arrivals:?}");
        let silent = |at: &u64| (end - 9_999..end).contains(at);
        assert!(!arrivals.iter().any(silent), "{arrivals:?}");
    }
}

#[test]
fn the_rest_of_a_stop_counts_for_a_limit_in_time() {
    let queue = QueueLimit { bytes: None, time: Some(millis(12)) };
    let config = stopped_at(0, LinkConfig { queue, ..radio() }, stop(20, SuspendedSide::Send));
    let mut line = Line::new(1, config);
    let deliveries = line.send_every(millis(2), 10, 1_250);
    // The stop begins while the first packet is sent. At 2, 4, 6 and 8 ms the wait would be too long.
    assert_eq!(numbers(&deliveries), [0, 5, 6, 7, 8, 9]);
    assert_eq!(line.stats().packets_dropped(DropReason::QueueFull), 4);
}

#[test]
fn a_link_without_a_rate_sends_everything_at_the_end() {
    let config = LinkConfig { delay: millis(3), ..LinkConfig::default() };
    let config = stopped_at(3, config, stop(10, SuspendedSide::Send));
    assert_eq!(arrivals(config, 8), [3_000, 5_000, 16_000, 16_000, 16_000, 16_000, 16_000, 17_000]);
}

#[test]
fn the_rate_may_change_during_a_stop() {
    let slower = |rate| {
        let config = stopped_at(1, radio(), stop(10, SuspendedSide::Send));
        config.then(Instant::from_millis(5), Change::Rate(rate))
    };
    assert_eq!(arrivals(slower(Some(5_000_000)), 3), [4_000, 16_000, 18_000]);
    assert_eq!(arrivals(slower(None), 3), [4_000, 14_000, 14_000]);
}

#[test]
fn nothing_is_left_over_when_nothing_was_held() {
    let config = stopped_at(1, radio(), stop(10, SuspendedSide::Both));
    let mut line = Line::new(1, config);
    assert_eq!(line.drain(), []);
    assert_eq!(line.world.next_event(), None);
    line.send(0, 1_250);
    assert_eq!(line.drain().len(), 1);
}
