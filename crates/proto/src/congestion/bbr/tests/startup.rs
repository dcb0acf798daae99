//! STARTUP and DRAIN.

use super::super::startup::Doubt;
use super::losses::sample;
use super::*;
use crate::congestion::units::percent;

/// 100 Mbit/s and a round trip of 2 ms: a queue that STARTUP makes is below what counts as a rise of the delay.
fn short() -> Link {
    Link::new(100, 1, 50)
}

#[test]
fn startup_ends_at_a_plateau() {
    let mut path = Path::new(short());
    path.until_phase(Phase::Drain);
    let (reached, bandwidth) = path.look(|bbr| (bbr.full.reached && bbr.full.now, bbr.max_bandwidth.get()));
    assert!(reached);
    assert!((12_250_000..=12_750_000).contains(&bandwidth), "{bandwidth}");
    assert_eq!(path.transfer.packets_lost, 0);
}

#[test]
fn startup_ends_when_the_delay_rises() {
    // 10 Mbit/s, 40 ms: a queue of a whole round trip, which the plateau would take, is never made.
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::Drain);
    let smallest = path.look(|bbr| bbr.delay.recent_min()).expect("there were samples");
    assert!(smallest < Duration::from_millis(62), "{smallest:?}");
    path.until_phase(Phase::ProbeCruise);
    let bandwidth = path.look(|bbr| bbr.max_bandwidth.get());
    assert!(bandwidth > 1_200_000, "DRAIN completes the measurement: {bandwidth}");
}

#[test]
fn a_rise_of_the_delay_that_does_not_fall_with_the_flight_does_not_end_startup() {
    // 1 Gbit/s, more than the first trains show, and the round trip becomes 12 ms longer while a twentieth of that is used: no queue can be
    // drained.
    let mut path = Path::new(Link::new(1_000, 10, 50));
    path.until(seconds(1), |bbr| bbr.max_bandwidth.get() > 6_000_000);
    path.link.borrow_mut().one_way += Duration::from_millis(6);
    path.until_phase(Phase::Drain);
    assert!(path.look(|bbr| bbr.max_bandwidth.get()) < 80_000_000, "the delay has ended STARTUP");
    // The usual wait for the next probe is two seconds.
    path.until(seconds(1), |bbr| bbr.max_bandwidth.get() > 112_000_000);
    assert_eq!(path.transfer.packets_lost, 0);
}

/// A path whose delay has ended STARTUP, and what an acknowledgement in another phase makes of the doubt about that.
fn doubt_after(phase: Phase, app_limited: bool) -> Option<Doubt> {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::Drain);
    let sample = Sample { app_limited, ..sample(&path) };
    Watched(path.bbr.clone()).with(|bbr| {
        assert!(bbr.startup.doubt.is_some_and(|doubt| doubt.drained.is_none()));
        bbr.phase = phase;
        bbr.check_delay_doubt(&sample);
        bbr.startup.doubt
    })
}

#[test]
fn the_delay_that_has_ended_startup_is_compared_once_the_flight_is_small_and_used() {
    let is_drained = |phase, app_limited| {
        doubt_after(phase, app_limited).expect("it is not decided yet").drained.is_some()
    };
    assert!(is_drained(Phase::ProbeDown, false));
    assert!(!is_drained(Phase::Drain, false));
    assert!(!is_drained(Phase::ProbeDown, true));
}

#[test]
fn another_search_for_the_rate_ends_the_doubt_about_the_delay() {
    for phase in [Phase::Startup, Phase::ProbeUp, Phase::ProbeRtt] {
        assert!(doubt_after(phase, false).is_none(), "{phase:?}");
    }
}

#[test]
fn a_queue_that_drains_ends_startup_for_good() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::Drain);
    assert!(!path.transfer.run_until(seconds(2), |it| it.congestion.controller().state() == "startup"));
}

#[test]
fn startup_ends_on_loss_when_application_limited() {
    // 25 of 100 Mbit/s, one packet in ten lost: about ten in each round.
    let link = Link { loss: Some(10), ..Link::new(100, 20, 50) };
    let mut path = Path::with_application(link, Duration::from_micros(400));
    // So little is in flight that DRAIN may end at once.
    path.until(seconds(1), |bbr| bbr.phase != Phase::Startup);
    path.look(|bbr| {
        assert!(bbr.full.reached && bbr.full.now);
        assert_eq!(bbr.losses.undo_phase, Some(Phase::Startup));
        assert!(bbr.losses.long_inflight.is_some());
    });
}

