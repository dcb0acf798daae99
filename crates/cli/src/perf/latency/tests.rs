use super::*;

fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::default();
    values.into_iter().for_each(|value| histogram.record(Duration::from_micros(value)));
    histogram
}

#[test]
fn small_latencies_are_exact() {
    let percentiles = histogram(1..=100).percentiles();
    assert_eq!(percentiles, Percentiles { p50: 50, p90: 90, p99: 99, max: 100 });
    assert_eq!(histogram([7]).percentiles(), Percentiles { p50: 7, p90: 7, p99: 7, max: 7 });
}

#[test]
fn large_latencies_are_known_to_one_percent() {
    let percentiles = histogram((1..=100_000).rev()).percentiles();
    for (found, right) in [(percentiles.p50, 50_000), (percentiles.p90, 90_000), (percentiles.p99, 99_000)] {
        assert!(found >= right && found - right <= right / 100, "{found} is not about {right}");
    }
    assert_eq!(percentiles.max, 100_000);
}

#[test]
fn nothing_measured_is_zero() {
    assert_eq!(Histogram::default().percentiles(), Percentiles { p50: 0, p90: 0, p99: 0, max: 0 });
}

#[test]
fn merged_histograms_count_as_one() {
    let mut merged = histogram(1..=50);
    merged.merge(&histogram(51..=100));
    assert_eq!(merged.count(), 100);
    assert_eq!(merged.percentiles(), histogram(1..=100).percentiles());
}

#[test]
fn every_value_has_a_bucket_that_ends_within_one_percent() {
    for exponent in 0..64 {
        for value in [1u64 << exponent, (1 << exponent) + 1, u64::MAX >> exponent, (u64::MAX >> exponent) - 1]
        {
            let end = upper_end(bucket_of(value));
            assert!(end >= value && end - value <= value / 100, "{value} is in a bucket that ends at {end}");
            assert_eq!(bucket_of(end), bucket_of(value), "{value}");
            assert!(end == u64::MAX || bucket_of(end + 1) == bucket_of(end) + 1, "{value}");
        }
    }
    assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
}

proptest::proptest! {
    #[test]
    fn percentiles_agree_with_a_sorted_list(mut values in proptest::collection::vec(0u64..10_000_000, 1..300)) {
        let percentiles = histogram(values.iter().copied()).percentiles();
        values.sort_unstable();
        for (percent, found) in [(50, percentiles.p50), (90, percentiles.p90), (99, percentiles.p99)] {
            let right = values[(values.len() * percent).div_ceil(100) - 1];
            proptest::prop_assert!(found >= right && found - right <= right / 100, "p{percent}: {found}, {right}");
        }
    }
}
