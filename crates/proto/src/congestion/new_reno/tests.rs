use std::time::Duration;

use super::super::test_path::{SIZE, ack, lose, loss, rtt, spurious};
use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn reno() -> NewReno {
    NewReno::new(&NewRenoConfig::default(), SIZE)
}

/// A controller in congestion avoidance with a window of `window`, after a loss at 1 ms.
fn after_loss(window: u64) -> NewReno {
    let mut reno = NewReno::new(&NewRenoConfig { initial_window: Some(2 * window) }, SIZE);
    reno.on_congestion(at(1), &loss(at(0)));
    assert_eq!(reno.window(), window);
    reno
}

#[test]
fn the_initial_window_is_that_of_the_rfc() {
    assert_eq!(reno().window(), 12_000);
    assert_eq!(NewReno::new(&NewRenoConfig::default(), 1_472).window(), 14_720);
    assert_eq!(NewReno::new(&NewRenoConfig::default(), 9_000).window(), 18_000);
}

#[test]
fn slow_start_grows_by_what_is_acknowledged() {
    let (mut reno, rtt) = (reno(), rtt(Duration::from_millis(50)));
    reno.on_ack(at(60), &ack(12_000, at(10), &rtt));
    assert_eq!(reno.window(), 24_000);
    assert_eq!(reno.state(), "slow start");
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let (mut reno, rtt) = (reno(), rtt(Duration::from_millis(50)));
    reno.on_ack(at(60), &AckEvent { app_limited: true, ..ack(12_000, at(10), &rtt) });
    assert_eq!(reno.window(), 12_000);
}

#[test]
fn a_loss_halves_once_per_round_trip() {
    let mut reno = NewReno::new(&NewRenoConfig { initial_window: Some(100_000) }, SIZE);
    reno.on_congestion(at(50), &loss(at(0)));
    assert_eq!((reno.window(), reno.ssthresh()), (50_000, Some(50_000)));
    reno.on_congestion(at(60), &loss(at(50)));
    assert_eq!(reno.window(), 50_000, "sent before the reaction");
    reno.on_congestion(at(110), &loss(at(51)));
    assert_eq!(reno.window(), 25_000, "sent after it");
}

#[test]
fn the_window_does_not_grow_in_recovery() {
    let (mut reno, rtt) = (after_loss(60_000), rtt(Duration::from_millis(50)));
    reno.on_ack(at(40), &ack(60_000, at(1), &rtt));
    assert_eq!(reno.window(), 60_000);
    reno.on_ack(at(60), &ack(60_000, at(10), &rtt));
    assert_eq!(reno.window(), 61_200, "one datagram per window");
}

#[test]
fn congestion_avoidance_adds_a_datagram_per_window() {
    let (mut reno, rtt) = (after_loss(60_000), rtt(Duration::from_millis(50)));
    for i in 0..49 {
        reno.on_ack(at(60), &ack(1_200, at(10 + i), &rtt));
    }
    assert_eq!(reno.window(), 60_000);
    reno.on_ack(at(60), &ack(1_200, at(60), &rtt));
    assert_eq!(reno.window(), 61_200);
}

#[test]
fn after_an_interruption_slow_start_leads_from_the_minimum_to_where_the_window_was() {
    let (mut reno, rtt) = (after_loss(60_000), rtt(Duration::from_millis(50)));
    reno.on_congestion(at(900), &CongestionEvent { persistent: true, ..loss(at(100)) });
    assert_eq!((reno.window(), reno.ssthresh()), (2_400, Some(60_000)));
    // Losses of the same period do not lower the threshold that slow start aims for.
    reno.on_congestion(at(910), &loss(at(110)));
    assert_eq!(reno.ssthresh(), Some(60_000));
    reno.on_ack(at(950), &ack(2_400, at(899), &rtt));
    assert_eq!(reno.window(), 4_800);
    // The next interruption comes before it is there.
    reno.on_congestion(at(1_900), &CongestionEvent { persistent: true, ..loss(at(1_000)) });
    assert_eq!((reno.window(), reno.ssthresh()), (2_400, Some(60_000)));
    reno.on_ack(at(1_960), &ack(1_000_000, at(1_920), &rtt));
    assert_eq!(reno.window(), 60_000, "slow start ends at the threshold");
}

#[test]
fn persistent_congestion_that_begins_with_a_loss_keeps_the_threshold_of_that_loss() {
    let mut reno = after_loss(60_000);
    reno.on_congestion(at(900), &loss(at(100)));
    assert_eq!((reno.window(), reno.ssthresh()), (30_000, Some(30_000)));
    reno.on_congestion(at(1_800), &CongestionEvent { persistent: true, ..loss(at(899)) });
    assert_eq!((reno.window(), reno.ssthresh()), (2_400, Some(30_000)));
}

#[test]
fn an_interruption_does_not_end_the_first_slow_start() {
    let mut reno = reno();
    reno.on_congestion(at(900), &CongestionEvent { persistent: true, ..loss(at(100)) });
    assert_eq!((reno.window(), reno.ssthresh()), (2_400, None));
}

#[test]
fn the_window_never_falls_below_two_datagrams() {
    let mut reno = reno();
    for i in 0..20 {
        reno.on_congestion(at(100 * i + 50), &loss(at(100 * i + 10)));
    }
    assert_eq!(reno.window(), 2_400);
}

