use std::time::Duration;

use super::super::test_path::{SIZE, ack, loss, rtt, spurious};
use super::*;
use crate::rtt::Rtt;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A controller that follows the RFC strictly.
fn cubic(window: u64) -> Cubic {
    let config =
        CubicConfig { initial_window: Some(window), tolerate_random_loss: false, ..CubicConfig::default() };
    Cubic::new(&config, SIZE)
}

/// A sender that always uses its window, on a path with a fixed round-trip time: in each step of a
/// thousandth of a round trip, a thousandth of the window is acknowledged.
struct Path {
    cubic: Cubic,
    now: Instant,
    round_trip: Duration,
    rtt: Rtt,
}

impl Path {
    /// Right after a loss at the given window.
    fn after_loss(window: u64, round_trip: Duration) -> Self {
        let mut cubic = cubic(window);
        cubic.on_congestion(at(1_000), &loss(at(999)));
        Self { cubic, now: at(1_000), round_trip, rtt: rtt(round_trip) }
    }

    fn run(&mut self, time: Duration) {
        let step = self.round_trip / 1_000;
        let end = self.now + time;
        while self.now < end {
            self.now += step;
            let sent = self.now.saturating_sub(self.round_trip).max(at(1_001));
            self.cubic.on_ack(self.now, &ack(self.cubic.window() / 1_000, sent, &self.rtt));
        }
    }
}

/// The window of the RFC's formula in bytes, `t` seconds after a loss at `w_max` bytes.
fn formula(w_max: f64, t: f64) -> f64 {
    let size = f64::from(SIZE);
    let segments = w_max / size;
    let k = (segments * 0.3 / 0.4).cbrt();
    (0.4 * (t - k).powi(3) + segments) * size
}

#[test]
fn a_loss_takes_three_tenths_once_per_round_trip() {
    let mut cubic = cubic(100_000);
    cubic.on_congestion(at(50), &loss(at(0)));
    assert_eq!((cubic.window(), cubic.ssthresh()), (70_000, Some(70_000)));
    cubic.on_congestion(at(55), &loss(at(50)));
    assert_eq!(cubic.window(), 70_000);
}

#[test]
fn growth_follows_the_curve_of_the_rfc() {
    // 1,000 datagrams and 100 ms: far outside of the Reno-friendly region. K is 9.08 s.
    let w_max = 1_200_000.0;
    let mut path = Path::after_loss(1_200_000, Duration::from_millis(100));
    path.run(Duration::from_millis(1));
    let mut seconds = 0.0;
    while seconds < 14.0 {
        path.run(Duration::from_millis(500));
        seconds += 0.5;
        // A window aims at where the curve will be one round trip later, and is between the two.
        let (low, high) = (formula(w_max, seconds - 0.1), formula(w_max, seconds + 0.11));
        let window = path.cubic.window() as f64;
        assert!(window >= low * 0.998 && window <= high * 1.002, "{seconds} s: {low} {window} {high}");
    }
    assert!(path.cubic.window() > 1_200_000, "beyond the plateau");
}

#[test]
fn on_a_short_path_growth_is_that_of_reno() {
    // 20 datagrams and 10 ms: the curve is flat for seconds, Reno grows by 9/17 datagrams per round trip.
    let mut path = Path::after_loss(24_000, Duration::from_millis(10));
    path.run(Duration::from_millis(50));
    let gained = path.cubic.window() - 16_800;
    let expected = 5 * 1_200 * 9 / 17;
    assert!(gained.abs_diff(expected) < 300, "{gained} of {expected}");
}

#[test]
fn beyond_the_old_window_growth_is_one_datagram_per_round_trip() {
    let mut path = Path::after_loss(24_000, Duration::from_millis(10));
    while path.cubic.window() < 24_000 {
        path.run(Duration::from_millis(1));
    }
    let before = path.cubic.window();
    path.run(Duration::from_millis(40));
    let gained = path.cubic.window() - before;
    assert!(gained.abs_diff(4 * 1_200) < 400, "{gained}");
}

