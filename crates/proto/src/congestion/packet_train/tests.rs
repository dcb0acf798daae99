use super::super::test_path::{SIZE, ack, rtt};
use super::*;

const MIN_RTT: Duration = Duration::from_millis(600);
const PACKET: u64 = SIZE as u64;

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

/// A train of so many packets that left at once.
fn train(packets: u64) -> PacketTrain {
    let mut train = PacketTrain::new(at(0), PACKET);
    for _ in 1..packets {
        assert!(train.on_sent(at(0), PACKET));
    }
    train
}

/// Acknowledges two packets so many microseconds after the shortest round trip.
fn acknowledge(train: &mut PacketTrain, micros: u64) {
    let rtt = rtt(MIN_RTT);
    train.on_ack(at(600_000 + micros), &ack(2 * PACKET, at(0), &rtt), MIN_RTT, PACKET);
}

#[test]
fn the_spacing_shows_the_rate() {
    // 1.2 MB/s: a packet takes a millisecond.
    let mut train = train(10);
    for pair in 1..=5 {
        acknowledge(&mut train, pair * 2_000);
    }
    let rate = train.rate().expect("the train was long enough");
    assert!((1_150_000..=1_250_000).contains(&rate), "{rate}");
    assert!(train.is_over(at(0)));
}

#[test]
fn the_ways_back_of_acknowledgements_are_no_part_of_the_spacing() {
    // 1.2 MB/s. Another path has brought one acknowledgement of a probe before, and now some of these, which its own way brings later.
    for detours in [[40_000; 5], [0, 40_000, 0, 40_000, 0]] {
        let (mut train, rtt) = (train(10), rtt(MIN_RTT));
        for (pair, detour) in (1..=5).zip(detours) {
            let came = at(600_000 + pair * 2_000 + detour);
            let detour = Duration::from_micros(detour);
            let event = AckEvent { detour, ..ack(2 * PACKET, at(0), &rtt) };
            train.on_ack(came, &event, MIN_RTT, PACKET);
        }
        let rate = train.rate().expect("the train was long enough");
        assert!((1_150_000..=1_250_000).contains(&rate), "{detours:?}: {rate}");
    }
}

#[test]
fn acknowledgements_that_come_in_a_bunch_do_not_raise_the_estimate() {
    // Something was in front of them for 8 ms; then they follow each other closely.
    let mut train = train(10);
    acknowledge(&mut train, 2_000);
    for pair in 1..=4 {
        acknowledge(&mut train, 10_000 + pair * 10);
    }
    let rate = train.rate().expect("the train was long enough");
    assert!((1_150_000..=1_250_000).contains(&rate), "{rate}");
}

#[test]
fn no_estimate_is_above_what_timers_can_tell() {
    let mut train = train(10);
    for pair in 1..=5 {
        acknowledge(&mut train, pair);
    }
    // Ten packets in half a millisecond.
    assert!(train.rate().is_some_and(|rate| rate <= 24_000_000), "{:?}", train.rate());
}

#[test]
fn an_even_spacing_shows_the_rate_of_a_fast_path() {
    // 32 MB/s, 256 Mbit/s: a packet takes 37.5 microseconds.
    let mut train = train(10);
    for pair in 1..=5 {
        acknowledge(&mut train, 75 * pair);
    }
    assert!(train.rate().is_some_and(|rate| (31_500_000..=32_500_000).contains(&rate)), "{:?}", train.rate());
    assert!(!train.is_lower_bound());
}

#[test]
fn an_even_spacing_that_may_be_that_of_the_receiver_shows_no_more_than_a_bunch() {
    let mut train = train(10);
    for pair in 1..=5 {
        acknowledge(&mut train, 20 * pair);
    }
    // Ten packets in half a millisecond.
    assert!(train.rate().is_some_and(|rate| rate <= 25_000_000), "{:?}", train.rate());
    assert!(train.is_lower_bound());
}

#[test]
fn bunches_in_a_quarter_of_a_millisecond_show_no_fast_path() {
    // A slot of a radio, and the next one.
    let mut train = train(10);
    for micros in [2, 4, 6, 246, 250] {
        acknowledge(&mut train, micros);
    }
    assert!(train.rate().is_some_and(|rate| rate <= 25_000_000), "{:?}", train.rate());
    // Several at the same time.
    let mut at_once = self::train(10);
    for micros in [0, 200, 200, 200, 200] {
        acknowledge(&mut at_once, micros);
    }
    assert!(at_once.rate().is_some_and(|rate| rate <= 25_000_000), "{:?}", at_once.rate());
}

#[test]
fn few_packets_show_nothing() {
    let mut train = train(3);
    acknowledge(&mut train, 1_000);
    acknowledge(&mut train, 3_000);
    assert_eq!(train.rate(), None);
}

#[test]
fn a_packet_that_leaves_late_belongs_to_no_train() {
    let mut train = train(2);
    for packet in 1..=40 {
        assert!(train.on_sent(at(packet * 250), PACKET));
    }
    assert!(!train.on_sent(at(10_001), PACKET));
    assert!(!train.is_over(at(10_000)) && train.is_over(at(10_001)));
}

#[test]
fn a_pause_of_the_sender_ends_a_train() {
    let mut train = train(4);
    assert!(!train.on_sent(at(251), PACKET));
    assert_eq!(train.bytes(), 4 * PACKET);
}

#[test]
fn older_packets_do_not_count() {
    let mut train = PacketTrain::new(at(500), PACKET);
    for _ in 1..10 {
        train.on_sent(at(500), PACKET);
    }
    for pair in 1..=5 {
        acknowledge(&mut train, pair * 2_000);
    }
    assert_eq!(train.rate(), None);
}

#[test]
fn one_acknowledgement_for_all_shows_the_rate_by_its_delay() {
    let rtt = rtt(MIN_RTT);
    let mut late = train(10);
    late.on_ack(at(610_000), &ack(10 * PACKET, at(0), &rtt), MIN_RTT, PACKET);
    assert!(late.rate().is_some_and(|rate| (1_150_000..=1_270_000).contains(&rate)), "{:?}", late.rate());
    let mut prompt = train(10);
    prompt.on_ack(at(600_100), &ack(10 * PACKET, at(0), &rtt), MIN_RTT, PACKET);
    assert_eq!(prompt.rate(), None, "it says nothing");
}

#[test]
fn a_bunch_that_is_late_as_a_whole_does_not_raise_the_estimate() {
    // The receiver looked 10 ms after the first packet had come, and acknowledged all pairs at once.
    let mut train = train(10);
    for pair in 1..=5 {
        acknowledge(&mut train, 10_000 + 30 * pair);
    }
    assert!(train.rate().is_some_and(|rate| rate <= 1_270_000), "{:?}", train.rate());
}
