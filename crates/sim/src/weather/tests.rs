use super::*;

fn share_of_bad(good: Duration, bad: Duration, step: Duration) -> f64 {
    let mut rng = Rng::from_u64(1);
    let mut weather = Weather::new(good, bad, Instant::ZERO, &mut rng);
    let bad = (0..40_000_u32).filter(|n| weather.is_bad(Instant::ZERO + step * *n, &mut rng)).count();
    bad as f64 / 40_000.0
}

#[test]
fn the_share_of_bad_time_does_not_depend_on_how_often_one_looks() {
    let (good, bad) = (Duration::from_millis(300), Duration::from_millis(100));
    for step in [Duration::from_millis(7), Duration::from_millis(100), Duration::from_secs(3)] {
        let share = share_of_bad(good, bad, step);
        assert!((share - 0.25).abs() < 0.02, "{share} when looking every {step:?}");
    }
}

#[test]
fn a_look_after_ages_ends() {
    let nanosecond = Duration::ZERO;
    let share = share_of_bad(nanosecond, nanosecond, Duration::from_secs(100_000));
    assert!((share - 0.5).abs() < 0.02, "{share}");
}

#[test]
fn a_bad_time_lasts() {
    let mut rng = Rng::from_u64(9);
    let (good, bad) = (Duration::from_millis(900), Duration::from_millis(100));
    let mut weather = Weather::new(good, bad, Instant::ZERO, &mut rng);
    let states: Vec<bool> = (0..200_000).map(|n| weather.is_bad(Instant::from_millis(n), &mut rng)).collect();
    let begins = states.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    let bad_millis = states.iter().filter(|bad| **bad).count();
    let mean = bad_millis as f64 / begins as f64;
    assert!((85.0..115.0).contains(&mean), "a bad time lasts {mean} ms");
}
