//! What losses change, and what undoes it.

use super::*;
use crate::congestion::bbr::startup::HEAVY_LOSS_EVENTS;
use crate::congestion::units::percent;
use crate::congestion::{RateSample, test_path};

fn packet() -> u64 {
    u64::from(SIZE)
}

/// The loss of a packet that left with `in_flight` bytes, the `count`-th since it was sent.
fn lost(path: &Path, in_flight: u64, count: u64) -> LostPacket {
    LostPacket {
        bytes: packet(),
        sent_time: path.transfer.now,
        snapshot: DeliverySnapshot { in_flight: in_flight as u32, ..DeliverySnapshot::NONE },
        total_delivered: path.look(|bbr| bbr.delivered),
        total_lost: count * packet(),
    }
}

fn congestion(path: &Path, persistent: bool) -> CongestionEvent {
    CongestionEvent {
        cause: Cause::Loss,
        lost_bytes: packet(),
        lost_packets: 1,
        largest_sent_time: path.transfer.now,
        snapshot: DeliverySnapshot::NONE,
        persistent,
        bytes_in_flight: 0,
    }
}

/// Loses `count` packets of a flight at once, and says whether the flight is lost as a whole.
fn lose(path: &mut Path, in_flight: u64, count: u64, persistent: bool) {
    let now = path.transfer.now;
    let mut handle = Watched(path.bbr.clone());
    for n in 1..=count {
        handle.on_packet_lost(now, &lost(path, in_flight, n));
    }
    handle.on_congestion(now, &congestion(path, persistent));
}

/// Of a flight of so many packets `marks` are marked.
fn mark(path: &Path, in_flight: u32, marks: u64) {
    let snapshot = DeliverySnapshot { in_flight: in_flight * u32::from(SIZE), ..DeliverySnapshot::NONE };
    let cause = Cause::Ecn { ce: marks };
    let event = CongestionEvent { cause, lost_bytes: 0, snapshot, ..congestion(path, false) };
    Watched(path.bbr.clone()).on_congestion(path.transfer.now, &event);
}

/// The packets that were lost just now arrive.
fn arrive(path: &mut Path, count: u64) {
    arrive_that_left(path, path.transfer.now, count);
}

/// Packets that were lost and left at `sent_time` arrive.
fn arrive_that_left(path: &mut Path, sent_time: Instant, count: u64) {
    let spurious = SpuriousLoss { bytes: packet(), sent_time, dropped_for_mark: false };
    for _ in 0..count {
        Watched(path.bbr.clone()).on_spurious_loss(path.transfer.now, &spurious);
    }
}

#[test]
fn loss_in_probe_up_lowers_the_bound_and_ends_the_probe() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeUp);
    Watched(path.bbr.clone()).with(|bbr| bbr.losses.long_inflight = Some(400 * packet()));
    let target = path.look(|bbr| bbr.bdp(100).min(bbr.window()));
    // Two packets of 100 are tolerated in any case, five where the delay shows no queue; the sixth is not.
    lose(&mut path, 100 * packet(), 5, false);
    assert_eq!(path.phase(), Phase::ProbeUp);
    lose(&mut path, 100 * packet(), 6, false);
    path.look(|bbr| {
        assert_eq!(bbr.phase, Phase::ProbeDown);
        assert!(bbr.cycle.too_high);
        let bound = bbr.losses.long_inflight.expect("it was set");
        assert!((98 * packet()..=100 * packet()).contains(&bound), "{bound}");
        assert!(bound >= target * 7 / 10);
    });
}

#[test]
fn losses_without_a_queue_leave_the_bound_what_the_path_holds() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeUp);
    let target = path.look(|bbr| bbr.bdp(100).min(bbr.window()));
    lose(&mut path, 5 * packet(), 2, false);
    let rest = path.look(Bbr::inflight_with_headroom);
    assert!((target - 2..=target).contains(&rest), "{rest} of {target}");
}

