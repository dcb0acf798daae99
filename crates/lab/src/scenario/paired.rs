//! Ways to meet losses, compared over the same seeds: `[[comparison]]`.
//!
//! Each way runs with the same seeds, so that the same link stands under all of them as long as they send the same. What is
//! judged is the change of a figure against another way; its 95 % confidence comes from resampling the pairs (bootstrap).

mod statistics;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::statistics::{Confidence, confidence, quantile};
use super::values::{Count, Probability};
use super::{ControllerName, Figures, Row, RunError, Scenario, ScenarioError, Verdict};

/// Seeds of a comparison that does not say.
const RUNS: u32 = 1_000;

/// A way to meet losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Retransmissions alone.
    None,
    /// A second copy of what is sent again (`preemptive_repeat`), the default without erasure correction.
    Repeat,
    /// A second copy of everything in idle periods (`idle_duplicates`).
    Duplicates,
    /// Repair symbols at the end of transfers.
    Tail,
    /// XOR, one repair symbol for two packets.
    Xor,
    /// Reed-Solomon, ten repair symbols for twenty packets.
    ReedSolomon,
    /// Repair symbols for a deadline of 150 ms.
    Deadline,
}

impl Way {
    /// What stands beside each comparison.
    const BASELINES: [Self; 3] = [Self::None, Self::Repeat, Self::Duplicates];

    /// The settings of both ends.
    const fn settings(self) -> &'static [&'static str] {
        match self {
            Self::None => &["endpoints.preemptive_repeat=false"],
            Self::Repeat => &["endpoints.preemptive_repeat=true"],
            Self::Duplicates => &["endpoints.preemptive_repeat=false", "endpoints.idle_duplicates=true"],
            Self::Tail => &["endpoints.fec=tail"],
            Self::Xor => {
                &["endpoints.preemptive_repeat=false", "endpoints.fec=constant:2,1", "endpoints.fec_code=xor"]
            }
            Self::ReedSolomon => &["endpoints.preemptive_repeat=false", "endpoints.fec=constant:20,10"],
            Self::Deadline => &["endpoints.preemptive_repeat=false", "endpoints.fec=deadline:150"],
        }
    }

    /// As files write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Repeat => "repeat",
            Self::Duplicates => "duplicates",
            Self::Tail => "tail",
            Self::Xor => "xor",
            Self::ReedSolomon => "reed-solomon",
            Self::Deadline => "deadline",
        }
    }
}

/// What is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Compared {
    /// The change of quantiles of the completion time.
    #[default]
    Completion,
    /// The bytes that both sides send beyond those without any way, as a part of those of the other way.
    ExtraBytes,
    /// The part of the recovered packets whose data was sent again before.
    Resent,
    /// Unreliable datagrams that are late or lost, as a part of those of the other way.
    Missed,
    /// The change of the bytes that both sides send.
    Bytes,
}

/// A comparison, as a file describes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComparisonSpec {
    /// The goal's name in its specification.
    goal: String,
    /// The sizes of the first connection's downloads; without any, as the file says.
    #[serde(default)]
    download_bytes: Vec<u32>,
    #[serde(default)]
    controllers: Vec<ControllerName>,
    #[serde(default = "tail")]
    way: Way,
    #[serde(default = "none")]
    against: Way,
    #[serde(default)]
    figure: Compared,
    /// Of the completion time: 0 to 1.
    #[serde(default)]
    quantiles: Vec<Probability>,
    /// What the figure must not exceed; without it, it is told only.
    most: Option<f64>,
    runs: Option<Count>,
}

impl ComparisonSpec {
    /// What makes no sense about it, if anything.
    pub(super) fn problem(&self) -> Option<&'static str> {
        let is_empty = self.figure == Compared::Completion && self.quantiles.is_empty();
        is_empty.then_some("a comparison of completion times needs `quantiles`, and one of others a `figure`")
    }
}

const fn tail() -> Way {
    Way::Tail
}

const fn none() -> Way {
    Way::None
}

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

/// What a comparison needs of a run.
#[derive(Debug, Clone, Copy)]
struct Sample {
    completion_s: f64,
    bytes: f64,
    missed: f64,
    recovered: f64,
    resent: f64,
    failed: bool,
}

impl Sample {
    fn of(result: &Result<Figures, RunError>) -> Self {
        let Ok(figures) = result else {
            return Self {
                completion_s: f64::INFINITY,
                // Those until it failed tell nothing: the row has no figure.
                bytes: f64::NAN,
                missed: 1.0,
                recovered: 0.0,
                resent: 0.0,
                failed: true,
            };
        };
        let fec = [&figures.client, &figures.server].into_iter().filter_map(|side| side.fec);
        let (recovered, spared) = fec.fold((0, 0), |(recovered, spared), fec| {
            (recovered + fec.symbols_recovered, spared + fec.retransmissions_spared)
        });
        Self {
            completion_s: figures.completion_s.unwrap_or(f64::INFINITY),
            bytes: (figures.client.bytes_sent + figures.server.bytes_sent) as f64,
            missed: 1.0 - figures.more.datagrams_in_time.unwrap_or(1.0),
            recovered: recovered as f64,
            resent: (recovered - spared) as f64,
            failed: false,
        }
    }
}

/// The runs with one way, of one scenario with one size and controller.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    subject: usize,
    bytes: Option<u32>,
    controller: ControllerName,
    way: Way,
}

