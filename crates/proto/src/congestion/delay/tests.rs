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
