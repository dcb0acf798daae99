//! Scenarios: a link, two ends, a workload and goals, in a TOML file.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | [`Scenario`]: reading, validating, changing settings |
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
mod values;

use std::collections::BTreeMap;

use fulmar_proto::Side;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use self::check::{Check, Row, Task, Verdict};
pub use self::controller::{ControllerName, OwnController, Parameters};
pub use self::error::{Place, ScenarioError};
pub use self::event::ScenarioEvent;
pub use self::expected::{Expected, Surprises};
pub use self::figures::{FecFigures, Figures, LinkFigures, MoreFigures, PathFigures, SideFigures};
pub use self::goal::{Goal, Metric};
pub use self::grid::{Grid, Point};
pub use self::mahimahi::schedule_of_trace;
pub use self::paired::{Comparison, PairedCheck, Way};
pub use self::run::RunError;

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

/// The most connections that a scenario can have.
const CONNECTIONS_MAX: u32 = 10_000;

/// What paths draw differs in these bits of the seed.
const PATH_SHIFT: u32 = 40;

/// The most links behind the first.
const HOPS_MAX: usize = 16;

/// A scenario that makes sense.
#[derive(Debug, Clone)]
pub struct Scenario {
    name: String,
    text: String,
    file: File,
}

/// A group of scenarios, named by a letter in the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Section {
    /// Satellite.
    S,
    /// Deep space and very long delay.
    D,
    /// Wi-Fi.
    W,
    /// Recovery.
    R,
    /// Congestion control.
    C,
    /// Multipath.
    M,
    /// Forward erasure correction.
    F,
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

impl Section {
    /// All sections, in the order of the specification.
    pub const ALL: [Self; 7] = [Self::S, Self::D, Self::W, Self::R, Self::C, Self::M, Self::F];

