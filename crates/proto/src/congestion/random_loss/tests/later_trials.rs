//! What later trials have to show, and what trials show together that end early.

use super::*;

/// Loses one packet in `period`, long enough for a later trial, which is longer where less was lost before it. Returns whether one has ended in vain.
fn is_later_trial_in_vain(path: &mut Path, period: u32) -> bool {
    (0..4).any(|_| path.is_trial_in_vain(period))
}

/// Whether a reaction to losses of one packet in six was in vain that leaves one in ten.
fn is_three_fifths_of_the_losses_in_vain(path: &mut Path) -> bool {
    path.lose_until_reaction(6);
    path.is_trial_in_vain(10)
}

#[test]
fn a_later_trial_has_to_keep_more_of_the_losses() {
    let mut path = Path::new();
    assert!(is_three_fifths_of_the_losses_in_vain(&mut path));
    // What one of several flows gives up that overflow a queue together.
    assert!(!is_three_fifths_of_the_losses_in_vain(&mut path));
    path.lose_until_reaction(6);
    assert!(is_later_trial_in_vain(&mut path, 6), "as many as before are by chance in a later trial, too");
}

#[test]
fn of_what_a_later_trial_that_has_helped_leaves_a_part_is_taken_for_chance() {
    let mut path = Path::new();
    assert!(is_three_fifths_of_the_losses_in_vain(&mut path));
    let before = path.random.tolerated_of(1_000_000);
    assert!(!is_three_fifths_of_the_losses_in_vain(&mut path));
    let after = path.random.tolerated_of(1_000_000);
    assert!(after < before * 3 / 4, "{after} bytes after {before}");
}

#[test]
fn a_later_trial_that_keeps_three_quarters_of_the_losses_is_in_vain() {
    let mut path = Path::new();
    assert!(is_three_fifths_of_the_losses_in_vain(&mut path));
    path.lose_until_reaction(8);
    assert!(is_later_trial_in_vain(&mut path, 10), "four fifths of the losses are still there");
}

/// How many packets a path that loses one in ten acknowledges until a loss is a reason to react.
fn acknowledged_until_reaction(path: &mut Path) -> u32 {
    let losses = (1..10_000).find(|_| !path.lose_one_in(10, 1)).expect("it is tried again");
    path.random.on_reaction(path.now, WINDOW + 1);
    9 * losses
}

#[test]
fn what_is_tolerated_is_tried_again_and_more_rarely_each_time() {
    let mut path = Path::new();
    path.lose_until_reaction(10);
    assert!(path.is_trial_in_vain(10));
    let times: [u32; 5] = std::array::from_fn(|_| {
        let time = acknowledged_until_reaction(&mut path);
        assert!(path.is_trial_in_vain(10));
        time
    });
    // A trial loses 32 packets of 320, and the first is due after eight times as many.
    assert!((2_000..=2_800).contains(&times[0]), "{times:?}");
    assert!(times.windows(2).take(3).all(|pair| pair[1] > pair[0] * 3 / 2), "{times:?}");
    assert!(times[4] <= times[3] * 11 / 10, "at most 64 times: {times:?}");
}

#[test]
fn a_trial_in_which_losses_ended_brings_the_next_one_forward() {
    let mut path = Path::new();
    path.lose_until_reaction(10);
    assert!(path.is_trial_in_vain(10));
    acknowledged_until_reaction(&mut path);
    assert!(path.is_trial_in_vain(10));
    acknowledged_until_reaction(&mut path);
    assert!(!path.acknowledge(1_000), "nothing was lost: not in vain");
    path.lose_until_reaction(10);
    assert!(is_later_trial_in_vain(&mut path, 10));
    let again = acknowledged_until_reaction(&mut path);
    assert!(again < 2_800, "{again}");
}

#[test]
fn what_is_tolerated_in_any_case_is_not_tried_again() {
    let mut path = Path::new();
    path.lose_until_reaction(10);
    assert!(path.is_trial_in_vain(10));
    path.lose_one_in(100, 20);
    assert!(path.lose_one_in(100, 2_000));
}