#[test]
fn random_losses_do_not_keep_the_rate_below_that_of_the_path() {
    // 200 Mbit/s and 40 ms, one packet in 15 lost: the usual wait for a probe is two seconds.
    let mut path = Path::new(Link { loss: Some(15), ..Link::new(200, 20, 50) });
    path.until(seconds(1), |bbr| bbr.max_bandwidth.get() > 21_000_000);
}

#[test]
fn heavy_losses_end_startup_before_the_round_does() {
    for (one_way, bucket) in [(10, 40_000), (20, 40_000), (25, 125_000)] {
        let mut path = Path::new(Link { policer: Some(bucket), ..Link::new(10, one_way, 20) });
        path.until(seconds(1), |bbr| bbr.losses.in_round);
        let round = path.look(|bbr| bbr.rounds.count());
        path.until_phase(Phase::Drain);
        assert_eq!(path.look(|bbr| bbr.rounds.count()), round, "{one_way} ms");
        assert_eq!(path.look(|bbr| bbr.losses.undo_phase), Some(Phase::Startup), "{one_way} ms");
    }
}

#[test]
fn what_the_tokens_of_a_policer_let_pass_is_no_bandwidth() {
    // 10 Mbit/s. With two bandwidth-delay products of tokens, what follows the trains is too much. With ten to a hundred of them it
    // passes, and STARTUP is at many times the rate when they run out.
    for (one_way, bucket, percent) in
        [(25, 125_000, 120), (5, 125_000, 800), (10, 250_000, 900), (25, 500_000, 800)]
    {
        let mut path = Path::new(Link { policer: Some(bucket), ..Link::new(10, one_way, 20) });
        path.until_phase(Phase::Drain);
        let burst = path.look(|bbr| bbr.max_bandwidth.get());
        assert!(burst > 12_500 * percent, "{bucket}: the tokens have let more than the rate pass: {burst}");
        // Three round trips later, when the maximum over two cycles would still keep it.
        path.transfer.run_until(Duration::from_millis(6 * one_way), |_| false);
        let bandwidth = path.look(|bbr| bbr.max_bandwidth.get());
        assert!((1_125_000..=1_375_000).contains(&bandwidth), "{bucket}: {bandwidth}");
    }
}

#[test]
fn a_flight_that_was_too_large_leaves_a_bound_with_headroom() {
    // The tokens let a train pass at any rate, and drop what follows it at that.
    let mut path = Path::new(Link { policer: Some(40_000), ..Link::new(20, 150, 100) });
    path.until(seconds(1), |bbr| bbr.startup.trains.has_unvalidated());
    path.until(seconds(1), |bbr| !bbr.startup.trains.has_unvalidated());
    path.look(|bbr| {
        let bdp = volume(bbr.max_bandwidth.get(), bbr.min_rtt.get().expect("a sample"));
        let bound = bbr.losses.long_inflight.expect("a bound");
        assert!((bound * 85 / 100).abs_diff(bdp) <= 1, "{bound} of {bdp}");
        assert!((700_000..800_000).contains(&bdp), "{bdp}");
    });
}

#[test]
fn startup_never_ends_when_application_limited_without_loss() {
    let mut path = Path::with_application(Link::new(100, 20, 50), Duration::from_millis(5));
    assert!(
        !path
            .transfer
            .run_until(seconds(30), |transfer| transfer.congestion.controller().state() != "startup")
    );
}

#[test]
fn drain_ends_on_inflight() {
    let mut path = Path::new(short());
    path.until_phase(Phase::Drain);
    assert_eq!(path.look(Bbr::pacing_gain), 50);
    let target = path.look(|bbr| bbr.resting_flight());
    assert!(path.transfer.congestion.bytes_in_flight() > target, "there is a queue to drain");
    path.until(seconds(1), |bbr| bbr.phase != Phase::Drain);
    assert!(path.phase().is_probe_bw());
    assert!(
        path.transfer.congestion.bytes_in_flight()
            <= path.look(|bbr| bbr.resting_flight()) + 2 * u64::from(SIZE)
    );
}

