//! The same seed gives the same world.

use proptest::prelude::*;

use super::*;
use crate::{
    Aqm, Change, Corrupt, CrossTraffic, DualQ, Jitter, Loss, Policer, QueueLimit, Reorder, SuspendedSide,
    Suspension, TrafficPattern,
};

fn rough() -> LinkConfig {
    LinkConfig {
        rate_bps: Some(20_000_000),
        queue: QueueLimit { bytes: Some(30_000), time: None },
        delay: millis(7),
        jitter: Jitter::Normal { mean: millis(3), deviation: millis(1) },
        loss: Loss::GilbertElliott { to_bad: 0.02, to_good: 0.3, loss_good: 0.01, loss_bad: 0.7 },
        duplicate: 0.02,
        corrupt: Corrupt { probability: 0.02, bytes_max: 4, replace: true },
        reorder: Reorder::ByDepth { probability: 0.05, depth_max: 9, hold_max: millis(30) },
        ..LinkConfig::default()
    }
}

/// What [`rough`] leaves out.
fn busy() -> LinkConfig {
    let on_mean = millis(5);
    let pattern = TrafficPattern::RandomOnOff { on_mean, off_mean: on_mean };
    let suspension = Suspension { duration: millis(20), side: SuspendedSide::Both };
    let config = LinkConfig {
        rate_bps: Some(20_000_000),
        queue: QueueLimit { bytes: None, time: Some(millis(60)) },
        aqm: Aqm::DualQ(DualQ { target: millis(2), ..DualQ::default() }),
        policer: Some(Policer::packets(30_000_000, 10)),
        cross_traffic: Some(CrossTraffic { pattern, ..CrossTraffic::steady(10_000_000) }),
        delay: millis(7),
        jitter: Jitter::Wifi { mean: millis(3) },
        loss: Loss::GilbertElliottTimed {
            good_mean: millis(50),
            bad_mean: millis(5),
            loss_good: 0.0,
            loss_bad: 0.5,
        },
        ..LinkConfig::default()
    };
    // The cross traffic must end for the world to come to rest.
    config
        .suspended(Instant::from_millis(30), millis(100), 5, suspension)
        .then(Instant::from_millis(400), Change::CrossTraffic(None))
}

fn run(seed: u64, config: LinkConfig) -> Vec<Delivery> {
    Line::new(seed, config).send_every(Duration::from_micros(500), 2_000, 1_000)
}

#[test]
fn the_same_seed_gives_the_same_deliveries() {
    for config in [rough(), busy()] {
        assert_eq!(run(1, config.clone()), run(1, config.clone()));
        assert_ne!(run(1, config.clone()), run(2, config));
    }
}

#[test]
fn one_element_does_not_shift_the_draws_of_another() {
    let lost = |config: LinkConfig| {
        let mut lost = vec![true; 2_000];
        for delivery in run(3, config) {
            lost[number(&delivery) as usize] = false;
        }
        lost
    };
    let loss = Loss::Uniform { probability: 0.1 };
    let plain = LinkConfig { loss, ..LinkConfig::default() };
    let busy = LinkConfig {
        jitter: Jitter::Uniform { max: millis(4) },
        duplicate: 0.3,
        reorder: Reorder::ByTime { probability: 0.3, delay_max: millis(4) },
        ..plain.clone()
    };
    assert_eq!(lost(plain), lost(busy));
}

#[test]
fn how_far_the_caller_advances_changes_nothing() {
    let collect = |config: LinkConfig, step: Duration| {
        let mut line = Line::new(4, config);
        for n in 0..50 {
            line.send(n, 500);
        }
        let mut deliveries = Vec::new();
        while line.world.now() < Instant::from_millis(500) {
            let next = line.world.now() + step;
            line.world.advance(next);
            deliveries.extend(std::iter::from_fn(|| line.world.poll_delivery()));
        }
        deliveries
    };
    for config in [rough(), busy()] {
        let [fine, coarse] = [Duration::from_micros(17), Duration::from_secs(1)];
        assert_eq!(collect(config.clone(), fine), collect(config, coarse));
    }
}

proptest! {
    #[test]
    fn deliveries_are_in_order_of_time_and_nothing_is_left_behind(
        seed: u64,
        rate in prop::option::of(1_000_u64..1_000_000_000_000),
        delay_us in 0_u64..100_000,
        jitter_us in 0_u64..10_000,
        jitter_reorders: bool,
        hold_us in 0_u64..10_000,
    ) {
        let config = LinkConfig {
            rate_bps: rate,
            delay: Duration::from_micros(delay_us),
            jitter: Jitter::Uniform { max: Duration::from_micros(jitter_us) },
            jitter_reorders,
            reorder: Reorder::ByTime { probability: 0.2, delay_max: Duration::from_micros(hold_us) },
            ..LinkConfig::default()
        };
        let mut line = Line::new(seed, config);
        let deliveries = line.send_every(Duration::from_micros(100), 100, 200);
        prop_assert_eq!(deliveries.len(), 100);
        prop_assert!(times(&deliveries).is_sorted());
        prop_assert_eq!(line.world.next_event(), None);
    }
}