#[test]
fn a_flow_that_shrinks_aims_lower() {
    let mut cubic = cubic(100_000);
    cubic.on_congestion(at(50), &loss(at(0)));
    assert_eq!(cubic.state.plateau, Some(100_000));
    cubic.on_congestion(at(100), &loss(at(60)));
    assert_eq!(cubic.state.plateau, Some(59_500), "17/20 of 70,000");
    let config =
        CubicConfig { initial_window: Some(100_000), fast_convergence: false, tolerate_random_loss: false };
    let mut alone = Cubic::new(&config, SIZE);
    alone.on_congestion(at(50), &loss(at(0)));
    alone.on_congestion(at(100), &loss(at(60)));
    assert_eq!(alone.state.plateau, Some(70_000));
}

#[test]
fn time_without_data_does_not_count() {
    let mut busy = Path::after_loss(1_200_000, Duration::from_millis(100));
    let mut idle = Path::after_loss(1_200_000, Duration::from_millis(100));
    busy.run(Duration::from_secs(4));
    idle.run(Duration::from_secs(2));
    let event = AckEvent { app_limited: true, ..ack(1_200, idle.now, &idle.rtt) };
    idle.cubic.on_ack(idle.now, &event);
    idle.now += Duration::from_secs(60);
    idle.run(Duration::from_secs(2));
    let (busy, idle) = (busy.cubic.window(), idle.cubic.window());
    assert!(busy.abs_diff(idle) < 2_400, "{busy} {idle}");
}

#[test]
fn losses_that_were_none_restore_window_and_curve() {
    let mut path = Path::after_loss(1_200_000, Duration::from_millis(100));
    path.run(Duration::from_secs(3));
    let (window, before) = (path.cubic.window(), path.cubic.state.clone());
    let sent = path.now;
    path.cubic.on_congestion(path.now, &loss(sent));
    assert!(path.cubic.window() < window);
    path.cubic.on_spurious_loss(path.now, &spurious(sent));
    assert_eq!(path.cubic.window(), window);
    assert_eq!(path.cubic.state.plateau, before.plateau);
    path.run(Duration::from_secs(1));
    assert!(path.cubic.window() > window, "growth goes on");
}

#[test]
fn a_window_that_has_outgrown_the_old_one_stays() {
    let mut path = Path::after_loss(24_000, Duration::from_millis(10));
    path.run(Duration::from_secs(2));
    let window = path.cubic.window();
    assert!(window > 24_000);
    path.cubic.on_spurious_loss(path.now, &spurious(at(999)));
    assert_eq!(path.cubic.window(), window);
}

#[test]
fn after_an_interruption_slow_start_leads_from_the_minimum_to_where_the_window_was() {
    let mut path = Path::after_loss(1_200_000, Duration::from_millis(100));
    path.run(Duration::from_secs(1));
    let window = path.cubic.window();
    let event = CongestionEvent { persistent: true, ..loss(path.now) };
    path.cubic.on_congestion(path.now, &event);
    assert_eq!(path.cubic.window(), 2_400);
    assert_eq!(path.cubic.ssthresh(), Some(window));
    let goal = (path.cubic.state.plateau, path.cubic.state.prior_window);
    path.run(Duration::from_millis(500));
    assert_eq!(path.cubic.state(), "slow start");
    assert_eq!((path.cubic.state.plateau, path.cubic.state.prior_window), goal, "losses have set them");
    path.run(Duration::from_millis(500));
    assert_eq!(path.cubic.state(), "congestion avoidance");
}

#[test]
fn persistent_congestion_that_begins_with_a_loss_keeps_the_threshold_of_that_loss() {
    let mut cubic = cubic(100_000);
    cubic.on_congestion(at(50), &loss(at(0)));
    cubic.on_congestion(at(900), &CongestionEvent { persistent: true, ..loss(at(49)) });
    assert_eq!((cubic.window(), cubic.ssthresh()), (2_400, Some(70_000)));
}

