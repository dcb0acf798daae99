//! Delay, jitter and reordering.

use super::*;
use crate::{Change, Jitter, Reorder};

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[test]
fn the_delay_is_exact_and_follows_the_transmission() {
    let config = LinkConfig::with_rate(10_000_000, millis(300), millis(600));
    let mut line = Line::new(1, config);
    line.send(0, 1_250);
    assert_eq!(times(&line.drain()), [301_000_000]);
}

#[test]
fn forty_minutes_are_no_problem() {
    let mut line = Line::new(1, LinkConfig { delay: Duration::from_secs(2_400), ..LinkConfig::default() });
    line.send(0, 100);
    assert_eq!(line.world.next_event(), Some(Instant::from_millis(2_400_000)));
    assert_eq!(times(&line.drain()), [2_400_000_000_000]);
}

#[test]
fn a_shorter_delay_does_not_overtake() {
    let config = LinkConfig { delay: millis(100), ..LinkConfig::default() };
    let mut line = Line::new(1, config.then(Instant::from_millis(5), Change::Delay(millis(10))));
    let deliveries = line.send_every(millis(10), 12, 10);
    assert_eq!(numbers(&deliveries), (0..12).collect::<Vec<_>>());
    assert_eq!(deliveries[1].at, Instant::from_millis(100));
    assert_eq!(deliveries[11].at, Instant::from_millis(120));
}

#[test]
fn uniform_jitter_keeps_the_order_unless_told_otherwise() {
    let jitter = Jitter::Uniform { max: millis(10) };
    let ordered = LinkConfig { delay: millis(50), jitter, ..LinkConfig::default() };
    let mut line = Line::new(3, ordered.clone());
    let deliveries = line.send_every(millis(1), 2_000, 10);
    assert!(numbers(&deliveries).is_sorted());
    assert_eq!(line.stats().packets_reordered, 0);

    let mut line = Line::new(3, LinkConfig { jitter_reorders: true, ..ordered });
    let deliveries = line.send_every(millis(1), 2_000, 10);
    assert!(times(&deliveries).is_sorted() && !numbers(&deliveries).is_sorted());
    assert!(line.stats().packets_reordered > 100);
}

#[test]
fn uniform_jitter_has_its_range_and_mean() {
    let jitter = Jitter::Uniform { max: millis(10) };
    let mut line = Line::new(4, LinkConfig { delay: millis(50), jitter, ..LinkConfig::default() });
    // Far enough apart that no packet waits for another.
    let deliveries = line.send_every(millis(20), 4_000, 10);
    let extra = |(n, delivery): (usize, &Delivery)| delivery.at.as_secs_f64() * 1e3 - 20.0 * n as f64 - 50.0;
    assert!(deliveries.iter().enumerate().map(extra).all(|ms| (-1e-6..=10.000_001).contains(&ms)));
    let mean = mean(deliveries.iter().enumerate().map(extra));
    assert!((4.7..5.3).contains(&mean), "{mean}");
}

#[test]
fn normal_jitter_has_its_mean_and_deviation() {
    let jitter = Jitter::Normal { mean: millis(10), deviation: millis(2) };
    let mut line = Line::new(5, LinkConfig { jitter, ..LinkConfig::default() });
    let deliveries = line.send_every(millis(30), 4_000, 10);
    let extra = |(n, delivery): (usize, &Delivery)| delivery.at.as_secs_f64() * 1e3 - 30.0 * n as f64;
    let average = mean(deliveries.iter().enumerate().map(extra));
    let variance = mean(deliveries.iter().enumerate().map(|d| (extra(d) - average).powi(2)));
    assert!((9.8..10.2).contains(&average), "{average}");
    assert!((1.9..2.1).contains(&variance.sqrt()), "{variance}");
}

#[test]
fn reordering_by_time_happens_as_often_as_asked() {
    let reorder = Reorder::ByTime { probability: 0.05, delay_max: millis(20) };
    let mut line = Line::new(6, LinkConfig { delay: millis(10), reorder, ..LinkConfig::default() });
    let deliveries = line.send_every(millis(1), 10_000, 10);
    assert_eq!(deliveries.len(), 10_000);
    let latest = deliveries.iter().map(|d| d.at - Instant::from_millis(number(d).into())).max();
    assert!(latest.is_some_and(|latest| (millis(29)..=millis(30)).contains(&latest)), "{latest:?}");
    // One in twenty of those held is held for less than a millisecond, so that nobody overtakes it.
    assert!((380..570).contains(&line.stats().packets_reordered), "{}", line.stats().packets_reordered);
}

#[test]
fn reordering_by_depth_lets_that_many_pass() {
    let reorder = Reorder::ByDepth { probability: 0.02, depth_max: 5, hold_max: millis(100) };
    let mut line = Line::new(7, LinkConfig { delay: millis(10), reorder, ..LinkConfig::default() });
    let order = numbers(&line.send_every(millis(1), 10_000, 10));
    let behind = |place: usize| order[..place].iter().filter(|&&other| other > order[place]).count();
    let depths: Vec<_> = (0..order.len()).map(behind).filter(|&depth| depth > 0).collect();
    for depth in 1..=5 {
        let share = depths.iter().filter(|&&d| d == depth).count();
        assert!((15..75).contains(&share), "depth {depth}: {share}");
    }
    assert!(depths.iter().all(|&depth| depth <= 5));
    assert_eq!(depths.len() as u64, line.stats().packets_reordered);
}

#[test]
fn a_packet_that_nobody_overtakes_is_released_in_time() {
    let reorder = Reorder::ByDepth { probability: 1.0, depth_max: 3, hold_max: millis(40) };
    let mut line = Line::new(8, LinkConfig { reorder, ..LinkConfig::default() });
    line.send(0, 10);
    assert_eq!(times(&line.drain()), [40_000_000]);
}

#[test]
fn what_is_held_back_is_bounded() {
    let reorder = Reorder::ByDepth { probability: 1.0, depth_max: 3, hold_max: millis(40) };
    let mut line = Line::new(9, LinkConfig { reorder, ..LinkConfig::default() });
    for n in 0..5_000 {
        line.send(n, 10);
    }
    assert_eq!(line.drain().len(), 5_000);
    assert!(line.stats().packets_reordered >= 1_024);
}
