//! When a path counts as full.

use super::FullPipe;

/// The state after rounds with one sample each: a rate, and whether the application limited it.
fn after(rounds: &[(u64, bool)]) -> FullPipe {
    let mut full = FullPipe::default();
    for &(rate, app_limited) in rounds {
        full.on_sample(rate, true, app_limited, FullPipe::GROWTH_PERCENT);
    }
    full
}

#[test]
fn three_rounds_without_growth_are_a_plateau() {
    assert!(!after(&[(100, false), (124, false), (110, false)]).reached);
    assert!(after(&[(100, false), (124, false), (110, false), (124, false)]).reached);
}

#[test]
fn growth_starts_the_count_again() {
    assert!(
        !after(&[(100, false), (110, false), (110, false), (125, false), (130, false), (130, false)]).reached
    );
}

#[test]
fn a_rate_that_grows_from_round_to_round_is_no_plateau_below_an_earlier_maximum() {
    // The first round was short by luck; what follows takes six times as long, and more is in flight in each.
    let slow_growth =
        [(800, false), (100, false), (150, false), (230, false), (350, false), (520, false), (780, false)];
    assert!(!after(&slow_growth).reached);
    let then_flat = [(780, false), (790, false)];
    assert!(after(&[&slow_growth[..], &then_flat[..]].concat()).reached);
}

#[test]
fn rates_that_swing_below_the_maximum_end_the_search_later_but_end_it() {
    let swinging = [(100, false), (60, false), (100, false), (60, false), (100, false)];
    assert!(!after(&swinging).reached);
    assert!(after(&[&swinging[..], &[(60, false)]].concat()).reached);
}

#[test]
fn a_round_that_the_application_limited_shows_no_plateau() {
    assert!(!after(&[(100, false), (50, true), (50, true), (50, true), (50, true)]).reached);
}

#[test]
fn a_round_that_the_application_limited_can_show_growth() {
    assert!(after(&[(100, false), (90, false), (90, false), (90, false)]).reached);
    assert!(
        !after(&[(100, false), (90, false), (90, false), (130, true), (120, false), (120, false)]).reached
    );
    assert!(after(&[(100, false), (130, true)]).is_growing());
}

#[test]
fn a_rate_has_fallen_if_it_would_have_to_grow_to_be_what_it_was() {
    let full = after(&[(100, false)]);
    assert!(full.has_fallen(80, 125) && full.has_fallen(20, 125));
    assert!(!full.has_fallen(81, 125) && !full.has_fallen(200, 125));
}
