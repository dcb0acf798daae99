//! PROBE_BW and PROBE_RTT.

use super::*;

/// A round trip so short that the queue of a probe is no rise of the delay.
fn short() -> Link {
    Link::new(100, 1, 50)
}

#[test]
fn probe_up_ends_at_a_plateau() {
    let mut path = Path::new(short());
    path.until_phase(Phase::ProbeUp);
    assert_eq!(path.look(|bbr| (bbr.pacing_gain(), bbr.window_gain())), (125, 225));
    let start = path.look(|bbr| bbr.rounds.count());
    path.until(seconds(5), |bbr| bbr.phase != Phase::ProbeUp);
    path.look(|bbr| {
        assert!(bbr.full.now);
        assert!(bbr.rounds.count() >= start + 3);
        assert_eq!(bbr.phase, Phase::ProbeDown);
    });
    assert_eq!(path.transfer.packets_lost, 0);
}

#[test]
fn probe_up_ends_when_the_delay_rises() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeUp);
    path.until(seconds(5), |bbr| bbr.phase != Phase::ProbeUp);
    assert_eq!(path.phase(), Phase::ProbeDown);
    assert!(!path.look(|bbr| bbr.full.now), "it was not the plateau");
}

#[test]
fn probe_up_never_ends_when_application_limited_without_loss() {
    let mut path = Path::new(Link::new(100, 20, 50));
    path.until_phase(Phase::ProbeCruise);
    path.limit_application(Duration::from_millis(5));
    path.until_phase(Phase::ProbeUp);
    assert!(
        !path
            .transfer
            .run_until(seconds(20), |transfer| transfer.congestion.controller().state() != "probe up")
    );
}

#[test]
fn probe_up_ends_on_loss_when_application_limited() {
    let mut path = Path::new(Link::new(100, 20, 50));
    path.until_phase(Phase::ProbeCruise);
    path.limit_application(Duration::from_micros(400));
    path.until_phase(Phase::ProbeUp);
    path.link.borrow_mut().loss = Some(10);
    path.until(seconds(1), |bbr| bbr.phase != Phase::ProbeUp);
    path.look(|bbr| {
        assert_eq!(bbr.phase, Phase::ProbeDown);
        assert!(bbr.cycle.too_high);
        assert_eq!(bbr.losses.long_inflight, None, "what the application limited shows no bound");
    });
}

#[test]
fn a_probe_has_two_packets_more_in_flight_than_the_path_holds() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeUp);
    let (inflight, bdp) = path.look(|bbr| (bbr.inflight(100), bbr.bdp(100)));
    assert_eq!(inflight, bdp + 2 * u64::from(SIZE));
}

#[test]
fn a_short_fast_path_has_three_quanta_in_flight_however_little_it_holds() {
    // 10 Gbit/s send 187 KB in 150 us and hold 125 KB in 0.1 ms.
    let mut path = Path::new(Link { one_way: Duration::from_micros(50), ..Link::new(10_000, 1, 2_000) });
    path.until_phase(Phase::ProbeCruise);
    let (inflight, bdp, quantum) = path.look(|bbr| (bbr.inflight(100), bbr.bdp(100), bbr.quantum()));
    assert!(bdp < quantum && quantum > 100_000, "{bdp}, {quantum}");
    assert_eq!(inflight, 3 * quantum);
}

#[test]
fn probe_down_ends_on_inflight() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeUp);
    path.until_phase(Phase::ProbeDown);
    assert_eq!(path.look(Bbr::pacing_gain), 90);
    path.until(seconds(5), |bbr| bbr.phase != Phase::ProbeDown);
    let (phase, target) = path.look(|bbr| (bbr.phase, bbr.inflight(100).min(bbr.inflight_with_headroom())));
    assert_eq!(phase, Phase::ProbeCruise);
    assert!(path.transfer.congestion.bytes_in_flight() <= target + 2 * u64::from(SIZE));
}

#[test]
fn probe_down_ends_after_its_time() {
    let mut path = Path::new(Link::new(10, 20, 2_000));
    path.until_phase(Phase::ProbeUp);
    path.until_phase(Phase::ProbeDown);
    // Less than the pace of PROBE_DOWN: the queue grows.
    path.link.borrow_mut().bytes_per_second = 850_000;
    path.until(seconds(5), |bbr| bbr.phase != Phase::ProbeDown);
    assert_eq!(path.phase(), Phase::ProbeRefill);
}

#[test]
fn probe_rtt_is_entered_and_left() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeCruise);
    // A longer path: no sample confirms the minimum any more.
    path.link.borrow_mut().one_way += Duration::from_millis(5);
    path.until(seconds(6), |bbr| bbr.phase == Phase::ProbeRtt);
    assert_eq!(path.look(Bbr::window_gain), 50);
    let (entered, round) = (path.transfer.now, path.look(|bbr| bbr.rounds.count()));
    path.until(seconds(2), |bbr| bbr.phase != Phase::ProbeRtt);
    assert!(path.transfer.now >= entered + Duration::from_millis(200));
    assert!(path.look(|bbr| bbr.rounds.count()) > round);
    assert_eq!(path.phase(), Phase::ProbeCruise);
    assert!(path.utilization(seconds(2)) >= 90);
    // In the end the new round-trip time is believed.
    path.until(seconds(15), |bbr| bbr.min_rtt.get() >= Some(Duration::from_millis(50)));
}

