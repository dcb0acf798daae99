//! Whole transfers over a simulated bottleneck: spaces, loss detection, controllers and pacer together.

use std::time::Duration;

use super::test_link::{Link, Transfer};
use super::{Bbr1Config, CongestionControl, CubicConfig, NewRenoConfig};

fn both() -> [CongestionControl; 2] {
    [CongestionControl::Cubic(CubicConfig::default()), CongestionControl::NewReno(NewRenoConfig::default())]
}

#[test]
fn a_clean_bottleneck_is_filled() {
    // 10 MB take 8 s at the rate of the link.
    for control in both() {
        let mut transfer = Transfer::new(&control, &Link::standard().shared(), 8_000);
        let time = transfer.run();
        assert!(time < Duration::from_millis(8_600), "{control:?}: {time:?}");
        assert!(transfer.packets_lost < 300, "{control:?}: {} lost", transfer.packets_lost);
    }
}

#[test]
fn a_long_link_is_filled_without_a_flood_of_losses() {
    // 50 Mbit/s and 100 ms: slow start that only ends with a loss would lose over 1,400 packets.
    for control in both() {
        let link = Link {
            bytes_per_second: 6_250_000,
            one_way: Duration::from_millis(50),
            queue: Duration::from_millis(100),
            ..Link::standard()
        };
        let mut transfer = Transfer::new(&control, &link.shared(), 32_000);
        let time = transfer.run();
        // 6.4 s at the rate of the link.
        assert!(time < Duration::from_millis(7_400), "{control:?}: {time:?}");
        assert!(transfer.packets_lost < 600, "{control:?}: {} lost", transfer.packets_lost);
    }
}

#[test]
fn a_fast_path_is_at_its_rate_after_a_round_trip() {
    // 500 Mbit/s and 40 ms. With the initial window, 40 ms for the first flight and 40 ms for what follows it, 1 MB takes 96 ms.
    let others = [CongestionControl::default(), CongestionControl::Bbr1(Bbr1Config::default())];
    for control in both().into_iter().chain(others) {
        let mut transfer = Transfer::new(&control, &Link::new(500, 20, 40).shared(), 800);
        let time = transfer.run();
        assert!(time < Duration::from_millis(100), "{control:?}: {time:?}");
        assert_eq!(transfer.packets_lost, 0, "{control:?}");
    }
}

#[test]
fn a_policer_costs_one_flight() {
    // Ten packets show at least 24 MB/s, the initial window in half a millisecond, and what the path holds at this rate follows,
    // or the rest of the file: 200 packets in a round trip of 10 ms.
    let others = [CongestionControl::default(), CongestionControl::Bbr1(Bbr1Config::default())];
    for control in both().into_iter().chain(others) {
        for one_way in [5, 10, 20, 45, 60, 100, 250] {
            let link = Link { policer: Some(20_000), ..Link::new(10, one_way, 20) };
            let mut transfer = Transfer::new(&control, &link.shared(), 800);
            let time = transfer.run();
            let lost = transfer.packets_lost;
            let flight = (40 * one_way).min(800);
            // With what BBR loses at the policer later.
            let range = flight / 2..(flight * 5 / 4 + 100).min(1_000);
            assert!(range.contains(&lost), "{control:?}, {one_way} ms: {lost} lost, not {range:?}");
            // 0.8 s at the rate of the policer, or 1.2 s where a window has to grow to it, and seven round trips.
            let usual = Duration::from_millis(1_200 + 14 * one_way);
            assert!(time < usual, "{control:?}, {one_way} ms: {time:?}");
        }
    }
}

#[test]
fn random_losses_hang_nothing_and_are_repeated() {
    for control in both() {
        for loss in [50, 5, 2] {
            let link = Link { loss: Some(loss), ..Link::standard() };
            let mut transfer = Transfer::new(&control, &link.shared(), 400);
            transfer.run();
            assert!(transfer.packets_lost > 4, "{control:?}, one in {loss}: {}", transfer.packets_lost);
        }
    }
}

#[test]
fn reordering_is_learnt() {
    // One packet in twenty is overtaken by up to 15 others: a few are taken for lost, then none.
    for control in both() {
        let link = Link {
            bytes_per_second: 6_250_000,
            queue: Duration::from_millis(200),
            detour: Some((20, Duration::from_millis(3))),
            ..Link::standard()
        };
        let mut transfer = Transfer::new(&control, &link.shared(), 8_000);
        let time = transfer.run();
        assert!(transfer.packets_spurious > 0 && transfer.packets_spurious < 30, "{control:?}");
        assert_eq!(transfer.packets_lost, transfer.packets_spurious, "{control:?}");
        // 1.6 s at the rate of the link.
        assert!(time < Duration::from_millis(1_900), "{control:?}: {time:?}");
    }
}

#[test]
fn the_flight_never_exceeds_the_window_by_more_than_a_probe() {
    for control in both() {
        let mut transfer = Transfer::new(&control, &Link::standard().shared(), 2_000);
        transfer.run();
        // Bandwidth-delay product and queue, and the doubling of the last round of slow start.
        assert!(transfer.max_in_flight < 2 * 50_000 + 10_000, "{control:?}: {}", transfer.max_in_flight);
    }
}

#[test]
fn the_same_seed_gives_the_same_transfer() {
    let run = || {
        let link = Link { loss: Some(30), ..Link::standard() };
        let mut transfer = Transfer::new(&CongestionControl::default(), &link.shared(), 1_000);
        (transfer.run(), transfer.packets_lost, transfer.max_in_flight)
    };
    assert_eq!(run(), run());
}
