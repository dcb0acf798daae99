//! Scenarios: a link, two ends, a workload and goals, in a TOML file.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | [`Scenario`]: a file and what it says |
//! | `validate` | whether that makes sense |
//! | `settings` | other settings than the file's |
//! | `section` | groups of scenarios |
//! | `link`, `endpoints`, `connection`, `goal` | the parts of a file, and what they become |
//! | `path` | links side by side |
//! | `nat` | what changes the client's address |
//! | `mahimahi` | recorded links as schedules |
//! | `values` | numbers with a unit or a range |
//! | `error` | complaints that name file, line and field |
//! | `controller` | controllers by name |
//! | `builtin` | the scenarios that are part of the program |
//! | `event` | what a schedule does, in words |
//! | `run`, `figures`, `rate` | a run and what came out of it |
//! | `check` | scenarios against their goals |
//! | `paired` | ways to meet losses, compared over the same seeds |
//! | `expected` | the goals that a version is known to miss |
//! | `grid` | campaigns: parameters x controllers x seeds |
//!
//! The format is described in `scenarios/README.md`.

mod builtin;
mod check;
mod connection;
mod controller;
mod elements;
mod endpoints;
mod error;
mod event;
mod expected;
mod figures;
mod goal;
mod grid;
mod link;
mod mahimahi;
mod nat;
mod paired;
mod path;
mod rate;
mod run;
mod section;
mod seeds;
mod settings;
mod validate;
mod values;

use std::collections::BTreeMap;

use fulmar_proto::Side;
use serde::Deserialize;
use sha2::{Digest, Sha256};

pub use self::check::{Check, Row, Task, Verdict};
pub use self::controller::{ControllerName, OwnController, Parameters};
pub use self::error::{Place, ScenarioError};
pub use self::event::ScenarioEvent;
pub use self::expected::{Expected, Surprises};
pub use self::figures::{
    FecFigures, Figures, HopFigures, LinkFigures, MoreFigures, PathFigures, SideFigures,
};
pub(crate) use self::goal::median;
pub use self::goal::{Goal, Metric};
pub use self::grid::{Grid, Point};
pub use self::mahimahi::schedule_of_trace;
pub use self::paired::{Comparison, PairedCheck, Way};
pub use self::run::RunError;
pub use self::section::Section;
pub use self::seeds::Seeds;

use self::connection::ConnectionSpec;
use self::endpoints::EndpointSpec;
use self::link::{HopSpec, LinkEvent, LinkSpec, LinkSpecs, ScheduleSpec};
use self::nat::{NatSpec, ShiftSpec};
use self::paired::ComparisonSpec;
use self::path::PathSpec;
use self::values::{Count, Seconds};
use crate::{LabPath, Workload};

/// Seeds that goals are checked with if the file does not say. Links that leave nothing to chance are no exception: numbers
/// of packets, times of probes and IDs depend on the seed, too.
const RUNS: u32 = 20;

/// What paths draw differs in these bits of the seed.
const PATH_SHIFT: u32 = 40;

/// A scenario that makes sense.
#[derive(Debug, Clone)]
pub struct Scenario {
    name: String,
    text: String,
    file: File,
}

/// A scenario file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    section: Option<Section>,
    controller: Option<ControllerName>,
    /// Parameters of controllers by their names.
    #[serde(default)]
    controllers: BTreeMap<ControllerName, Parameters>,
    runs: Option<Count>,
    limit_s: Option<Seconds>,
    repaired_at_s: Option<Seconds>,
    /// Whether an earlier connection with the same workload has seen the path; only the others are measured.
    #[serde(default)]
    seeded: bool,
    watch: Option<Watched>,
    #[serde(default)]
    link: LinkSpec,
    #[serde(default)]
    up: LinkSpec,
    #[serde(default)]
    down: LinkSpec,
    #[serde(default)]
    schedule: Vec<ScheduleSpec>,
    /// Links side by side, instead of one.
    #[serde(default)]
    path: Vec<PathSpec>,
    /// The name of the one path that there is, whatever others the file has.
    only: Option<String>,
    /// Links behind the first, each with a router before it.
    #[serde(default)]
    hop: Vec<HopSpec>,
    nat: Option<NatSpec>,
    #[serde(default)]
    shift: Vec<ShiftSpec>,
    #[serde(default)]
    endpoints: EndpointSpec,
    #[serde(default)]
    client: EndpointSpec,
    #[serde(default)]
    server: EndpointSpec,
    connection: Vec<ConnectionSpec>,
    #[serde(default)]
    goal: Vec<Goal>,
    baseline: Option<BTreeMap<String, toml::Value>>,
    #[serde(default)]
    comparison: Vec<ComparisonSpec>,
}

