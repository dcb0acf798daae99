use super::*;

const MIN: Duration = Duration::from_millis(600);

/// Whether samples that exceed the minimum by `excess` for six times the interval keep the measurement from being due.
fn confirms(excess: Duration, packet_time: Duration) -> bool {
    let mut min_rtt = MinRtt::new(Instant::ZERO);
    min_rtt.on_sample(Instant::ZERO, Some(MIN), packet_time);
    (1..=600).all(|step| {
        min_rtt.on_sample(Instant::from_millis(100 * step), Some(MIN + excess), packet_time);
        !min_rtt.expired()
    })
}

#[test]
fn a_sample_close_to_the_minimum_confirms_it() {
    assert!(confirms(Duration::from_millis(9), Duration::ZERO));
    assert!(!confirms(Duration::from_millis(10), Duration::ZERO));
}

#[test]
fn the_time_of_a_full_packet_is_no_queue() {
    let packet_time = Duration::from_millis(12);
    assert!(confirms(Duration::from_millis(11), packet_time));
    assert!(!confirms(Duration::from_millis(13), packet_time));
}

#[test]
fn what_was_confirmed_by_larger_samples_stays_the_minimum() {
    let mut min_rtt = MinRtt::new(Instant::ZERO);
    for step in 0..100 {
        let sample = if step == 0 { MIN } else { MIN + Duration::from_millis(5) };
        min_rtt.on_sample(Instant::from_millis(100 * step), Some(sample), Duration::ZERO);
    }
    assert_eq!(min_rtt.get(), Some(MIN));
}

#[test]
fn what_comes_first_after_a_silence_as_quickly_as_ever_has_measured() {
    let packet_time = Duration::from_millis(1);
    for (excess, is_due) in [(0, false), (9, false), (10, true)] {
        let mut min_rtt = MinRtt::new(Instant::ZERO);
        min_rtt.on_sample(Instant::ZERO, Some(MIN), packet_time);
        let sample = MIN + Duration::from_millis(excess);
        min_rtt.on_sample(Instant::from_millis(60_000), Some(sample), packet_time);
        assert_eq!(min_rtt.expired(), is_due, "{excess} ms more");
    }
}

#[test]
fn time_in_which_the_path_stood_still_does_not_count() {
    for stop_s in [3, 5, 12, 60] {
        let mut min_rtt = MinRtt::new(Instant::ZERO);
        let quick = Duration::from_millis(50);
        for step in 0..10 {
            min_rtt.on_sample(Instant::from_millis(50 * step), Some(quick), Duration::ZERO);
        }
        // What was under way arrives when the path goes on.
        let back = Instant::from_millis(460) + Duration::from_secs(stop_s);
        for step in 0..10 {
            let late = Duration::from_secs(stop_s) + Duration::from_millis(50);
            min_rtt.on_sample(back + Duration::from_millis(step), Some(late), Duration::ZERO);
            assert!(!min_rtt.expired(), "{stop_s} s");
        }
        assert_eq!(min_rtt.get(), Some(quick), "{stop_s} s");
        // A queue that stands is still measured after the interval.
        let queue = Duration::from_millis(90);
        let is_due_at = |after: u64, min_rtt: &mut MinRtt| {
            min_rtt.on_sample(back + Duration::from_millis(after), Some(queue), Duration::ZERO);
            min_rtt.expired()
        };
        assert!((1..=45).all(|step| !is_due_at(100 * step, &mut min_rtt)), "{stop_s} s");
        assert!((46..=55).any(|step| is_due_at(100 * step, &mut min_rtt)), "{stop_s} s");
    }
}

#[test]
fn on_a_long_path_twenty_round_trips_are_between_two_measurements() {
    let mut min_rtt = MinRtt::new(Instant::ZERO);
    min_rtt.on_sample(Instant::ZERO, Some(MIN), Duration::ZERO);
    let due = (1..).map(|step| Instant::from_millis(100 * step)).find(|now| {
        min_rtt.on_sample(*now, Some(2 * MIN), Duration::ZERO);
        min_rtt.expired()
    });
    assert_eq!(due, Some(Instant::from_millis(12_100)));
}
