//! `fulmar lab run --pcap`: one run, and what a side of it saw, for Wireshark.

use std::fs;
use std::path::Path;

use super::args::LabRunArgs;
use super::load;
use super::print::{RunLine, print};
use super::run::text;
use crate::failure::Failure;
use crate::report::Output;

pub(super) fn run(args: &LabRunArgs, path: &Path, output: Output) -> Result<(), Failure> {
    let ([word], 1, [] | [_]) = (args.scenarios.as_slice(), args.runs, args.controller.as_slice()) else {
        let what = "--pcap writes one run: name one scenario, one controller at most, and no --runs";
        return Err(Failure::Usage(what.to_owned()));
    };
    let base = load::scenario(word)?;
    let scenario = base.with_settings(args.set.iter().map(String::as_str))?;
    let controller = args.controller.first().copied();
    // A controller that does not exist is wrong usage, told before anything runs.
    scenario.lab(scenario.controller_or_default(controller)?, args.seed)?;
    let result = scenario.run_with_capture(controller, args.seed, args.pcap_at.into());
    // A run that went wrong is the one that somebody wants to look into.
    let packets = match &result {
        Ok((_, packets)) => Some(packets.as_slice()),
        Err(error) => error.capture(),
    };
    if let Some(packets) = packets {
        fs::write(path, packets).map_err(Failure::io(format!("cannot write {}", path.display())))?;
    }
    let (figures, _) = result.map_err(|error| {
        output.narrate(|| error.state().unwrap_or_default().to_owned());
        Failure::Run(error.to_string())
    })?;
    let line = RunLine::new(figures, &base, &args.set);
    print(output, &line, || text(&line))
}
