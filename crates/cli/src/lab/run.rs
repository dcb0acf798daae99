//! `fulmar lab run`.

use std::io::{self, Write};

use fulmar_lab::scenario::{ControllerName, Figures, Scenario, SideFigures};

use super::args::LabRunArgs;
use super::{load, pool};
use crate::failure::Failure;
use crate::report::Output;

pub(super) fn run(args: &LabRunArgs, output: Output) -> Result<(), Failure> {
    let controller = args.controller.map(ControllerName::from);
    let settings = || args.set.iter().map(String::as_str);
    let mut scenarios: Vec<Scenario> = Vec::new();
    for word in &args.scenarios {
        let scenario = load::scenario(word)?.with_settings(settings())?;
        // A controller that does not exist is wrong usage, told before anything runs.
        scenario.lab(scenario.controller_or_default(controller)?, args.seed)?;
        scenarios.push(scenario);
    }
    let runs = args.runs as usize;
    let mut printer = Printer::new(scenarios.len() * runs, output);
    let task = |number: usize| {
        let seed = args.seed.wrapping_add((number % runs) as u64);
        scenarios[number / runs].run(controller, seed)
    };
    pool::for_each(scenarios.len() * runs, task, |number, result| {
        let result = match result {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(panicked) => {
                let (scenario, seed) = (&scenarios[number / runs], number % runs);
                let seed = args.seed.wrapping_add(seed as u64);
                Err(format!("{}, seed {seed}: panicked: {}", scenario.name(), panicked.0))
            }
        };
        printer.on_result(number, result);
        true
    });
    match printer.failed {
        0 => Ok(()),
        failed => Err(Failure::RunsFailed(failed)),
    }
}

/// Prints results in the order of their numbers, whichever comes first.
struct Printer {
    output: Output,
    waiting: Vec<Option<Result<Figures, String>>>,
    next: usize,
    failed: usize,
}

impl Printer {
    fn new(count: usize, output: Output) -> Self {
        Self { output, waiting: (0..count).map(|_| None).collect(), next: 0, failed: 0 }
    }

    fn on_result(&mut self, number: usize, result: Result<Figures, String>) {
        self.waiting[number] = Some(result);
        while let Some(result) = self.waiting.get_mut(self.next).and_then(Option::take) {
            self.next += 1;
            match result {
                Ok(figures) => self.output.print(&figures, || text(&figures)),
                Err(error) => {
                    self.failed += 1;
                    let _ = writeln!(io::stderr(), "fulmar: {}", error.trim_end());
                }
            }
        }
    }
}

/// A run for people.
pub(super) fn text(figures: &Figures) -> String {
    let completion = figures.completion_s.map_or("nothing arrived".to_owned(), |time| format!("{time:.3} s"));
    let Figures { scenario, controller, seed, bytes, trace_sha256, .. } = figures;
    format!(
        "{scenario} {controller} seed {seed}: {completion}, {bytes} bytes\n  client {}\n  server {}\n  trace {trace_sha256}",
        side(&figures.client),
        side(&figures.server),
    )
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
