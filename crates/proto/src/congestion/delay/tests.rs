use super::*;

const BASE: Duration = Duration::from_millis(12);

/// After how many milliseconds of samples each of the two signs shows a rise, if it does.
fn signs(base: Duration, sample: impl Fn(u64) -> Duration) -> (Option<u64>, Option<u64>) {
    let mut watch = DelayWatch::default();
    let (mut rising, mut risen) = (None, None);
    for millis in 0..400 {
        watch.on_sample(Instant::from_millis(millis), sample(millis), base);
        if watch.is_rising(base) {
            rising.get_or_insert(millis);
        }
        if watch.has_risen(base) {
            risen.get_or_insert(millis);
        }
    }
    (rising, risen)
}

#[test]
fn a_queue_on_a_short_path_is_seen_within_a_third_of_a_round_trip() {
    let queue = |millis: u64| Duration::from_micros(250 * millis.saturating_sub(100));
    // The queue is longer than 4 ms from 117 ms on. Four groups of a millisecond show it, or eight.
    let (rising, risen) = signs(BASE, |millis| BASE + queue(millis));
    assert_eq!((rising, risen), (Some(121), Some(125)));
}

#[test]
fn on_a_long_path_both_signs_are_the_same() {
    let base = Duration::from_millis(48);
    let queue = |millis: u64| Duration::from_millis(millis.saturating_sub(100));
    let (rising, risen) = signs(base, |millis| base + queue(millis));
    assert!(rising.is_some());
    assert_eq!(rising, risen);
}

#[test]
fn what_comes_and_goes_is_no_queue() {
    let (rising, risen) =
        signs(BASE, |millis| BASE + Duration::from_millis(if millis % 3 < 2 { 6 } else { 0 }));
    assert_eq!((rising, risen), (None, None));
}

/// Whether 4,000 samples, one each millisecond, show a queue above a base of 12 ms in the end.
fn shows_queue(sample: impl Fn(u64) -> Duration) -> bool {
    let mut watch = DelayWatch::default();
    for millis in 0..4_000 {
        watch.on_sample(Instant::from_millis(millis), sample(millis), BASE);
    }
    watch.shows_queue(BASE)
}

#[test]
fn a_small_queue_that_stands_is_seen_although_single_samples_come_late() {
    let queue = |millis: u64| BASE + Duration::from_micros(2_500 + 100 * (millis % 3));
    assert!(shows_queue(queue));
    // An acknowledgement that waited.
    let late = Duration::from_millis(8);
    assert!(shows_queue(|millis| queue(millis) + if millis % 6 == 0 { late } else { Duration::ZERO }));
}

#[test]
fn samples_that_vary_as_a_bell_are_no_queue() {
    for seed in 0..20 {
        let mut rng = fulmar_base::Rng::from_u64(seed);
        // The sum of twelve has a deviation of 1 ms; the base is four of them below the mean.
        let samples: Vec<_> = (0..4_000).map(|_| (0..12).map(|_| rng.below(1_000)).sum::<u64>()).collect();
        let sample =
            |millis: u64| BASE + Duration::from_micros(samples[millis as usize].saturating_sub(2_000));
        assert!(!shows_queue(sample), "seed {seed}");
    }
}
