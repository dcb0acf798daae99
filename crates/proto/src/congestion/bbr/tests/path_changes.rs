//! Paths that are narrow, and paths that change.

use super::*;

#[test]
fn a_bandwidth_delay_product_below_a_packet_is_managed() {
    // 64 kbit/s and 20 ms: 160 bytes.
    let link = Link { bytes_per_second: 8_000, ..Link::new(1, 10, 2_000) };
    let mut path = Path::new(link);
    path.until(seconds(60), |bbr| bbr.phase.is_probe_bw());
    assert!(path.utilization(seconds(60)) >= 95);
    assert!(path.look(|bbr| bbr.window() >= bbr.control.min_pipe()));
    path.until(seconds(60), |bbr| bbr.phase == Phase::ProbeCruise);
    let pace = path.look(|bbr| bbr.control.pacing_rate);
    assert!((7_000..=9_000).contains(&pace), "{pace}");
}

#[test]
fn ten_times_the_bandwidth_is_found() {
    let mut path = Path::new(Link::new(10, 20, 100));
    path.until_phase(Phase::ProbeCruise);
    path.link.borrow_mut().bytes_per_second *= 10;
    path.until(seconds(8), |bbr| bbr.max_bandwidth.get() > 11_250_000);
    assert!(path.utilization(seconds(5)) >= 90);
}

/// Chance takes one packet of a hundred. Of a flight of 17 that is more than the part of it that a probe may lose.
#[test]
fn ten_times_the_bandwidth_is_found_in_spite_of_losses() {
    let mut path = Path::new(Link { loss: Some(100), ..Link::new(10, 10, 100) });
    path.until_phase(Phase::ProbeCruise);
    path.link.borrow_mut().bytes_per_second *= 10;
    path.until(seconds(8), |bbr| bbr.max_bandwidth.get() > 11_250_000);
    assert!(path.utilization(seconds(5)) >= 90);
}

#[test]
fn ten_times_the_bandwidth_is_found_above_a_bound() {
    // A short queue sets the long-term bound; it is raised exponentially.
    let mut path = Path::new(Link::new(10, 20, 5));
    path.until(seconds(30), |bbr| bbr.losses.long_inflight.is_some());
    path.link.borrow_mut().bytes_per_second *= 10;
    path.link.borrow_mut().queue = Duration::from_millis(20);
    path.until(seconds(15), |bbr| bbr.max_bandwidth.get() > 11_250_000);
}

#[test]
fn a_tenth_of_the_bandwidth_is_accepted() {
    let mut path = Path::new(Link::new(100, 20, 40));
    path.until_phase(Phase::ProbeCruise);
    path.link.borrow_mut().bytes_per_second /= 10;
    path.until(seconds(1), |bbr| bbr.losses.short_bandwidth.is_some_and(|bandwidth| bandwidth < 9_000_000));
    path.until(seconds(15), |bbr| bbr.max_bandwidth.get() < 1_400_000);
    assert!(path.utilization(seconds(5)) >= 90);
}

#[test]
fn a_policer_is_obeyed() {
    // 10 Mbit/s with a bucket of 20 kB and no queue.
    let mut path = Path::new(Link { policer: Some(20_000), ..Link::new(10, 10, 20) });
    path.until(seconds(10), |bbr| bbr.phase.is_probe_bw());
    path.until(seconds(10), |bbr| {
        bbr.losses.short_bandwidth.is_some() && bbr.losses.short_inflight.is_some()
    });
    path.transfer.run_until(seconds(2), |_| false);
    let (lost, acked) = (path.transfer.packets_lost, path.transfer.packets_acked);
    assert!(path.utilization(seconds(20)) >= 90);
    let (lost, acked) = (path.transfer.packets_lost - lost, path.transfer.packets_acked - acked);
    assert!(lost * 100 < acked * 4, "{lost} lost, {acked} acknowledged");
}

