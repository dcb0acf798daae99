use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn sampled(samples: &[(u64, u64)], max_ack_delay: Option<Duration>) -> Rtt {
    let mut rtt = Rtt::default();
    for (i, &(sample, ack_delay)) in samples.iter().enumerate() {
        rtt.update(Instant::from_millis(1_000 + i as u64), ms(sample), ms(ack_delay), max_ack_delay);
    }
    rtt
}

#[test]
fn the_first_probe_timeout_is_one_second() {
    assert_eq!(Rtt::default().pto_base(), ms(999));
    assert!(!Rtt::default().has_sample());
}

#[test]
fn the_first_sample_replaces_the_guess_and_ignores_the_delay() {
    let rtt = sampled(&[(80, 50)], None);
    assert_eq!((rtt.smoothed(), rtt.variance(), rtt.min()), (ms(80), ms(40), ms(80)));
    assert_eq!(rtt.first_sample(), Some(Instant::from_millis(1_000)));
}

#[test]
fn the_variance_is_measured_against_the_old_mean() {
    let rtt = sampled(&[(80, 0), (160, 0)], None);
    assert_eq!(rtt.variance(), (ms(40) * 3 + ms(80)) / 4);
    assert_eq!(rtt.smoothed(), (ms(80) * 7 + ms(160)) / 8);
    assert_eq!(rtt.latest(), ms(160));
}

#[test]
fn a_plausible_delay_is_subtracted() {
    assert_eq!(sampled(&[(80, 0), (100, 20)], None).smoothed(), ms(80));
}

#[test]
fn a_delay_that_undercuts_the_minimum_is_ignored() {
    let rtt = sampled(&[(80, 0), (96, 20)], None);
    assert_eq!(rtt.smoothed(), ms(82));
    assert_eq!(sampled(&[(80, 0), (88, 5_000)], None).smoothed(), ms(81));
}

#[test]
fn the_promise_of_the_peer_bounds_the_delay() {
    // 25 of the claimed 60 ms are believed.
    let rtt = sampled(&[(80, 0), (185, 60)], Some(ms(25)));
    assert_eq!(rtt.smoothed(), (ms(80) * 7 + ms(160)) / 8);
}

#[test]
fn a_steady_path_still_leaves_the_granularity() {
    let rtt = sampled(&[(80, 0); 200], None);
    assert_eq!(rtt.pto_base(), ms(81));
}
