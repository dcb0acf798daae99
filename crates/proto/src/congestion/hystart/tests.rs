use super::super::test_path::{SIZE, ack, loss, rtt};
use super::super::{
    CongestionEvent, Controller, Cubic, CubicConfig, NewReno, NewRenoConfig, Prague, PragueConfig,
};
use super::*;
use crate::rtt::Rtt;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A path whose packets are sent and acknowledged in rounds.
struct Rounds {
    hystart: HyStart,
    now: Instant,
}

impl Rounds {
    fn new() -> Self {
        Self { hystart: HyStart::new(), now: Instant::from_millis(1) }
    }

    /// One round: `samples` acknowledgements with the given round-trip time. Returns the verdict on each.
    fn round(&mut self, rtt: Duration, min_rtt: Duration, samples: usize) -> Vec<Growth> {
        let sent = self.now;
        self.now += rtt;
        (0..samples)
            .map(|i| {
                // Acknowledgements of one round come a little apart; the first ends the round before.
                let gap = Duration::from_nanos(i as u64);
                self.hystart.on_ack(self.now + gap, sent + gap, Some(rtt), min_rtt)
            })
            .collect()
    }
}

#[test]
fn steady_delay_lets_the_window_double() {
    let mut rounds = Rounds::new();
    for _ in 0..20 {
        assert!(rounds.round(ms(50), ms(50), 10).iter().all(|&growth| growth == Growth::Full));
    }
}

#[test]
fn a_lasting_rise_leads_through_caution_to_the_end_of_slow_start() {
    let mut rounds = Rounds::new();
    for _ in 0..3 {
        rounds.round(ms(50), ms(50), 10);
    }
    // An eighth of 50 ms is 6.25 ms.
    let verdicts = rounds.round(ms(57), ms(50), 10);
    assert!(verdicts.contains(&Growth::Conservative));
    assert!(rounds.hystart.is_conservative());
    let later: Vec<Growth> = (0..6).flat_map(|_| rounds.round(ms(58), ms(50), 10)).collect();
    assert!(later.contains(&Growth::Exit), "{later:?}");
}

#[test]
fn caution_lasts_for_five_rounds() {
    let mut rounds = Rounds::new();
    for _ in 0..3 {
        rounds.round(ms(50), ms(50), 10);
    }
    rounds.round(ms(57), ms(50), 10);
    let end = (1..10).find(|_| rounds.round(ms(58), ms(50), 10).contains(&Growth::Exit));
    assert_eq!(end, Some(5));
}

#[test]
fn a_small_rise_is_no_sign() {
    let mut rounds = Rounds::new();
    for rtt in [50, 50, 55, 60, 65, 70] {
        rounds.round(ms(rtt), ms(50), 10);
        assert!(!rounds.hystart.is_conservative(), "at {rtt} ms");
    }
}

#[test]
fn a_passing_delay_resumes_slow_start() {
    let mut rounds = Rounds::new();
    for rtt in [50, 50, 70] {
        rounds.round(ms(rtt), ms(50), 10);
    }
    assert!(rounds.hystart.is_conservative());
    for _ in 0..10 {
        rounds.round(ms(50), ms(50), 10);
    }
    assert!(!rounds.hystart.is_conservative());
    assert_eq!(rounds.round(ms(50), ms(50), 1), [Growth::Full]);
}

#[test]
fn a_single_sample_without_the_delay_resumes_slow_start() {
    let mut rounds = Rounds::new();
    for rtt in [50, 50, 70] {
        rounds.round(ms(rtt), ms(50), 10);
    }
    assert!(rounds.hystart.is_conservative());
    // With few acknowledgements no round has as many samples as a rise needs.
    let later: Vec<Growth> = (0..10).flat_map(|_| rounds.round(ms(50), ms(50), 2)).collect();
    assert!(!later.contains(&Growth::Exit), "{later:?}");
    assert!(!rounds.hystart.is_conservative());
}

#[test]
fn few_samples_prove_nothing() {
    let mut rounds = Rounds::new();
    for rtt in [50, 50, 90, 130, 170] {
        rounds.round(ms(rtt), ms(50), 7);
        assert!(!rounds.hystart.is_conservative(), "at {rtt} ms");
    }
}

