//! Scenarios by name and from files.

use std::fs;

use fulmar_lab::scenario::{Scenario, Section};

use crate::failure::Failure;

/// What tells a file from a name.
const EXTENSION: &str = ".toml";

/// The scenario that a word on the command line stands for: a file if it ends in `.toml`, else a name.
pub(super) fn scenario(word: &str) -> Result<Scenario, Failure> {
    if !word.ends_with(EXTENSION) {
        return Ok(Scenario::builtin(word)?);
    }
    let text = fs::read_to_string(word).map_err(Failure::io(format!("cannot read {word}")))?;
    Ok(Scenario::parse(word, &text)?)
}

/// The scenarios that words stand for: sections, names and files; without a word, all of the program.
pub(super) fn scenarios(words: &[String]) -> Result<Vec<Scenario>, Failure> {
    if words.is_empty() {
        return builtin(|_| true);
    }
    let mut scenarios = Vec::new();
    for word in words {
        match Section::named(word) {
            Some(section) => {
                scenarios.extend(builtin(|scenario| scenario.section() == Some(section))?);
            }
            None => scenarios.push(scenario(word)?),
        }
    }
    Ok(scenarios)
}

fn builtin(wanted: impl Fn(&Scenario) -> bool) -> Result<Vec<Scenario>, Failure> {
    let all = Scenario::builtin_names().map(Scenario::builtin).collect::<Result<Vec<_>, _>>()?;
    Ok(all.into_iter().filter(wanted).collect())
}
