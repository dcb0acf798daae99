use super::*;
use fulmar_base::Rng;

const MIN_RTT: Duration = Duration::from_millis(16);

/// A path with an acknowledgement in each millisecond, whose delays in microseconds are told by number, and that loses a packet
/// beside those for which `loses` says so.
fn path(packets: u64, delay: impl Fn(u64) -> u64, mut loses: impl FnMut(u64) -> bool) -> LossDelay {
    let mut watch = LossDelay::default();
    for number in 0..packets {
        let sent = Instant::from_millis(number);
        let rtt = Duration::from_micros(delay(number));
        watch.on_sample(sent + rtt, sent, rtt, MIN_RTT);
        if loses(number) {
            watch.on_loss(sent, MIN_RTT);
        }
    }
    watch
}

/// A queue that fills in 50 ms and empties at once.
fn sawtooth(number: u64) -> u64 {
    16_000 + number % 50 * 100
}

#[test]
fn losses_where_the_delay_is_large_are_those_of_a_queue() {
    let watch = path(20_000, sawtooth, |number| number % 50 == 49);
    assert!(watch.shows_full_queue());
    // A part of them by chance hides nothing.
    let watch = path(20_000, sawtooth, |number| number % 50 == 49 || number % 100 == 17);
    assert!(watch.shows_full_queue());
}

#[test]
fn losses_by_chance_show_no_queue_whatever_the_delays_are() {
    for seed in 0..50 {
        let mut rng = Rng::from_u64(seed);
        assert!(!path(20_000, sawtooth, |_| rng.chance(0.05)).shows_full_queue(), "seed {seed}");
    }
}

#[test]
fn delays_that_only_grow_or_only_fall_show_nothing() {
    assert!(!path(20_000, |number| 16_000 + number * 10, |number| number % 40 == 0).shows_full_queue());
    assert!(!path(20_000, |number| 316_000 - number * 10, |number| number % 40 == 0).shows_full_queue());
    assert!(!path(20_000, |_| 16_000, |number| number % 40 == 0).shows_full_queue());
}

#[test]
fn what_a_queue_has_shown_is_forgotten_when_losses_come_by_chance() {
    let mut rng = Rng::from_u64(7);
    let overflows = |number: u64| number % 50 == 49;
    let watch = path(60_000, sawtooth, |number| match number < 20_000 {
        true => overflows(number),
        false => rng.chance(0.05),
    });
    assert!(!watch.shows_full_queue());
}

#[test]
fn losses_at_any_delay_are_chance_once_there_are_enough_of_them() {
    let chance = |packets| {
        let mut rng = Rng::from_u64(3);
        path(packets, sawtooth, |_| rng.chance(0.02))
    };
    assert!(!path(20_000, sawtooth, |_| false).is_by_chance(), "nothing was lost");
    assert!(!chance(400).is_by_chance(), "eight losses may come where the delay is large by chance");
    assert!(chance(4_000).is_by_chance());
    assert!(!path(20_000, sawtooth, |number| number % 50 == 49).is_by_chance(), "a queue is full then");
}

#[test]
fn a_delay_of_another_time_than_a_loss_shows_no_chance() {
    let lossy = |ahead: Duration| {
        let mut watch = LossDelay::default();
        for number in 0..4_000 {
            let sent = Instant::from_millis(number);
            watch.on_sample(sent + MIN_RTT, sent, MIN_RTT, MIN_RTT);
            if number % 40 == 0 {
                watch.on_loss(sent + ahead, MIN_RTT);
            }
        }
        watch
    };
    // A sixteenth of a round trip is a millisecond.
    assert!(lossy(Duration::from_millis(1)).is_by_chance());
    assert!(!lossy(Duration::from_micros(1_001)).is_by_chance());
}

#[test]
fn what_losses_have_shown_before_a_restart_does_not_count() {
    let mut rng = Rng::from_u64(3);
    let mut watch = path(4_000, sawtooth, |_| rng.chance(0.02));
    watch.restart();
    assert!(!watch.is_by_chance());
}

/// The second packet of a train waits for the first, and a lost one is missed with the next that arrives.
#[test]
fn delays_that_differ_by_a_packet_time_show_no_full_queue() {
    let beside_larger = |larger: u64| {
        let delay = move |number| if number % 39 < 13 { larger } else { 20_120 };
        path(20_000, delay, |number| number % 39 == 6)
    };
    assert!(!beside_larger(20_240).shows_full_queue());
    assert!(beside_larger(20_240).is_by_chance());
    assert!(beside_larger(24_120).shows_full_queue(), "a quarter of a round trip is a queue");
}

/// Ten packets leave together and wait for each other. What chance takes is found when the third after it is acknowledged, or the last one.
#[test]
fn losses_by_chance_within_trains_show_no_queue() {
    let mut rng = Rng::from_u64(5);
    let mut watch = LossDelay::default();
    for train in 0..20_000 {
        let sent = Instant::ZERO + Duration::from_micros(1_300 * train);
        let lost = rng.chance(0.3).then(|| rng.below(9));
        let mut is_found = lost.is_none();
        for number in (0..10).filter(|&number| Some(number) != lost) {
            let after_loss = lost.and_then(|lost| number.checked_sub(lost));
            if number % 2 == 1 || after_loss == Some(1) {
                let rtt = MIN_RTT + Duration::from_micros(100 * number);
                watch.on_sample(sent + rtt, sent, rtt, MIN_RTT);
            }
            if !is_found && (after_loss >= Some(3) || number == 9) {
                is_found = true;
                watch.on_loss(sent, MIN_RTT);
            }
        }
        assert!(!watch.shows_full_queue(), "train {train}");
    }
    assert!(watch.is_by_chance());
}

#[test]
fn losses_within_half_a_round_trip_are_one_sign() {
    // Three bursts of eight, of which the first begins the watch, and as many losses apart.
    assert!(!path(600, |_| 16_000, |number| number % 200 < 8).is_by_chance());
    assert!(path(600, |_| 16_000, |number| number % 25 == 0).is_by_chance());
}