#[test]
fn what_was_lost_before_a_trial_begins_anew_says_nothing() {
    let mut path = Path::new();
    path.lose_until_reaction(10);
    path.acknowledge(1);
    path.lose(10);
    path.random.restart_trial(path.now);
    // Of what was sent before.
    path.lose(10);
    assert!(!path.acknowledge(300));
    let mut path = Path::new();
    path.lose_until_reaction(10);
    path.acknowledge(1);
    path.lose(10);
    assert!(path.acknowledge(300), "it would have been in vain");
}

/// A window of few packets: one in twenty is lost. Of the nineteen before it each has `step` microseconds more delay in the queue than the
/// last, and the peer keeps each acknowledgement for `kept` microseconds longer. A reaction has grown back after 60. Returns how many
/// reactions it takes until one is found to be in vain.
fn reactions_until_one_is_in_vain(path: &mut Path, step: u64, kept: u64) -> Option<u32> {
    let row = |path: &mut Path| {
        let in_vain = (0..19).fold(false, |any, number| {
            path.extra = Duration::from_micros(number * step);
            path.ack_delay = Duration::from_micros(number * kept);
            path.acknowledge(1) || any
        });
        path.random.on_burst(1, path.now);
        path.lose(1);
        in_vain
    };
    (0..20).for_each(|_| assert!(!row(path)));
    (1..100).find(|_| {
        path.window = WINDOW;
        path.random.on_reaction(path.now, WINDOW + 1);
        let in_vain = (0..3).any(|_| row(path));
        path.window = WINDOW + 1;
        row(path) || in_vain
    })
}

#[test]
fn trials_that_a_small_window_cuts_short_show_together_that_losses_are_chance() {
    // Eight are lost of 160 packets: in three trials. The delays beside nine losses show that it is chance.
    let reactions = reactions_until_one_is_in_vain(&mut Path::new(), 0, 0);
    assert!(reactions.is_some_and(|it| (3..=5).contains(&it)), "{reactions:?}");
}

#[test]
fn an_acknowledgement_that_the_peer_keeps_where_a_packet_is_missing_is_no_sign_of_a_queue() {
    let reactions = reactions_until_one_is_in_vain(&mut Path::new(), 0, 25);
    assert!(reactions.is_some_and(|it| (3..=5).contains(&it)), "{reactions:?}");
}

#[test]
fn trials_that_were_cut_short_show_no_chance_where_losses_come_at_a_large_delay() {
    assert_eq!(reactions_until_one_is_in_vain(&mut Path::new(), 25, 0), None);
}

#[test]
fn what_trials_have_shown_before_one_that_helped_does_not_count() {
    let mut path = Path::new();
    path.lose_until_reaction(20);
    path.lose_one_in(20, 3);
    path.random.end_trial();
    assert_eq!(path.random.unfinished.lost, 3);
    path.random.on_reaction(path.now, WINDOW + 1);
    assert!(!path.acknowledge(2_000), "nothing is lost any more");
    assert_eq!(path.random.unfinished.packets(), 0);
}

#[test]
fn trials_of_long_ago_do_not_count() {
    let mut path = Path::new();
    let packets: Vec<u64> = (0..100)
        .map(|_| {
            path.random.on_reaction(path.now, WINDOW + 1);
            path.acknowledge(100);
            path.random.end_trial();
            path.random.unfinished.packets()
        })
        .collect();
    assert_eq!(packets[..81], std::array::from_fn::<u64, 81, _>(|number| 100 * (number as u64 + 1)));
    assert_eq!(packets[81], 0, "as many as the means remember are enough");
}

#[test]
fn what_left_before_a_trial_shows_nothing_however_much_of_it_arrives() {
    let mut path = Path::new();
    path.lose_until_reaction(10);
    let (rtt, sent) = (rtt(RTT), path.now);
    for _ in 0..1_000 {
        path.now += STEP;
        path.random.on_ack(path.now, &ack(u64::from(SIZE), sent, &rtt));
        assert!(!path.random.trial_was_in_vain(WINDOW));
    }
    assert!(path.random.is_on_trial());
}
