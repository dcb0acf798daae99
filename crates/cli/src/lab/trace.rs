//! `fulmar lab trace`.

use std::fs;

use fulmar_lab::scenario::schedule_of_trace;
use serde::Serialize;

use super::args::LabTraceArgs;
use super::print::print;
use crate::failure::Failure;
use crate::report::Output;

/// A schedule, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Schedule<'a> {
    text: &'a str,
}

pub(super) fn run(args: &LabTraceArgs, output: Output) -> Result<(), Failure> {
    let name = args.trace.display().to_string();
    let trace = fs::read_to_string(&args.trace).map_err(Failure::io(format!("cannot read {name}")))?;
    let duration_ms = (args.duration_s * 1e3) as u64;
    let text = schedule_of_trace(&name, &trace, args.direction.as_str(), args.step_ms, duration_ms)?;
    print(output, &Schedule { text: text.trim_end() }, || text.trim_end().to_owned())
}
