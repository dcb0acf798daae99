//! The estimate of losses, and how many repair symbols they need.

use super::*;

#[test]
fn the_estimate_finds_the_rate_and_the_bursts() {
    let mut independent = LossEstimate::default();
    let mut bursts = LossEstimate::default();
    assert!((independent.loss_rate() - 0.01).abs() < 0.001);
    for i in 0..40_000u64 {
        // Without a pattern that repeats soon.
        let number = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        independent.note(number % 20 == 0);
        bursts.note(i % 80 < 4);
    }
    assert!((independent.loss_rate() - 0.05).abs() < 0.015, "{}", independent.loss_rate());
    assert!(independent.burst_length() < 1.3, "{}", independent.burst_length());
    assert!((bursts.loss_rate() - 0.05).abs() < 0.015, "{}", bursts.loss_rate());
    assert!((3.0..5.0).contains(&bursts.burst_length()), "{}", bursts.burst_length());
    assert_eq!((bursts.seen(), bursts.lost()), (40_000, 2000));
}

#[test]
fn a_loss_that_was_none_does_not_count() {
    let (mut estimate, mut without) = (LossEstimate::default(), LossEstimate::default());
    (0..1_000).for_each(|_| without.note(false));
    for i in 0..1_000 {
        estimate.note(i % 10 == 0);
        if i % 10 == 3 {
            estimate.excuse();
        }
    }
    assert!(estimate.loss_rate() < without.loss_rate() + 0.001, "{}", estimate.loss_rate());
    assert_eq!(estimate.lost(), 0);
    LossEstimate::default().excuse();
}

#[test]
fn the_longer_the_tail_the_likelier_is_a_loss() {
    let estimate = LossEstimate::default();
    let any = [0, 1, 10, 256].map(|symbols| (estimate.any_lost(symbols) * 1e3).round());
    // As many times one in 101, and one in 100 for the first.
    assert_eq!(any, [0.0, 10.0, 95.0, 922.0]);
}

#[test]
fn bursts_and_high_targets_need_more_repairs() {
    let estimate = |pattern: fn(u64) -> bool| {
        let mut estimate = LossEstimate::default();
        (0..40_000).for_each(|i| estimate.note(pattern(i)));
        estimate
    };
    let clean = estimate(|_| false);
    let single = estimate(|i| i % 80 == 0);
    let bursts = estimate(|i| i % 320 < 4);
    assert_eq!(clean.repairs_for(10, 0.99, 16), 0);
    assert_eq!(single.repairs_for(10, 0.5, 16), 0);
    assert_eq!(single.repairs_for(10, 0.99, 16), 1);
    assert!(bursts.repairs_for(10, 0.99, 16) > 2);
    assert!(single.repairs_for(10, 0.9999, 16) > single.repairs_for(10, 0.99, 16));
    assert_eq!(bursts.repairs_for(200, 1.0, 16), 16);
    assert_eq!(bursts.repairs_for(200, 1.0, 0), 0);
}

#[test]
fn the_number_of_repairs_is_that_of_the_binomial_distribution_when_losses_come_alone() {
    let mut estimate = LossEstimate::default();
    // One in four, whatever came before: 0001 and 1000 and all others as often as chance has them.
    let mut state = 1u64;
    for _ in 0..100_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        estimate.note(state >> 62 == 0);
    }
    let p = estimate.loss_rate();
    // The probability that of n symbols at most k are lost.
    let at_most = |n: u32, k: u32| {
        let choose = |k: u32| (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
        (0..=k).map(|i| choose(i) * p.powi(i as i32) * (1.0 - p).powi((n - i) as i32)).sum::<f64>()
    };
    let expected = (0..30).find(|r| at_most(10 + r, *r) >= 0.99).unwrap();
    let repairs = u32::from(estimate.repairs_for(10, 0.99, 30));
    assert!(repairs.abs_diff(expected) <= 1, "{repairs} instead of {expected}");
}