#[test]
fn losses_without_a_queue_leave_the_bound_what_a_path_hands_over_at_once() {
    // ACKs come in bunches of 40 ms, on a round trip of 4 ms.
    let link = Link { ack_slot: Some(Duration::from_millis(40)), ..Link::new(50, 2, 100) };
    let mut path = Path::new(link);
    path.until_phase(Phase::ProbeUp);
    let held = path.look(|bbr| bbr.aggregation.extra().min(bbr.window()));
    assert!(held > 2 * path.look(Bbr::probe_target), "{held}");
    lose(&mut path, 5 * packet(), 2, false);
    let rest = path.look(Bbr::inflight_with_headroom);
    assert!((held - 2..=held).contains(&rest), "{rest} of {held}");
}

#[test]
fn the_bound_is_not_lowered_below_the_beta_of_the_target() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeUp);
    // The queue of the probe ends it.
    path.until_phase(Phase::ProbeDown);
    let target = path.look(|bbr| bbr.bdp(100).min(bbr.window()));
    lose(&mut path, 5 * packet(), 1, false);
    assert_eq!(path.look(|bbr| bbr.losses.long_inflight), Some(percent(target, 70)));
}

#[test]
fn marks_lower_the_bound_without_a_queue_too() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeUp);
    let target = path.look(|bbr| bbr.bdp(100).min(bbr.window()));
    mark(&path, 5, 1);
    assert_eq!(path.look(|bbr| bbr.losses.long_inflight), Some(percent(target, 70)));
}

#[test]
fn a_spurious_fast_recovery_is_undone() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeUp);
    let window = path.transfer.congestion.controller().window();
    lose(&mut path, 50 * packet(), 4, false);
    assert_eq!(path.phase(), Phase::ProbeDown);
    assert!(path.look(|bbr| bbr.losses.long_inflight.is_some()));
    arrive(&mut path, 3);
    assert_eq!(path.phase(), Phase::ProbeDown, "one loss was real as yet");
    arrive(&mut path, 1);
    path.look(|bbr| {
        assert_eq!(bbr.phase, Phase::ProbeRefill, "the probe begins again");
        assert_eq!(bbr.losses.long_inflight, None);
        assert_eq!(bbr.losses.short_inflight, None);
        assert!(!bbr.losses.in_round);
    });
    assert!(path.transfer.congestion.controller().window() >= window.min(path.look(|bbr| bbr.bdp(200))));
}

#[test]
fn a_spurious_end_of_startup_is_undone() {
    let mut path = Path::new(Link::new(100, 20, 50));
    path.transfer.run_until(Duration::from_millis(100), |_| false);
    lose(&mut path, 50 * packet(), 2, false);
    Watched(path.bbr.clone()).with(|bbr| {
        bbr.losses.undo_phase = Some(Phase::Startup);
        bbr.full.set_full();
        bbr.phase = Phase::Drain;
    });
    arrive(&mut path, 2);
    assert_eq!(path.phase(), Phase::Startup);
    assert!(!path.look(|bbr| bbr.full.reached));
}

#[test]
fn a_spurious_timeout_is_undone() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeCruise);
    let window = path.transfer.congestion.controller().window();
    lose(&mut path, 50 * packet(), 10, true);
    assert_eq!(path.transfer.congestion.controller().window(), 2 * packet());
    arrive(&mut path, 10);
    assert!(path.transfer.congestion.controller().window() >= window * 9 / 10);
    assert_eq!(path.phase(), Phase::ProbeCruise);
}

#[test]
fn after_a_timeout_the_window_returns_with_the_first_arrival() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeCruise);
    let window = path.transfer.congestion.controller().window();
    lose(&mut path, 50 * packet(), 10, true);
    path.until(seconds(2), |bbr| bbr.control.timed_out.is_none());
    assert!(path.transfer.congestion.controller().window() >= window / 2);
}

