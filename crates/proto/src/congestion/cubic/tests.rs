mod first_flight;
mod trials;

use std::time::Duration;

use super::super::test_path::{SIZE, ack, lose, lose_all, loss, rtt, spurious};
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
        lose(&mut cubic, at(1_000), at(999));
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
    lose(&mut path.cubic, path.now, sent);
    assert!(path.cubic.window() < window);
    path.cubic.on_spurious_loss(path.now, &spurious(sent));
    assert_eq!(path.cubic.window(), window);
    assert_eq!(path.cubic.state.plateau, before.plateau);
    path.run(Duration::from_secs(1));
    assert!(path.cubic.window() > window, "growth goes on");
}

#[test]
fn of_two_reactions_one_that_had_no_cause_leaves_the_other() {
    let strict = CubicConfig { initial_window: Some(1_000_000), ..CubicConfig::default() };
    let curves = |spurious_losses: &[u64]| {
        let mut cubic = Cubic::new(&CubicConfig { tolerate_random_loss: false, ..strict.clone() }, SIZE);
        lose(&mut cubic, at(50), at(0));
        lose(&mut cubic, at(100), at(60));
        for &sent in spurious_losses {
            cubic.on_spurious_loss(at(150), &spurious(at(sent)));
        }
        (cubic.window(), cubic.ssthresh(), cubic.state.plateau)
    };
    assert_eq!(curves(&[]), (490_000, Some(490_000), Some(595_000)));
    for only in [0, 60] {
        assert_eq!(curves(&[only]), (700_000, Some(700_000), Some(1_000_000)));
    }
    for all in [[0, 60], [60, 0]] {
        assert_eq!(curves(&all), (1_000_000, None, None));
    }
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
