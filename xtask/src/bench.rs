//! `cargo xtask bench`: Fulmar and what it is compared with, over loopback, in one interleaved run.
//!
//! Server and client are processes of their own on cores of their own, new for each run, so that memory and warm-up are the same for
//! all. The stacks take turns (A B C ... A B C), so that a machine that slows down does so for all. `plan` says what is measured,
//! `pair` starts the processes (`http3` those that serve files over HTTP), `results` holds the figures, `goals` and `report` say what they mean, and `instructions` counts what
//! time does not show.

mod cores;
mod goals;
mod http3;
mod instructions;
mod pair;
mod plan;
mod report;
mod results;

use std::path::{Path, PathBuf};

use crate::interop::certs::Certificates;
use crate::process::can_pin;
use crate::{Result, programs};

use self::cores::Cores;
use self::http3::Http3;
use self::pair::{Outcome, Pair};
use self::plan::{Case, Extent, STACKS, Stack};
use self::results::Results;

/// The word that asks for instruction counts instead of a workload.
const INSTRUCTIONS: &str = "instructions";

/// Options of the task.
#[derive(clap::Args)]
#[command(after_help = "\
Workloads: download, upload, streams, long, jumbo, chacha, requests, latency, frames, handshakes, datagrams, memory, controllers,
runtimes, workers, in-process, http3. A word stands for all cases that begin with it, such as `requests-100`; none stands for all of them.

`cargo xtask bench instructions` counts instructions under callgrind instead, and bytes of memory, which are the same on every run.
With `--check` it fails if a count is more than 3 % above that of benches/instructions.json; without, it writes that file.")]
pub(crate) struct Options {
    /// What to measure: all workloads if none is named.
    #[arg(value_name = "WORKLOAD")]
    workloads: Vec<String>,
    /// Smaller loads and fewer runs: about three minutes on an idle machine, to see that everything works.
    #[arg(long)]
    quick: bool,
    /// Print the whole result as JSON.
    #[arg(long)]
    json: bool,
    /// Runs of each case and stack, instead of what the case asks for.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Measure these stacks alone.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = STACKS)]
    stacks: Vec<Stack>,
    /// Let this stack's client ask every server, instead of each stack's own.
    #[arg(long, value_enum)]
    client: Option<Stack>,
    /// The priority of the processes, from -20 (highest) to 19; needs root below 0.
    #[arg(long, default_value_t = -10, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-20..=19))]
    nice: i32,
    /// Of `http3`: measure this program `fulmar`, such as one of an earlier version, instead of building it.
    #[arg(long, value_name = "PROGRAM")]
    fulmar: Option<PathBuf>,
    /// Where to write the tables, anew after each case; benches/RESULTS.md in a whole run, nowhere otherwise.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Of instruction counts: fail if one has risen by more than 3 %.
    #[arg(long)]
    check: bool,
}

/// Measures and prints; a whole run writes benches/RESULTS.md.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.workloads.iter().any(|word| word == INSTRUCTIONS) {
        return instructions::run(options.check);
    }
    let extent = if options.quick { Extent::Quick } else { Extent::Whole };
    let cases = chosen(plan::cases(extent), &options.workloads)?;
    let pinned = can_pin();
    if !pinned {
        eprintln!("without taskset and two cores, the processes run wherever the system puts them");
    }
    let rig = Rig::prepare(&cases, Cores { pinned, nice: options.nice }, options)?;
    let whole = !options.quick && options.workloads.is_empty() && options.stacks.len() == STACKS.len();
    let default = (whole && options.client.is_none() && options.fulmar.is_none())
        .then(|| programs::repository().join("benches/RESULTS.md"));
    let output = options.output.clone().or(default);
    let results = measure(&rig, cases, options, output.as_deref())?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report::json(&results))?);
    } else {
        println!("{}", report::tables(&results));
    }
    if let Some(path) = output {
        eprintln!("written: {}", path.display());
    }
    let failed = results.failures();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join("; ")).into()) }
}

/// What measures: only what the cases need is built.
struct Rig {
    pair: Option<Pair>,
    http3: Option<Http3>,
}

impl Rig {
    fn prepare(cases: &[Case], cores: Cores, options: &Options) -> Result<Self> {
        let is_http = |case: &Case| case.group == http3::GROUP;
        let (mut pair, mut http3) = (None, None);
        if !cases.iter().all(is_http) {
            let dir = programs::scratch_dir("bench")?;
            let programs = pair::Programs::build()?;
            let certificates = Certificates::create(&dir.join("certs"))?;
            pair = Some(Pair { dir, programs, certificates, cores, client: options.client });
        }
        if cases.iter().any(is_http) {
            let dir = programs::scratch_dir("bench/http3")?;
            let certificates = Certificates::create(&dir.join("certs"))?;
            http3 = Some(Http3::prepare(dir, cores, certificates, cases, options.fulmar.clone())?);
        }
        Ok(Self { pair, http3 })
    }

    fn measure(&self, case: &Case, stack: Stack) -> Result<Outcome> {
        match (&self.pair, &self.http3) {
            (_, Some(http3)) if case.group == http3::GROUP => http3.measure(case, stack),
            (Some(pair), _) => pair.measure(case, stack),
            _ => Err(format!("nothing is prepared for {}", case.name).into()),
        }
    }
}

/// The cases whose names begin with one of the words.
fn chosen(cases: Vec<Case>, words: &[String]) -> Result<Vec<Case>> {
    for word in words {
        if !cases.iter().any(|case| case.name.starts_with(word.as_str())) {
            let mut groups: Vec<&str> = cases.iter().map(|case| case.group).collect();
            groups.dedup();
            return Err(format!("there is no workload {word}, but {}", groups.join(", ")).into());
        }
    }
    let wanted =
        |case: &Case| words.is_empty() || words.iter().any(|word| case.name.starts_with(word.as_str()));
    Ok(cases.into_iter().filter(wanted).collect())
}

/// Measures the cases. What is known after each is written to `output`, so that a run that is interrupted has not been for nothing.
fn measure(rig: &Rig, cases: Vec<Case>, options: &Options, output: Option<&Path>) -> Result<Results> {
    let versions = rig.http3.as_ref().map(Http3::versions).unwrap_or_default();
    let mut results = Results::new(options.quick, options.workloads.clone(), versions);
    for case in cases {
        let runs = options.runs.unwrap_or(case.runs);
        let name = case.name.clone();
        let stacks: Vec<Stack> =
            options.stacks.iter().copied().filter(|stack| case.stacks.contains(stack)).collect();
        let cell = results.begin(case);
        for run in 1..=runs {
            for stack in &stacks {
                // What cannot be done the first time will not be done the second.
                if cell.is_out(*stack) {
                    continue;
                }
                let outcome = rig
                    .measure(&cell.case, *stack)
                    .unwrap_or_else(|error| Outcome::Failed(error.to_string()));
                eprintln!("{name} {run}/{runs} {:<9} {}", stack.name(), told(cell, &outcome));
                cell.add(*stack, outcome);
            }
        }
        if let Some(path) = output {
            std::fs::write(path, report::document(&results)?)?;
        }
    }
    Ok(results)
}

fn told(cell: &results::Row, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Figures(figures) => cell.case.unit.show(cell.case.unit.of(figures)),
        Outcome::Nothing(why) => format!("- ({why})"),
        Outcome::Failed(why) => format!("failed: {why}"),
    }
}

#[cfg(test)]
mod tests;