    /// The folder of the section's files.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::S => "satellite",
            Self::D => "deep-space",
            Self::W => "wifi",
            Self::R => "recovery",
            Self::C => "congestion",
            Self::M => "multipath",
            Self::F => "fec",
        }
    }

    /// The section with this letter or folder; upper and lower case are alike.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| {
            name.eq_ignore_ascii_case(&format!("{section:?}")) || name.eq_ignore_ascii_case(section.folder())
        })
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

    /// The scenario with other settings: `key=value`, where the key is the path in the file, such as
    /// `up.delay_ms` or `connection.0.upload_bytes`, and the value is written as in the file. An entry that has a name can be
    /// named by it, as in `path.A.link.delay_ms`.
    ///
    /// # Errors
    /// The first setting that does not exist or makes no sense; all of them, where only several together make none.
    pub fn with_settings<'a>(
        &self,
        settings: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, ScenarioError> {
        let settings: Vec<&str> = settings.into_iter().collect();
        if settings.is_empty() {
            return Ok(self.clone());
        }
        let read = |settings: &[&str], what: &str| self.reparse(&self.changed(settings)?, what);
        let together = read(&settings, &settings.join(", "));
        if together.is_err() {
            for (number, setting) in settings.iter().enumerate() {
                let others = [&settings[..number], &settings[number + 1..]].concat();
                if read(&others, "the others").is_ok() {
                    return read(&settings, setting);
                }
            }
        }
        together
    }

    /// The tables of the file with other settings.
    fn changed(&self, settings: &[&str]) -> Result<toml::Table, ScenarioError> {
        let mut table = self.table()?;
        for setting in settings {
            let (key, value) = setting
                .split_once('=')
                .ok_or_else(|| ScenarioError::new(&self.name, format!("`{setting}` is not `key=value`")))?;
            set_path(&mut table, key.trim(), parse_value(value.trim()))
                .map_err(|message| ScenarioError::new(&self.name, message))?;
        }
        Ok(table)
    }

    /// The scenario with the settings of its `[baseline]`, which goals compare it with.
    ///
    /// # Errors
    /// A setting that does not exist or makes no sense.
    pub fn baseline(&self) -> Result<Option<Self>, ScenarioError> {
        let Some(settings) = &self.file.baseline else { return Ok(None) };
        let mut table = self.table()?;
        table.remove("baseline");
        table.remove("goal");
        for (key, value) in settings {
            set_path(&mut table, key, value.clone())
                .map_err(|message| ScenarioError::about_field(&self.name, &self.text, key, message))?;
        }
        self.reparse(&table, "baseline").map(Some)
    }

    /// The scenario with the classic timers of RFC 9002 at both ends.
    ///
    /// # Errors
    /// The text cannot be read again.
    pub fn with_classic_timers(&self) -> Result<Self, ScenarioError> {
        self.with_settings(["endpoints.timers=classic"])
    }

    fn without_goals(&self) -> Result<Self, ScenarioError> {
        let mut table = self.table()?;
        table.remove("goal");
        self.reparse(&table, "other settings")
    }

    fn table(&self) -> Result<toml::Table, ScenarioError> {
        self.text.parse().map_err(|error| ScenarioError::parsing(&self.name, &self.text, &error))
    }

    /// Reads a changed table. Its text is written anew and nobody sees it, so a complaint says what was changed and names no line.
    fn reparse(&self, table: &toml::Table, what: &str) -> Result<Self, ScenarioError> {
        let text =
            toml::to_string(table).map_err(|error| ScenarioError::new(&self.name, error.to_string()))?;
        let scenario =
            Self::parse(&format!("{} with {what}", self.name), &text).map_err(ScenarioError::without_line)?;
        Ok(Self { name: self.name.clone(), ..scenario })
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

    /// The scenario with one of its paths alone.
    ///
    /// # Errors
    /// There is no such path.
    pub fn with_only(&self, path: &str) -> Result<Self, ScenarioError> {
        self.with_settings([format!("only={}", toml::Value::from(path)).as_str()])
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
        let mut workloads = self.file.connection.iter().map(ConnectionSpec::server_workload);
        let nothing = Workload::replies(0);
        workloads.find(|workload| *workload != nothing).unwrap_or(nothing)
    }

    fn validate(&self) -> Result<(), ScenarioError> {
        let in_table = |header: &str, number, message: &str| {
            ScenarioError::about_table(&self.name, &self.text, header, number, message)
        };
        for (number, connection) in self.file.connection.iter().enumerate() {
            let differs = connection.server_workload() != self.server_workload()
                && (connection.download_bytes.is_some() || self.server_workload().datagrams > 0);
            let differs = differs.then_some("the server sends the same on all connections");
            let known = |path: &String| self.file.path.iter().any(|known| known.name() == path);
            if let Some(path) = connection.path.as_ref().filter(|path| !known(path)) {
                return Err(in_table("[[connection]]", number, &format!("there is no path {path}")));
            }
            if let Some(problem) = connection.problem().or(differs) {
                return Err(in_table("[[connection]]", number, problem));
            }
        }
        if let Some((number, problem)) = path::problem(&self.file) {
            return Err(match number {
                Some(number) => in_table("[[path]]", number, &problem),
                None => ScenarioError::new(&self.name, problem),
            });
        }
        let mut entries_before = 0;
        for path in &self.file.path {
            if let Some((number, problem)) = path.specs().problem() {
                return Err(in_table("[[path.schedule]]", entries_before + number, problem));
            }
            entries_before += path.schedule.len();
        }
        if let Some((number, problem)) = self.link().problem() {
            return Err(in_table("[[schedule]]", number, problem));
        }
        if let Some((number, problem)) = nat::problem(self.file.nat, &self.file.shift) {
            return Err(in_table("[[shift]]", number, problem));
        }
        for (name, parameters) in &self.file.controllers {
            name.configure(parameters)
                .map_err(|problem| in_table(&format!("[controllers.{name}]"), 0, &problem))?;
        }
        for (number, goal) in self.file.goal.iter().enumerate() {
            let needs_rate = self.file.watch.is_none() && goal.metric.is_about_rate();
            let problem = match goal {
                _ if needs_rate => "this figure needs `watch`, the direction whose rate it is about",
                Goal { reference: None, goal: None, .. } => "a goal needs `goal`, `reference` or both",
                Goal { metric, .. } if metric.needs_baseline() && self.file.baseline.is_none() => {
                    &format!("a {} needs a `[baseline]` to compare with", metric.as_str())
                }
                Goal { metric, .. } if metric.is_about_paths_alone() && self.file.path.len() < 2 => {
                    &format!("a {} needs several `[[path]]`s to compare with", metric.as_str())
                }
                Goal { metric: Metric::SumAfterS, .. } if self.file.repaired_at_s.is_none() => {
                    "a sum_after_s needs `repaired_at_s`, from which it counts"
                }
                _ => continue,
            };
            return Err(in_table("[[goal]]", number, problem));
        }
        let connections: u32 =
            self.file.connection.iter().map(|spec| spec.repeat.0).fold(0, u32::saturating_add);
        if !(1..=CONNECTIONS_MAX).contains(&connections) {
            let message = format!("a scenario has 1 to {CONNECTIONS_MAX} connections, not {connections}");
            return Err(ScenarioError::new(&self.name, message));
        }
        if self.file.hop.len() > HOPS_MAX {
            return Err(ScenarioError::new(&self.name, format!("a scenario has at most {HOPS_MAX} hops")));
        }
        self.validate_configurations()
    }

    /// The scenario as this goal wants it.
    pub(super) fn of_goal(&self, goal: &Goal) -> Result<Self, ScenarioError> {
        let settings: Vec<String> = goal.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let changed = self.with_settings(settings.iter().map(String::as_str))?;
        let name = settings.iter().fold(self.name.clone(), |name, setting| format!("{name} {setting}"));
        Ok(Self { name, ..changed })
    }

    fn validate_configurations(&self) -> Result<(), ScenarioError> {
        let of_connections = self.file.connection.iter().map(|spec| spec.client_config(self.client_config()));
        for config in [self.client_config(), self.server_config()].into_iter().chain(of_connections) {
            config.validate().map_err(|error| {
                ScenarioError::about_field(&self.name, &self.text, error.field, error.to_string())
            })?;
        }
        for (number, spec) in self.file.connection.iter().enumerate() {
            let client = spec.client_config(self.client_config());
            if let Some(problem) = spec.datagram_problem(&client, &self.server_config()) {
                let header = "[[connection]]";
                return Err(ScenarioError::about_table(&self.name, &self.text, header, number, problem));
            }
        }
        self.baseline()?;
        // Goals that change nothing would lead back here.
        let mut changed = self.file.goal.iter().filter(|goal| !goal.set.is_empty());
        changed.try_for_each(|goal| self.without_goals()?.of_goal(goal).map(drop))
    }
}

