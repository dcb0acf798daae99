use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Samples of which each comes a round trip after the one before.
fn sampled(style: TimerStyle, samples: &[(u64, u64)], max_ack_delay: Option<Duration>) -> Rtt {
    let mut rtt = Rtt::new(INITIAL_RTT, style);
    for (i, &(sample, ack_delay)) in samples.iter().enumerate() {
        let now = Instant::from_millis(1_000 * (i as u64 + 1));
        rtt.update(now, ms(sample), ms(ack_delay), max_ack_delay);
    }
    rtt
}

fn both(samples: &[(u64, u64)], max_ack_delay: Option<Duration>) -> [Rtt; 2] {
    [TimerStyle::OncePerRtt, TimerStyle::Classic].map(|style| sampled(style, samples, max_ack_delay))
}

/// `round_trips` of 100 ms with `acks` in each, whose samples `sample` gives by the number of the ACK.
fn with_acks(style: TimerStyle, round_trips: u64, acks: u64, sample: impl Fn(u64) -> Duration) -> Rtt {
    let mut rtt = Rtt::new(INITIAL_RTT, style);
    for number in 0..round_trips * acks {
        let now = Instant::from_millis(1_000) + ms(100) * u32::try_from(number).unwrap() / acks as u32;
        rtt.update(now, sample(number), Duration::ZERO, None);
    }
    rtt
}

#[test]
fn the_first_packet_is_repeated_after_a_quarter_of_a_second() {
    assert_eq!(Rtt::default().pto_base(), ms(250));
    assert!(!Rtt::default().has_sample());
    assert_eq!(Rtt::new(ms(333), TimerStyle::Classic).pto_base(), ms(999), "RFC 9002 §6.2.2");
}

#[test]
fn the_first_sample_replaces_the_guess_and_ignores_the_delay() {
    for rtt in both(&[(80, 50)], None) {
        assert_eq!((rtt.smoothed(), rtt.variance(), rtt.min()), (ms(80), ms(40), ms(80)));
        assert_eq!(rtt.first_sample(), Some(Instant::from_millis(1_000)));
    }
}

#[test]
fn the_variance_is_measured_against_the_old_mean() {
    for rtt in both(&[(80, 0), (160, 0)], None) {
        assert_eq!(rtt.variance(), (ms(40) * 3 + ms(80)) / 4);
        assert_eq!(rtt.smoothed(), (ms(80) * 7 + ms(160)) / 8);
        assert_eq!(rtt.latest(), ms(160));
    }
}

#[test]
fn a_plausible_delay_is_subtracted() {
    for rtt in both(&[(80, 0), (100, 20)], None) {
        assert_eq!(rtt.smoothed(), ms(80));
    }
}

#[test]
fn a_delay_that_undercuts_the_minimum_is_ignored() {
    for rtt in both(&[(80, 0), (96, 20)], None) {
        assert_eq!(rtt.smoothed(), ms(82));
    }
    for rtt in both(&[(80, 0), (88, 5_000)], None) {
        assert_eq!(rtt.smoothed(), ms(81));
    }
}

#[test]
fn the_promise_of_the_peer_bounds_the_delay() {
    for rtt in both(&[(80, 0), (185, 60)], Some(ms(25))) {
        assert_eq!(rtt.smoothed(), (ms(80) * 7 + ms(160)) / 8, "25 of the claimed 60 ms are believed");
    }
}

#[test]
fn a_steady_path_still_leaves_the_granularity() {
    for rtt in both(&[(80, 0); 200], None) {
        assert_eq!(rtt.pto_base(), ms(81));
    }
}

#[test]
fn the_number_of_acknowledgements_changes_nothing() {
    // Each round trip has samples from 100 to 149 ms, ascending as while a queue fills.
    let queue = |acks: u64| move |number: u64| ms(100) + ms(50) * (number % acks) as u32 / acks as u32;
    let estimates = |style| [5, 50, 500].map(|acks| with_acks(style, 60, acks, queue(acks)));
    let [few, some, many] = estimates(TimerStyle::OncePerRtt);
    for rtt in [&some, &many] {
        assert!(rtt.smoothed().abs_diff(few.smoothed()) < ms(10), "{few:?} {rtt:?}");
        assert!(rtt.variance().abs_diff(few.variance()) < ms(10), "{few:?} {rtt:?}");
    }
    assert!(many.pto_base() > ms(150), "the timer covers what was seen: {many:?}");
}

