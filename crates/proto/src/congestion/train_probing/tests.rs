use super::super::test_path::{SIZE, ack, rtt};
use super::*;

const RTT: Duration = Duration::from_millis(600);
const PACKET: u64 = SIZE as u64;
const WINDOW: u64 = 10 * PACKET;

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn send(probing: &mut TrainProbing, now: Instant, packets: u64) {
    for packet_number in 0..packets {
        let sent = Sent { packet_number, bytes: PACKET, bytes_in_flight: 0, app_limited: false };
        probing.on_sent(now, &sent);
    }
}

/// Acknowledges packets that were sent at `sent`, in pairs that the bottleneck spaced at `rate`. Returns the last
/// window that was asked for.
fn acknowledge(
    probing: &mut TrainProbing,
    sent: Instant,
    packets: u64,
    bytes_per_second: u64,
) -> Option<u64> {
    acknowledge_after(RTT, probing, sent, packets, bytes_per_second)
}

fn acknowledge_after(
    time: Duration,
    probing: &mut TrainProbing,
    sent: Instant,
    packets: u64,
    bytes_per_second: u64,
) -> Option<u64> {
    let rtt = rtt(time);
    (1..=packets / 2)
        .filter_map(|pair| {
            let spacing = Duration::from_nanos(pair * 2 * PACKET * 1_000_000_000 / bytes_per_second);
            probing.on_ack(sent + time + spacing, &ack(2 * PACKET, sent, &rtt), Some(time), PACKET)
        })
        .last()
}

/// The window after a first train that shows so many bytes per second.
fn window_after_a_train(probing: &mut TrainProbing, time: Duration, bytes_per_second: u64) -> Option<u64> {
    handshake(probing, time);
    send(probing, at(0) + time, 10);
    acknowledge_after(time, probing, at(0) + time, 10, bytes_per_second)
}

/// The acknowledgement of a packet of the handshake.
fn handshake(probing: &mut TrainProbing, round_trip: Duration) -> Option<u64> {
    send(probing, at(0), 1);
    let rtt = rtt(round_trip);
    probing.on_ack(at(0) + round_trip, &ack(PACKET, at(0), &rtt), Some(round_trip), PACKET)
}

#[test]
fn the_first_flight_of_a_long_path_goes_on_at_the_pace_of_a_usual_one() {
    let mut probing = TrainProbing::new(WINDOW);
    assert_eq!(probing.first_pace(), 0);
    assert_eq!(handshake(&mut probing, RTT), Some(6 * WINDOW));
    assert_eq!(probing.first_pace(), 10 * WINDOW);
}

#[test]
fn the_first_flight_is_bounded_however_long_the_path_is() {
    let mut probing = TrainProbing::new(WINDOW);
    assert_eq!(handshake(&mut probing, Duration::from_secs(100_000)), Some(MAX_FIRST_FLIGHT));
}

#[test]
fn paths_on_which_delay_says_nothing_are_left_alone() {
    let mut probing = TrainProbing::new(WINDOW);
    let round_trip = Duration::from_micros(128);
    assert_eq!(handshake(&mut probing, round_trip), None);
    send(&mut probing, at(0) + round_trip, 10);
    assert_eq!(acknowledge(&mut probing, at(0) + round_trip, 10, 1_000_000), None);
    assert_eq!((probing.bandwidth(), probing.first_pace(), probing.take_packet_train()), (0, 0, 0));
}

#[test]
fn a_train_is_begun_anew_after_packets_that_left_too_early() {
    let mut probing = TrainProbing::new(WINDOW);
    handshake(&mut probing, RTT);
    send(&mut probing, at(600_000), 3);
    let first = at(650_000);
    send(&mut probing, first, 10);
    // What leaves later is of no train: this one is long enough.
    send(&mut probing, at(700_000), 10);
    let window = acknowledge(&mut probing, first, 8, 2_000_000).expect("it shows something");
    assert!((1_150_000..=1_250_000).contains(&window), "{window}");
    assert_eq!(probing.take_packet_train(), 0, "it is as long as it was to be, and not over");
}

#[test]
fn trains_go_on_until_one_shows_no_more() {
    let mut probing = TrainProbing::new(WINDOW);
    handshake(&mut probing, RTT);
    let first = at(600_000);
    send(&mut probing, first, 10);
    // The first train is taken for slower than the path is.
    let window = acknowledge(&mut probing, first, 10, 2_000_000).expect("it shows something");
    assert!((1_150_000..=1_250_000).contains(&window), "{window}");
    assert_eq!((probing.first_pace(), probing.has_found()), (0, false));
    // An eighth of what the path seems to hold, once.
    let train = probing.take_packet_train();
    assert!((window / 9..=window / 8).contains(&train), "{train}");
    assert_eq!(probing.take_packet_train(), 0);

    let second = at(1_300_000);
    let packets = train / PACKET / 2 * 2;
    send(&mut probing, second, packets);
    let window = acknowledge(&mut probing, second, packets, 10_000_000).expect("it shows more");
    assert!((5_900_000..=6_100_000).contains(&window), "{window}");
    let train = probing.take_packet_train();
    assert_eq!(train, MAX_TRAIN_PACKETS * PACKET, "no train is longer");

    let third = at(2_000_000);
    send(&mut probing, third, train / PACKET);
    acknowledge(&mut probing, third, train / PACKET, 10_000_000);
    assert!(probing.has_found());
    assert_eq!(probing.take_packet_train(), 0);
}

