//! `fulmar lab run`.

use std::sync::Arc;

use fulmar_lab::scenario::{ControllerName, Figures, LinkFigures, RunError, Scenario, SideFigures};
use fulmar_plot::{Run, Summary};

use super::args::LabRunArgs;
use super::print::{FailedLine, RunLine, print};
use super::{load, plot, pool};
use crate::failure::Failure;
use crate::report::Output;

/// A run that is to be done.
struct Job {
    scenario: Scenario,
    controller: Option<ControllerName>,
    seed: u64,
    /// The scenario without changes, and the changes.
    base: Arc<Scenario>,
    settings: Arc<Vec<String>>,
    /// What tells it from the others of its page.
    name: String,
}

/// What came out of it: its figures, and what is drawn of it.
type Outcome = (RunLine, Option<Run>);

pub(super) fn run(args: &LabRunArgs, output: Output) -> Result<(), Failure> {
    let jobs = jobs(args)?;
    if let Some(path) = &args.plot {
        plot::check(path)?;
    }
    let mut printer = Printer::new(jobs.len(), output);
    let mut drawn: Vec<Option<Run>> = jobs.iter().map(|_| None).collect();
    let mut written = Ok(());
    pool::for_each(
        jobs.len(),
        |number| jobs[number].run(args.plot.is_some()),
        |number, result| {
            let job = &jobs[number];
            let result = match result {
                Ok(Ok((line, run))) => {
                    drawn[number] = run;
                    Ok(line)
                }
                Ok(Err(error)) => Err(job.failed(error.to_string(), error.state())),
                Err(panicked) => {
                    let Job { scenario, seed, .. } = job;
                    let name = scenario.name();
                    Err(job
                        .failed(format!("{name}, seed {seed}: panicked: {}", panicked.in_one_line()), None))
                }
            };
            written = printer.on_result(number, result);
            written.is_ok()
        },
    );
    written?;
    printer.sum_up()?;
    if let Some(path) = &args.plot {
        plot::write(path, drawn.into_iter().flatten().collect())?;
    }
    match printer.failed {
        0 => Ok(()),
        failed => Err(Failure::RunsFailed(failed)),
    }
}

/// All runs: each scenario as it is and with the settings to compare with, each controller, each seed.
fn jobs(args: &LabRunArgs) -> Result<Vec<Job>, Failure> {
    let controllers: Vec<_> = match args.controller.as_slice() {
        [] => vec![None],
        some => some.iter().copied().map(Some).collect(),
    };
    let mut jobs = Vec::new();
    for base in load::scenarios(&args.scenarios)?.into_iter().map(Arc::new) {
        let mut variants = vec![args.set.clone()];
        if !args.compare.is_empty() {
            variants.push(args.set.iter().chain(&args.compare).cloned().collect());
        }
        for settings in variants.into_iter().map(Arc::new) {
            let scenario = base.with_settings(settings.iter().map(String::as_str))?;
            let change: String = settings.iter().map(|setting| format!(" {setting}")).collect();
            for &controller in &controllers {
                // A controller that does not exist is wrong usage, told before anything runs.
                let named = scenario.controller_or_default(controller)?;
                scenario.lab(named, args.seed)?;
                let seeds = (0..args.runs).map(|number| args.seed.wrapping_add(number));
                jobs.extend(seeds.map(|seed| Job {
                    scenario: scenario.clone(),
                    controller,
                    seed,
                    base: base.clone(),
                    settings: settings.clone(),
                    name: format!("{} {named} seed {seed}{change}", scenario.name()),
                }));
            }
        }
    }
    Ok(jobs)
}

impl Job {
    fn failed(&self, error: String, state: Option<&str>) -> Failed {
        let controller = self.scenario.controller_or_default(self.controller).ok();
        let line = FailedLine::new((controller, self.seed), error, &self.base, &self.settings);
        Failed { line, state: state.unwrap_or_default().to_owned() }
    }

    fn run(&self, with_plot: bool) -> Result<Outcome, RunError> {
        let line = |figures| RunLine::new(figures, &self.base, &self.settings);
        if !with_plot {
            return Ok((line(self.scenario.run(self.controller, self.seed)?), None));
        }
        let (figures, recording) = self.scenario.run_recorded(self.controller, self.seed)?;
        let run =
            plot::run(self.name.clone(), &self.scenario, &self.base, &self.settings, (&figures, &recording));
        Ok((line(figures), Some(run)))
    }
}