#[test]
fn a_reaction_to_losses_that_were_none_is_undone() {
    let mut reno = NewReno::new(&NewRenoConfig { initial_window: Some(100_000) }, SIZE);
    lose(&mut reno, at(50), at(0));
    lose(&mut reno, at(60), at(1));
    reno.on_spurious_loss(at(70), &spurious(at(0)));
    assert_eq!(reno.window(), 50_000, "one of two is still lost");
    reno.on_spurious_loss(at(70), &spurious(at(1)));
    assert_eq!((reno.window(), reno.ssthresh()), (100_000, None));
}

/// Packets that are overtaken by more than a round trip: others are taken for lost before the first arrive.
#[test]
fn reactions_to_losses_that_were_none_are_undone_when_others_have_followed() {
    let mut reno = NewReno::new(&NewRenoConfig { initial_window: Some(96_000) }, SIZE);
    for round in 0..3 {
        lose(&mut reno, at(100 * round + 50), at(100 * round));
    }
    let windows = [0, 1, 2].map(|round| {
        reno.on_spurious_loss(at(300 + round), &spurious(at(100 * round)));
        (reno.window(), reno.ssthresh())
    });
    assert_eq!(windows, [(24_000, Some(24_000)), (48_000, Some(48_000)), (96_000, None)]);
}

#[test]
fn a_mark_of_the_network_is_not_undone() {
    let mut reno = NewReno::new(&NewRenoConfig { initial_window: Some(100_000) }, SIZE);
    lose(&mut reno, at(50), at(0));
    let mark = CongestionEvent { cause: Cause::Ecn { ce: 1 }, lost_bytes: 0, ..loss(at(2)) };
    reno.on_congestion(at(55), &mark);
    assert_eq!(reno.window(), 50_000, "the same period");
    reno.on_spurious_loss(at(70), &spurious(at(0)));
    assert_eq!(reno.window(), 50_000);
}

#[test]
fn after_a_loss_a_window_grows_again_that_the_rate_had_held() {
    let (mut reno, rtt, mut now) = (reno(), rtt(Duration::from_micros(20)), at(1));
    let mut grows = |reno: &mut NewReno| {
        now += Duration::from_micros(20);
        let before = reno.window();
        reno.on_ack(now, &ack(before, now, &rtt));
        (reno.window() > before, now)
    };
    (0..40).for_each(|_| _ = grows(&mut reno));
    let (has_grown, last) = grows(&mut reno);
    assert!(!has_grown, "the rate of delivery does not grow");
    lose(&mut reno, last + Duration::from_micros(10), last);
    assert!(grows(&mut reno).0);
}

#[test]
fn a_larger_datagram_renews_the_initial_window_only() {
    let mut fresh = reno();
    fresh.on_mtu(1_452);
    assert_eq!(fresh.window(), 14_520);
    let mut used = after_loss(60_000);
    used.on_mtu(1_452);
    assert_eq!(used.window(), 60_000);
}

#[test]
fn the_flight_that_was_too_large_shows_what_the_path_holds() {
    let (mut reno, rtt) = (after_loss(50_000), rtt(Duration::from_millis(50)));
    reno.on_congestion(at(1), &CongestionEvent { lost_bytes: 12_000, lost_packets: 10, ..loss(at(0)) });
    let rtt_sample = Some(Duration::from_millis(50));
    // A packet of 1,200 bytes in 2 ms: a path of 30,000 bytes.
    for n in 1..=20 {
        reno.on_ack(at(1 + 2 * n), &AckEvent { rtt_sample, ..ack(1_200, at(0), &rtt) });
        assert!(reno.conserves());
    }
    reno.on_ack(at(52), &ack(1_200, at(2), &rtt));
    assert_eq!((reno.window(), reno.ssthresh(), reno.conserves()), (30_000, Some(30_000), false));
    reno.on_congestion(at(60), &loss(at(30)));
    assert_eq!(reno.window(), 30_000, "it left before that was known");
}

#[test]
fn of_a_flight_that_has_filled_a_queue_three_quarters_go_on() {
    let (mut reno, rtt) = (after_loss(50_000), rtt(Duration::from_millis(50)));
    reno.on_congestion(at(1), &CongestionEvent { lost_bytes: 12_000, lost_packets: 10, ..loss(at(0)) });
    // The path holds 30,000 bytes without its queue, and 48,000 with it.
    let rtt_sample = Some(Duration::from_millis(80));
    for n in 1..=20 {
        reno.on_ack(at(1 + 2 * n), &AckEvent { rtt_sample, ..ack(1_200, at(0), &rtt) });
    }
    reno.on_ack(at(82), &ack(1_200, at(2), &rtt));
    assert_eq!((reno.window(), reno.ssthresh()), (36_000, Some(36_000)));
}

#[test]
fn a_coupling_slows_growth_and_deepens_reductions() {
    let rtt = rtt(Duration::from_millis(50));
    let mut reno = after_loss(60_000);
    reno.couple(CoupledShare { growth: CoupledShare::ONE / 4, reduction: CoupledShare::ONE * 3 / 2 });
    for window in 1..=4 {
        assert_eq!(reno.window(), 60_000);
        reno.on_ack(at(100 * window), &ack(60_000, at(100 * window - 50), &rtt));
    }
    assert_eq!(reno.window(), 61_200, "a datagram in four windows");
    reno.on_congestion(at(1_000), &loss(at(900)));
    assert_eq!(reno.window(), 15_300);
    // The other paths are gone.
    reno.couple(CoupledShare::ALONE);
    reno.on_congestion(at(2_000), &loss(at(1_900)));
    assert_eq!(reno.window(), 7_650);
}