#[test]
fn a_stop_neither_shrinks_nor_inflates_the_model() {
    let mut path = Path::new(Link::new(10, 3, 260));
    path.until_phase(Phase::ProbeCruise);
    path.transfer.run_until(seconds(1), |_| false);
    let (bandwidth, window) = path.look(|bbr| (bbr.max_bandwidth.get(), bbr.window()));
    for _ in 0..6 {
        path.link.borrow_mut().stopped_until = path.transfer.now + Duration::from_millis(250);
        path.transfer.run_until(Duration::from_millis(260), |_| false);
    }
    // Within one round trip after the last stop.
    assert!(path.utilization(Duration::from_millis(500)) >= 95);
    path.look(|bbr| {
        assert!(bbr.max_bandwidth.get() >= bandwidth * 95 / 100, "{bandwidth}");
        assert!(bbr.max_bandwidth.get() <= bandwidth * 110 / 100, "{}", bbr.max_bandwidth.get());
        assert!(bbr.window() <= 2 * window, "{} after {window}", bbr.window());
    });
}

#[test]
fn a_much_slower_path_is_believed_after_a_round() {
    let mut path = Path::new(Link::new(10, 10, 260));
    path.until_phase(Phase::ProbeCruise);
    path.transfer.run_until(seconds(1), |_| false);
    path.link.borrow_mut().bytes_per_second /= 10;
    // What was in flight takes up to half a second at the new rate.
    path.until(seconds(1), |bbr| bbr.max_bandwidth.get() < 500_000);
    assert!(path.utilization(seconds(5)) >= 90);
}

#[test]
fn a_path_that_is_half_as_fast_costs_less_than_its_flights() {
    let mut path = Path::new(Link::new(10, 40, 80));
    path.until_phase(Phase::ProbeCruise);
    let lost = path.transfer.packets_lost;
    path.link.borrow_mut().bytes_per_second /= 2;
    path.utilization(seconds(1));
    let lost = path.transfer.packets_lost - lost;
    // Half of what leaves until the first loss is known, about 160 ms, is lost.
    assert!((1..130).contains(&lost), "{lost} lost");
    assert!(path.utilization(seconds(1)) >= 90);
}

/// In the window of before a flight brings a quarter of the rate, as on a slower path; but the delay does not fall with it.
#[test]
fn a_longer_path_is_no_slower_one() {
    let mut path = Path::new(Link::new(10, 5, 40));
    path.until_phase(Phase::ProbeCruise);
    path.transfer.run_until(seconds(1), |_| false);
    path.link.borrow_mut().one_way = Duration::from_millis(40);
    path.transfer.run_until(seconds(1), |_| false);
    assert!(path.utilization(seconds(2)) >= 80);
    let min_rtt = path.look(|bbr| bbr.min_rtt.get());
    assert!(min_rtt.is_some_and(|min| min >= Duration::from_millis(80)), "{min_rtt:?}");
}

#[test]
fn a_bound_has_room_for_what_a_longer_path_holds() {
    let mut path = Path::new(Link::new(10, 5, 40));
    path.until_phase(Phase::ProbeCruise);
    Watched(path.bbr.clone()).with(|bbr| bbr.losses.long_inflight = Some(bbr.bdp(125)));
    path.link.borrow_mut().one_way = Duration::from_millis(40);
    path.transfer.run_until(seconds(1), |_| false);
    assert!(path.utilization(seconds(2)) >= 80);
}

/// PROBE_RTT asks once whether the path is longer, and not again soon when it is not.
#[test]
fn a_slower_path_stays_slower_after_the_doubt() {
    let mut path = Path::new(Link::new(20, 20, 200));
    path.until_phase(Phase::ProbeCruise);
    path.transfer.run_until(seconds(1), |_| false);
    path.link.borrow_mut().bytes_per_second /= 4;
    path.until(seconds(1), |bbr| bbr.phase == Phase::ProbeRtt);
    path.until(seconds(1), |bbr| bbr.phase == Phase::ProbeCruise);
    path.look(|bbr| {
        assert!(bbr.max_bandwidth.get() < 1_250_000, "{}", bbr.max_bandwidth.get());
        assert!(bbr.min_rtt.get().is_some_and(|min| min < Duration::from_millis(45)));
    });
    path.link.borrow_mut().bytes_per_second /= 4;
    path.until(seconds(2), |bbr| bbr.max_bandwidth.get() < 200_000);
    assert!(path.phase() != Phase::ProbeRtt);
}
