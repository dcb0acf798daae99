//! Loss models.

use std::collections::BTreeSet;

use super::*;
use crate::{Change, DropReason, Loss};

const PACKETS: u32 = 40_000;

/// For each packet in turn, whether it was lost.
fn fates(seed: u64, loss: Loss) -> Vec<bool> {
    let mut line = Line::new(seed, LinkConfig { loss, ..LinkConfig::default() });
    let mut lost = vec![true; PACKETS as usize];
    for delivery in line.send_every(Duration::ZERO, PACKETS, 10) {
        lost[number(&delivery) as usize] = false;
    }
    let count = lost.iter().filter(|&&lost| lost).count() as u64;
    assert_eq!(line.stats().packets_dropped(DropReason::Lost), count);
    lost
}

fn share(fates: &[bool]) -> f64 {
    fates.iter().filter(|&&lost| lost).count() as f64 / fates.len() as f64
}

/// The lengths of the runs of lost packets.
fn runs(fates: &[bool]) -> Vec<usize> {
    fates.split(|lost| !lost).map(<[bool]>::len).filter(|&length| length > 0).collect()
}

#[test]
fn uniform_loss_has_its_share() {
    for probability in [0.001, 0.015_625, 0.3] {
        let share = share(&fates(1, Loss::Uniform { probability }));
        let deviation = (probability * (1.0 - probability) / f64::from(PACKETS)).sqrt();
        assert!((share - probability).abs() < 4.0 * deviation, "{share} for {probability}");
    }
    assert_eq!(share(&fates(1, Loss::Uniform { probability: 0.0 })), 0.0);
    assert_eq!(share(&fates(1, Loss::Everything)), 1.0);
}

#[test]
fn capped_loss_has_no_longer_runs() {
    let fates = fates(2, Loss::Capped { probability: 0.3, run_max: 3 });
    assert_eq!(runs(&fates).into_iter().max(), Some(3));
    // A run that would be longer is cut: (0.3 + 0.09 + 0.027) losses per 1.417 packets.
    assert!((0.284..0.304).contains(&share(&fates)), "{}", share(&fates));
}

#[test]
fn bursts_lose_the_share_that_their_probability_is_for() {
    for (wanted, length, packets) in [(0.1, 1..=7, 4.0), (0.3, 1..=3, 2.0), (0.7, 1..=3, 2.0)] {
        let probability = Loss::burst_probability(wanted, packets);
        let bursts =
            (1..=10).map(|seed| share(&fates(seed, Loss::Burst { probability, length: length.clone() })));
        let share = bursts.sum::<f64>() / 10.0;
        assert!((share / wanted - 1.0).abs() < 0.02, "{share} for {wanted}");
    }
}

#[test]
fn bursts_have_the_lengths_asked_for() {
    let fates = fates(3, Loss::Burst { probability: 0.001, length: 4..=6 });
    let runs = runs(&fates);
    // Two bursts in succession are rare, but happen.
    let exact = runs.iter().filter(|length| (4..=6).contains(*length)).count();
    assert!(exact * 100 >= runs.len() * 95, "{runs:?}");
    assert!((25..60).contains(&runs.len()), "{}", runs.len());
    assert!((4..=6).all(|length| runs.contains(&length)));
}

#[test]
fn gilbert_elliott_reaches_its_stationary_loss_and_its_run_length() {
    let loss = Loss::GilbertElliott { to_bad: 0.01, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
    let fates = fates(4, loss);
    // In the bad state for 0.01 / 0.26 of the packets, and for 1 / 0.25 packets at a time.
    assert!((0.033..0.044).contains(&share(&fates)), "{}", share(&fates));
    let runs = runs(&fates);
    let mean = runs.iter().sum::<usize>() as f64 / runs.len() as f64;
    assert!((3.6..4.4).contains(&mean), "{mean}");
}

#[test]
fn gilbert_elliott_loses_in_both_states() {
    let loss = Loss::GilbertElliott { to_bad: 0.1, to_good: 0.1, loss_good: 0.1, loss_bad: 0.5 };
    let share = share(&fates(5, loss));
    assert!((0.285..0.315).contains(&share), "{share}");
}

#[test]
fn a_pattern_repeats() {
    let fates = fates(6, Loss::Pattern { period: 64, offset: 10, lost: 2 });
    let expected = |place: usize| (10..12).contains(&(place % 64));
    assert!(fates.iter().enumerate().all(|(place, &lost)| lost == expected(place)));
    assert!(!self::fates(6, Loss::Pattern { period: 0, offset: 0, lost: 1 }).contains(&true));
}

#[test]
fn listed_packets_are_lost() {
    let fates = fates(7, Loss::Listed([0, 7, 39_999].into()));
    let lost: Vec<_> = (0..fates.len()).filter(|&place| fates[place]).collect();
    assert_eq!(lost, [0, 7, 39_999]);
}

#[test]
fn a_black_hole_opens_and_closes() {
    let config = LinkConfig::default()
        .then(Instant::from_millis(20), Change::Loss(Loss::None))
        .then(Instant::from_millis(10), Change::Loss(Loss::Everything));
    let mut line = Line::new(8, config);
    let arrived = numbers(&line.send_every(millis(1), 30, 10));
    assert_eq!(arrived, (0..10).chain(20..30).collect::<Vec<_>>());
}

#[test]
fn a_bad_time_takes_what_comes_in_it() {
    // The shares and the lengths of the bad times are those of the time, however many packets there are.
    for interval in [Duration::from_micros(500), millis(5)] {
        let loss = Loss::GilbertElliottTimed {
            good_mean: millis(900),
            bad_mean: millis(100),
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let mut line = Line::new(11, LinkConfig { loss, ..LinkConfig::default() });
        let count = 200_000;
        let arrived = numbers(&line.send_every(interval, count, 10));
        let share = 1.0 - arrived.len() as f64 / f64::from(count);
        assert!((0.075..0.125).contains(&share), "{share} lost, one every {interval:?}");
        let gaps: Vec<u32> =
            arrived.windows(2).map(|pair| pair[1] - pair[0] - 1).filter(|gap| *gap > 0).collect();
        let mean = interval * gaps.iter().sum::<u32>() / gaps.len() as u32;
        assert!((millis(80)..millis(120)).contains(&mean), "a bad time takes {mean:?}");
    }
}

#[test]
fn a_black_hole_ends_and_what_was_lost_before_is_lost_again() {
    let config = LinkConfig { loss: Loss::Listed(BTreeSet::from([2])), ..LinkConfig::default() };
    let config = config.black_hole(Instant::from_millis(5), Instant::from_millis(8));
    let mut line = Line::new(1, config);
    // A model begins anew with each change: the third packet after the hole is lost again.
    assert_eq!(numbers(&line.send_every(millis(1), 12, 10)), [0, 1, 3, 4, 8, 9, 11]);
}