#[test]
fn drain_ends_on_time() {
    let mut path = Path::new(short());
    path.until_phase(Phase::Drain);
    // The rate that is left is less than that of DRAIN, so that the queue does not shrink.
    path.link.borrow_mut().bytes_per_second /= 3;
    let start = path.look(|bbr| bbr.rounds.count());
    path.until(seconds(5), |bbr| bbr.phase != Phase::Drain);
    path.look(|bbr| {
        assert_eq!(bbr.rounds.count(), start + 4);
        assert!(bbr.phase.is_probe_bw());
    });
    assert!(path.transfer.congestion.bytes_in_flight() > path.look(|bbr| bbr.resting_flight()));
}

#[test]
fn probe_rtt_during_startup_returns_to_startup() {
    let mut path = Path::with_application(Link::new(100, 20, 50), Duration::from_millis(5));
    path.transfer.run_until(seconds(1), |_| false);
    // A longer path: no sample confirms the minimum any more.
    path.link.borrow_mut().one_way += Duration::from_millis(5);
    path.until(seconds(10), |bbr| bbr.phase == Phase::ProbeRtt);
    assert!(!path.look(|bbr| bbr.full.reached));
    path.until(seconds(1), |bbr| bbr.phase != Phase::ProbeRtt);
    assert_eq!(path.phase(), Phase::Startup);
}

#[test]
fn startup_finds_the_bandwidth_of_a_link_with_aggregation() {
    // ACKs come in bunches of 20 ms, on a round trip of 20 ms.
    let link = Link { ack_slot: Some(Duration::from_millis(20)), ..Link::new(50, 10, 100) };
    let mut path = Path::new(link);
    path.until_phase(Phase::ProbeCruise);
    let bandwidth = path.look(|bbr| bbr.max_bandwidth.get());
    assert!((5_600_000..=6_600_000).contains(&bandwidth), "{bandwidth}");
    path.look(|bbr| {
        assert!(bbr.aggregation.extra() > 0);
        assert!(bbr.window() > bbr.bdp(200), "{} against {}", bbr.window(), bbr.bdp(200));
    });
}

#[test]
fn a_long_path_is_at_its_rate_within_three_round_trips() {
    // 10 Mbit/s over a satellite: 75 kB for each 60 ms, from 1.8 s on.
    let mut path = Path::new(Link::new(10, 300, 600));
    path.transfer.run_until(Duration::from_millis(1_800), |_| false);
    assert!(path.utilization(seconds(2)) >= 95);
    assert_eq!(path.transfer.packets_lost, 0);
}

#[test]
fn a_satellite_link_is_filled_without_an_overshoot() {
    // 250 Mbit/s and 100 MB: 3.2 s, and four of the one-way delays.
    let link = Link::new(250, 300, 600).shared();
    let mut transfer = Transfer::new(&BbrConfig::default(), &link, 80_000);
    let time = transfer.run();
    assert!(time < Duration::from_millis(4_600), "{time:?}");
    assert!(transfer.packets_lost <= 200, "{}", transfer.packets_lost);
}

#[test]
fn what_a_train_has_shown_outlasts_a_startup_that_the_delay_has_ended() {
    // The first flight makes a queue on 1 Mbit/s, and STARTUP ends with its first acknowledgements.
    let mut path = Path::new(Link::new(1, 1_000, 2_000));
    path.until_phase(Phase::Drain);
    let (measured, used) = path.look(|bbr| (bbr.max_bandwidth.get(), bbr.bandwidth()));
    assert!(measured < 62_500, "less than half of the rate: {measured}");
    assert!((118_000..=132_000).contains(&used), "{used}");
    path.transfer.run_until(seconds(2), |_| false);
    let utilization = path.utilization(seconds(4));
    assert!(utilization >= 97, "{utilization}");
}

#[test]
fn drain_leaves_what_jitter_holds_on_the_path() {
    let mut path = Path::new(Link { jitter: Some(Duration::from_millis(10)), ..Link::new(10, 10, 100) });
    path.until_phase(Phase::Drain);
    path.until(seconds(1), |bbr| bbr.phase != Phase::Drain);
    let left = path.transfer.congestion.bytes_in_flight();
    let (bdp, rest) = path.look(|bbr| (bbr.inflight(100), bbr.resting_flight()));
    assert!(left > bdp + u64::from(SIZE), "{left}, {bdp}, {rest}");
    assert!(left <= rest + 2 * u64::from(SIZE), "{left} of {rest}");
}

