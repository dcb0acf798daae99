use super::*;

const BASE: Duration = Duration::from_millis(100);

/// A round of ten samples that are so far apart, of packets that left at the same distance all; the last one ends it.
fn round(best: &mut RoundBest, now: &mut Instant, gaps: [u64; 10], limited: bool) -> Option<u64> {
    let distance = gaps.iter().sum::<u64>() / 10;
    round_of(best, now, gaps, [distance; 10], limited)
}

/// A round of ten samples that are so far apart, of packets that left so far apart.
fn round_of(
    best: &mut RoundBest,
    now: &mut Instant,
    gaps: [u64; 10],
    sent_gaps: [u64; 10],
    limited: bool,
) -> Option<u64> {
    let (mut result, mut sent) = (None, *now);
    for (index, (gap, sent_gap)) in gaps.into_iter().zip(sent_gaps).enumerate() {
        *now += Duration::from_millis(gap);
        sent += Duration::from_millis(sent_gap);
        let rate = 100 + index as u64 % 5;
        result = best.on_sample(*now, sent, BASE, rate, index == 9, limited && index == 3);
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
fn silences_of_the_sender_are_no_stop() {
    let mut now = Instant::ZERO;
    let mut best = RoundBest::new(now);
    let bunch = [100, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for _ in 0..3 {
        assert_eq!(round_of(&mut best, &mut now, bunch, bunch, false), Some(104));
    }
    assert_eq!(round_of(&mut best, &mut now, bunch, [10; 10], false), None, "a stop");
}

#[test]
fn a_round_shows_the_bandwidth_if_the_path_stopped_neither_in_it_nor_before() {
    let mut now = Instant::ZERO;
    let mut best = RoundBest::new(now);
    let mut shows = |gaps, limited| {
        round(&mut best, &mut now, gaps, limited);
        best.take_shown()
    };
    let stop = [10, 10, 10, 250, 0, 0, 0, 0, 0, 0];
    assert!(shows([10; 10], false));
    assert!(!shows(stop, false));
    assert!(!shows([10; 10], false), "its samples began before the stop");
    assert!(shows([10; 10], true), "whatever the application sends");
    assert!(shows([100, 0, 0, 0, 0, 0, 0, 0, 0, 0], false), "a flight that takes a round trip is no stop");
    assert!(shows([200, 0, 0, 0, 0, 0, 0, 0, 0, 0], false), "nor one that takes two");
    assert!(shows([500; 10], false), "nor is a slow path");
    assert!(!shows(stop, false));
    for _ in 0..3 {
        assert!(!shows(stop, false));
    }
}

#[test]
fn sixty_three_rounds_of_stops_are_believed() {
    let mut now = Instant::ZERO;
    let mut best = RoundBest::new(now);
    for count in 1..=200 {
        round(&mut best, &mut now, [250, 0, 0, 0, 0, 0, 0, 0, 0, 0], false);
        assert_eq!(best.take_shown(), count % 63 == 0, "round {count}");
    }
    // What was shown before a stop waits for the end of the cycle.
    round(&mut best, &mut now, [10; 10], false);
    round(&mut best, &mut now, [10; 10], false);
    round(&mut best, &mut now, [250, 0, 0, 0, 0, 0, 0, 0, 0, 0], false);
    assert!(best.take_shown());
    assert!(!best.take_shown());
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

#[test]
fn a_round_that_was_limited_stays_so_however_often_the_application_had_nothing_to_send() {
    for limited in 0..4 {
        let now = Instant::ZERO;
        let mut best = RoundBest::new(now);
        for _ in 0..limited {
            best.on_sample(now, now, BASE, 100, false, true);
        }
        let shown = best.on_sample(now, now, BASE, 100, true, false);
        assert_eq!(shown.is_some(), limited == 0, "{limited} samples of a limited flight");
    }
}
