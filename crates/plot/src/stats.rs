//! Medians and other quantiles.

use serde::Serialize;

/// So many points of a distribution are drawn at most.
const STEPS_MAX: usize = 400;

/// So many numbers have a confidence interval of 95 % for their median at least.
const INTERVAL_MIN: usize = 6;

/// What is told of a set of numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// How many there are.
    pub n: usize,
    /// The smallest.
    pub min: f64,
    /// The value that a tenth does not exceed.
    pub p10: f64,
    /// The lower quartile.
    pub p25: f64,
    /// The middle one.
    pub median: f64,
    /// Where the median of all such runs begins, with a confidence of 95 %: by the order of the numbers, whatever their
    /// distribution. `None` of fewer than six, between whose extremes it lies with less than that.
    pub median_low: Option<f64>,
    /// Where it ends.
    pub median_high: Option<f64>,
    /// The upper quartile.
    pub p75: f64,
    /// The value that nine tenths do not exceed.
    pub p90: f64,
    /// The largest.
    pub max: f64,
    /// The sum by the number.
    pub mean: f64,
    /// The values in ascending order; of many, evenly spread quantiles, the extremes among them.
    pub steps: Vec<f64>,
}

impl Summary {
    /// The summary of some numbers; `None` if there is none. What is no number is left out.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let at = |share: f64| quantile(&sorted, share);
        let steps = match sorted.len() {
            0..=STEPS_MAX => sorted.clone(),
            _ => (0..STEPS_MAX).map(|step| at(step as f64 / (STEPS_MAX - 1) as f64)).collect(),
        };
        let interval = median_interval(sorted.len());
        Some(Self {
            n: sorted.len(),
            median_low: interval.map(|(low, _)| sorted[low]),
            median_high: interval.map(|(_, high)| sorted[high]),
            min,
            p10: at(0.1),
            p25: at(0.25),
            median: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            max,
            mean: sorted.iter().map(|value| value / sorted.len() as f64).sum(),
            steps,
        })
    }
}

/// The places in `n` sorted numbers between which the median of the whole lies with a confidence of 95 %. How many numbers lie
/// below that median is distributed binomially: its mean is `n / 2`, its deviation half the root of `n`. All of five numbers are on one
/// side of it in one of sixteen cases: fewer than six say nothing with that confidence.
fn median_interval(n: usize) -> Option<(usize, usize)> {
    let below = (n as f64 / 2.0 - 1.96 * (n as f64).sqrt() / 2.0).round().max(1.0) as usize - 1;
    (n >= INTERVAL_MIN).then_some((below, n - 1 - below))
}

/// The value that this share of the sorted numbers does not exceed; between two of them by their distance.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_numbers() {
        let summary = Summary::of((1..=101).rev().map(f64::from)).unwrap();
        assert_eq!((summary.n, summary.min, summary.max), (101, 1.0, 101.0));
        assert_eq!((summary.p10, summary.p25, summary.median), (11.0, 26.0, 51.0));
        assert_eq!((summary.p75, summary.p90), (76.0, 91.0));
        assert!((summary.mean - 51.0).abs() < 1e-9);
        assert_eq!(Summary::of([3.0, 1.0]).unwrap().median, 2.0);
    }

    #[test]
    fn the_median_of_all_lies_between_two_of_the_numbers() {
        let interval =
            |n: u32| Summary::of((1..=n).map(f64::from)).and_then(|s| s.median_low.zip(s.median_high));
        // The tables of the sign test have 6 and 15 for 20, and 40 and 61 for 100.
        assert_eq!((interval(20), interval(100)), (Some((6.0, 15.0)), Some((40.0, 61.0))));
        assert_eq!(interval(6), Some((1.0, 6.0)));
        assert_eq!((interval(1), interval(5)), (None, None));
    }

    #[test]
    fn nothing_has_no_summary_and_many_have_few_steps() {
        assert_eq!(Summary::of([]), None);
        assert_eq!(Summary::of([f64::NAN]), None);
        let many = Summary::of((0..10_000).map(f64::from)).unwrap();
        assert_eq!((many.steps.len(), many.steps[0], many.steps[399]), (400, 0.0, 9_999.0));
    }
}
