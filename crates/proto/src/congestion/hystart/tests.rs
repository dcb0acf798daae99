use super::*;

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
