//! `fulmar lab grid`.

use std::fs;

use fulmar_lab::scenario::{Grid, Point, Scenario};

use super::args::LabGridArgs;
use super::results::{GridLine, Results, Stamp};
use super::{load, pool};
use crate::failure::Failure;
use crate::progress::Bars;
use crate::report::Output;

pub(super) fn run(args: &LabGridArgs, output: Output) -> Result<(), Failure> {
    let name = args.file.display().to_string();
    let text = fs::read_to_string(&args.file).map_err(Failure::io(format!("cannot read {name}")))?;
    let grid = Grid::parse(&name, &text)?;
    let scenario = load::scenario(&grid.scenario)?;
    let all = grid.points();
    // A setting that makes no sense is told before anything runs.
    for point in &all {
        prepared(&scenario, point)?;
    }
    let stamp = Stamp::of(&scenario);
    let format = args.format.unwrap_or_else(|| Results::format_of(args.out.as_deref()));
    let mut results = match &args.out {
        Some(path) => Results::to_file(path, format, stamp.clone())?,
        None => Results::to_stdout(format, stamp.clone()),
    };
    if results.dropped() > 0 {
        let dropped = results.dropped();
        output.note(&format!(
            "{dropped} results of another text of the scenario, or another version, were dropped"
        ));
    }
    let mine = all.iter().enumerate().filter(|(number, _)| args.shard.contains(*number));
    let mine: Vec<&Point> = mine.map(|(_, point)| point).collect();
    let failed_before = mine.iter().filter(|point| results.has_failed(point)).count();
    if failed_before > 0 {
        output.note(&format!("{failed_before} runs have failed before, and are not run again"));
    }
    let points: Vec<&Point> = mine.into_iter().filter(|point| !results.has(point)).collect();
    let failed = failed_before + run_all(&scenario, &stamp, &points, &mut results, output)?;
    results.finish(&all)?;
    if failed > 0 { Err(Failure::RunsFailed(failed)) } else { Ok(()) }
}

/// Returns how many of the runs failed.
fn run_all(
    scenario: &Scenario,
    stamp: &Stamp,
    points: &[&Point],
    results: &mut Results,
    output: Output,
) -> Result<usize, Failure> {
    let bars = Bars::new(output.wants_bars());
    let bar = bars.with_count(points.len() as u64);
    let (mut failed, mut written) = (0, Ok(()));
    let task = |number: usize| {
        let point = points[number];
        let scenario = prepared(scenario, point).map_err(|error| error.to_string())?;
        scenario.run(point.controller, point.seed).map_err(|error| error.to_string())
    };
    pool::for_each(points.len(), task, |number, result| {
        let result = result.unwrap_or_else(|panicked| Err(format!("panicked: {}", panicked.0)));
        failed += usize::from(result.is_err());
        bar.inc(1);
        written = results.take(number, GridLine::new(points[number], stamp, result));
        written.is_ok()
    });
    bars.clear();
    written.map(|()| failed)
}

/// The scenario with the settings of a run.
fn prepared(scenario: &Scenario, point: &Point) -> Result<Scenario, Failure> {
    let assignments = point.assignments();
    let scenario = scenario.with_settings(assignments.iter().map(String::as_str))?;
    scenario.lab(scenario.controller_or_default(point.controller)?, point.seed)?;
    Ok(scenario)
}
