use fulmar_base::Rng;

use super::super::test_path::{SIZE, ack, rtt};
use super::*;

const RTT: Duration = Duration::from_millis(20);
const STEP: Duration = Duration::from_millis(5);
const WINDOW: u64 = 100_000;

/// A path whose packets are acknowledged one by one and some time apart.
struct Path {
    random: RandomLoss,
    now: Instant,
    /// What the round-trip time exceeds the smallest by.
    extra: Duration,
    /// For how long the peer keeps acknowledgements.
    ack_delay: Duration,
    window: u64,
}

impl Path {
    fn new() -> Self {
        Self {
            random: RandomLoss::default(),
            now: Instant::from_millis(1),
            extra: Duration::ZERO,
            ack_delay: Duration::ZERO,
            window: WINDOW,
        }
    }

    fn answering_once() -> Self {
        Self { random: RandomLoss::answering_once(), ..Self::new() }
    }

    /// Acknowledges so many packets; returns whether one of them ended a trial that was in vain.
    fn acknowledge(&mut self, packets: u32) -> bool {
        let rtt = rtt(RTT);
        let mut in_vain = false;
        for _ in 0..packets {
            self.now += STEP;
            let ack = ack(u64::from(SIZE), self.now, &rtt);
            let rtt_sample = Some(RTT + self.extra + self.ack_delay);
            let ack = AckEvent { rtt_sample, ack_delay: self.ack_delay, ..ack };
            self.random.on_ack(self.now, &ack);
            in_vain |= self.random.trial_was_in_vain(self.window);
        }
        in_vain
    }

    fn lose(&mut self, packets: u64) -> bool {
        self.random.tolerates(packets, self.now, false)
    }

    /// Loses one packet in `period`, `count` times. Returns whether all of that was tolerated.
    fn lose_one_in(&mut self, period: u32, count: u32) -> bool {
        (0..count).fold(true, |all, _| {
            self.acknowledge(period - 1);
            self.lose(1) && all
        })
    }

    /// Loses one packet in `period`, long enough for a trial. Returns whether one has ended in vain.
    fn is_trial_in_vain(&mut self, period: u32) -> bool {
        (0..40).fold(false, |any, _| {
            let ended = self.acknowledge(period - 1);
            self.lose(1);
            any || ended
        })
    }

    /// Loses one packet in `period` until that is not tolerated, and reacts.
    fn lose_until_reaction(&mut self, period: u32) {
        let reaction = (0..1_000).find(|_| !self.lose_one_in(period, 1));
        assert!(reaction.is_some(), "one packet in {period} is too many");
        self.random.on_reaction(self.now, WINDOW + 1);
    }
}

#[test]
fn a_loss_now_and_then_is_chance_on_any_path() {
    assert!(Path::new().lose_one_in(64, 200));
}

#[test]
fn a_short_burst_of_losses_is_chance() {
    let mut path = Path::new();
    path.acknowledge(500);
    assert!(path.lose(3));
}

#[test]
fn heavy_losses_are_congestion_at_once() {
    let mut path = Path::new();
    path.acknowledge(500);
    assert!(!path.lose(8));
}

#[test]
fn losses_of_one_in_twenty_are_congestion_until_a_trial_has_shown_something_else() {
    let mut path = Path::new();
    path.lose_until_reaction(20);
    // As many are lost after the reaction: it was in vain, and so many losses are tolerated from then on.
    assert!(path.is_trial_in_vain(20));
    assert!(path.lose_one_in(20, 200));
}

/// Loses one packet in 64 at random, which is now and then more than one in 50 in the mean over the latest ones, and reacts when that is
/// not tolerated. Returns whether that was found to be in vain.
fn is_reaction_to_chance_in_vain(seed: u64) -> bool {
    let mut rng = Rng::from_u64(seed);
    let mut path = Path::new();
    loop {
        let on_trial = path.random.is_on_trial();
        let in_vain = path.acknowledge(1);
        if on_trial && !path.random.is_on_trial() {
            return in_vain;
        }
        if rng.below(63) == 0 && !path.lose(1) && !path.random.is_on_trial() {
            path.random.on_reaction(path.now, WINDOW + 1);
        }
    }
}

#[test]
fn chance_that_exceeds_what_is_tolerated_for_a_while_is_found_out() {
    let found = (0..40).filter(|&seed| is_reaction_to_chance_in_vain(seed)).count();
    assert!(found >= 30, "{found} of 40 times");
}

#[test]
fn what_a_path_does_not_lose_any_more_is_not_tolerated_for_good() {
    let mut path = Path::new();
    path.lose_until_reaction(10);
    assert!(path.is_trial_in_vain(10));
    assert!(path.lose_one_in(10, 40));
    assert!(path.lose_one_in(100, 20));
    assert!(!path.lose_one_in(10, 40));
}

#[test]
fn losses_that_a_reaction_ends_are_congestion() {
    let mut path = Path::new();
    path.lose_until_reaction(20);
    assert!(!path.acknowledge(2_000));
    path.lose_until_reaction(20);
}

#[test]
fn losses_that_a_reaction_makes_fewer_are_congestion() {
    let mut path = Path::new();
    path.lose_until_reaction(10);
    assert!(!path.is_trial_in_vain(80));
    path.lose_until_reaction(10);
}

#[test]
fn a_trial_is_not_in_vain_where_a_queue_stands() {
    let mut path = Path::new();
    path.lose_until_reaction(20);
    path.extra = Duration::from_millis(20);
    assert!(!path.is_trial_in_vain(20));
}

