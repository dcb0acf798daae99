//! `fulmar lab check`.

use std::fs;
use std::path::Path;
use std::time::Instant;

use fulmar_lab::Failure as LabFailure;
use fulmar_lab::explore::{Exploration, check_rows};
use fulmar_lab::scenario::{
    Check, ControllerName, Expected, Figures, PairedCheck, Row, RunError, Seeds, Surprises, Verdict,
};
use fulmar_lab::sweep::{Curve, SEEDS as SEEDS_SWEPT, Sweep};

use super::args::LabCheckArgs;
use super::print::print;
use super::{explore, load, pool, sweep};
use crate::failure::Failure;
use crate::progress::Bars;
use crate::report::Output;

/// The word that stands for the fixed sweeps, and their controllers.
const SWEEP: &str = "sweep";
const SWEPT: [ControllerName; 2] = [ControllerName::Bbr, ControllerName::Cubic];

/// The word that stands for the fixed set of random links.
const EXPLORE: &str = "explore";

pub(super) fn run(args: &LabCheckArgs, output: Output) -> Result<(), Failure> {
    let started = Instant::now();
    let expected = args.expected.as_deref().map(read_expected).transpose()?;
    let seeds = match (args.seeds, args.small_bytes) {
        (None, _) => expected.as_ref().map_or(Seeds::Own, Expected::seeds),
        (Some(seeds), None) => Seeds::All(seeds),
        (Some(seeds), Some(small_bytes)) => Seeds::OfLarge { seeds, small_bytes },
    };
    let rows = rows(args, seeds, output)?;
    if rows.is_empty() {
        let what = "there is nothing to check: the scenarios have no [[goal]], or none for this controller";
        return Err(Failure::Usage(what.to_owned()));
    }
    let table = Table::of(&rows);
    if !output.is_json() {
        print(output, &(), || table.header())?;
    }
    for (number, row) in rows.iter().enumerate() {
        print(output, row, || table.line(number))?;
    }
    let missed = rows.iter().filter(|row| row.verdict == Verdict::Missed).count();
    if !output.is_json() {
        let took = started.elapsed().as_secs();
        let line = format!("{missed} of {} rows missed, in {} min {} s", rows.len(), took / 60, took % 60);
        print(output, &(), || line)?;
    }
    if let Some(path) = &args.write_expected {
        let text = Expected::of(&rows, seeds).to_toml();
        return fs::write(path, text).map_err(Failure::io(format!("cannot write {}", path.display())));
    }
    let missed = match expected {
        None => missed,
        Some(expected) => surprises(&expected.compare(&rows), output)?,
    };
    if missed == 0 { Ok(()) } else { Err(Failure::GoalsMissed(missed)) }
}

fn read_expected(path: &Path) -> Result<Expected, Failure> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(Failure::io(format!("cannot read {name}")))?;
    Ok(Expected::parse(&name, &text)?)
}

/// Tells what is not as expected, and counts the goals that were met before.
fn surprises(surprises: &Surprises, output: Output) -> Result<usize, Failure> {
    let missed = surprises.newly_missed.iter().map(|row| format!("{row}: missed, and was met"));
    let met =
        surprises.newly_met.iter().map(|row| format!("{row}: met, and was missed; write the list anew"));
    let lines: Vec<String> = missed.chain(met).collect();
    if !lines.is_empty() || output.is_json() {
        print(output, surprises, || lines.join("\n"))?;
    }
    Ok(surprises.newly_missed.len())
}

fn rows(args: &LabCheckArgs, seeds: Seeds, output: Output) -> Result<Vec<Row>, Failure> {
    let only = args.controller;
    let wants = |study: &str| args.what.is_empty() || args.what.iter().any(|word| word == study);
    let words: Vec<String> =
        args.what.iter().filter(|word| ![EXPLORE, SWEEP].contains(&word.as_str())).cloned().collect();
    let scenarios = match words.is_empty() && !args.what.is_empty() {
        true => Vec::new(),
        false => load::scenarios(&words)?,
    };
    // Thousands of runs: only for who asks for them.
    let paired = match args.what.is_empty() {
        true => PairedCheck::new([], only, seeds.asked())?,
        false => PairedCheck::new(scenarios.clone(), only, seeds.asked())?,
    };
    let check = Check::new(scenarios, only, seeds)?;
    let mut rows = check.rows(&run_all(&check, output));
    rows.extend(paired.rows(&run_pairs(&paired, output)));
    if wants(EXPLORE) {
        let fixed = Exploration::fixed(only);
        rows.extend(check_rows(&fixed, &explore::run_all(&fixed, None, output)?));
    }
    if wants(SWEEP) {
        let controllers = SWEPT.into_iter().filter(|name| only.is_none_or(|only| only == *name));
        let curves = sweep::curves(&Sweep::fixed()?, &controllers.collect::<Vec<_>>(), SEEDS_SWEPT, output)?;
        rows.extend(curves.iter().map(Curve::row));
    }
    Ok(rows)
}