/// A value as in a file; what is none is taken as a string, so that `controller=bbr` needs no quotes.
fn parse_value(text: &str) -> toml::Value {
    let table = format!("value = {text}").parse::<toml::Table>().ok();
    let value = table.and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

/// Sets the value at a path such as `connection.0.streams`, and makes the tables on the way.
fn set_path(table: &mut toml::Table, path: &str, value: toml::Value) -> Result<(), String> {
    let Some((first, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return Ok(());
    };
    let entry = table.entry(first).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    match entry {
        toml::Value::Table(table) => set_path(table, rest, value),
        toml::Value::Array(entries) => {
            let (index, rest) = rest.split_once('.').unwrap_or((rest, ""));
            let count = entries.len();
            let index = index.parse().ok().or_else(|| position_of(entries, index));
            let entry = index.and_then(|index: usize| entries.get_mut(index));
            match entry {
                Some(toml::Value::Table(table)) if !rest.is_empty() => set_path(table, rest, value),
                Some(_) => Err(format!("`{path}` names no field")),
                None => Err(format!("`{path}`: `{first}` has {count} entries, counted from 0")),
            }
        }
        _ => Err(format!("`{path}`: `{first}` is not a table")),
    }
}

/// Where the entry with this name is.
fn position_of(entries: &[toml::Value], name: &str) -> Option<usize> {
    entries.iter().position(|entry| entry.get("name").and_then(toml::Value::as_str) == Some(name))
}

#[cfg(test)]
mod tests;
