//! `fulmar lab show`.

use serde::Serialize;

use super::args::LabShowArgs;
use super::load;
use super::print::print;
use crate::failure::Failure;
use crate::report::Output;

/// A scenario, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    name: &'a str,
    sha256: String,
    text: &'a str,
}

pub(super) fn run(args: &LabShowArgs, output: Output) -> Result<(), Failure> {
    for word in &args.scenarios {
        let scenario = load::scenario(word)?.with_settings(args.set.iter().map(String::as_str))?;
        let shown = Shown { name: scenario.name(), sha256: scenario.sha256(), text: scenario.text() };
        print(output, &shown, || scenario.text().trim_end().to_owned())?;
    }
    Ok(())
}
