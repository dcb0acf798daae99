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
        base.on_sample(ms(25));
        assert_eq!(base.get(), ms(20), "{second} s");
        base.on_reaction(at(second));
    }
    assert_eq!(base.get(), ms(25));
}

#[test]
fn a_shorter_path_is_known_at_once() {
    let mut base = BaseRtt::new(at(0), ms(20));
    base.on_sample(ms(15));
    assert_eq!(base.get(), ms(15));
}

#[test]
fn without_reactions_nothing_is_forgotten() {
    let mut base = BaseRtt::new(at(0), ms(20));
    base.on_sample(ms(40));
    base.on_reaction(at(4));
    assert_eq!(base.get(), ms(20), "the first period is too short");
    base.on_reaction(at(60));
    base.on_sample(ms(60));
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
        base.on_sample(ms(200 + second % 60));
        if second % 60 == 59 {
            base.on_reaction(at(second));
        }
    }
    assert_eq!(base.get(), ms(200));
}

#[test]
fn on_a_long_path_periods_last_twenty_round_trips() {
    let mut base = BaseRtt::new(at(0), ms(600));
    for second in 1..=23 {
        base.on_sample(ms(700));
        base.on_reaction(at(second));
        assert_eq!(base.get(), ms(600), "{second} s");
    }
    base.on_sample(ms(700));
    base.on_reaction(at(26));
    assert_eq!(base.get(), ms(700));
}
