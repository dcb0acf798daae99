//! What was lost before a reaction is no reason for another one.

use super::*;

/// A path that has lost every second packet when the sender reacts, so many of them.
fn after_losses(mut path: Path, count: u32) -> Path {
    path.lose_one_in(2, count);
    path.random.on_reaction(path.now, WINDOW + 1);
    path
}

/// The same for a sender that answers losses once, after 300 of 600 packets.
fn after_an_overflow() -> Path {
    after_losses(Path::answering_once(), 300)
}

#[test]
fn what_was_lost_before_a_reaction_is_no_reason_for_another() {
    let mut path = after_an_overflow();
    let reacted_at = path.now;
    assert!(path.lose_one_in(20, 3), "it is on trial");
    assert!(path.random.is_on_trial());
    // Those that left before it are its reason still.
    assert!(!path.random.tolerates(1, reacted_at, false));
}

#[test]
fn after_a_reaction_that_has_helped_losses_count_anew() {
    let mut path = after_an_overflow();
    assert!(path.lose_one_in(60, 8));
    assert!(!path.random.is_on_trial(), "it has helped");
    assert!(path.lose_one_in(60, 8), "few enough");
    assert!(!path.lose_one_in(10, 60), "too many");
}

#[test]
fn what_a_short_overflow_has_lost_is_forgotten_in_proportion() {
    let mut path = after_losses(Path::answering_once(), 64);
    path.acknowledge(200);
    assert!(!path.random.is_on_trial(), "it has helped");
    // Of the mean a third is filled: that these are a sixteenth for a while makes it no more than is tolerated.
    assert!(path.lose_one_in(16, 12));
}

#[test]
fn losses_that_a_reaction_has_answered_count_on_where_that_is_not_asked_for() {
    let mut path = after_losses(Path::new(), 300);
    path.lose_one_in(60, 8);
    assert!(!path.random.is_on_trial(), "it has helped");
    assert!(!path.lose_one_in(60, 1));
}

#[test]
fn a_trial_that_loses_as_much_as_a_policer_drops_is_a_reason_to_react_again() {
    let mut path = after_an_overflow();
    assert!(!path.lose_one_in(3, 60));
}

#[test]
fn a_trial_that_loses_twice_as_much_as_before_is_a_reason_to_react_again() {
    // One in 30 before, and few enough among the latest packets that these alone are none.
    for (period, is_tolerated) in [(13, false), (20, true)] {
        let mut path = Path::answering_once();
        path.lose_until_reaction(30);
        assert_eq!(path.lose_one_in(period, 7), is_tolerated, "one in {period}");
        assert!(path.random.is_on_trial());
    }
}

#[test]
fn the_mean_may_exceed_what_is_tolerated_only_where_losses_are_answered_once() {
    assert!(Path::answering_once().lose_one_in(40, 100));
    assert!(!Path::new().lose_one_in(40, 100));
}

#[test]
fn a_path_that_loses_less_than_is_tolerated_is_not_answered_now_and_then() {
    // One in 66; a mean over a thousand packets is now and then more than one in fifty.
    let is_answered = |seed: u64| {
        let mut rng = Rng::from_u64(seed);
        let mut path = Path::answering_once();
        (0..10_000).any(|_| {
            path.acknowledge(1);
            rng.below(66) == 0 && !path.lose(1)
        })
    };
    let answered = (0..40).filter(|&seed| is_answered(seed)).count();
    assert!(answered < 10, "{answered} of 40 times");
}

#[test]
fn a_loss_among_the_first_packets_of_a_trial_shows_nothing() {
    let mut path = Path::answering_once();
    path.lose_until_reaction(30);
    assert!(path.lose_one_in(5, 1));
}