#[test]
fn leaving_slow_start_by_delay_begins_at_the_plateau() {
    let mut cubic = cubic(120_000);
    let (short, long) = (Duration::from_millis(50), Duration::from_millis(80));
    let (short, long) = ((rtt(short), short), (rtt(long), long));
    let mut now = at(1_000);
    for round in 0..20 {
        let (rtt, time) = if round < 2 { &short } else { &long };
        let sent = now;
        now += *time;
        for i in 0..10 {
            let gap = Duration::from_nanos(i);
            let event = AckEvent { rtt_sample: Some(*time), ..ack(12_000, sent + gap, rtt) };
            cubic.on_ack(now + gap, &event);
        }
    }
    let ssthresh = cubic.ssthresh().expect("slow start is over");
    assert_eq!(cubic.state(), "congestion avoidance");
    let stage = cubic.state.stage.as_ref().expect("a stage has begun");
    assert_eq!((stage.to_plateau, stage.plateau), (0, ssthresh));
}

#[test]
fn huge_windows_and_times_overflow_nothing() {
    let mut path = Path::after_loss(1 << 45, Duration::from_secs(2_400));
    path.run(Duration::from_secs(24_000));
    assert!(path.cubic.window() >= (1 << 45) / 10 * 7);
    let rtt = rtt(Duration::from_secs(1));
    path.cubic.on_ack(Instant::FAR_FUTURE, &ack(1 << 40, Instant::FAR_FUTURE, &rtt));
}

#[test]
fn a_loss_by_chance_on_a_long_path_is_tolerated_unless_the_rfc_is_wanted() {
    let long = rtt(Duration::from_millis(600));
    let now = Instant::from_millis(10_000);
    for tolerate_random_loss in [true, false] {
        let config =
            CubicConfig { initial_window: Some(100_000), tolerate_random_loss, ..CubicConfig::default() };
        let mut cubic = Cubic::new(&config, SIZE);
        cubic.on_ack(now, &AckEvent { app_limited: true, ..ack(60_000, now, &long) });
        let before = cubic.window();
        cubic.on_congestion(now, &loss(now));
        assert_eq!(cubic.window() == before, tolerate_random_loss);
        cubic.on_congestion(now, &CongestionEvent { lost_packets: 50, ..loss(now) });
        assert!(cubic.window() < before, "so many are congestion");
    }
}

#[test]
fn marks_of_congestion_are_never_tolerated() {
    let long = rtt(Duration::from_millis(600));
    let now = Instant::from_millis(10_000);
    let mut cubic = Cubic::new(&CubicConfig::default(), SIZE);
    cubic.on_ack(now, &AckEvent { app_limited: true, ..ack(60_000, now, &long) });
    let before = cubic.window();
    cubic.on_congestion(now, &CongestionEvent { cause: Cause::Ecn { ce: 1 }, lost_packets: 0, ..loss(now) });
    assert!(cubic.window() < before);
}

/// A loss ends the first slow start at 100,000 bytes; what still arrives, a packet each millisecond over 50 ms, is what
/// a path of 60,000 bytes delivers.
fn after_a_flight_that_was_too_large() -> Cubic {
    let (mut cubic, rtt) = (cubic(100_000), rtt(Duration::from_millis(50)));
    cubic
        .on_congestion(at(1_000), &CongestionEvent { lost_bytes: 12_000, lost_packets: 10, ..loss(at(999)) });
    for n in 1..=20 {
        let rtt_sample = Some(Duration::from_millis(50));
        cubic.on_ack(at(1_000 + n), &AckEvent { rtt_sample, ..ack(1_200, at(950 + n), &rtt) });
        assert_eq!((cubic.window(), cubic.conserves()), (70_000, true));
    }
    cubic.on_ack(at(1_051), &ack(1_200, at(1_001), &rtt));
    cubic
}

#[test]
fn the_flight_that_was_too_large_shows_what_the_path_holds() {
    let cubic = after_a_flight_that_was_too_large();
    assert_eq!((cubic.window(), cubic.ssthresh(), cubic.conserves()), (60_000, Some(60_000), false));
}

