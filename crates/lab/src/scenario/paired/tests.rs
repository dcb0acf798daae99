use super::row::Figure;
use super::statistics::{confidence, quantile};
use super::*;
use crate::scenario::Verdict;

const FILE: &str = r#"
title = "a comparison"
[link]
rate_mbps = 10
delay_ms = 50
loss = { uniform = { probability = 0.05 } }
[[connection]]
download_bytes = 10_000
[[comparison]]
goal = "G"
download_bytes = [5_000, 20_000]
quantiles = [0.5, 0.95]
most = 0.5
[[comparison]]
goal = "H"
figure = "extra-bytes"
against = "repeat"
"#;

fn rows(seeds: u32) -> Vec<Row> {
    let scenario = Scenario::parse("mine", FILE).unwrap();
    let check = PairedCheck::new([scenario], None, Some(seeds)).unwrap();
    let results: Vec<_> = (0..check.len()).map(|number| Some(check.run(number))).collect();
    check.rows(&results)
}

#[test]
fn a_row_tells_all_ways_the_pairs_and_the_confidence() {
    let rows = rows(20);
    let named: Vec<_> = rows.iter().map(|row| (row.scenario.as_str(), row.metric.as_ref())).collect();
    assert_eq!(
        named,
        [
            ("G mine 5 kB tail/none", "p50_change"),
            ("G mine 5 kB tail/none", "p95_change"),
            ("G mine 20 kB tail/none", "p50_change"),
            ("G mine 20 kB tail/none", "p95_change"),
            ("H mine tail/repeat", "extra_bytes_ratio"),
        ]
    );
    for row in &rows {
        let comparison = row.comparison.as_ref().expect("what stands behind it");
        assert_eq!((comparison.pairs, comparison.failed), (20, 0));
        let confidence = comparison.confidence.expect("a confidence");
        let measured = row.measured.expect("a figure");
        assert!(confidence.low <= measured && measured <= confidence.high, "{confidence:?} {measured}");
        let ways: Vec<Way> = comparison.figures.keys().copied().collect();
        assert_eq!(ways, [Way::None, Way::Repeat, Way::Duplicates, Way::Tail]);
    }
    assert_eq!(rows[4].verdict, Verdict::Told, "nothing is asked of it");
}

#[test]
fn a_comparison_of_nothing_is_refused() {
    let told = |line: &str| {
        let text = FILE.replace("quantiles = [0.5, 0.95]\n", line);
        Scenario::parse("mine", &text).unwrap_err().to_string()
    };
    for line in ["", "quantiles = []\n"] {
        let expected = "mine:9: [[comparison]]: a comparison of completion times needs `quantiles`";
        assert!(told(line).starts_with(expected), "{}", told(line));
    }
}

#[test]
fn a_run_that_failed_is_not_a_cheap_one() {
    let text =
        FILE.replace("download_bytes = [5_000, 20_000]\nquantiles = [0.5, 0.95]", "figure = \"bytes\"");
    let scenario = Scenario::parse("mine", &text).unwrap();
    let check = PairedCheck::new([scenario], None, Some(3)).unwrap();
    let mut results: Vec<_> = (0..check.len()).map(|number| Some(check.run(number))).collect();
    assert_eq!(check.rows(&results)[0].verdict, Verdict::Met);
    let of_tail = check.tasks.iter().position(|(series, _)| series.way == Way::Tail).unwrap();
    results[of_tail] = None;
    for row in check.rows(&results) {
        assert_eq!(row.measured, None, "{}", row.metric);
        assert_ne!(row.verdict, Verdict::Met);
        assert!(row.note.unwrap().contains("1 runs failed"));
    }
}

#[test]
fn a_row_is_named_by_its_quantile() {
    let names = [0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 0.07].map(|share| Figure::Quantile(share).name());
    let expected = ["p25", "p50", "p90", "p95", "p99", "p99.9", "p7"];
    assert_eq!(names, expected.map(|name| format!("{name}_change")));
}

#[test]
fn copies_of_everything_cost_bytes_and_repair_symbols_fewer() {
    let rows = rows(10);
    let bytes = &rows[4].comparison.as_ref().unwrap().figures;
    assert!(bytes[&Way::Duplicates] > bytes[&Way::None] * 1.5, "{bytes:?}");
    assert!(bytes[&Way::Tail] < bytes[&Way::Duplicates], "{bytes:?}");
}

#[test]
fn a_quantile_is_a_value_that_so_many_do_not_exceed() {
    let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
    assert_eq!(quantile(&mut values, 0.5, |value| *value), 50.0);
    assert_eq!(quantile(&mut values, 0.99, |value| *value), 99.0);
    assert_eq!(quantile(&mut [0.0; 0], 0.5, |value| *value), f64::INFINITY);
}

#[test]
fn the_confidence_of_a_mean_is_two_standard_errors_wide() {
    let values: Vec<f64> = (0..1_000).map(|number| f64::from(number % 10)).collect();
    let mean = |pairs: &[usize]| pairs.iter().map(|pair| values[*pair]).sum::<f64>() / pairs.len() as f64;
    let confidence = confidence(values.len(), mean).unwrap();
    // The deviation of 0 to 9 is 2.87, and 1.96 x 2.87 / sqrt(1000) = 0.178.
    assert!((confidence.low - (4.5 - 0.178)).abs() < 0.03, "{confidence:?}");
    assert!((confidence.high - (4.5 + 0.178)).abs() < 0.03, "{confidence:?}");
}
