//! `fulmar lab grid`.

use std::fs;

use fulmar_lab::scenario::{Grid, Point, Scenario};

use super::args::LabGridArgs;
use super::results::{GridLine, GridRun, Results, Stamp};
use super::{load, pool, program};
use crate::failure::Failure;
use crate::progress::Bars;
use crate::report::Output;

pub(super) fn run(args: &LabGridArgs, output: Output) -> Result<(), Failure> {
    let name = args.file.display().to_string();
    let text = fs::read_to_string(&args.file).map_err(Failure::io(format!("cannot read {name}")))?;
    let grid = Grid::parse(&name, &text)?;
    let scenario = load::scenario(&grid.scenario)?;
    // A setting that makes no sense is told before anything runs.
    let run = |point| prepared(&scenario, &point).map(|scenario| GridRun::new(point, &scenario));
    let all = grid.points().into_iter().map(run).collect::<Result<Vec<GridRun>, Failure>>()?;
    let depends_on_program = all.iter().any(GridRun::has_own_controller);
    let program = depends_on_program.then(program::sha256).transpose()?;
    let stamp = Stamp::of(&scenario, program.as_deref());
    let settings = all.first().map(GridRun::setting_names).unwrap_or_default();
    let format = args.format.unwrap_or_else(|| Results::format_of(args.out.as_deref()));
    let mut results = match &args.out {
        Some(path) => Results::to_file(path, format, stamp.clone(), &settings)?,
        None => Results::to_stdout(format, stamp.clone(), &settings),
    };
    if results.dropped() > 0 {
        let dropped = results.dropped();
        output.note(&format!(
            "{dropped} results of another text of the scenario, another version or another build of a controller were dropped"
        ));
    }
    let mine = all.iter().enumerate().filter(|(number, _)| args.shard.contains(*number));
    let mine: Vec<&GridRun> = mine.map(|(_, run)| run).collect();
    let known = mine.iter().filter(|run| results.has(run)).count();
    if known > 0 {
        output.note(&format!("{known} of {} results were in the file already", mine.len()));
    }
    let failed_before = mine.iter().filter(|run| results.has_failed(run)).count();
    if failed_before > 0 {
        output.note(&format!("{failed_before} runs have failed before, and are not run again"));
    }
    let runs: Vec<&GridRun> = mine.into_iter().filter(|run| !results.has(run)).collect();
    let failed = failed_before + run_all(&scenario, &stamp, &runs, &mut results, output)?;
    results.finish(&all)?;
    if failed > 0 { Err(Failure::RunsFailed(failed)) } else { Ok(()) }
}

/// Returns how many of the runs failed.
fn run_all(
    scenario: &Scenario,
    stamp: &Stamp,
    runs: &[&GridRun],
    results: &mut Results,
    output: Output,
) -> Result<usize, Failure> {
    let bars = Bars::new(output.wants_bars());
    let bar = bars.with_count(runs.len() as u64);
    let (mut failed, mut wanted) = (0, Ok(true));
    let task = |number: usize| {
        let point = &runs[number].point;
        let scenario = prepared(scenario, point).map_err(|error| error.to_string())?;
        scenario.run(point.controller, point.seed).map_err(|error| error.to_string())
    };
    pool::for_each(runs.len(), task, |number, result| {
        let result = result.unwrap_or_else(|panicked| Err(format!("panicked: {}", panicked.in_one_line())));
        failed += usize::from(result.is_err());
        bar.inc(1);
        wanted = results.take(number, GridLine::new(runs[number], stamp, result));
        matches!(wanted, Ok(true))
    });
    bars.clear();
    wanted.map(|_| failed)
}

/// The scenario with the settings of a run.
fn prepared(scenario: &Scenario, point: &Point) -> Result<Scenario, Failure> {
    let assignments = point.assignments();
    let scenario = scenario.with_settings(assignments.iter().map(String::as_str))?;
    scenario.lab(scenario.controller_or_default(point.controller)?, point.seed)?;
    Ok(scenario)
}
