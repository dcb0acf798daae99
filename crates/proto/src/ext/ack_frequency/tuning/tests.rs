use fulmar_base::Instant;

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);

/// An estimate with a minimum and a smoothed round trip.
fn rtt(min: Duration, smoothed: Duration) -> Rtt {
    let mut rtt = Rtt::default();
    rtt.update(Instant::from_millis(0), min, Duration::ZERO, None);
    // Many samples of the same value become the mean.
    for i in 0..200 {
        rtt.update(Instant::from_millis(1 + i) + smoothed * (i as u32 + 1), smoothed, Duration::ZERO, None);
    }
    rtt
}

/// What is asked for on a path of `bits` per second with a window of `windows` bandwidth-delay products, when ACKs
/// come every `interval`.
fn wanted(bits: u64, min: Duration, windows: f64, paces: bool) -> Request {
    let rtt = rtt(min, min);
    let rate = bits / 8;
    let window = (rate as f64 * min.as_secs_f64() * windows) as u64;
    let pace = paces.then_some(rate);
    let figures =
        AckFigures { rtt: &rtt, window, mtu: 1_452, pace, packets_sent: 1_000, packet_threshold: 3 };
    let observed = Observed { rate, interval: min / 4 };
    Request::wanted(&figures, &observed, MILLISECOND, Duration::ZERO)
}

const MEGABIT: u64 = 1_000_000;

#[test]
fn a_path_of_100_megabits_and_20_milliseconds() {
    for (windows, paces) in [(1.0, false), (2.0, false), (1.0, true), (2.0, true), (3.0, true)] {
        let request = wanted(100 * MEGABIT, 20 * MILLISECOND, windows, paces);
        assert!(request.max_ack_delay <= 6 * MILLISECOND && request.max_ack_delay >= 4 * MILLISECOND);
        assert!((30..=40).contains(&request.gap), "{request:?} for {windows} windows, paced {paces}");
        assert_eq!(request.reordering_threshold, 3);
    }
}

#[test]
fn a_very_short_path() {
    for paces in [false, true] {
        let request = wanted(10_000 * MEGABIT, Duration::from_micros(20), 100.0, paces);
        assert!(request.max_ack_delay <= MILLISECOND);
        assert!(request.gap <= 32, "{request:?}");
    }
}

#[test]
fn a_satellite() {
    let request = wanted(250 * MEGABIT, 600 * MILLISECOND, 1.0, true);
    assert_eq!((request.gap, request.max_ack_delay), (64, 10 * MILLISECOND));
    let request = wanted(250 * MEGABIT, 600 * MILLISECOND, 1.0, false);
    assert_eq!((request.gap, request.max_ack_delay), (32, 10 * MILLISECOND));
}

#[test]
fn a_pace_that_has_risen_counts_before_acknowledgements_show_it() {
    let rtt = rtt(600 * MILLISECOND, 600 * MILLISECOND);
    let figures = AckFigures {
        rtt: &rtt,
        window: 20_000_000,
        mtu: 1_452,
        pace: Some(31_000_000),
        packets_sent: 1_000,
        packet_threshold: 3,
    };
    let observed = Observed { rate: 140_000, interval: 10 * MILLISECOND };
    assert_eq!(Request::wanted(&figures, &observed, MILLISECOND, Duration::ZERO).gap, 64);
}

/// From `from` to `to` in steps of 5 %.
fn sweep(from: f64, to: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(from), |value| Some(value * 1.05)).take_while(move |value| *value <= to)
}

/// Asserts that neighbours differ by a tenth at most, or by one packet.
fn assert_smooth(requests: impl Iterator<Item = Request>) {
    let requests: Vec<_> = requests.collect();
    assert!(requests.len() > 100);
    for pair in requests.windows(2) {
        let gap = pair[0].gap.max(pair[1].gap);
        assert!(pair[0].gap.abs_diff(pair[1].gap) <= (gap / 10).max(1), "{pair:?}");
        let delays = [pair[0].max_ack_delay, pair[1].max_ack_delay];
        assert!(delays[0].abs_diff(delays[1]) <= delays[0].max(delays[1]) / 10, "{pair:?}");
    }
}