#[test]
fn delay_on_a_loopback_link_means_nothing() {
    let mut rounds = Rounds::new();
    let min = Duration::from_micros(100);
    for rtt in [min, min, ms(10), ms(20), ms(50)] {
        assert!(rounds.round(rtt, min, 20).iter().all(|&growth| growth == Growth::Full));
    }
}

/// An ACK frame for a packet sent at `sent` that took `time`.
fn sample(time: Duration, sent: Instant, path: &Rtt) -> AckEvent<'_> {
    AckEvent { rtt_sample: Some(time), ..ack(1_200, sent, path) }
}

/// Rounds with a delay of 50 ms, and then of 70 ms until that has ended slow start. Returns when they are over.
fn rise(mut on_ack: impl FnMut(Instant, &AckEvent<'_>)) -> Instant {
    let (mut now, path) = (Instant::from_millis(1), rtt(ms(50)));
    for round in 0..12 {
        let time = if round < 3 { ms(50) } else { ms(70) };
        let sent = now;
        now += time;
        for i in 0..10 {
            let gap = Duration::from_nanos(i);
            on_ack(now + gap, &sample(time, sent + gap, &path));
        }
    }
    now
}

/// Ten acknowledgements with a delay of 70 ms, 10 ms apart. Returns when the last of them arrives.
fn stays(after: Instant, mut on_ack: impl FnMut(Instant, &AckEvent<'_>)) -> Instant {
    let path = rtt(ms(50));
    let mut now = after;
    for _ in 0..10 {
        let sent = now;
        now += ms(10);
        on_ack(now, &sample(ms(70), sent, &path));
    }
    now
}

/// A slow start that a rise of the delay from 50 to 70 ms has ended, and a time after that. The rise has lasted for more than a round trip.
fn ended() -> (HyStart, Instant) {
    let (mut hystart, mut window, mut ssthresh) = (HyStart::new(), 100_000, None);
    let now = rise(|now, ack| hystart.grow(now, ack, &mut window, &mut ssthresh));
    assert!(ssthresh.is_some(), "slow start goes on");
    let now = stays(now, |now, ack| assert!(!hystart.resumes(now, ack), "the delay is still there"));
    (hystart, now)
}

#[test]
fn slow_start_goes_on_once_the_delay_that_ended_it_has_passed() {
    let (mut hystart, now) = ended();
    let path = rtt(ms(50));
    assert!(!hystart.resumes(now + ms(10), &sample(ms(70), now, &path)), "the delay is still there");
    assert!(hystart.resumes(now + ms(20), &sample(ms(69), now, &path)));
    assert!(!hystart.is_conservative());
    assert!(!hystart.resumes(now + ms(30), &sample(ms(50), now, &path)), "it goes on already");
}

/// Whether slow start resumes after acknowledgements 10 ms apart, with no delay, for packets sent from `since` on.
fn resumes_after(hystart: &mut HyStart, since: Instant, round_trips: u64) -> bool {
    let path = rtt(ms(50));
    (0..round_trips * 5).any(|n| {
        let sent = since + ms(10 * n);
        hystart.resumes(sent + ms(50), &sample(ms(50), sent, &path))
    })
}

#[test]
fn a_queue_that_has_drained_while_the_window_was_not_in_use_tells_nothing() {
    let (mut hystart, now) = ended();
    let path = rtt(ms(50));
    // Packets of the round trip after it meet the queue that was drained.
    (0..=5).for_each(|n| hystart.on_unused(now + ms(10 * n)));
    let pause = now + ms(50);
    assert!(!resumes_after(&mut hystart, pause, 1));
    let sent = pause + ms(50);
    assert!(hystart.resumes(sent + ms(50), &sample(ms(50), sent, &path)));
}

#[test]
fn a_queue_that_has_drained_while_the_path_was_silent_tells_nothing() {
    // If it is longer than the smoothed round-trip time of 50 ms, all of the window may have arrived.
    for (silence, resumes) in [(50, true), (51, false)] {
        let (mut hystart, now) = ended();
        let path = rtt(ms(50));
        let back = now + ms(silence);
        assert_eq!(hystart.resumes(back, &sample(ms(50), now, &path)), resumes, "after {silence} ms");
        assert!(resumes || !resumes_after(&mut hystart, now, 1), "{silence} ms");
        assert!(resumes || resumes_after(&mut hystart, back, 2), "the delay has passed for a round trip");
    }
}

#[test]
fn slow_start_that_goes_on_begins_with_a_round() {
    let (mut hystart, now) = ended();
    let path = rtt(ms(50));
    assert!(hystart.resumes(now + ms(20), &sample(ms(50), now, &path)));
    // What was on the way then belongs to one round, which is the first: there is none to compare it with.
    let (mut window, mut ssthresh) = (100_000, None);
    for (n, delay) in [50, 60, 60, 60, 60, 60, 60, 60, 60].into_iter().enumerate() {
        let ack = sample(ms(delay), now + ms(1), &path);
        hystart.grow(now + ms(21 + n as u64), &ack, &mut window, &mut ssthresh);
    }
    assert!(!hystart.is_conservative());
}

#[test]
fn a_cautious_window_grows_by_a_quarter_of_what_is_acknowledged() {
    let (mut hystart, mut window, mut ssthresh) = (HyStart::new(), 100_000, None);
    let mut grown = Vec::new();
    rise(|now, ack| {
        let (before, was_cautious) = (window, hystart.is_conservative());
        hystart.grow(now, ack, &mut window, &mut ssthresh);
        let is_over = ssthresh.is_some();
        if was_cautious && hystart.is_conservative() && !is_over {
            grown.push((window - before, ack.acked_bytes));
        }
    });
    assert!(!grown.is_empty());
    for (growth, acked) in grown {
        assert_eq!(growth, acked / 4);
    }
}

#[test]
fn what_congestion_has_confirmed_is_not_taken_back() {
    let (mut hystart, now) = ended();
    hystart.confirm_exit();
    assert!(!resumes_after(&mut hystart, now, 3));
}

/// All controllers whose first slow start ends so, after the end, and a time after that.
fn controllers_in_avoidance() -> impl Iterator<Item = (Box<dyn Controller>, Instant)> {
    let controllers: [Box<dyn Controller>; 3] = [
        Box::new(Cubic::new(&CubicConfig::default(), SIZE)),
        Box::new(NewReno::new(&NewRenoConfig::default(), SIZE)),
        Box::new(Prague::new(&PragueConfig::default(), SIZE)),
    ];
    controllers.into_iter().map(|mut controller| {
        let now = rise(|now, ack| controller.on_ack(now, ack));
        assert!(controller.ssthresh().is_some(), "{}", controller.name());
        (controller, now)
    })
}

#[test]
fn every_controller_goes_on_with_slow_start_while_its_window_is_in_use() {
    for (mut controller, now) in controllers_in_avoidance() {
        let path = rtt(ms(50));
        let pause = stays(now, |now, ack| controller.on_ack(now, ack)) + ms(10);
        controller.on_ack(pause, &AckEvent { app_limited: true, ..sample(ms(50), now + ms(50), &path) });
        let mut is_over = |later: u64| {
            let sent = pause + ms(later);
            controller.on_ack(sent + ms(50), &sample(ms(50), sent, &path));
            controller.ssthresh().is_some()
        };
        assert!([0, 25, 49].into_iter().all(&mut is_over), "the queue may have drained in the pause");
        assert!(!is_over(51));
    }
}

#[test]
fn no_controller_goes_on_with_slow_start_after_losses() {
    for (mut controller, now) in controllers_in_avoidance() {
        let path = rtt(ms(50));
        // More than chance explains.
        let losses = CongestionEvent { lost_bytes: 60_000, lost_packets: 50, ..loss(now) };
        controller.on_congestion(now, &losses);
        for later in [100, 200, 300] {
            let sent = now + ms(later);
            controller.on_ack(sent + ms(50), &sample(ms(50), sent, &path));
            assert!(controller.ssthresh().is_some(), "{}", controller.name());
        }
    }
}