#[test]
fn what_left_before_the_path_was_known_is_not_answered_again() {
    let mut cubic = after_a_flight_that_was_too_large();
    cubic.on_congestion(at(1_060), &loss(at(1_020)));
    assert_eq!(cubic.window(), 60_000);
    cubic.on_congestion(at(1_110), &loss(at(1_060)));
    assert_eq!(cubic.window(), 42_000);
}

#[test]
fn later_losses_take_their_part_whatever_arrives() {
    let mut cubic = after_a_flight_that_was_too_large();
    cubic.on_congestion(at(2_000), &loss(at(1_999)));
    assert_eq!((cubic.window(), cubic.conserves()), (42_000, true));
    let rtt = rtt(Duration::from_millis(50));
    let rtt_sample = Some(Duration::from_millis(50));
    for n in 1..=20 {
        // Half of the rate.
        cubic.on_ack(at(2_000 + n), &AckEvent { rtt_sample, ..ack(600, at(1_950 + n), &rtt) });
    }
    cubic.on_ack(at(2_051), &ack(1_200, at(2_001), &rtt));
    assert!(cubic.window() >= 42_000 && !cubic.conserves());
}

#[test]
fn losses_that_were_none_undo_what_the_flight_seemed_to_show() {
    let mut cubic = after_a_flight_that_was_too_large();
    cubic.on_spurious_loss(at(1_070), &SpuriousLoss { bytes: 12_000, ..spurious(at(999)) });
    assert_eq!((cubic.window(), cubic.ssthresh()), (100_000, None));
}

/// Sends so many packets at `now`.
fn send(cubic: &mut Cubic, now: Instant, packets: u64) {
    for packet_number in 0..packets {
        let sent = Sent { packet_number, bytes: 1_200, bytes_in_flight: 0, app_limited: false };
        cubic.on_sent(now, &sent);
    }
}

#[test]
fn losses_long_after_the_first_slow_start_do_not_refute_its_flight() {
    let (mut cubic, rtt) = (cubic(12_000), rtt(Duration::from_millis(100)));
    send(&mut cubic, at(0), 10);
    for n in 1..=10 {
        let rtt_sample = Some(Duration::from_millis(100));
        cubic.on_ack(at(100 + n), &AckEvent { rtt_sample, ..ack(1_200, at(0), &rtt) });
    }
    assert!(cubic.window() > 100_000, "the train shows 1.2 MB/s: {}", cubic.window());
    // A loss ends the start before the flight has begun, and what leaves then arrives.
    cubic.on_congestion(at(111), &loss(at(0)));
    for second in 1..10 {
        send(&mut cubic, at(second * 1_000), 50);
        cubic.on_ack(at(second * 1_000 + 100), &ack(60_000, at(second * 1_000), &rtt));
    }
    let before = cubic.window();
    send(&mut cubic, at(10_000), 50);
    let losses = CongestionEvent { lost_bytes: 60_000, lost_packets: 50, ..loss(at(10_000)) };
    cubic.on_congestion(at(10_200), &losses);
    assert_eq!(cubic.window(), before * 7 / 10);
}

/// A path without a queue that loses one packet in 20, right after the reaction to that; one packet arrives in a millisecond.
fn in_a_trial() -> (Cubic, Lossy) {
    let config = CubicConfig { initial_window: Some(1_000_000), ..CubicConfig::default() };
    let mut cubic = Cubic::new(&config, SIZE);
    cubic.state.ssthresh = Some(1_000_000);
    let mut path = Lossy { now: at(1_000), rtt: rtt(Duration::from_millis(20)) };
    let reaction = (0..200).find(|_| path.lose_one_in_20(&mut cubic) < 1_000_000);
    assert!(reaction.is_some_and(|n| n > 0), "some losses are tolerated before the reaction");
    (cubic, path)
}

struct Lossy {
    now: Instant,
    rtt: Rtt,
}