/// 100 Mbit/s, 20 ms: STARTUP until it has found a hundredth of the rate at least.
fn early_in_startup() -> Path {
    let mut path = Path::new(Link::new(100, 10, 100));
    path.until(seconds(1), |bbr| bbr.max_bandwidth.get() > 125_000);
    assert_eq!(path.phase(), Phase::Startup);
    path
}

#[test]
fn what_jitter_holds_has_room_in_the_window_until_the_path_was_full() {
    let path = early_in_startup();
    path.look(|bbr| {
        let mut bbr = bbr.clone();
        let calm = bbr.max_inflight();
        let base = bbr.min_rtt.get().unwrap();
        // The smallest sample of each group in turn 20 and 60 ms: a usual difference of 40 ms.
        for group in 0..100 {
            let now = Instant::ZERO + seconds(2) + Duration::from_millis(2 * group);
            bbr.delay.on_sample(now, base * if group % 2 == 0 { 1 } else { 3 }, base);
        }
        let shaken = bbr.max_inflight();
        // Two of the differences beside the round trip of 20 ms: five times as much.
        let (least, most) = (calm + 7 * bbr.bdp(100), calm + 8 * bbr.bdp(100) + u64::from(SIZE));
        assert!((least..=most).contains(&shaken), "{calm}, then {shaken}");
        bbr.full.set_full();
        assert_eq!(bbr.max_inflight(), calm);
    });
}

/// An acknowledgement at `now` with a sample of the rate; whether it begins a round.
fn acknowledgement(now: Instant, delivery_rate: u64, begins_round: bool) -> Sample {
    Sample {
        now,
        delivery_rate: Some(delivery_rate),
        delivered: 0,
        prior_delivered: if begins_round { u64::MAX } else { 0 },
        lost: 0,
        tx_in_flight: 0,
        app_limited: false,
        newly_acked: 0,
        sent_time: now,
        in_flight: 0,
        rtt: None,
    }
}

#[test]
fn a_round_whose_rate_a_stop_made_small_shows_no_plateau() {
    let rounds_until_full = |rate_percent: u64, stop: u32| {
        let path = early_in_startup();
        let mut bbr = path.look(Bbr::clone);
        let base = bbr.min_rtt.get().unwrap();
        let best = bbr.max_bandwidth.get();
        bbr.full.restart(best);
        let mut now = path.transfer.now;
        (1..=10).find(|_| {
            // Eight acknowledgements, of which the last one begins the next round.
            for last in [false, false, false, false, false, false, false, true] {
                now += if last { base * stop } else { base / 8 };
                let rs = acknowledgement(now, percent(best, rate_percent), last);
                bbr.update_bandwidth(&rs);
                bbr.check_full_bandwidth(&rs);
            }
            bbr.full.reached
        })
    };
    assert_eq!(rounds_until_full(60, 0), Some(3));
    assert_eq!(rounds_until_full(60, 5), None, "the stop may have made it small");
    assert_eq!(rounds_until_full(100, 5), Some(3), "the rate is there in spite of the stops");
}

#[test]
fn careful_resume_jumps_and_retreats_in_startup_alone() {
    let mut bbr = Bbr::new(&BbrConfig::default(), Instant::ZERO, SIZE);
    let (rtt, later) = (Duration::from_millis(100), Instant::from_millis(300));
    bbr.on_resume(Instant::ZERO, ResumeStep::Jump { window: 5_000_000, rtt });
    assert_eq!(
        (bbr.phase, bbr.control.window, bbr.control.pacing_rate),
        (Phase::Startup, 5_000_000, 50_000_000)
    );
    bbr.on_resume(later, ResumeStep::Retreat { window: 300_000 });
    assert_eq!((bbr.phase, bbr.control.window), (Phase::Drain, 300_000));
    bbr.on_resume(later, ResumeStep::Jump { window: 9_000_000, rtt });
    assert_eq!((bbr.phase, bbr.control.window), (Phase::Drain, 300_000), "it is over");
}
