//! The rows of a comparison: what is judged, and what stands behind it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::statistics::{Confidence, confidence, quantile};
use super::{Compared, ComparisonSpec, Sample, Way};
use crate::scenario::{ControllerName, Row, Scenario, Verdict};

/// What stands behind the figure of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The way that is judged.
    pub way: Way,
    /// What it is compared with.
    pub against: Way,
    /// The figure of each way: seconds for quantiles, bytes of a run, or shares.
    pub figures: BTreeMap<Way, f64>,
    /// The 95 % confidence of the judged figure; `None` if there is none.
    pub confidence: Option<Confidence>,
    /// How many seeds there were.
    pub pairs: usize,
    /// Runs that did not come to their end. They are slower than all others.
    pub failed: usize,
}

/// A figure of a run's series, and its name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Figure {
    Quantile(f64),
    Of(Compared),
}

pub(super) fn figures(spec: &ComparisonSpec) -> impl Iterator<Item = Figure> {
    let figures = match spec.figure {
        Compared::Completion => spec.quantiles.iter().map(|share| Figure::Quantile(share.0)).collect(),
        other => vec![Figure::Of(other)],
    };
    figures.into_iter()
}

impl Figure {
    pub(super) fn name(self) -> Cow<'static, str> {
        match self {
            // Four digits are more than there are runs for, and hide what a product of fractions has behind them.
            Self::Quantile(share) => format!("p{}_change", (share * 1e6).round() / 1e4).into(),
            Self::Of(Compared::ExtraBytes) => "extra_bytes_ratio".into(),
            Self::Of(Compared::Resent) => "resent_share".into(),
            Self::Of(Compared::Missed) => "missed_ratio".into(),
            Self::Of(Compared::Completion | Compared::Bytes) => "bytes_change".into(),
        }
    }

    /// The figure of a way.
    fn of(self, samples: &mut [Sample]) -> f64 {
        let sum = |of: fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>();
        match self {
            Self::Quantile(share) => quantile(samples, share, |sample| sample.completion_s),
            Self::Of(Compared::Resent) => sum(|sample| sample.resent) / sum(|sample| sample.recovered),
            Self::Of(Compared::Missed) => sum(|sample| sample.missed) / samples.len() as f64,
            Self::Of(_) => sum(|sample| sample.bytes) / samples.len() as f64,
        }
    }

    /// What is judged: the figure of a way, that of the other one and that without any.
    fn judged(self, way: f64, against: f64, none: f64) -> f64 {
        match self {
            Self::Quantile(_) | Self::Of(Compared::Completion | Compared::Bytes) => way / against - 1.0,
            Self::Of(Compared::ExtraBytes) => (way - none) / (against - none),
            Self::Of(Compared::Resent) => way,
            Self::Of(Compared::Missed) => way / against,
        }
    }
}

pub(super) fn row(
    scenario: &Scenario,
    spec: &ComparisonSpec,
    figure: Figure,
    bytes: Option<u32>,
    controller: ControllerName,
    all: &BTreeMap<Way, &[Sample]>,
) -> Row {
    let of = |way: Way| all.get(&way).map_or(f64::NAN, |samples| figure.of(&mut samples.to_vec()));
    let judged = figure.judged(of(spec.way), of(spec.against), of(Way::None));
    let measured = Some(judged).filter(|figure| figure.is_finite());
    let series = [spec.way, spec.against, Way::None].map(|way| all[&way]);
    let resampled = |pairs: &[usize]| {
        let figures = series.map(|samples| {
            let mut chosen: Vec<Sample> = pairs.iter().map(|pair| samples[*pair]).collect();
            figure.of(&mut chosen)
        });
        figure.judged(figures[0], figures[1], figures[2])
    };
    let comparison = Comparison {
        way: spec.way,
        against: spec.against,
        figures: all.keys().map(|way| (*way, of(*way))).filter(|(_, figure)| figure.is_finite()).collect(),
        confidence: measured.and_then(|_| confidence(series[0].len(), resampled)),
        pairs: series[0].len(),
        failed: all.values().flat_map(|samples| samples.iter()).filter(|sample| sample.failed).count(),
    };
    let verdict = match (spec.most, measured) {
        (None, _) => Verdict::Told,
        (Some(most), Some(measured)) if measured <= most => Verdict::Met,
        (Some(_), _) => Verdict::Missed,
    };
    let size = bytes.map_or(String::new(), |bytes| format!(" {} kB", f64::from(bytes) / 1e3));
    Row {
        scenario: format!(
            "{} {}{size} {}/{}",
            spec.goal,
            scenario.name(),
            spec.way.as_str(),
            spec.against.as_str()
        ),
        controller,
        metric: figure.name(),
        reference: None,
        goal: spec.most,
        measured,
        verdict,
        alone_mbps: BTreeMap::new(),
        note: Some(comparison.text()),
        comparison: Some(comparison),
    }
}

impl Comparison {
    /// The comparison as it stands in the table.
    fn text(&self) -> String {
        let mut parts: Vec<String> = self
            .confidence
            .iter()
            .map(|confidence| format!("95 %: {:.3} to {:.3}", confidence.low, confidence.high))
            .collect();
        parts.push(format!("against {}", self.against.as_str()));
        parts.extend(self.figures.iter().map(|(way, figure)| match *figure {
            figure if figure >= 1e3 => format!("{} {figure:.0}", way.as_str()),
            figure => format!("{} {figure:.4}", way.as_str()),
        }));
        parts.push(format!("{} pairs", self.pairs));
        if self.failed > 0 {
            parts.push(format!("{} runs failed", self.failed));
        }
        parts.join(", ")
    }
}