impl Lossy {
    /// Returns the window then.
    fn lose_one_in_20(&mut self, cubic: &mut Cubic) -> u64 {
        for _ in 1..20 {
            self.now += Duration::from_millis(1);
            let rtt_sample = Some(self.rtt.min());
            // A sender that does not use its window, so that it does not grow.
            let ack = AckEvent { app_limited: true, rtt_sample, ..ack(1_200, self.now, &self.rtt) };
            cubic.on_ack(self.now, &ack);
        }
        self.now += Duration::from_millis(1);
        cubic.on_congestion(self.now, &loss(self.now));
        cubic.window()
    }

    /// For so long that a trial ends.
    fn lose_nothing(&mut self, cubic: &mut Cubic) {
        for _ in 0..3_000 {
            self.now += Duration::from_millis(1);
            let rtt_sample = Some(self.rtt.min());
            let ack = AckEvent { app_limited: true, rtt_sample, ..ack(1_200, self.now, &self.rtt) };
            cubic.on_ack(self.now, &ack);
        }
    }

    /// The window when a trial would have ended long ago.
    fn lose_for_long(&mut self, cubic: &mut Cubic) -> u64 {
        (0..60).map(|_| self.lose_one_in_20(cubic)).last().unwrap_or_default()
    }
}

#[test]
fn a_reaction_that_was_in_vain_is_undone() {
    let (mut cubic, mut path) = in_a_trial();
    assert_eq!(cubic.window(), 700_000);
    assert_eq!(path.lose_for_long(&mut cubic), 1_000_000);
}

#[test]
fn a_reaction_whose_trial_was_cut_short_is_undone_with_the_next_one() {
    let (mut cubic, mut path) = in_a_trial();
    cubic.react(path.now, Cause::Loss);
    assert_eq!(cubic.window(), 490_000);
    assert_eq!((0..300).map(|_| path.lose_one_in_20(&mut cubic)).max(), Some(1_000_000));
}

/// Whether slow start goes on after losses by chance, where `first` has ended it with the first flight and nothing was lost for long.
fn resumes_slow_start_after(first: CongestionEvent) -> bool {
    let config = CubicConfig { initial_window: Some(100_000), ..CubicConfig::default() };
    let mut cubic = Cubic::new(&config, SIZE);
    let mut path = Lossy { now: at(1_000), rtt: rtt(Duration::from_millis(20)) };
    cubic.on_congestion(path.now, &first);
    assert!(cubic.ssthresh().is_some());
    path.lose_nothing(&mut cubic);
    assert!(cubic.ssthresh().is_some(), "what the first losses were is not known yet");
    (0..200).any(|_| {
        path.lose_one_in_20(&mut cubic);
        cubic.ssthresh().is_none()
    })
}

#[test]
fn slow_start_goes_on_once_losses_turn_out_to_be_random() {
    let burst = CongestionEvent { lost_packets: 20, lost_bytes: 24_000, ..loss(at(990)) };
    assert!(resumes_slow_start_after(burst));
    let marks = CongestionEvent { cause: Cause::Ecn { ce: 1 }, ..loss(at(990)) };
    assert!(!resumes_slow_start_after(marks));
}

#[test]
fn slow_start_that_losses_have_not_ended_after_all_stays_over() {
    let config = CubicConfig { initial_window: Some(1_000_000), ..CubicConfig::default() };
    let mut cubic = Cubic::new(&config, SIZE);
    let mut path = Lossy { now: at(1_000), rtt: rtt(Duration::from_millis(20)) };
    let burst = CongestionEvent { lost_packets: 20, lost_bytes: 24_000, ..loss(at(990)) };
    cubic.on_congestion(path.now, &burst);
    cubic.on_spurious_loss(path.now, &SpuriousLoss { bytes: 24_000, ..spurious(at(990)) });
    assert_eq!(cubic.ssthresh(), None);
    path.lose_nothing(&mut cubic);
    // The delay ends it then.
    cubic.state.ssthresh = Some(1_000_000);
    let mut windows = (0..200).map(|_| path.lose_one_in_20(&mut cubic));
    assert!(windows.any(|window| window < 1_000_000) && windows.any(|window| window == 1_000_000));
    assert!(cubic.ssthresh().is_some());
}

