//! Figures of all runs, and their medians.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::pair::Outcome;
use super::plan::{Case, Stack};

/// What a client prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) seconds: f64,
    pub(crate) amount: f64,
    pub(crate) client_cpu_s: f64,
    pub(crate) server_cpu_s: Option<f64>,
    pub(crate) client_peak_kb: Option<f64>,
    pub(crate) server_peak_kb: Option<f64>,
    pub(crate) latency_us: Option<Latency>,
    pub(crate) full_handshakes: Option<f64>,
    pub(crate) lost: Option<f64>,
    pub(crate) client_bytes: Option<f64>,
    pub(crate) server_bytes: Option<f64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Figures {
    /// CPU of the server in microseconds for each thing done.
    pub(crate) fn server_micros(&self) -> Option<f64> {
        Some(self.server_cpu_s? * 1e6 / self.amount)
    }

    pub(crate) fn client_micros(&self) -> f64 {
        self.client_cpu_s * 1e6 / self.amount
    }
}

/// Everything that was measured.
pub(crate) struct Results {
    pub(crate) quick: bool,
    /// The workloads that were asked for; all if there are none.
    pub(crate) chosen: Vec<String>,
    /// Of programs that are neither built here nor in a lock file.
    pub(crate) versions: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

/// What the stacks came to in one case.
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) cells: BTreeMap<Stack, Cell>,
}

#[derive(Default)]
pub(crate) struct Cell {
    pub(crate) runs: Vec<Figures>,
    /// Why there are no more runs.
    pub(crate) out: Option<Outcome>,
}

impl Results {
    pub(crate) fn new(quick: bool, chosen: Vec<String>, versions: Vec<String>) -> Self {
        Self { quick, chosen, versions, rows: Vec::new() }
    }

    pub(crate) fn begin(&mut self, case: Case) -> &mut Row {
        self.rows.push(Row { case, cells: BTreeMap::new() });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    pub(crate) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.case.name == name)
    }

    /// What failed, though it should not.
    pub(crate) fn failures(&self) -> Vec<String> {
        let cells =
            self.rows.iter().flat_map(|row| row.cells.iter().map(move |(stack, cell)| (row, stack, cell)));
        cells
            .filter_map(|(row, stack, cell)| match &cell.out {
                Some(Outcome::Failed(why)) => Some(format!("{} of {}: {why}", row.case.name, stack.name())),
                _ => None,
            })
            .collect()
    }
}

impl Row {
    pub(crate) fn add(&mut self, stack: Stack, outcome: Outcome) {
        let cell = self.cells.entry(stack).or_default();
        match outcome {
            Outcome::Figures(figures) => cell.runs.push(figures),
            out => cell.out = Some(out),
        }
    }

    pub(crate) fn is_out(&self, stack: Stack) -> bool {
        self.cells.get(&stack).is_some_and(|cell| cell.out.is_some())
    }

    /// The median of a figure over the runs of a stack; `None` where the figure is missing.
    pub(crate) fn median(&self, stack: Stack, figure: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
        let cell = self.cells.get(&stack)?;
        let figures: Vec<f64> =
            cell.runs.iter().filter_map(figure).filter(|figure| figure.is_finite()).collect();
        (!figures.is_empty()).then(|| median(&figures))
    }

    /// The median of the case's main figure.
    pub(crate) fn main(&self, stack: Stack) -> Option<f64> {
        self.median(stack, |figures| Some(self.case.unit.of(figures)))
    }

    /// CPU of Fulmar's server for each thing done, as a multiple of another stack's.
    pub(crate) fn server_cpu_of(&self, other: Stack) -> Option<f64> {
        Some(
            self.median(Stack::Fulmar, Figures::server_micros)?
                / self.median(other, Figures::server_micros)?,
        )
    }

    /// How far apart the runs of a stack are: the largest less the smallest, as a share of the median.
    pub(crate) fn spread(&self, stack: Stack) -> Option<f64> {
        let runs = self.cells.get(&stack)?.runs.iter().map(|figures| self.case.unit.of(figures));
        let (least, most) = runs
            .fold((f64::INFINITY, 0.0_f64), |(least, most), figure| (least.min(figure), most.max(figure)));
        Some((most - least) / self.main(stack)?)
    }
}

/// The middle of the figures, or the mean of the two in the middle.
pub(super) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}