#[test]
fn the_variance_does_not_collapse_within_a_steady_round_trip() {
    let after = |style| {
        let mut rtt =
            with_acks(style, 20, 100, |number| if number / 100 % 2 == 0 { ms(100) } else { ms(140) });
        // A hundred equal samples of packets that were all sent before the first of them came.
        for i in 0..100 {
            rtt.update(Instant::from_millis(4_000 + i), ms(100), Duration::ZERO, None);
        }
        rtt
    };
    let (ours, classic) = (after(TimerStyle::OncePerRtt), after(TimerStyle::Classic));
    assert!(ours.variance() > ms(15), "{ours:?}");
    assert!(classic.variance() < ms(2), "{classic:?}");
}

#[test]
fn a_sample_above_the_timer_raises_it_at_once() {
    let mut rtt = with_acks(TimerStyle::OncePerRtt, 50, 10, |_| ms(100));
    assert!(rtt.pto_base() < ms(102));
    // The packet was sent before the period began, so that nothing ends here.
    rtt.update(Instant::from_millis(5_991), ms(250), Duration::ZERO, None);
    assert_eq!(rtt.pto_base(), ms(250));
    assert_eq!(rtt.smoothed(), ms(100));
}

#[test]
fn a_period_ends_with_a_packet_that_was_sent_after_its_start() {
    let mut rtt = sampled(TimerStyle::OncePerRtt, &[(100, 0)], None);
    let mut take = |at: u64, sample: u64| {
        rtt.update(Instant::from_millis(at), ms(sample), Duration::ZERO, None);
        rtt.smoothed()
    };
    // The period began at 1,000 ms; these packets were sent before.
    assert_eq!(take(1_050, 120), ms(100));
    assert_eq!(take(1_099, 140), ms(100));
    // Sent at 1,000 ms: the mean of the three samples counts once.
    assert_eq!(take(1_160, 160), (ms(100) * 7 + ms(140)) / 8);
}

#[test]
fn a_stop_of_the_path_moves_the_timer_and_not_the_mean() {
    let mut rtt = with_acks(TimerStyle::OncePerRtt, 50, 10, |_| ms(100));
    // Nothing for 500 ms; then the acknowledgements of the flight come together, the last of a packet that was sent
    // after the first of them had come.
    for sent in 0..10 {
        rtt.update(Instant::from_millis(6_500), ms(600 - 10 * sent), Duration::ZERO, None);
    }
    rtt.update(Instant::from_millis(6_600), ms(100), Duration::ZERO, None);
    assert_eq!(rtt.smoothed(), ms(100));
    assert!(rtt.pto_base() > ms(600), "the path may stop again: {rtt:?}");
    // It does, for a time that does not exceed the timer.
    for sent in 0..10 {
        rtt.update(Instant::from_millis(7_050), ms(450 - 10 * sent), Duration::ZERO, None);
    }
    rtt.update(Instant::from_millis(7_150), ms(100), Duration::ZERO, None);
    assert_eq!(rtt.smoothed(), ms(100));
    // A path that has become longer is believed as before.
    for at in 0..20 {
        rtt.update(Instant::from_millis(8_000 + 300 * at), ms(300), Duration::ZERO, None);
    }
    assert!(rtt.smoothed() > ms(240), "{rtt:?}");
}

#[test]
fn a_path_that_has_become_longer_by_less_than_twice_is_believed() {
    let mut rtt = with_acks(TimerStyle::OncePerRtt, 50, 10, |_| ms(100));
    // The samples come farther apart than the path was long, each as if it had been held up.
    for at in 0..100 {
        rtt.update(Instant::from_millis(6_200 + 120 * at), ms(190), Duration::ZERO, None);
    }
    assert!(rtt.smoothed() > ms(170), "{rtt:?}");
}