#[test]
fn a_reaction_whose_losses_were_none_is_on_trial_no_more() {
    for (was_spurious, window) in [(false, 700_000), (true, 1_000_000)] {
        let (mut cubic, mut path) = in_a_trial();
        if was_spurious {
            cubic.on_spurious_loss(path.now, &spurious(path.now));
        }
        assert_eq!(cubic.window(), window);
        // One reaction to a trial: so soon, the next loss causes none while it lasts.
        path.now += Duration::from_millis(1);
        cubic.on_congestion(path.now, &loss(path.now));
        assert_eq!(cubic.window(), 700_000, "spurious: {was_spurious}");
    }
}

#[test]
fn a_reaction_to_marks_is_not_undone_by_what_losses_show() {
    let (mut cubic, mut path) = in_a_trial();
    path.now += Duration::from_millis(1);
    cubic.on_congestion(path.now, &CongestionEvent { cause: Cause::Ecn { ce: 1 }, ..loss(path.now) });
    assert_eq!(cubic.window(), 490_000);
    assert!(path.lose_for_long(&mut cubic) <= 490_000);
}

#[test]
fn persistent_congestion_is_not_undone_by_what_losses_show() {
    let (mut cubic, mut path) = in_a_trial();
    path.now += Duration::from_millis(1);
    cubic.on_congestion(path.now, &CongestionEvent { persistent: true, ..loss(path.now) });
    assert_eq!(cubic.window(), minimum_window(SIZE));
    assert_eq!(path.lose_for_long(&mut cubic), minimum_window(SIZE));
}

#[test]
fn a_retreat_is_not_undone_by_what_losses_show() {
    let (mut cubic, mut path) = in_a_trial();
    cubic.on_resume(path.now, ResumeStep::Retreat { window: 100_000 });
    assert_eq!(cubic.window(), 100_000);
    assert!(path.lose_for_long(&mut cubic) <= 100_000);
}

#[test]
fn a_quarter_of_the_growth_makes_the_curve_a_sixteenth_as_steep() {
    let round_trip = Duration::from_millis(100);
    let mut path = Path::after_loss(1_200_000, round_trip);
    path.cubic.couple(CoupledShare::of_growth(CoupledShare::ONE / 4));
    for seconds in 1..=20 {
        path.run(Duration::from_secs(1));
        // As if the constant C of the formula were smaller.
        let segments = 1_000.0_f64;
        let k = (segments * 0.3 / (0.4 / 16.0)).cbrt();
        let expected = (0.4 / 16.0 * (f64::from(seconds) - k).powi(3) + segments) * f64::from(SIZE);
        let window = path.cubic.window() as f64;
        assert!((window / expected - 1.0).abs() < 0.03, "after {seconds} s: {window}, not {expected}");
    }
}

#[test]
fn a_coupling_changes_the_reduction() {
    let mut cubic = cubic(100_000);
    cubic.couple(CoupledShare { reduction: CoupledShare::ONE * 3 / 2, ..CoupledShare::ALONE });
    cubic.on_congestion(at(50), &loss(at(0)));
    assert_eq!(cubic.window(), 55_000);
}

#[test]
fn the_first_slow_start_leaves_what_the_path_held_less_half_of_a_step() {
    let settled = |pipe, held| {
        let mut cubic = cubic(100_000);
        cubic.settle(at(1_000), Shown { pipe, held });
        (cubic.window(), cubic.state.plateau)
    };
    assert_eq!(settled(20_000, 80_000), (68_000, Some(80_000)), "0.85 of it, since it held a queue");
    assert_eq!(settled(80_000, 80_000), (80_000, Some(80_000)), "there was none");
    assert_eq!(settled(200_000, 200_000), (100_000, None), "the path holds more than the window");
}