/// A run that went wrong, and in what state it left the hosts, in lines.
struct Failed {
    line: FailedLine,
    state: String,
}

/// Prints results in the order of their numbers, whichever comes first.
struct Printer {
    output: Output,
    waiting: Vec<Option<Result<RunLine, Failed>>>,
    next: usize,
    failed: usize,
    /// The completion times of runs that differ in their seeds only, by what they have in common.
    groups: Vec<(String, Vec<f64>)>,
}

impl Printer {
    fn new(count: usize, output: Output) -> Self {
        Self { output, waiting: (0..count).map(|_| None).collect(), next: 0, failed: 0, groups: Vec::new() }
    }

    fn on_result(&mut self, number: usize, result: Result<RunLine, Failed>) -> Result<(), Failure> {
        self.waiting[number] = Some(result);
        while let Some(result) = self.waiting.get_mut(self.next).and_then(Option::take) {
            self.next += 1;
            match result {
                Ok(line) => {
                    print(self.output, &line, || text(&line))?;
                    self.count(&line);
                }
                Err(Failed { line, state }) => {
                    self.failed += 1;
                    self.output.note(&line.error);
                    self.output.narrate(|| state);
                    if self.output.is_json() {
                        print(self.output, &line, String::new)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, line: &RunLine) {
        let Some(time) = line.figures.completion_s else { return };
        let name = format!("{} {}{}", line.figures.scenario, line.figures.controller, line.change());
        match self.groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, times)) => times.push(time),
            None => self.groups.push((name, vec![time])),
        }
    }

    /// For people: what several seeds come to.
    fn sum_up(&self) -> Result<(), Failure> {
        let several = self.groups.iter().filter(|(_, times)| times.len() > 1 && !self.output.is_json());
        for (name, times) in several {
            let Some(summary) = Summary::of(times.iter().copied()) else { continue };
            let Summary { n, min, median, max, .. } = summary;
            print(self.output, &(), || {
                format!("{name}: median {median:.3} s of {n} runs, {min:.3} to {max:.3} s")
            })?;
        }
        Ok(())
    }
}

/// A run for people.
pub(super) fn text(line: &RunLine) -> String {
    let figures = &line.figures;
    let change = line.change();
    let completion = figures.completion_s.map_or("nothing arrived".to_owned(), |time| format!("{time:.3} s"));
    let Figures { scenario, controller, seed, bytes, trace_sha256, .. } = figures;
    let paths = figures.paths.iter().map(|path| link(&format!("path {}", path.name), &path.up, &path.down));
    let hops = figures.hops.iter().zip(1..);
    let hops = hops.map(|(hop, number)| link(&format!("hop {number}"), &hop.up, &hop.down));
    let links: String = paths.chain(hops).collect();
    format!(
        "{scenario} {controller} seed {seed}{change}: {completion}, {bytes} bytes\n  client {}\n  server {}\n{links}  trace {trace_sha256}",
        side(&figures.client),
        side(&figures.server),
    )
}

fn link(name: &str, up: &LinkFigures, down: &LinkFigures) -> String {
    let direction = |link: &LinkFigures| {
        let used = link.utilisation.map_or(String::new(), |used| format!(", {:.0} % used", used * 100.0));
        format!(
            "{} packets, {} bytes, {} dropped{used}",
            link.packets_sent, link.bytes_sent, link.packets_dropped
        )
    };
    format!("  {name}: up {}; down {}\n", direction(up), direction(down))
}

fn side(side: &SideFigures) -> String {
    let millis = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    format!(
        "{} packets, {} lost ({} spurious), {} PTOs, {} ACKs of {} bytes, rtt {} to {} ms, window up to {}",
        side.packets_sent,
        side.packets_lost,
        side.packets_spurious,
        side.pto_count,
        side.acks_sent,
        side.ack_bytes,
        millis(side.rtt_min_ms),
        millis(side.rtt_max_ms),
        side.cwnd_max,
    )
}