#[test]
fn a_packet_sent_at_the_time_of_a_timeout_ends_it() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeCruise);
    let window = path.transfer.congestion.controller().window();
    lose(&mut path, 50 * packet(), 10, true);
    let now = path.transfer.now;
    let rtt = test_path::rtt(Duration::from_millis(40));
    let arrived = test_path::ack(packet(), now, &rtt);
    Watched(path.bbr.clone()).on_ack(now + Duration::from_millis(40), &arrived);
    assert!(path.transfer.congestion.controller().window() >= window / 2);
}

#[test]
fn reordering_does_not_end_in_a_smaller_model() {
    let link = Link { detour: Some((20, Duration::from_millis(3))), ..Link::new(50, 20, 200) };
    let mut path = Path::new(link);
    path.transfer.run_until(seconds(2), |_| false);
    assert!(path.transfer.packets_spurious > 0);
    assert!(path.utilization(seconds(3)) >= 95);
}

#[test]
fn random_loss_below_the_threshold_costs_little() {
    for (every, least) in [(100, 92), (1_000, 98)] {
        let mut path = Path::new(Link { loss: Some(every), ..Link::new(50, 50, 100) });
        path.until(seconds(5), |bbr| bbr.phase.is_probe_bw());
        let utilization = path.utilization(seconds(20));
        assert!(utilization >= least, "one of {every}: {utilization}");
    }
}

#[test]
fn losses_in_a_cruise_lower_the_bounds_only_if_there_are_many() {
    for (every, bounded) in [(1_000, false), (8, true)] {
        let mut path = Path::new(Link::new(50, 50, 100));
        path.until_phase(Phase::ProbeCruise);
        path.link.borrow_mut().loss = Some(every);
        path.until(seconds(5), |bbr| bbr.losses.in_round && bbr.phase == Phase::ProbeCruise);
        let bbr = path.bbr.clone();
        let is_lower = || bbr.lock().expect("no test panics with it").losses.short_bandwidth.is_some();
        let lowered = path.transfer.run_until(Duration::from_millis(300), |_| is_lower());
        assert_eq!(lowered, bounded, "one of {every}");
    }
}

#[test]
fn bounds_of_losses_that_a_lower_rate_does_not_lessen_are_lifted() {
    let mut path = Path::new(Link::new(50, 50, 100));
    path.until_phase(Phase::ProbeCruise);
    path.link.borrow_mut().loss = Some(12);
    path.until(seconds(2), |bbr| bbr.losses.short_bandwidth.is_some());
    path.until(seconds(1), |bbr| !bbr.losses.random.is_on_trial());
    path.look(|bbr| assert_eq!((bbr.losses.short_bandwidth, bbr.losses.short_inflight), (None, None)));
    assert!(path.utilization(seconds(1)) >= 85);
}

/// A path in PROBE_CRUISE whose bounds were lowered for losses, which is on trial.
fn in_a_trial() -> Path {
    in_a_trial_of_losses().0
}

/// The same, and when the packets left whose loss has begun it.
fn in_a_trial_of_losses() -> (Path, Instant) {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeCruise);
    let sent = path.transfer.now;
    lose(&mut path, 50 * packet(), 20, false);
    path.until(seconds(1), |bbr| bbr.losses.random.is_on_trial());
    assert!(path.look(|bbr| bbr.losses.bandwidth().is_some()));
    (path, sent)
}

#[test]
fn the_trial_of_losses_that_were_none_ends() {
    let (mut path, sent) = in_a_trial_of_losses();
    arrive_that_left(&mut path, sent, 19);
    assert!(path.look(|bbr| bbr.losses.random.is_on_trial()), "one loss was real as yet");
    arrive_that_left(&mut path, sent, 1);
    path.look(|bbr| {
        assert!(!bbr.losses.random.is_on_trial());
        assert_eq!(bbr.losses.bandwidth(), None, "nothing holds back the pace");
    });
}