#[test]
fn no_round_trip_and_no_rate_is_a_step() {
    for (windows, paces) in [(0.2, false), (1.0, false), (0.2, true), (1.0, true), (2.0, true)] {
        let at = |millis: f64, megabits: f64| {
            let rtt = Duration::from_secs_f64(millis / 1_000.0);
            wanted((megabits * 1e6) as u64, rtt, windows, paces)
        };
        for megabits in sweep(1.0, 1_000.0) {
            assert_smooth(sweep(1.0, 1_000.0).map(|millis| at(millis, megabits)));
        }
        for millis in sweep(1.0, 1_000.0) {
            assert_smooth(sweep(1.0, 1_000.0).map(|megabits| at(millis, megabits)));
        }
    }
}

#[test]
fn a_window_of_few_packets_is_acknowledged_every_second_packet_or_four_times() {
    assert_eq!(wanted(MEGABIT, 20 * MILLISECOND, 1.0, false).gap, 2);
    // 3 MB/s: 20 packets in the window, then 12, then 8.
    assert_eq!(wanted(24 * MEGABIT, 10 * MILLISECOND, 1.0, false).gap, 5);
    assert_eq!(wanted(24 * MEGABIT, 6 * MILLISECOND, 1.0, false).gap, 3);
    assert_eq!(wanted(24 * MEGABIT, 4 * MILLISECOND, 1.0, false).gap, 2);
    // A window that has collapsed on a long fast path: 24 packets.
    assert_eq!(wanted(24 * MEGABIT, 200 * MILLISECOND, 0.06, false).gap, 6);
    // Few packets in the window: the ACK must not wait for the delay.
    assert_eq!(wanted(24 * MEGABIT, MILLISECOND, 1.0, false).gap, 2);
}

#[test]
fn the_peers_shortest_delay_is_respected() {
    let rtt = rtt(4 * MILLISECOND, 4 * MILLISECOND);
    let figures = AckFigures {
        rtt: &rtt,
        window: 1 << 24,
        mtu: 1_200,
        pace: Some(1 << 32),
        packets_sent: 1_000,
        packet_threshold: 5,
    };
    let observed = Observed { rate: 1 << 32, interval: MILLISECOND };
    let request = Request::wanted(&figures, &observed, 3 * MILLISECOND, Duration::ZERO);
    assert_eq!(request, Request { gap: 64, max_ack_delay: 3 * MILLISECOND, reordering_threshold: 5 });
}

#[test]
fn a_narrow_return_path_gets_its_time_and_the_packets_of_that_time() {
    let rtt = rtt(8 * MILLISECOND, 8 * MILLISECOND);
    let figures = AckFigures {
        rtt: &rtt,
        window: 10_000,
        mtu: 1_200,
        pace: None,
        packets_sent: 1_000,
        packet_threshold: 3,
    };
    let observed = Observed { rate: 1_000_000, interval: MILLISECOND };
    let wanted = |delay: u64| Request::wanted(&figures, &observed, MILLISECOND, Duration::from_millis(delay));
    assert_eq!((wanted(0).gap, wanted(0).max_ack_delay), (2, 2 * MILLISECOND));
    assert_eq!((wanted(6).gap, wanted(6).max_ack_delay), (5, 6 * MILLISECOND));
    assert_eq!(wanted(900).gap, GAP_MAX);
}

#[test]
fn only_a_difference_that_matters_is_one() {
    let request = |gap, micros, reordering_threshold| Request {
        gap,
        max_ack_delay: Duration::from_micros(micros),
        reordering_threshold,
    };
    let old = request(20, 8_000, 3);
    for same in [old, request(23, 8_000, 3), request(16, 8_000, 3), request(20, 9_000, 3)] {
        assert!(!same.differs_from(&old), "{same:?}");
    }
    for other in [request(30, 8_000, 3), request(15, 8_000, 3), request(20, 4_000, 3), request(20, 8_000, 4)]
    {
        assert!(other.differs_from(&old), "{other:?}");
    }
}

#[test]
fn the_frame_counts_packets_without_an_ack() {
    let request = Request { gap: 10, max_ack_delay: 5 * MILLISECOND, reordering_threshold: 3 };
    let frame = request.frame(VarInt::from(7u32));
    assert_eq!(frame.sequence.get(), 7);
    assert_eq!(frame.ack_eliciting_threshold.get(), 9);
    assert_eq!(frame.max_ack_delay_micros.get(), 5_000);
    assert_eq!(frame.reordering_threshold.get(), 3);
}