#[test]
fn one_packet_in_four_is_congestion_however_often_it_is_tried() {
    let mut path = Path::new();
    for _ in 0..5 {
        path.lose_until_reaction(4);
        path.lose_one_in(4, 100);
    }
    assert!(!path.lose_one_in(4, 20));
}

#[test]
fn a_trial_shows_nothing_once_the_window_has_grown_back() {
    let mut path = Path::new();
    path.lose_until_reaction(20);
    path.window = WINDOW + 1;
    assert!(!path.is_trial_in_vain(20));
}

#[test]
fn a_loss_with_a_queue_is_congestion() {
    let mut path = Path::new();
    path.acknowledge(100);
    path.extra = Duration::from_millis(20);
    path.acknowledge(100);
    assert!(!path.lose(1));
}

#[test]
fn a_loss_with_a_queue_of_the_senders_own_is_not() {
    let mut path = Path::new();
    path.acknowledge(100);
    path.extra = Duration::from_millis(20);
    path.acknowledge(500);
    assert!(path.random.tolerates(3, path.now, true));
    assert!(!path.random.tolerates(8, path.now, true));
}

#[test]
fn a_later_reaction_begins_the_trial_anew() {
    let mut path = Path::new();
    path.lose_until_reaction(20);
    path.lose_one_in(20, 7);
    path.random.on_reaction(path.now, WINDOW + 1);
    assert!(!path.acknowledge(20), "the trial of the first reaction would be over");
    assert!(path.is_trial_in_vain(20));
}

#[test]
fn a_later_reaction_to_a_queue_ends_the_trial() {
    let mut path = Path::new();
    path.lose_until_reaction(20);
    path.extra = Duration::from_millis(20);
    path.acknowledge(60);
    path.random.on_reaction(path.now, WINDOW + 1);
    path.extra = Duration::ZERO;
    assert!(!path.is_trial_in_vain(20));
}

#[test]
fn a_trial_that_was_ended_shows_nothing() {
    let mut path = Path::new();
    path.lose_until_reaction(20);
    path.random.end_trial();
    assert!(!path.is_trial_in_vain(20));
}

#[test]
fn bursts_during_a_trial_are_no_second_reason_to_react() {
    // Bursts of six, one packet in 17 in all: of 64 packets that is often a sixth and more.
    let mut path = Path::new();
    let burst = |path: &mut Path| {
        path.acknowledge(96);
        path.random.on_burst(6, path.now);
        path.lose(6)
    };
    let reaction = (0..100).find(|_| !burst(&mut path));
    assert!(reaction.is_some(), "one packet in 17 is too many");
    path.random.on_reaction(path.now, WINDOW + 1);
    // After so many it is not tried again yet.
    assert!((0..40).all(|_| burst(&mut path)));
}

#[test]
fn a_trial_that_chance_has_spared_goes_on() {
    let mut path = Path::new();
    path.lose_until_reaction(20);
    // Eight of these would have been lost in the mean.
    assert!(!path.acknowledge(170));
    assert!(path.is_trial_in_vain(10));
}

#[test]
fn losses_beside_large_delays_are_no_chance_though_they_stay() {
    // A queue of half a millisecond, which is too small to be seen, loses a packet whenever it is full.
    let mut path = Path::new();
    let cycle = |path: &mut Path| {
        let ended = (0..19).fold(false, |any, step| {
            path.extra = Duration::from_micros(25 * step);
            path.acknowledge(1) || any
        });
        path.random.on_burst(1, path.now);
        path.lose(1);
        ended
    };
    (0..1_000).for_each(|_| _ = cycle(&mut path));
    path.random.on_reaction(path.now, WINDOW + 1);
    assert!((0..400).all(|_| !cycle(&mut path)));
}

#[test]
fn where_losses_come_in_bursts_a_trial_is_longer() {
    let mut path = Path::new();
    let burst = |path: &mut Path| {
        let ended = path.acknowledge(96);
        path.random.on_burst(6, path.now);
        path.lose(6);
        ended
    };
    (0..20).for_each(|_| assert!(!burst(&mut path)));
    path.random.on_reaction(path.now, WINDOW + 1);
    // Three bursts do not come.
    assert!(!path.acknowledge(300));
    assert!((0..20).any(|_| burst(&mut path)));
}

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
fn losses_of_few_packets_do_not_tell_what_a_path_loses() {
    // Four of sixteen are lost, and one in twelve after that.
    let mut path = Path::new();
    path.acknowledge(12);
    path.lose(4);
    path.random.on_reaction(path.now, WINDOW + 1);
    assert!(path.is_trial_in_vain(12));
    // Of a thousand packets as many show it better.
    let mut path = Path::new();
    for _ in 0..62 {
        path.acknowledge(12);
        path.lose(4);
    }
    path.random.on_reaction(path.now, WINDOW + 1);
    assert!(!path.is_trial_in_vain(12));
}

#[test]
fn a_part_of_a_flight_is_tolerated_beyond_what_is_lost_at_random() {
    let mut path = Path::new();
    assert_eq!(path.random.tolerated_of(1_000_000), 19_999, "a fiftieth, rounded down");
    path.lose_until_reaction(20);
    assert!(path.is_trial_in_vain(20));
    // A fiftieth, a twentieth, and four deviations of 7 in a thousand.
    let tolerated = path.random.tolerated_of(1_000_000);
    assert!((85_000..=105_000).contains(&tolerated), "{tolerated}");
    assert_eq!(path.random.min_rtt(), RTT);
}

/// The same for a later trial, which is longer where less was lost before it.
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
