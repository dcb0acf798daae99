//! Quantiles, and how sure a figure of pairs is.

use fulmar_base::Rng;
use serde::Serialize;

/// How often pairs are drawn anew.
const RESAMPLES: usize = 1_000;
/// The seed of that: the same results have the same confidence.
const SEED: u64 = 0x66_65_63;
/// Half of what is outside of the confidence.
const OUTSIDE: f64 = 0.025;

/// The 95 % confidence of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Confidence {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The value of `of` that this share of the samples does not exceed. Their order changes. Infinite without samples.
pub(super) fn quantile<T>(samples: &mut [T], share: f64, of: impl Fn(&T) -> f64) -> f64 {
    let rank = (samples.len() as f64 * share).ceil() as usize;
    let place = rank.saturating_sub(1);
    if place >= samples.len() {
        return f64::INFINITY;
    }
    let (_, found, _) = samples.select_nth_unstable_by(place, |a, b| of(a).total_cmp(&of(b)));
    of(found)
}

/// The percentile bootstrap: `figure` of so many pairs, drawn with repetitions. `None` if there are none, or a figure that
/// is not a number is among those that matter.
pub(super) fn confidence(pairs: usize, figure: impl Fn(&[usize]) -> f64) -> Option<Confidence> {
    if pairs == 0 {
        return None;
    }
    let mut rng = Rng::from_u64(SEED);
    let mut figures: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn: Vec<usize> = (0..pairs).map(|_| rng.below(pairs as u64) as usize).collect();
            figure(&drawn)
        })
        .collect();
    let low = quantile(&mut figures, OUTSIDE, |figure| *figure);
    let high = quantile(&mut figures, 1.0 - OUTSIDE, |figure| *figure);
    (low.is_finite() && high.is_finite()).then_some(Confidence { low, high })
}