#[test]
fn what_an_earlier_connection_found_holds_until_the_first_sample() {
    let mut rtt = Rtt::default();
    rtt.assume(Duration::from_millis(600));
    assert!(!rtt.has_sample());
    assert_eq!(rtt.pto_base(), Duration::from_millis(600 + 3 * 300));
    // So short a path needs time for a signature all the same.
    rtt.assume(Duration::from_millis(1));
    assert_eq!(rtt.pto_base(), Duration::from_micros(25_000 + 3 * 12_500));

    let now = Instant::from_millis(100);
    rtt.update(now, Duration::from_millis(40), Duration::ZERO, None);
    let measured = rtt.pto_base();
    rtt.assume(Duration::from_millis(600));
    assert_eq!(rtt.pto_base(), measured);
}

#[test]
fn persistent_congestion_begins_the_minimum_anew() {
    for mut rtt in both(&[(20, 0), (40, 0)], None) {
        assert_eq!(rtt.min(), ms(20));
        rtt.on_persistent_congestion();
        assert_eq!(rtt.min(), ms(40));
        rtt.update(Instant::from_millis(5_000), ms(30), Duration::ZERO, None);
        assert_eq!(rtt.min(), ms(30));
    }
}

#[test]
fn an_acknowledgement_that_is_told_again_says_nothing_of_the_path() {
    let mut rtt = with_acks(TimerStyle::OncePerRtt, 50, 10, |_| ms(100));
    assert!(!rtt.tells_nothing(ms(3_000), ms(25), ms(25)), "the path has stood still, not the peer");
    assert!(!rtt.tells_nothing(ms(3_000), ms(4_000), ms(25)), "longer than the packet was on its way");
    assert!(!rtt.tells_nothing(ms(120), ms(90), ms(25)), "within the timer");
    let mut again = || rtt.tells_nothing(ms(3_000), ms(2_700), ms(25));
    assert_eq!([again(), again(), again(), again()], [true, true, true, false], "a peer that is always late");
    rtt.update(Instant::from_millis(6_000), ms(100), Duration::ZERO, None);
    assert!(rtt.tells_nothing(ms(3_000), ms(2_900), ms(25)), "the count begins anew");
    let mut classic = with_acks(TimerStyle::Classic, 50, 10, |_| ms(100));
    assert!(!classic.tells_nothing(ms(3_000), ms(2_900), ms(25)), "by the letter of RFC 9002");
}

#[test]
fn how_unevenly_samples_come_is_known_at_once_and_until_a_round_trip_without_it_is_over() {
    let mut rtt = with_acks(TimerStyle::OncePerRtt, 3, 10, |_| ms(100));
    let mut jitter_after = |at: u64, sample: u64| {
        rtt.update(Instant::from_millis(at), ms(sample), Duration::ZERO, None);
        rtt.jitter()
    };
    assert_eq!(jitter_after(1_291, 100), ms(0));
    assert_eq!(jitter_after(1_295, 130), ms(30));
    assert_eq!(jitter_after(1_299, 90), ms(30), "what comes sooner does not count");
    assert_eq!(jitter_after(1_380, 90), ms(30), "the round trip of the late one is over");
    assert_eq!(jitter_after(1_480, 90), ms(0), "and another one");
}

#[test]
fn what_the_round_trip_under_way_has_shown_is_followed_at_once() {
    let mut rtt = with_acks(TimerStyle::OncePerRtt, 3, 10, |_| ms(100));
    rtt.update(Instant::from_millis(1_300), ms(100), Duration::ZERO, None);
    assert_eq!(rtt.recent(), ms(100), "a round trip has just ended");
    for (at, sample) in [(1_310, 120), (1_320, 140)] {
        rtt.update(Instant::from_millis(at), ms(sample), Duration::ZERO, None);
    }
    assert_eq!((rtt.recent(), rtt.smoothed()), (ms(130), ms(100)));
}