/// The direction whose rate over time is a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Watched {
    Up,
    Down,
}

impl Watched {
    fn sender(self) -> Side {
        match self {
            Self::Up => Side::Client,
            Self::Down => Side::Server,
        }
    }
}

impl Scenario {
    /// Reads a scenario. `name` is its name in figures and complaints.
    ///
    /// # Errors
    /// The first thing in the text that makes no sense, with its place.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let file: File = toml::from_str(text).map_err(|error| ScenarioError::parsing(name, text, &error))?;
        let scenario = Self { name: name.to_owned(), text: text.to_owned(), file };
        scenario.validate()?;
        Ok(scenario)
    }

    /// The scenario of this name that is part of the program.
    ///
    /// # Errors
    /// There is none.
    pub fn builtin(name: &str) -> Result<Self, ScenarioError> {
        match builtin::FILES.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => Self::parse(name, text),
            None => Err(ScenarioError::new(name, "no scenario has this name; `fulmar lab list` names all")),
        }
    }

    /// The names of all scenarios that are part of the program, by section.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        builtin::FILES.iter().map(|(name, _)| *name)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The SHA-256 of its file, which tells whether two runs had the same scenario.
    pub fn sha256(&self) -> String {
        Sha256::digest(self.text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What it is about, in a sentence.
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// The section that it belongs to, if any.
    pub fn section(&self) -> Option<Section> {
        self.file.section
    }

    /// What it is to reach.
    pub fn goals(&self) -> &[Goal] {
        &self.file.goal
    }

    /// Which ways to meet losses it compares.
    fn comparisons(&self) -> &[ComparisonSpec] {
        &self.file.comparison
    }

    /// The controller that it runs with if nobody names another; `None` if that has no name.
    pub fn default_controller(&self) -> Option<ControllerName> {
        self.file.controller.or_else(ControllerName::of_default_configuration)
    }

    /// How many seeds its goals are checked with, if nobody says otherwise.
    pub fn runs(&self) -> u32 {
        self.file.runs.map_or(RUNS, |runs| runs.0)
    }

    /// Bytes of streams that the ends are to move, as far as nobody cuts them short.
    pub fn bytes(&self) -> u64 {
        self.file.connection.iter().map(ConnectionSpec::bytes).fold(0, u64::saturating_add)
    }

    fn link(&self) -> LinkSpecs<'_> {
        let File { link: both, up, down, schedule, .. } = &self.file;
        LinkSpecs { both, up, down, schedule }
    }

    /// The paths that there are, with their numbers in the file; none if the scenario has a `[link]`.
    fn paths(&self) -> impl Iterator<Item = (usize, &PathSpec)> {
        let only = self.file.only.as_deref();
        let is_there = move |path: &PathSpec| only.is_none_or(|only| only == path.name());
        self.file.path.iter().enumerate().filter(move |(_, path)| is_there(path))
    }

    /// The names of the paths that there are; none if the scenario has a `[link]`.
    pub fn path_names(&self) -> Vec<&str> {
        self.paths().map(|(_, path)| path.name()).collect()
    }

    /// The paths in the lab.
    fn lab_paths(&self, seed: u64) -> Vec<LabPath> {
        let of =
            |(number, path): (usize, &PathSpec)| path.model(number, seed ^ (number as u64) << PATH_SHIFT);
        self.paths().map(of).collect()
    }

    /// Stops of the link, or of any of the paths, in the order of their beginning.
    fn link_events(&self) -> Vec<LinkEvent> {
        let mut events = self.link().events();
        events.extend(self.paths().flat_map(|(_, path)| path.specs().events()));
        events.sort_by_key(|event| event.start);
        events
    }

    /// What the server does with each connection.
    fn server_workload(&self) -> Workload {
        let connections = &self.file.connection;
        let asking = connections.iter().find(|connection| connection.asks_server());
        let workload = asking.map_or(Workload::replies(0), ConnectionSpec::server_workload);
        Workload { times_reads: connections.iter().any(ConnectionSpec::has_media), ..workload }
    }
}

#[cfg(test)]
mod tests;