fn run_all(check: &Check, output: Output) -> Vec<Result<Figures, RunError>> {
    let tasks = check.tasks();
    let bars = Bars::new(output.wants_bars());
    let bar = bars.with_count(tasks.len() as u64);
    let mut results: Vec<Option<Result<Figures, RunError>>> = tasks.iter().map(|_| None).collect();
    pool::for_each(
        tasks.len(),
        |number| check.run(tasks[number]),
        |number, result| {
            results[number] = Some(result.unwrap_or_else(|panicked| {
                let mut failure = LabFailure::panicked(tasks[number].seed());
                failure.what = format!("panicked: {}", panicked.0);
                Err(check.failed(tasks[number], failure))
            }));
            bar.inc(1);
            true
        },
    );
    bars.clear();
    results.into_iter().flatten().collect()
}

/// A run that panicked has no result.
fn run_pairs(check: &PairedCheck, output: Output) -> Vec<Option<Result<Figures, RunError>>> {
    let bars = Bars::new(output.wants_bars());
    let bar = bars.with_count(check.len() as u64);
    let mut results = vec![None; check.len()];
    pool::for_each(
        check.len(),
        |number| check.run(number),
        |number, result| {
            results[number] = result.ok();
            bar.inc(1);
            true
        },
    );
    bars.clear();
    results
}

/// The rows as text, with the widths of their columns.
struct Table {
    cells: Vec<[String; COLUMNS]>,
    widths: [usize; COLUMNS],
    notes: Vec<String>,
}

const COLUMNS: usize = 7;
const HEADER: [&str; COLUMNS] =
    ["scenario", "controller", "figure", "reference", "goal", "measured", "verdict"];
/// The first columns that hold figures, which stand at the right.
const FIGURES: std::ops::Range<usize> = 3..6;

impl Table {
    fn of(rows: &[Row]) -> Self {
        let cells: Vec<_> = rows.iter().map(cells).collect();
        let mut widths = HEADER.map(str::len);
        for row in &cells {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.len());
            }
        }
        let notes = rows.iter().map(note).collect();
        Self { cells, widths, notes }
    }

    fn header(&self) -> String {
        self.aligned(&HEADER.map(str::to_owned))
    }

    fn line(&self, number: usize) -> String {
        let line = self.aligned(&self.cells[number]);
        match self.notes[number].as_str() {
            "" => line,
            note => format!("{line}  {note}"),
        }
    }

    fn aligned(&self, cells: &[String; COLUMNS]) -> String {
        let columns = cells.iter().zip(self.widths).enumerate();
        let padded = columns.map(|(column, (cell, width))| match FIGURES.contains(&column) {
            true => format!("{cell:>width$}"),
            false => format!("{cell:width$}"),
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

/// What stands behind a row: the paths alone, or why nothing was measured.
fn note(row: &Row) -> String {
    let alone = row.alone_mbps.iter().map(|(path, rate)| format!("{path} {rate:.1}"));
    let alone = alone.collect::<Vec<_>>().join(", ");
    let alone = (!alone.is_empty()).then(|| format!("(alone, Mbit/s: {alone})"));
    alone.into_iter().chain(row.note.clone()).collect::<Vec<_>>().join(" ")
}

fn cells(row: &Row) -> [String; COLUMNS] {
    let figure = |value: Option<f64>| match value {
        None => "-".to_owned(),
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.0}"),
        Some(value) => format!("{value:.3}"),
    };
    let verdict = match row.verdict {
        Verdict::Met => "met",
        Verdict::Missed => "missed",
        Verdict::Told => "told",
    };
    [
        row.scenario.clone(),
        row.controller.to_string(),
        row.metric.to_string(),
        figure(row.reference),
        figure(row.goal),
        figure(row.measured),
        verdict.to_owned(),
    ]
}
