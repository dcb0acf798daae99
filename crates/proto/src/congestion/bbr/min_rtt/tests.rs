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
