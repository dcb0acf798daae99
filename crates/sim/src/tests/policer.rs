//! What a policer lets through.

use super::*;
use crate::{Change, DropReason, Policer};

fn policed(policer: Policer) -> LinkConfig {
    LinkConfig { policer: Some(policer), ..LinkConfig::default() }
}

#[test]
fn a_burst_passes_as_far_as_the_bucket_holds() {
    let mut line = Line::new(1, policed(Policer::packets(10_000_000, 16)));
    for n in 0..20 {
        line.send(n, 1_500);
    }
    assert_eq!(numbers(&line.drain()), Vec::from_iter(0..16));
    assert_eq!(line.stats().packets_dropped(DropReason::Policed), 4);
}

#[test]
fn in_the_long_run_the_rate_passes() {
    let mut line = Line::new(1, policed(Policer { rate_bps: 3_000_000, bucket_bytes: 5_000 }));
    // 10 Mbit/s for 10 s.
    let deliveries = line.send_every(millis(1), 10_000, 1_250);
    // 3 Mbit/s are 3,000 packets; the bucket adds four.
    assert_eq!(deliveries.len(), 3_003);
}

#[test]
fn the_bucket_fills_to_the_bit_and_not_beyond() {
    let mut line = Line::new(1, policed(Policer { rate_bps: 8_000, bucket_bytes: 100 }));
    line.send(0, 100);
    // A byte takes a millisecond.
    line.world.advance(Instant::from_nanos(99_999_999));
    line.send(1, 100);
    line.world.advance(Instant::from_millis(100));
    line.send(2, 100);
    line.world.advance(Instant::from_millis(10_000));
    line.send(3, 100);
    line.send(4, 100);
    line.send(5, 101);
    assert_eq!(numbers(&line.drain()), [0, 2, 3]);
}

#[test]
fn a_policer_may_come_and_go() {
    let config = LinkConfig::default()
        .then(Instant::from_millis(10), Change::Policer(Some(Policer { rate_bps: 0, bucket_bytes: 30 })))
        .then(Instant::from_millis(20), Change::Policer(None));
    let mut line = Line::new(1, config);
    let arrived = numbers(&line.send_every(millis(1), 30, 10));
    assert_eq!(arrived, Vec::from_iter((0..13).chain(20..30)));
}
