use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn a_period_covers_what_left_before_it() {
    let mut recovery = Recovery::default();
    assert!(!recovery.covers(at(0)));
    recovery.enter(at(10));
    assert!(recovery.covers(at(10)) && !recovery.covers(at(11)));
}

#[test]
fn the_reaction_is_undone_when_the_last_lost_byte_arrives() {
    let mut recovery = Recovery::default();
    recovery.enter(at(10));
    recovery.on_lost(1_000);
    recovery.on_lost(500);
    assert!(!recovery.on_spurious(1_000, at(5)));
    assert!(recovery.on_spurious(500, at(6)));
    assert!(!recovery.on_spurious(500, at(6)), "only once");
}

#[test]
fn a_loss_of_an_earlier_period_undoes_nothing() {
    let mut recovery = Recovery::default();
    recovery.enter(at(10));
    recovery.on_lost(1_000);
    recovery.enter(at(30));
    recovery.on_lost(1_000);
    assert!(!recovery.on_spurious(1_000, at(9)));
    assert!(recovery.on_spurious(1_000, at(25)));
}

#[test]
fn a_final_reaction_stays() {
    let mut recovery = Recovery::default();
    recovery.enter(at(10));
    recovery.on_lost(1_000);
    recovery.make_final();
    assert!(!recovery.on_spurious(1_000, at(5)));
}

#[test]
fn a_released_period_lets_the_window_grow_but_causes_no_second_reaction() {
    let mut recovery = Recovery::default();
    recovery.enter(at(10));
    assert!(recovery.holds(at(5)));
    recovery.release();
    assert!(!recovery.holds(at(5)) && recovery.covers(at(5)));
    recovery.enter(at(20));
    assert!(recovery.holds(at(15)));
}

#[test]
fn a_reaction_to_no_loss_is_not_undone() {
    let mut recovery = Recovery::default();
    recovery.enter(at(10));
    assert!(!recovery.on_spurious(1_000, at(5)), "marks of the network caused it");
}
