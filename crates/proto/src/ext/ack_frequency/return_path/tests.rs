use fulmar_base::Instant;

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);

/// An estimate with a minimum and a smoothed round trip, in milliseconds.
fn rtt(min: u64, smoothed: u64) -> Rtt {
    let mut rtt = Rtt::default();
    rtt.update(Instant::ZERO, Duration::from_millis(min), Duration::ZERO, None);
    for i in 1..=200 {
        rtt.update(
            Instant::from_millis(i * smoothed + i),
            Duration::from_millis(smoothed),
            Duration::ZERO,
            None,
        );
    }
    rtt
}

/// ACKs that come every `interval` milliseconds.
fn acks(interval: u64) -> Observed {
    Observed::new(Duration::from_millis(interval * 10), 10, 100_000)
}

#[test]
fn a_round_trip_that_has_not_grown_asks_for_nothing() {
    assert_eq!(ReturnPath::default().delay(&rtt(8, 12), &acks(5)), Duration::ZERO);
}

#[test]
fn a_queue_is_drained_but_four_acks_in_a_round_trip_stay() {
    assert_eq!(ReturnPath::default().delay(&rtt(8, 40), &acks(4)), 6 * MILLISECOND);
    let delay = ReturnPath::default().delay(&rtt(8, 80), &acks(16));
    assert!(delay <= 20 * MILLISECOND, "{delay:?}");
}

#[test]
fn what_an_ack_needs_is_remembered_when_the_queue_is_gone_and_tried_again_later() {
    let mut path = ReturnPath::default();
    path.delay(&rtt(6, 24), &acks(3));
    let after = path.delay(&rtt(6, 7), &acks(4));
    assert!(after > 3 * MILLISECOND && after < 4 * MILLISECOND, "{after:?}");
    let later = (0..100).map(|_| path.delay(&rtt(6, 7), &acks(4))).last();
    assert!(later.is_some_and(|later| later < MILLISECOND), "{later:?}");
}

#[test]
fn a_queue_of_data_does_not_make_acks_rarer_and_rarer() {
    // The round trip stays long, whatever is asked for, and ACKs come as was asked for.
    let mut path = ReturnPath::default();
    let mut interval = 2;
    for _ in 0..100 {
        let delay = path.delay(&rtt(10, 60), &acks(interval));
        assert!(delay <= 15 * MILLISECOND, "{delay:?}");
        interval = delay.as_millis() as u64;
    }
    assert!(path.delay(&rtt(10, 11), &acks(interval)) <= 3 * MILLISECOND);
}

#[test]
fn no_delay_is_longer_than_a_second() {
    let observed = Observed::new(Duration::from_secs(1_000), 10, 1_000);
    assert_eq!(ReturnPath::default().delay(&rtt(10, 1_000_000), &observed), DELAY_MAX);
}
