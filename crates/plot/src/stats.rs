//! Medians and other quantiles.

use serde::Serialize;

/// So many points of a distribution are drawn at most.
const STEPS_MAX: usize = 400;

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
        Some(Self {
            n: sorted.len(),
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
    fn nothing_has_no_summary_and_many_have_few_steps() {
        assert_eq!(Summary::of([]), None);
        assert_eq!(Summary::of([f64::NAN]), None);
        let many = Summary::of((0..10_000).map(f64::from)).unwrap();
        assert_eq!((many.steps.len(), many.steps[0], many.steps[399]), (400, 0.0, 9_999.0));
    }
}
