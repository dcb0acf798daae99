use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(seconds: u64) -> Instant {
    Instant::from_millis(1_000 * seconds)
}

#[test]
fn a_path_that_has_become_longer_is_known_after_two_periods() {
    let mut base = BaseRtt::new(at(0), ms(20));
    for second in 1..=10 {
        // Too uneven to be believed sooner.
        base.on_sample(at(second), ms(25 + second % 2 * 5));
        assert_eq!(base.get(), ms(20), "{second} s");
        base.on_reaction(at(second));
    }
    assert_eq!(base.get(), ms(25));
}

#[test]
fn a_shorter_path_is_known_at_once() {
    let mut base = BaseRtt::new(at(0), ms(20));
    base.on_sample(at(1), ms(15));
    assert_eq!(base.get(), ms(15));
}

#[test]
fn without_reactions_nothing_is_forgotten() {
    let mut base = BaseRtt::new(at(0), ms(20));
    base.on_sample(at(3), ms(40));
    base.on_reaction(at(4));
    assert_eq!(base.get(), ms(20), "the first period is too short");
    base.on_reaction(at(60));
    base.on_sample(at(61), ms(60));
    assert_eq!(base.get(), ms(20), "what was seen in a period counts in the next one");
}

#[test]
fn a_period_in_which_nothing_was_measured_is_not_over() {
    let mut base = BaseRtt::new(at(0), ms(20));
    base.on_reaction(at(6));
    base.on_reaction(at(12));
    assert_eq!(base.get(), ms(20));
}

/// Between two losses the window, and the queue with it, grows for a minute.
#[test]
fn a_queue_that_is_never_empty_stays_one() {
    let mut base = BaseRtt::new(at(0), ms(50));
    for second in 0..600 {
        base.on_sample(at(second), ms(200 + second % 60));
        if second % 60 == 59 {
            // What is lost now lies above, and what is shorter after the reaction counts at once.
            assert!(second < 60 || base.get() == ms(200), "{second} s: {:?}", base.get());
            base.on_reaction(at(second));
        }
    }
}

#[test]
fn on_a_long_path_periods_last_twenty_round_trips() {
    let mut base = BaseRtt::new(at(0), ms(600));
    for second in 1..=23 {
        base.on_sample(at(second), ms(700 + second % 2 * 100));
        base.on_reaction(at(second));
        assert_eq!(base.get(), ms(600), "{second} s");
    }
    base.on_sample(at(25), ms(700));
    base.on_reaction(at(26));
    assert_eq!(base.get(), ms(700));
}

/// After so many milliseconds a path that has become longer, from 20 to 30 ms, is known, where the smallest delays of rounds differ by so much.
fn believed_after(varies: Duration) -> Option<u64> {
    let mut base = BaseRtt::new(at(0), ms(20));
    (1..=400).map(|round| 30 * round).find(|&millis| {
        let now = Instant::from_millis(millis);
        base.on_sample(now, ms(30) + varies * u32::from(millis % 60 == 0));
        base.on_reaction(now);
        base.get() >= ms(30)
    })
}

#[test]
fn a_delay_that_stays_the_same_is_believed_the_sooner_the_less_it_varies() {
    let times = [0, 1, 2, 4].map(|varies| believed_after(ms(varies)).unwrap());
    // Twenty round trips; then ten seconds where it varies by half of the rise, and in proportion.
    assert!((600..=660).contains(&times[0]), "{times:?}");
    assert!((2_000..=2_100).contains(&times[1]), "{times:?}");
    assert!((4_000..=4_100).contains(&times[2]), "{times:?}");
    assert!((8_000..=8_100).contains(&times[3]), "{times:?}");
}

#[test]
fn a_queue_that_falls_half_way_now_and_then_is_no_longer_path() {
    let mut base = BaseRtt::new(at(0), ms(20));
    for round in 1..=160 {
        let now = Instant::from_millis(30 * round);
        base.on_sample(now, ms(if round % 10 == 0 { 25 } else { 30 }));
        base.on_reaction(now);
        assert_eq!(base.get(), ms(20), "{round}");
    }
}