#[test]
fn a_trial_goes_on_when_later_losses_were_none() {
    let mut path = in_a_trial();
    path.transfer.run_until(Duration::from_millis(1), |_| false);
    lose(&mut path, 50 * packet(), 1, false);
    arrive(&mut path, 1);
    path.look(|bbr| assert!(bbr.losses.random.is_on_trial() && bbr.losses.bandwidth().is_some()));
}

#[test]
fn marks_end_a_probe_as_losses_do() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeUp);
    mark(&path, 50, 5);
    assert_eq!(path.phase(), Phase::ProbeDown);
    assert!(path.look(|bbr| bbr.losses.long_inflight.is_some() && bbr.cycle.too_high));
}

#[test]
fn losses_that_were_none_take_nothing_back_of_what_marks_said_before() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeUp);
    mark(&path, 50, 5);
    // Of packets that left before that.
    lose(&mut path, 50 * packet(), 2, false);
    arrive(&mut path, 2);
    assert!(path.look(|bbr| bbr.losses.in_round));
}

#[test]
fn a_probe_may_be_marked_as_often_as_it_may_lose() {
    // 2 % of a flight of a hundred packets.
    for (marks, phase) in [(1, Phase::ProbeUp), (2, Phase::ProbeUp), (3, Phase::ProbeDown)] {
        let mut path = Path::new(Link::new(10, 20, 200));
        path.until_phase(Phase::ProbeUp);
        mark(&path, 100, marks);
        assert_eq!(path.phase(), phase, "{marks} marks");
    }
}

#[test]
fn a_round_of_marks_ends_startup() {
    let mut path = Path::new(Link::new(100, 50, 200));
    path.until(seconds(5), |bbr| bbr.rounds.count() >= 2);
    assert_eq!(path.phase(), Phase::Startup);
    // Six acknowledgements of the round report two marks each of a flight of fifty packets.
    for _ in 0..6 {
        mark(&path, 50, 2);
    }
    let round = path.look(|bbr| bbr.rounds.count());
    path.until(seconds(1), |bbr| bbr.phase != Phase::Startup);
    assert!(path.look(|bbr| bbr.rounds.count()) <= round + 1);
}

/// How long it takes until the next probe after the loss of a packet that was sent so long ago.
fn probe_after_losses(age: Duration) -> Duration {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeCruise);
    path.transfer.run_until(Duration::from_millis(300), |_| false);
    assert_eq!(path.phase(), Phase::ProbeCruise);
    let now = path.transfer.now;
    let sent_time = Instant::ZERO + now.saturating_since(Instant::ZERO + age);
    let lost = LostPacket { sent_time, ..lost(&path, 50 * packet(), 1) };
    Watched(path.bbr.clone()).on_packet_lost(now, &lost);
    path.until_phase(Phase::ProbeRefill);
    path.transfer.now.saturating_since(now)
}

#[test]
fn after_a_stop_of_the_path_the_next_probe_is_due_soon() {
    let usual = probe_after_losses(Duration::from_millis(50));
    assert!(usual > Duration::from_millis(500), "{usual:?}");
    let soon = probe_after_losses(Duration::from_millis(400));
    assert!(soon < Duration::from_millis(150), "{soon:?}");
}

#[test]
fn small_packets_that_are_left_of_a_flight_do_not_stop_the_pacer() {
    let mut path = Path::new(Link::new(10, 20, 200));
    let (sent, now) = (Instant::from_millis(9_960), Instant::from_millis(10_000));
    // Of all that was sent in nine seconds 56 bytes have arrived.
    let rate = Some(RateSample {
        delivery_rate: 6,
        delivered: 56,
        interval: seconds(9),
        total_delivered: 56,
        lost: 0,
        snapshot: DeliverySnapshot::NONE,
    });
    let rtt = test_path::rtt(Duration::from_millis(40));
    let ack = AckEvent { total_delivered: 56, rate, ..test_path::ack(56, sent, &rtt) };
    Watched(path.bbr.clone()).on_ack(now, &ack);
    let pace = path.look(|bbr| bbr.pacing_rate()).unwrap();
    assert!(pace >= 20 * packet(), "two packets in 100 ms: {pace}");
    path.until(seconds(5), |bbr| bbr.max_bandwidth.get() > 1_000_000);
}

