//! Ways to meet losses, compared over the same seeds: `[[comparison]]`.
//!
//! Each way runs with the same seeds, so that the same link stands under all of them as long as they send the same. What is
//! judged is the change of a figure against another way; its 95 % confidence comes from resampling the pairs (bootstrap).

mod row;
mod statistics;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::row::Comparison;
use self::row::{figures, row};
use super::values::{Count, Probability};
use super::{ControllerName, Figures, Row, RunError, Scenario, ScenarioError};

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

#[cfg(test)]
mod tests;
