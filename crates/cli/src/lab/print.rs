//! What the lab prints: results must not be lost without a word.

use std::io;

use fulmar_lab::scenario::{ControllerName, Figures, Scenario};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::report::{Output, write_results};

/// The version that makes the figures.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A run as `--json` prints it: the figures, and what repeats them.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RunLine {
    #[serde(flatten)]
    pub(super) figures: Figures,
    /// What was changed of the scenario, by its path in the file.
    settings: serde_json::Map<String, Value>,
    /// The SHA-256 of the scenario's file.
    scenario_sha256: String,
    /// The version of Fulmar.
    version: &'static str,
}

impl RunLine {
    /// The figures of a run of `scenario` with these settings, each as `key=value`.
    pub(super) fn new(figures: Figures, scenario: &Scenario, settings: &[String]) -> Self {
        let settings = by_key(settings);
        Self { figures, settings, scenario_sha256: scenario.sha256(), version: VERSION }
    }

    /// The settings in words, each behind a space.
    pub(super) fn change(&self) -> String {
        let told = |(key, value): (&String, &Value)| format!(" {key}={}", value.as_str().unwrap_or_default());
        self.settings.iter().map(told).collect()
    }
}

/// A run without figures, with `--json`.
#[derive(Debug, Serialize)]
pub(super) struct FailedLine {
    pub(super) scenario: String,
    pub(super) controller: Option<ControllerName>,
    pub(super) seed: u64,
    pub(super) error: String,
    settings: serde_json::Map<String, Value>,
    scenario_sha256: String,
    version: &'static str,
}

impl FailedLine {
    /// What went wrong in a run of `scenario` with these settings, each as `key=value`.
    pub(super) fn new(
        (controller, seed): (Option<ControllerName>, u64),
        error: String,
        scenario: &Scenario,
        settings: &[String],
    ) -> Self {
        let (name, scenario_sha256) = (scenario.name().to_owned(), scenario.sha256());
        let settings = by_key(settings);
        Self { scenario: name, controller, seed, error, settings, scenario_sha256, version: VERSION }
    }
}

/// Settings, each as `key=value`, by their keys.
fn by_key(settings: &[String]) -> serde_json::Map<String, Value> {
    let pairs = settings.iter().filter_map(|setting| setting.split_once('='));
    pairs.map(|(key, value)| (key.trim().to_owned(), Value::from(value.trim()))).collect()
}

/// Prints `object` with `--json`, else the lines of `text`; see [`write_results`].
pub(super) fn print<T: Serialize>(
    output: Output,
    object: &T,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    let line = match output.is_json() {
        true => serde_json::to_string(object).map_err(|error| Failure::StandardOutput(error.into()))?,
        false => text(),
    };
    write_results(&mut io::stdout().lock(), &(line + "\n")).map(|_| ())
}
