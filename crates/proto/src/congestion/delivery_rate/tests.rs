use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Sends packets of 1,000 bytes at the given milliseconds, all in flight together.
fn send(rate: &mut DeliveryRate, times: &[u64]) -> Vec<(Instant, DeliverySnapshot)> {
    times.iter().enumerate().map(|(i, &t)| (at(t), rate.on_sent(at(t), 1_000, 1_000 * i as u64))).collect()
}

fn acknowledge(
    rate: &mut DeliveryRate,
    now: u64,
    packets: &[(Instant, DeliverySnapshot)],
) -> Option<RateSample> {
    for (sent, snapshot) in packets {
        rate.on_acked(1_000, *sent, snapshot);
    }
    rate.sample(at(now), ms(10))
}

#[test]
fn a_steady_flow_shows_its_rate() {
    let mut rate = DeliveryRate::new(at(0));
    let packets = send(&mut rate, &[0, 10, 20, 30]);
    acknowledge(&mut rate, 50, &packets[..1]);
    let sent = (at(50), rate.on_sent(at(50), 1_000, 3_000));
    acknowledge(&mut rate, 60, &packets[1..2]);
    acknowledge(&mut rate, 70, &packets[2..3]);
    acknowledge(&mut rate, 80, &packets[3..]);
    let sample = acknowledge(&mut rate, 100, &[sent]).expect("a sample");
    // Between 50 ms and 100 ms four packets were delivered.
    assert_eq!((sample.delivered, sample.interval, sample.delivery_rate), (4_000, ms(50), 80_000));
    assert_eq!(sample.total_delivered, 5_000);
}

#[test]
fn acknowledgements_that_come_together_do_not_show_a_higher_rate_than_that_of_sending() {
    let mut rate = DeliveryRate::new(at(0));
    let packets = send(&mut rate, &[0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
    acknowledge(&mut rate, 95, &packets[..1]);
    let late = (at(96), rate.on_sent(at(96), 1_000, 9_000));
    let sample = acknowledge(&mut rate, 97, &packets[1..]).expect("a sample");
    assert!(sample.delivery_rate <= 10_000 * 1_000 / 90, "{sample:?}");
    // From the acknowledgement of the first to that of the last it took 3 ms; sending took 96.
    let sample = acknowledge(&mut rate, 106, &[late]).expect("a sample");
    assert_eq!(sample.interval, ms(96));
}

#[test]
fn an_interval_below_the_minimum_round_trip_gives_no_sample() {
    let mut rate = DeliveryRate::new(at(0));
    let packets = send(&mut rate, &[0]);
    assert_eq!(acknowledge(&mut rate, 9, &packets), None);
    assert_eq!(rate.sample(at(20), ms(10)), None, "no packet, no sample");
}

#[test]
fn silence_is_not_part_of_an_interval() {
    let mut rate = DeliveryRate::new(at(0));
    let first = send(&mut rate, &[0]);
    acknowledge(&mut rate, 20, &first);
    let second = send(&mut rate, &[5_000]);
    let sample = acknowledge(&mut rate, 5_020, &second).expect("a sample");
    assert_eq!(sample.interval, ms(20));
}

#[test]
fn samples_are_marked_until_the_flight_of_the_pause_is_delivered() {
    let mut rate = DeliveryRate::new(at(0));
    let first = send(&mut rate, &[0]);
    rate.on_app_limited(1_000);
    let second = (at(1), rate.on_sent(at(1), 1_000, 1_000));
    assert!(second.1.app_limited);
    let sample = acknowledge(&mut rate, 20, &first).expect("a sample");
    assert!(!sample.snapshot.app_limited);
    let sample = acknowledge(&mut rate, 21, &[second]).expect("a sample");
    assert!(sample.snapshot.app_limited);
    assert!(!rate.on_sent(at(22), 1_000, 0).app_limited);
}

#[test]
fn losses_are_counted_from_the_snapshot_on() {
    let mut rate = DeliveryRate::new(at(0));
    let packets = send(&mut rate, &[0, 1, 2]);
    rate.on_lost(1_000);
    let sample = acknowledge(&mut rate, 20, &packets[1..]).expect("a sample");
    assert_eq!((sample.lost, sample.snapshot.in_flight), (1_000, 3_000));
}
