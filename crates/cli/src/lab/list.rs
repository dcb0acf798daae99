//! `fulmar lab list`.

use fulmar_lab::scenario::{ControllerName, Goal, Scenario, Section};
use serde::Serialize;

use super::load;
use super::print::print;
use crate::failure::Failure;
use crate::report::Output;

/// A scenario, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    name: &'a str,
    section: Option<Section>,
    title: &'a str,
    /// What it runs with if nobody names another.
    controller: Option<ControllerName>,
    /// How many seeds `fulmar lab check` takes.
    runs: u32,
    /// Bytes of streams that a run is to move.
    bytes: u64,
    goals: &'a [Goal],
}

pub(super) fn run(output: Output) -> Result<(), Failure> {
    let scenarios = load::scenarios(&[])?;
    let width = scenarios.iter().map(|scenario| scenario.name().len()).max().unwrap_or(0);
    for scenario in &scenarios {
        print(output, &Listed::of(scenario), || format!("{:width$}  {}", scenario.name(), scenario.title()))?;
    }
    Ok(())
}

impl<'a> Listed<'a> {
    fn of(scenario: &'a Scenario) -> Self {
        Self {
            name: scenario.name(),
            section: scenario.section(),
            title: scenario.title(),
            controller: scenario.default_controller(),
            runs: scenario.runs(),
            bytes: scenario.bytes(),
            goals: scenario.goals(),
        }
    }
}