#[test]
fn the_rate_of_delivery_takes_over_after_two_round_trips() {
    let mut probing = TrainProbing::new(WINDOW);
    handshake(&mut probing, RTT);
    send(&mut probing, at(600_000), 10);
    acknowledge(&mut probing, at(600_000), 10, 2_000_000);
    assert!(probing.bandwidth() > 1_900_000);
    let rtt = rtt(RTT);
    // Whether STARTUP goes on or not.
    probing.check_unvalidated(at(600_000) + RTT * 4, &ack(PACKET, at(600_000) + RTT, &rtt), PACKET);
    assert_eq!(probing.bandwidth(), 0);
}

#[test]
fn a_first_flight_without_a_handshake_is_a_train() {
    let mut probing = TrainProbing::new(WINDOW);
    send(&mut probing, at(0), 10);
    // A probe for the silence, long after the train.
    send(&mut probing, at(300_000), 1);
    assert!(acknowledge(&mut probing, at(0), 10, 2_000_000).is_some_and(|window| window > 1_150_000));
}

#[test]
fn what_leaves_before_a_pause_of_the_application_belongs_to_no_train() {
    // The end of the handshake and tickets leave at once, the response some time later, and a last packet later still.
    let mut probing = TrainProbing::new(WINDOW);
    send(&mut probing, at(0), 1);
    send(&mut probing, at(3_000), 9);
    send(&mut probing, at(5_000), 1);
    let window = acknowledge(&mut probing, at(3_000), 8, 6_000_000).expect("it shows something");
    assert!((3_400_000..=3_700_000).contains(&window), "{window}");
}

#[test]
fn nothing_is_searched_after_a_stop() {
    let mut probing = TrainProbing::new(WINDOW);
    handshake(&mut probing, RTT);
    probing.stop();
    send(&mut probing, at(600_000), 10);
    assert_eq!(acknowledge(&mut probing, at(600_000), 10, 2_000_000), None);
    assert_eq!((probing.take_packet_train(), probing.first_pace(), probing.has_found()), (0, 0, false));
}

#[test]
fn a_train_that_shows_nothing_is_followed_by_a_longer_one() {
    let mut probing = TrainProbing::new(WINDOW);
    handshake(&mut probing, RTT);
    let rtt = rtt(RTT);
    let mut trains = Vec::new();
    for round in 1..10 {
        let now = at(0) + RTT * round;
        let packets = 10.max(probing.take_packet_train() / PACKET);
        trains.push(packets);
        send(&mut probing, now, packets);
        // One acknowledgement for all of them, without any delay.
        probing.on_ack(now + RTT, &ack(packets * PACKET, now, &rtt), Some(RTT), PACKET);
    }
    assert_eq!(trains, [10, 20, 40, 80, 160, 320, 320, 320, 320]);
}

#[test]
fn a_train_raises_the_rate_to_what_it_shows_however_long_the_path_is() {
    for millis in [5, 20, 30, 40, 60, 80, 600] {
        let mut probing = TrainProbing::new(WINDOW);
        let time = Duration::from_millis(millis);
        let window = window_after_a_train(&mut probing, time, 10_000_000).unwrap_or_default();
        let held = 10_000 * millis;
        assert!((held * 95 / 100..=held * 105 / 100).contains(&window), "{millis} ms: {window}");
        assert_eq!(probing.gain(277, 0), 100, "its pace is that of the estimate");
        assert!(probing.take_packet_train() > 0, "another train follows");
    }
}

#[test]
fn a_first_train_that_shows_no_more_than_slow_start_reaches_ends_the_search() {
    let time = Duration::from_millis(20);
    let mut probing = TrainProbing::new(WINDOW);
    // 600 kB/s are the initial window in a round trip.
    window_after_a_train(&mut probing, time, 1_100_000);
    assert!(probing.has_stopped());
    assert_eq!(probing.gain(277, 0), 277, "slow start goes on");
}

#[test]
fn an_estimate_that_was_none_does_not_hold_back_what_follows() {
    let time = Duration::from_millis(20);
    let rate = 1_100_000;
    let mut probing = TrainProbing::new(WINDOW);
    handshake(&mut probing, time);
    let first = at(0) + time;
    send(&mut probing, first, 10);
    let round_trip = rtt(time);
    for pair in 1..=5 {
        let spacing = Duration::from_nanos(pair * 2 * PACKET * 1_000_000_000 / rate);
        probing.on_ack(first + time + spacing, &ack(2 * PACKET, first, &round_trip), Some(time), PACKET);
        if pair == 4 {
            // The rate of delivery has reached what the train shows before its end.
            probing.on_rate(rate, true, &mut FullPipe::default());
            assert!(probing.gain(277, rate) < 277 && probing.growth_percent() < 125);
        }
    }
    assert!(probing.has_stopped(), "slow start reaches as much");
    assert_eq!((probing.gain(277, rate), probing.growth_percent()), (277, 125));
}
