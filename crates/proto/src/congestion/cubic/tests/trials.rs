//! Reactions to losses by chance, which are undone.

use super::*;

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
        lose(cubic, self.now, self.now);
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
    lose_all(&mut cubic, path.now, &burst);
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
fn what_was_dropped_for_marks_is_no_reason_for_later_reactions() {
    for (dropped_for_mark, window) in [(false, 700_000), (true, 1_000_000)] {
        let config = CubicConfig { initial_window: Some(1_000_000), ..CubicConfig::default() };
        let mut cubic = Cubic::new(&config, SIZE);
        let mut path = Lossy { now: at(1_000), rtt: rtt(Duration::from_millis(20)) };
        path.lose_nothing(&mut cubic);
        let flight = CongestionEvent { lost_packets: 60, lost_bytes: 72_000, ..loss(path.now) };
        lose_all(&mut cubic, path.now, &flight);
        let spurious = SpuriousLoss { bytes: 72_000, dropped_for_mark, ..spurious(path.now) };
        cubic.on_spurious_loss(path.now, &spurious);
        assert_eq!(cubic.window(), 1_000_000);
        path.now += Duration::from_millis(1);
        lose(&mut cubic, path.now, path.now);
        assert_eq!(cubic.window(), window, "dropped for marks: {dropped_for_mark}");
    }
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