#[test]
fn a_round_without_losses_leaves_no_bound_below_what_it_has_delivered() {
    let mut path = Path::new(Link::new(10, 20, 200));
    path.until_phase(Phase::ProbeCruise);
    let small = path.look(|bbr| bbr.bandwidth() / 4);
    Watched(path.bbr.clone()).with(|bbr| {
        bbr.losses.short_bandwidth = Some(small);
        bbr.losses.short_inflight = Some(bbr.bdp(100) / 4);
    });
    // What is under way arrives at the rate of the path.
    path.until(Duration::from_millis(60), |bbr| {
        bbr.bandwidth() > 3 * small && bbr.phase == Phase::ProbeCruise
    });
    path.look(|bbr| {
        let bound = bbr.losses.short_inflight.expect("no probe has begun");
        assert!(bound > bbr.bdp(75), "{bound}");
        assert!(bbr.window() >= bound);
    });
}

/// An acknowledgement of half a small flight, the other half of which was lost.
pub(super) fn sample(path: &Path) -> Sample {
    let now = path.transfer.now;
    Sample {
        now,
        delivery_rate: None,
        delivered: 10 * packet(),
        prior_delivered: 0,
        lost: 10 * packet(),
        tx_in_flight: 20 * packet(),
        app_limited: false,
        newly_acked: packet(),
        sent_time: now,
        in_flight: 0,
        rtt: None,
    }
}

/// What BBR makes in STARTUP of half a small flight that was lost at several times.
fn phase_after_half_of_a_flight(path: &Path) -> Phase {
    let sample = sample(path);
    Watched(path.bbr.clone()).with(|bbr| {
        assert_eq!(bbr.phase, Phase::Startup);
        bbr.losses.in_round = true;
        bbr.losses.events_in_round = HEAVY_LOSS_EVENTS;
        bbr.check_startup_done(&sample);
        bbr.phase
    })
}

#[test]
fn losses_of_a_small_flight_end_the_start_once_trains_look_for_nothing() {
    let mut path = Path::new(Link::new(100, 200, 100));
    assert_eq!(phase_after_half_of_a_flight(&path), Phase::Startup, "no train has shown anything");
    Watched(path.bbr.clone()).with(|bbr| bbr.startup.trains.stop());
    assert_eq!(phase_after_half_of_a_flight(&path), Phase::Drain);
    path = Path::new(Link::new(100, 200, 100));
    path.until(seconds(2), |bbr| bbr.startup.trains.has_unvalidated());
    assert_eq!(phase_after_half_of_a_flight(&path), Phase::Startup, "the flight of the trains is under way");
    path.until(seconds(2), |bbr| bbr.startup.trains.has_found());
    path.until(seconds(2), |bbr| !bbr.startup.trains.has_unvalidated());
    assert_eq!(phase_after_half_of_a_flight(&path), Phase::Drain, "what the path holds was found");
}

#[test]
fn what_was_dropped_for_marks_makes_no_later_loss_congestion() {
    for dropped_for_mark in [false, true] {
        let mut path = Path::new(Link::new(10, 20, 200));
        path.until_phase(Phase::ProbeCruise);
        lose(&mut path, 100 * packet(), 60, false);
        let spurious = SpuriousLoss { bytes: packet(), sent_time: path.transfer.now, dropped_for_mark };
        for _ in 0..60 {
            Watched(path.bbr.clone()).on_spurious_loss(path.transfer.now, &spurious);
        }
        assert_eq!(path.look(|bbr| bbr.losses.random.is_tolerable()), dropped_for_mark);
    }
}
