use super::*;

fn draws(jitter: Jitter) -> Vec<Duration> {
    let mut rng = Rng::from_u64(5);
    (0..50_000).map(|_| jitter.draw(&mut rng)).collect()
}

fn mean(draws: &[Duration]) -> Duration {
    draws.iter().sum::<Duration>() / draws.len() as u32
}

#[test]
fn each_kind_has_its_mean() {
    let wanted = Duration::from_micros(12_500);
    for jitter in [
        Jitter::Uniform { max: wanted * 2 },
        Jitter::bell(wanted),
        Jitter::Exponential { mean: wanted },
        Jitter::Wifi { mean: wanted },
    ] {
        let mean = mean(&draws(jitter));
        assert!(mean.abs_diff(wanted) < Duration::from_micros(500), "{jitter:?}: {mean:?}");
    }
}

#[test]
fn a_bad_wifi_stops_now_and_then() {
    let drawn = draws(Jitter::Wifi { mean: Duration::from_micros(12_500) });
    let [quick, stops] = [
        drawn.iter().filter(|drawn| **drawn < Duration::from_millis(5)).count(),
        drawn.iter().filter(|drawn| **drawn > Duration::from_millis(30)).count(),
    ];
    // 11.5 / 84 of 50,000 stop; nearly all others are short.
    assert!((6_400..7_300).contains(&stops), "{stops}");
    assert!(quick + stops > 49_500, "{quick}");
}

#[test]
fn a_good_wifi_does_not_stop() {
    let drawn = draws(Jitter::Wifi { mean: Duration::from_millis(1) });
    assert!(drawn.iter().all(|drawn| *drawn < Duration::from_millis(12)));
    let mean = mean(&drawn);
    assert!(mean.abs_diff(Duration::from_micros(684)) < Duration::from_micros(20), "{mean:?}");
}

#[test]
fn no_jitter_is_none() {
    assert!(draws(Jitter::None).iter().all(Duration::is_zero));
}
