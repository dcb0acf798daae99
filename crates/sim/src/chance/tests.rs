use super::*;

const DRAWS: u32 = 100_000;

#[test]
fn exponential_draws_have_the_mean_and_the_tail() {
    let mut rng = Rng::from_u64(1);
    let mean = Duration::from_millis(10);
    let draws: Vec<_> = (0..DRAWS).map(|_| exponential(mean, &mut rng)).collect();
    let average = draws.iter().sum::<Duration>() / DRAWS;
    assert!(average.abs_diff(mean) < mean / 50, "{average:?}");
    // exp(-1), exp(-3): the share that is longer than one and three means.
    for (bound, share) in [(mean, 0.3679), (mean * 3, 0.0498)] {
        let longer = draws.iter().filter(|draw| **draw > bound).count() as f64 / f64::from(DRAWS);
        assert!((longer - share).abs() < 0.005, "{longer} are longer than {bound:?}");
    }
}

#[test]
fn poisson_draws_have_the_mean_and_the_variance() {
    let mut rng = Rng::from_u64(2);
    // The mean is 1.
    let draws: Vec<_> = (0..DRAWS).map(|_| f64::from(poisson(0.367_879_441_171_442_33, &mut rng))).collect();
    let mean = draws.iter().sum::<f64>() / f64::from(DRAWS);
    let variance = draws.iter().map(|draw| (draw - mean) * (draw - mean)).sum::<f64>() / f64::from(DRAWS);
    assert!((mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
}

#[test]
fn normal_draws_have_the_deviation() {
    let mut rng = Rng::from_u64(3);
    let within = (0..DRAWS).filter(|_| standard_normal(&mut rng).abs() < 1.0).count();
    assert!((f64::from(within as u32) / f64::from(DRAWS) - 0.683).abs() < 0.01, "{within}");
}

#[test]
fn scaling_saturates() {
    assert_eq!(scale(Duration::from_secs(2), 1.5), Duration::from_secs(3));
    assert_eq!(scale(Duration::from_secs(2), -1.0), Duration::ZERO);
    assert_eq!(scale(Duration::MAX, 2.0), Duration::from_nanos(u64::MAX));
}
