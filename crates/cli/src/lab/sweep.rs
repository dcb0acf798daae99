//! `fulmar lab sweep`.

use std::fs;
use std::path::Path;

use fulmar_lab::scenario::ControllerName;
use fulmar_lab::sweep::{Curve, SEEDS_SURE, STEP_MAX, Sweep, SweepTask};
use fulmar_plot::{Parameter, PointGroup, Scatter, ScatterPoint};

use super::args::LabSweepArgs;
use super::print::print;
use super::{load, pool};
use crate::failure::Failure;
use crate::progress::Bars;
use crate::report::Output;

pub(super) fn run(args: &LabSweepArgs, output: Output) -> Result<(), Failure> {
    let sweeps = match (&args.scenario, args.from, args.to) {
        (None, None, None) if args.set.is_empty() => Sweep::fixed()?,
        (Some(word), Some(from), Some(to)) if !args.set.is_empty() => {
            let settings = args.set.iter().map(String::as_str);
            vec![Sweep::new(word, &load::scenario(word)?, settings, (from, to), args.ratio)?]
        }
        _ => {
            let usage = "a sweep needs a scenario, --set KEY={x}, --from and --to; without any of them the fixed ones run";
            return Err(Failure::Usage(usage.to_owned()));
        }
    };
    let curves = curves(&sweeps, &args.controller, args.seeds, output)?;
    for curve in &curves {
        print(output, curve, || text(curve, args.seeds))?;
    }
    args.out.as_deref().map_or(Ok(()), |path| write(path, &curves))?;
    let without_times = curves.iter().filter(|curve| curve.is_without_times());
    match without_times.flat_map(|curve| &curve.points).map(|point| point.seeds).sum() {
        0 => Ok(()),
        failed => Err(Failure::RunsFailed(failed)),
    }
}

/// The curves of each sweep with each controller.
pub(super) fn curves(
    sweeps: &[Sweep],
    controllers: &[ControllerName],
    seeds: u32,
    output: Output,
) -> Result<Vec<Curve>, Failure> {
    let mut all = Vec::new();
    for sweep in sweeps {
        for &controller in controllers {
            all.push(curve(sweep, controller, seeds, output)?);
        }
    }
    Ok(all)
}

fn curve(sweep: &Sweep, controller: ControllerName, seeds: u32, output: Output) -> Result<Curve, Failure> {
    let bars = Bars::new(output.wants_bars());
    let mut curve = sweep.curve(controller);
    loop {
        let tasks: Vec<SweepTask> = curve.next_tasks(seeds);
        if tasks.is_empty() {
            bars.clear();
            return Ok(curve);
        }
        let bar = bars.with_count(tasks.len() as u64);
        let mut results: Vec<Option<_>> = tasks.iter().map(|_| None).collect();
        pool::for_each(
            tasks.len(),
            |number| sweep.run(controller, tasks[number]),
            |number, result| {
                // What panics has no time, which makes a step.
                results[number] = Some(result.unwrap_or(Ok(None)));
                bar.inc(1);
                true
            },
        );
        let times = results.into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
        curve.add(&tasks, &times);
    }
}

fn text(curve: &Curve, seeds: u32) -> String {
    let Curve { sweep, controller, points, largest_step, steps } = curve;
    if curve.is_without_times() {
        return format!("{sweep} {controller}: {} points, and no run came to its end", points.len());
    }
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let largest = largest_step.map_or("without end".to_owned(), percent);
    let mut lines = vec![format!(
        "{sweep} {controller}: {} points, medians of {seeds} seeds ({SEEDS_SURE} at steps), largest change {largest}, \
         {} steps of more than {}",
        points.len(),
        steps.len(),
        percent(STEP_MAX),
    )];
    let time = |number: usize| {
        points[number].completion_s.map_or("no end".to_owned(), |time| format!("{time:.3} s"))
    };
    lines.extend(steps.iter().map(|&step| {
        format!("  {} to {}: {} to {}", points[step].x, points[step + 1].x, time(step), time(step + 1))
    }));
    lines.join("\n")
}

/// A chart for each sweep, on one page each.
fn write(dir: &Path, curves: &[Curve]) -> Result<(), Failure> {
    fs::create_dir_all(dir).map_err(Failure::io(format!("cannot make {}", dir.display())))?;
    let mut names: Vec<&str> = curves.iter().map(|curve| curve.sweep.as_str()).collect();
    names.dedup();
    for name in names {
        let own: Vec<&Curve> = curves.iter().filter(|curve| curve.sweep == name).collect();
        let file: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = dir.join(format!("{file}.html"));
        let action = format!("cannot write {}", path.display());
        fs::write(&path, page(name, &own).html()).map_err(Failure::io(action))?;
    }
    Ok(())
}

fn page(name: &str, curves: &[&Curve]) -> Scatter {
    let group = |curve: &&Curve| {
        let points = curve.points.iter().filter_map(|point| {
            let name = format!("at {}, median of {} seeds", point.x, point.seeds);
            Some(ScatterPoint { name, value: point.completion_s?, at: vec![point.x] })
        });
        PointGroup { name: curve.controller.to_string(), points: points.collect() }
    };
    let rows = curves.iter().flat_map(|curve| {
        curve.steps.iter().map(|&step| {
            let time = |number: usize| {
                curve.points[number].completion_s.map_or("no end".to_owned(), |time| format!("{time:.3}"))
            };
            let x = |number: usize| curve.points[number].x.to_string();
            vec![curve.controller.to_string(), x(step), x(step + 1), time(step), time(step + 1)]
        })
    });
    Scatter {
        title: name.to_owned(),
        subtitle:
            "Times at each value, and where they change by more than a tenth from one value to the next"
                .to_owned(),
        figure: "completion (s)".to_owned(),
        parameters: vec![Parameter { name: "Value".to_owned(), logarithmic: true }],
        groups: curves.iter().map(group).collect(),
        table_head: ["step", "from", "to", "time (s)", "next (s)"].map(str::to_owned).to_vec(),
        table: rows.collect(),
    }
}
