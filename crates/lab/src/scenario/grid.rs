//! Campaigns: a scenario with every combination of some settings, controllers and seeds.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::values::Count;
use super::{ControllerName, ScenarioError};

/// The most runs of a campaign.
const POINTS_MAX: usize = 10_000_000;

/// A campaign, as a TOML file describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// The name of a scenario, or the path of its file.
    pub scenario: String,
    /// The controllers; without any, the scenario's default.
    #[serde(default)]
    controllers: Vec<ControllerName>,
    /// How many seeds there are, from `first_seed` on.
    seeds: Count,
    #[serde(default = "one")]
    first_seed: u64,
    /// The values of each setting, by its path in the scenario's file.
    #[serde(default)]
    set: BTreeMap<String, Vec<toml::Value>>,
    /// Settings that belong together, of which a run has one table. All of them name the same settings.
    #[serde(default)]
    way: Vec<BTreeMap<String, toml::Value>>,
}

/// A run of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Settings with their values, by name.
    pub settings: Vec<(String, toml::Value)>,
    /// The controller.
    pub controller: Option<ControllerName>,
    /// The seed.
    pub seed: u64,
}

fn one() -> u64 {
    1
}

impl Grid {
    /// Reads a campaign. `name` is its name in complaints.
    ///
    /// # Errors
    /// The first thing in the text that makes no sense, with its place.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let grid: Self = toml::from_str(text).map_err(|error| ScenarioError::parsing(name, text, &error))?;
        if let Some((key, _)) = grid.set.iter().find(|(_, values)| values.is_empty()) {
            let quoted = format!("\"{key}\"");
            return Err(ScenarioError::about_field(
                name,
                text,
                &quoted,
                "a setting needs at least one value",
            ));
        }
        if let Some(other) = grid.way.iter().find(|way| !way.keys().eq(grid.way[0].keys())) {
            let names: Vec<&str> = other.keys().map(String::as_str).collect();
            let message =
                format!("each [[way]] needs the settings of the first one, and one has {}", names.join(", "));
            return Err(ScenarioError::new(name, message));
        }
        match grid.size() {
            Some(size) if size <= POINTS_MAX => Ok(grid),
            _ => Err(ScenarioError::new(name, format!("a campaign has at most {POINTS_MAX} runs"))),
        }
    }

    fn size(&self) -> Option<usize> {
        let base = (self.seeds.0 as usize).checked_mul(self.controllers.len().max(1))?;
        let base = base.checked_mul(self.way.len().max(1))?;
        self.set.values().try_fold(base, |size, values| size.checked_mul(values.len()))
    }

    /// All runs: the seeds of a combination come one after another.
    pub fn points(&self) -> Vec<Point> {
        let ways = self.way.iter().map(|way| way.clone().into_iter().collect());
        let mut combinations: Vec<Vec<_>> = ways.collect();
        if combinations.is_empty() {
            combinations.push(Vec::new());
        }
        for (key, values) in &self.set {
            let longer = combinations.iter().flat_map(|combination: &Vec<_>| {
                values.iter().map(move |value| {
                    let own = (key.clone(), value.clone());
                    combination.iter().cloned().chain([own]).collect()
                })
            });
            combinations = longer.collect();
        }
        let controllers: Vec<Option<ControllerName>> = match self.controllers.as_slice() {
            [] => vec![None],
            some => some.iter().copied().map(Some).collect(),
        };
        let mut points = Vec::new();
        for settings in &combinations {
            for &controller in &controllers {
                let seeds = (self.first_seed..).take(self.seeds.0 as usize);
                points.extend(seeds.map(|seed| Point { settings: settings.clone(), controller, seed }));
            }
        }
        points
    }
}

impl Point {
    /// The settings as [`Scenario::with_settings`](super::Scenario::with_settings) takes them.
    pub fn assignments(&self) -> Vec<String> {
        self.settings.iter().map(|(key, value)| format!("{key}={value}")).collect()
    }

    /// What tells this run from the others of its campaign.
    pub fn id(&self) -> String {
        let controller = self.controller.map_or("default", ControllerName::as_str);
        let mut parts = self.assignments();
        parts.push(format!("controller={controller}"));
        parts.push(format!("seed={}", self.seed));
        parts.join(" ")
    }
}

#[cfg(test)]
mod tests;
