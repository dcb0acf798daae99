use super::*;

/// A round of ten samples that are so far apart; the last one ends it.
fn round(best: &mut RoundBest, now: &mut Instant, gaps: [u64; 10], limited: bool) -> Option<u64> {
    let mut result = None;
    for (index, gap) in gaps.into_iter().enumerate() {
        *now += Duration::from_millis(gap);
        result = best.on_sample(*now, 100 + index as u64 % 5, index == 9, limited && index == 3);
    }
    result
}

#[test]
fn an_even_round_shows_its_largest_sample() {
    let mut now = Instant::ZERO;
    let mut best = RoundBest::new(now);
    assert_eq!(round(&mut best, &mut now, [10; 10], false), Some(104));
    assert_eq!(round(&mut best, &mut now, [10; 10], false), Some(104));
}

#[test]
fn a_round_that_was_held_up_or_limited_shows_nothing() {
    let mut now = Instant::ZERO;
    let mut best = RoundBest::new(now);
    assert_eq!(round(&mut best, &mut now, [10, 10, 10, 250, 0, 0, 0, 0, 0, 0], false), None);
    assert_eq!(round(&mut best, &mut now, [10; 10], false), None, "its samples began before the stop");
    assert_eq!(round(&mut best, &mut now, [10; 10], true), None);
    assert_eq!(round(&mut best, &mut now, [10; 10], false), Some(104), "the next round is a new one");
}

#[test]
fn a_replaced_maximum_forgets_both_cycles() {
    let mut max = MaxBandwidth::default();
    max.on_sample(1_000, false);
    max.advance();
    max.on_sample(900, false);
    max.replace(100);
    assert_eq!(max.get(), 100);
}