#[test]
fn no_train_makes_up_for_the_gaps_of_probe_rtt() {
    let mut path = Path::new(Link::new(1, 50, 400));
    path.until_phase(Phase::ProbeCruise);
    assert_eq!(path.look(Bbr::burst), None);
    path.link.borrow_mut().one_way += Duration::from_millis(20);
    path.until_phase(Phase::ProbeRtt);
    assert_eq!(path.look(Bbr::burst), Some(2 * u64::from(SIZE)));
    path.until_phase(Phase::ProbeCruise);
    // What the path holds, and not ten packets more.
    let (mut most, bdp) = (0, volume(125_000, Duration::from_millis(140)));
    path.transfer.run_until(Duration::from_millis(400), |transfer| {
        most = most.max(transfer.congestion.bytes_in_flight());
        false
    });
    assert!(most <= bdp + 5 * u64::from(SIZE), "{most} of {bdp}");
}

#[test]
fn probe_rtt_is_spared_where_the_queue_is_empty() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeCruise);
    assert!(
        !path
            .transfer
            .run_until(seconds(30), |transfer| transfer.congestion.controller().state() == "probe rtt")
    );
}

#[test]
fn probe_rtt_is_skipped_after_silence() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeCruise);
    path.link.borrow_mut().one_way += Duration::from_millis(5);
    // One packet after 6 s of silence.
    path.limit_application(seconds(6));
    path.transfer.run_until(Duration::from_millis(5_900), |_| false);
    assert_eq!(path.transfer.congestion.bytes_in_flight(), 0);
    path.until(seconds(1), |bbr| bbr.idle_restart);
    path.transfer.app_interval = None;
    path.transfer.packets_left = PLENTY;
    assert!(
        !path
            .transfer
            .run_until(seconds(4), |transfer| transfer.congestion.controller().state() == "probe rtt")
    );
}

#[test]
fn a_silence_that_outlasts_probe_rtt_ends_it_with_the_first_packet() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeCruise);
    path.link.borrow_mut().one_way += Duration::from_millis(5);
    path.until_phase(Phase::ProbeRtt);
    // The next packet leaves long after its time is over.
    path.limit_application(seconds(1));
    path.until(seconds(2), |bbr| bbr.idle_restart);
    assert_eq!(path.phase(), Phase::ProbeCruise);
}

#[test]
fn short_silences_do_not_put_probe_rtt_off() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeCruise);
    path.link.borrow_mut().one_way += Duration::from_millis(5);
    path.limit_application(Duration::from_millis(200));
    path.transfer.run_until(seconds(2), |_| false);
    path.transfer.app_interval = None;
    path.transfer.packets_left = PLENTY;
    // Five seconds after the last sample that confirmed the minimum.
    path.until(seconds(4), |bbr| bbr.phase == Phase::ProbeRtt);
}

#[test]
fn an_application_limited_refill_leaves_the_bandwidth_alone() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeRefill);
    let bandwidth = path.look(|bbr| bbr.max_bandwidth.get());
    path.limit_application(Duration::from_millis(10));
    path.until(seconds(1), |bbr| bbr.phase != Phase::ProbeRefill);
    assert_eq!(path.phase(), Phase::ProbeUp);
    path.transfer.run_until(seconds(2), |_| false);
    assert!(path.look(|bbr| bbr.max_bandwidth.get()) >= bandwidth);
    path.transfer.app_interval = None;
    path.transfer.packets_left = PLENTY;
    path.transfer.run_until(seconds(1), |_| false);
    assert!(path.utilization(seconds(3)) >= 90);
}

#[test]
fn cruise_keeps_the_bandwidth_of_a_link_with_aggregation() {
    let mut path = Path::new(Link::new(50, 10, 100));
    path.until_phase(Phase::ProbeCruise);
    path.link.borrow_mut().ack_slot = Some(Duration::from_millis(40));
    path.transfer.run_until(seconds(1), |_| false);
    path.look(|bbr| {
        assert!(bbr.aggregation.extra() > 0);
        assert!(bbr.window() > bbr.bdp(200), "{} against {}", bbr.window(), bbr.bdp(200));
    });
    assert!(path.utilization(seconds(4)) >= 95);
}

#[test]
fn a_window_with_room_for_one_more_packet_limits_nobody() {
    let mut bbr = Bbr::new(&BbrConfig::default(), Instant::ZERO, SIZE);
    let packet = u64::from(SIZE);
    bbr.control.window = 10 * packet;
    for (in_flight, limits) in [(9 * packet, false), (9 * packet + 1, true)] {
        bbr.control.on_sent(in_flight);
        bbr.control.begin_round();
        assert_eq!(bbr.control.is_limited(), limits, "{in_flight}");
        bbr.control.begin_round();
    }
}