/// Comparisons of scenarios. Whoever holds it runs the tasks, on as many threads as it likes.
#[derive(Debug)]
pub struct PairedCheck {
    subjects: Vec<Scenario>,
    /// The scenario of each series, and how many seeds it needs.
    series: BTreeMap<Series, (Scenario, u32)>,
    /// All runs: a series and a seed.
    tasks: Vec<(Series, u64)>,
    seeds: Option<u32>,
}

impl PairedCheck {
    /// The comparisons of these scenarios, with all controllers that they name or with `only` one, with so many seeds or
    /// each with its own number.
    ///
    /// # Errors
    /// A scenario cannot be run as a comparison wants it.
    pub fn new(
        scenarios: impl IntoIterator<Item = Scenario>,
        only: Option<ControllerName>,
        seeds: Option<u32>,
    ) -> Result<Self, ScenarioError> {
        let subjects = scenarios.into_iter().filter(|scenario| !scenario.comparisons().is_empty()).collect();
        let mut check = Self { subjects, series: BTreeMap::new(), tasks: Vec::new(), seeds };
        for (number, scenario) in check.subjects.iter().enumerate() {
            for spec in scenario.comparisons() {
                for (bytes, controller) in cases(scenario, spec)? {
                    if only.is_some_and(|only| only != controller) {
                        continue;
                    }
                    for way in ways(spec) {
                        let series = Series { subject: number, bytes, controller, way };
                        let runs = runs(spec, seeds);
                        let entry = match check.series.entry(series) {
                            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                            std::collections::btree_map::Entry::Vacant(entry) => {
                                entry.insert((with_way(scenario, bytes, way)?, 0))
                            }
                        };
                        entry.1 = entry.1.max(runs);
                    }
                }
            }
        }
        for (series, (_, runs)) in &check.series {
            check.tasks.extend((1..=u64::from(*runs)).map(|seed| (series.clone(), seed)));
        }
        Ok(check)
    }

    /// The number of runs.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Does a run.
    ///
    /// # Errors
    /// As of [`Scenario::run`].
    ///
    /// # Panics
    /// Panics if there is no run with this number.
    pub fn run(&self, number: usize) -> Result<Figures, RunError> {
        let (series, seed) = &self.tasks[number];
        self.series[series].0.run(Some(series.controller), *seed)
    }

    /// A row for each figure. `results` are those of the runs, in their order; one that panicked is `None`.
    pub fn rows(&self, results: &[Option<Result<Figures, RunError>>]) -> Vec<Row> {
        let mut samples: BTreeMap<&Series, Vec<Sample>> = BTreeMap::new();
        for ((series, _), result) in self.tasks.iter().zip(results) {
            let failed = || Err(ScenarioError::new("a run", "panicked").into());
            let sample = result.as_ref().map_or_else(|| Sample::of(&failed()), Sample::of);
            samples.entry(series).or_default().push(sample);
        }
        let mut rows = Vec::new();
        for (number, scenario) in self.subjects.iter().enumerate() {
            for spec in scenario.comparisons() {
                for (bytes, controller) in cases(scenario, spec).unwrap_or_default() {
                    let runs = runs(spec, self.seeds) as usize;
                    let of = |way| {
                        let series = Series { subject: number, bytes, controller, way };
                        samples.get(&series).map(|all| &all[..runs.min(all.len())])
                    };
                    let all: Option<BTreeMap<Way, &[Sample]>> =
                        ways(spec).map(|way| of(way).map(|samples| (way, samples))).collect();
                    let Some(all) = all else { continue };
                    rows.extend(
                        figures(spec).map(|figure| row(scenario, spec, figure, bytes, controller, &all)),
                    );
                }
            }
        }
        rows
    }
}

/// The sizes and controllers of a comparison.
fn cases(
    scenario: &Scenario,
    spec: &ComparisonSpec,
) -> Result<Vec<(Option<u32>, ControllerName)>, ScenarioError> {
    let sizes: Vec<Option<u32>> = match spec.download_bytes.as_slice() {
        [] => vec![None],
        sizes => sizes.iter().copied().map(Some).collect(),
    };
    let controllers = match spec.controllers.as_slice() {
        [] => vec![scenario.controller_or_default(None)?],
        some => some.to_vec(),
    };
    Ok(sizes.into_iter().flat_map(|size| controllers.iter().map(move |name| (size, *name))).collect())
}

fn ways(spec: &ComparisonSpec) -> impl Iterator<Item = Way> {
    let others = [spec.way, spec.against].into_iter().filter(|way| !Way::BASELINES.contains(way));
    let mut ways: Vec<Way> = Way::BASELINES.into_iter().chain(others).collect();
    ways.dedup();
    ways.into_iter()
}

fn runs(spec: &ComparisonSpec, seeds: Option<u32>) -> u32 {
    seeds.unwrap_or(spec.runs.map_or(RUNS, |runs| runs.0))
}

fn with_way(scenario: &Scenario, bytes: Option<u32>, way: Way) -> Result<Scenario, ScenarioError> {
    let size = bytes.map(|bytes| format!("connection.0.download_bytes={bytes}"));
    scenario.with_settings(way.settings().iter().copied().chain(size.as_deref()))
}

/// A figure of a run's series, and its name.
#[derive(Debug, Clone, Copy)]
enum Figure {
    Quantile(f64),
    Of(Compared),
}

fn figures(spec: &ComparisonSpec) -> impl Iterator<Item = Figure> {
    let figures = match spec.figure {
        Compared::Completion => spec.quantiles.iter().map(|share| Figure::Quantile(share.0)).collect(),
        other => vec![Figure::Of(other)],
    };
    figures.into_iter()
}

impl Figure {
    fn name(self) -> Cow<'static, str> {
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

fn row(
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

#[cfg(test)]
mod tests;
