use fulmar_proto::Side;
use fulmar_sim::{Change, LinkConfig};

use super::*;

const RATE: u64 = 8_000_000;
const ROUND: Duration = Duration::from_millis(20);

/// Packets of 1,000 bytes, one per millisecond at the full rate, between these milliseconds.
fn packets(from: u64, until: u64, every: u64) -> Vec<(Instant, u32)> {
    (from..until).step_by(every as usize).map(|at| (Instant::from_millis(at), 1_000)).collect()
}

fn rate(arrivals: &[(Instant, u32)]) -> Rate<'_> {
    let link = LinkConfig { rate_bps: Some(RATE), ..LinkConfig::default() };
    over(&link, arrivals)
}

fn over<'a>(link: &LinkConfig, arrivals: &'a [(Instant, u32)]) -> Rate<'a> {
    Rate::new(arrivals, Way::of(Side::Client, &[link], &[]), ROUND).expect("there is a round trip")
}

#[test]
fn the_full_rate_begins_where_a_round_trip_of_it_does() {
    // Half of the rate for two round trips, then all of it.
    let arrivals = [packets(0, 40, 2), packets(40, 200, 1)].concat();
    let rounds = rate(&arrivals).full_after_rtts(Instant::ZERO).expect("it is reached");
    assert!((1.9..=2.1).contains(&rounds), "{rounds}");
}

#[test]
fn a_burst_that_does_not_last_is_no_full_rate() {
    let arrivals = [packets(0, 15, 1), packets(20, 200, 2)].concat();
    assert_eq!(rate(&arrivals).full_after_rtts(Instant::ZERO), None);
}

#[test]
fn the_longest_way_back_to_the_rate_counts() {
    let stop = |start, end| LinkEvent::between(Instant::from_millis(start), Instant::from_millis(end));
    // Back at once after the first stop, two round trips late after the second, and never after the third.
    let arrivals =
        [packets(0, 100, 1), packets(150, 500, 1), packets(590, 1_000, 1), packets(1_050, 1_600, 2)].concat();
    let back = |events: &[LinkEvent]| rate(&arrivals).back_after_rtts(events);
    assert_eq!(back(&[stop(100, 150)]), Some(0.0));
    let second = back(&[stop(100, 150), stop(500, 550)]).expect("there are stops");
    assert!((1.5..=2.1).contains(&second), "{second}");
    let all = back(&[stop(100, 150), stop(500, 550), stop(1_000, 1_050)]).expect("there are stops");
    assert!(all > 20.0, "{all}");
    assert_eq!(back(&[]), None);
}

#[test]
fn nearly_the_whole_rate_counts_after_a_repair() {
    // A megabyte per second, of which 92 % arrive from the second second on.
    let packets = (0..4_000_u64).map(|n| (Instant::from_millis(n), if n < 2_000 { 500 } else { 920 }));
    let packets: Vec<_> = packets.collect();
    let rate = rate(&packets);
    let after = rate.nearly_full_after_s(Instant::from_millis(1_000)).unwrap();
    // The time that counts may begin a little before, since it has to be full in all only.
    assert!((0.98..1.01).contains(&after), "{after}");
    assert_eq!(rate.full_after_rtts(Instant::ZERO), None);
}

#[test]
fn a_silence_longer_than_the_time_that_counts_is_no_obstacle() {
    // The full rate for a second from the third one on, after a single packet.
    let packets = (2_000..3_000_u64).map(|n| (Instant::from_millis(n), 1_000));
    let packets: Vec<_> = std::iter::once((Instant::from_millis(1), 1_000)).chain(packets).collect();
    let rate = rate(&packets);
    assert_eq!(rate.full_after_rtts(Instant::ZERO), Some(100.0));
}

#[test]
fn the_rate_that_holds_at_the_time_is_the_one_to_come_back_to() {
    // Half of the rate is left from 50 ms on, and a stop of 50 ms comes after that.
    let link = LinkConfig { rate_bps: Some(RATE), ..LinkConfig::default() };
    let link = link.then(Instant::from_millis(50), Change::Rate(Some(RATE / 2)));
    let arrivals = [packets(0, 50, 1), packets(50, 200, 2), packets(250, 900, 2)].concat();
    let stop = LinkEvent::between(Instant::from_millis(200), Instant::from_millis(250));
    assert_eq!(over(&link, &arrivals).back_after_rtts(&[stop]), Some(0.0));
    assert!(rate(&arrivals).back_after_rtts(&[stop]) > Some(30.0));
}

#[test]
fn a_link_that_stands_still_is_not_used_at_its_full_rate() {
    let link = LinkConfig { rate_bps: Some(0), ..LinkConfig::default() };
    let link = link.then(Instant::from_millis(100), Change::Rate(Some(RATE)));
    let arrivals = packets(100, 300, 1);
    let rounds = over(&link, &arrivals).full_after_rtts(Instant::ZERO).expect("it is reached");
    assert!((4.0..=5.1).contains(&rounds), "{rounds}");
}
