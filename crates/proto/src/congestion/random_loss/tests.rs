mod answered_once;
mod later_trials;

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

/// A queue of a quarter of the round trip that others keep. What is lost is lost where it is fullest.
#[test]
fn a_queue_in_which_packets_are_lost_is_no_longer_path_however_long_it_stands() {
    let mut path = Path::new();
    path.acknowledge(200);
    for _ in 0..1_000 {
        for step in 0..19 {
            path.extra = RTT / 4 + Duration::from_micros(100 * step);
            path.acknowledge(1);
        }
        path.random.on_burst(1, path.now);
        path.lose(1);
        path.random.on_reaction(path.now, WINDOW + 1);
    }
    assert!(!path.random.is_empty());
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

/// A path becomes longer by a quarter, which looks like a queue until the shorter one is forgotten.
#[test]
fn losses_of_a_path_that_has_become_longer_are_tolerated_again() {
    let mut path = Path::new();
    path.acknowledge(200);
    assert!(path.lose_one_in(100, 5));
    path.extra = RTT / 4;
    path.acknowledge(10);
    let mut reactions = 0;
    while !path.lose_one_in(100, 1) {
        path.random.on_burst(1, path.now);
        path.random.on_reaction(path.now, WINDOW + 1);
        reactions += 1;
        assert!(path.now < Instant::from_millis(20_000), "{reactions} reactions");
    }
    assert!(reactions > 2 && path.now > Instant::from_millis(9_000), "{reactions} reactions, {:?}", path.now);
    assert!(path.lose_one_in(100, 20));
}

#[test]
fn of_a_small_flight_chance_takes_a_larger_part() {
    let mut path = Path::new();
    // Two deviations and half of a packet, in hundredths of a packet.
    let chance = |path: &Path, packets: u64| path.random.chance_of(packets * 1_000, 1_000) / 10;
    assert_eq!([4, 17, 100, 1_600].map(|packets| chance(&path, packets)), [106, 166, 332, 1_181]);
    path.extra = RTT / 2;
    path.acknowledge(20);
    assert_eq!(chance(&path, 17), 0, "a queue");
}

#[test]
fn losses_that_had_another_reason_are_forgotten_and_what_trials_have_shown_is_not() {
    let tolerates_after_a_flight = |forgets: bool, ambient: u64| {
        let mut path = Path::new();
        path.acknowledge(3_000);
        path.random.ambient = ambient;
        path.lose(60);
        if forgets {
            path.random.forget_losses();
        }
        assert_eq!(path.random.ambient, ambient);
        path.lose(1)
    };
    assert!(!tolerates_after_a_flight(false, 0));
    assert!(tolerates_after_a_flight(true, 0));
    assert!(tolerates_after_a_flight(true, ONE / 20));
}
