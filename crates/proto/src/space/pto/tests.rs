use super::*;

fn series(plain_ms: u64, idle: Option<Duration>, len: usize) -> Vec<u128> {
    let mut backoff = PtoBackoff::new(TimerStyle::OncePerRtt);
    let plain = Duration::from_millis(plain_ms);
    (0..len)
        .map(|_| {
            let delay = backoff.delay(plain, idle).as_millis();
            backoff.on_timeout(Instant::ZERO);
            delay
        })
        .collect()
}

#[test]
fn the_second_timeout_is_as_long_as_the_first_and_the_idle_timeout_caps() {
    assert_eq!(
        series(250, Some(Duration::from_secs(180)), 9),
        [250, 250, 500, 1_000, 2_000, 4_000, 8_000, 11_250, 11_250]
    );
}

#[test]
fn the_classic_timeout_doubles_each_time_and_without_a_cap() {
    let mut backoff = PtoBackoff::new(TimerStyle::Classic);
    let idle = Some(Duration::from_secs(30));
    let delays = std::iter::repeat_with(|| {
        let delay = backoff.delay(Duration::from_millis(250), idle).as_millis();
        backoff.on_timeout(Instant::ZERO);
        delay
    });
    assert_eq!(delays.take(6).collect::<Vec<_>>(), [250, 500, 1_000, 2_000, 4_000, 8_000]);
}

#[test]
fn the_cap_is_never_below_a_plain_timeout() {
    assert_eq!(series(3_000, Some(Duration::from_secs(30)), 4), [3_000; 4]);
}

#[test]
fn without_an_idle_timeout_the_backoff_still_ends() {
    let delays = series(1, None, 60);
    assert_eq!(delays[16], 1 << 15);
    assert_eq!(delays[59], 1 << MAX_BACKOFF_EXPONENT);
}

#[test]
fn an_acknowledgement_starts_again() {
    let mut backoff = PtoBackoff::new(TimerStyle::OncePerRtt);
    (0..5).for_each(|_| backoff.on_timeout(Instant::ZERO));
    assert_eq!(backoff.count(), 5);
    backoff.reset();
    assert_eq!(backoff.delay(Duration::from_millis(7), None), Duration::from_millis(7));
}

#[test]
fn pto_pings_lie_a_sixteenth_of_the_silence_apart() {
    let at = Instant::from_millis;
    let plain = Duration::from_millis(50);
    let mut backoff = PtoBackoff::new(TimerStyle::OncePerRtt);
    (0..3).for_each(|n| backoff.on_timeout(at(50 * n)));
    assert!(backoff.sends_pings() && backoff.is_due(at(100)));
    assert_eq!(backoff.next_ping(at(100), plain), None);
    backoff.begin_pings(at(300));
    assert!(!backoff.is_due(at(299)) && backoff.is_due(at(300)));
    assert_eq!(backoff.next_ping(at(100), plain), Some(at(200)), "two plain timeouts");
    assert_eq!(backoff.next_ping(at(250), plain), Some(at(300)), "the timeout itself");
    backoff.on_timeout(at(16_000));
    backoff.begin_pings(at(18_000));
    assert_eq!(backoff.next_ping(at(16_000), plain), Some(at(17_000)));
    backoff.reset();
    assert!(!backoff.sends_pings() && backoff.is_due(at(17_000)));
}

#[test]
fn classic_timers_know_no_pto_pings() {
    let mut backoff = PtoBackoff::new(TimerStyle::Classic);
    (0..9).for_each(|_| backoff.on_timeout(Instant::ZERO));
    assert!(!backoff.sends_pings());
}

#[test]
fn packets_of_the_peer_alone_end_the_backoff_a_few_times_only() {
    // Otherwise a path on which nothing gets through the other way would be probed for ever as if it were new.
    let mut backoff = PtoBackoff::new(TimerStyle::OncePerRtt);
    for _ in 0..RETURNS_MAX {
        backoff.on_timeout(Instant::ZERO);
        backoff.on_return();
        assert_eq!(backoff.count(), 0);
    }
    backoff.on_timeout(Instant::ZERO);
    backoff.on_return();
    assert_eq!(backoff.count(), 1);
    backoff.reset();
    backoff.on_timeout(Instant::ZERO);
    backoff.on_return();
    assert_eq!(backoff.count(), 0, "after an acknowledgement they count anew");
}
