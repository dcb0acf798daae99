//! Verdicts that are expected of a version: which goals it does not reach.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::{Row, ScenarioError, Seeds, Verdict};

/// The rows that are missed, as a file lists them; all others are met.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The number of seeds of each row, by which the list was made; without it that of each scenario.
    seeds: Option<u32>,
    /// Scenarios that move no more bytes have their own number of seeds.
    small_bytes: Option<u64>,
    /// `SCENARIO CONTROLLER FIGURE` of each.
    missed: BTreeSet<String>,
}

/// What is not as expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Surprises {
    /// Rows that are missed and were met.
    pub newly_missed: Vec<String>,
    /// Rows that are met and were missed.
    pub newly_met: Vec<String>,
}

/// What stands before the list.
const HEAD: &str = "\
# The goals that this version misses: `fulmar lab check --expected FILE` fails if another one is missed, and asks to
# write this file anew (`--write-expected FILE`) if one of these is met. Goals are never changed to shorten the list.
";

/// What stands before the size of small scenarios.
const SMALL_HEAD: &str = "# Scenarios that move no more bytes have their own number of seeds.\n";

impl Expected {
    /// Reads a list. `name` is its name in complaints.
    ///
    /// # Errors
    /// The first thing in the text that makes no sense, with its place.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text).map_err(|error| ScenarioError::parsing(name, text, &error))
    }

    /// The list that these rows make, which were judged over so many seeds.
    pub fn of(rows: &[Row], seeds: Seeds) -> Self {
        let missed = rows.iter().filter(|row| row.verdict == Verdict::Missed);
        let (seeds, small_bytes) = match seeds {
            Seeds::Own => (None, None),
            Seeds::All(seeds) => (Some(seeds), None),
            Seeds::OfLarge { seeds, small_bytes } => (Some(seeds), Some(small_bytes)),
        };
        Self { seeds, small_bytes, missed: missed.map(key).collect() }
    }

    /// Over how many seeds the list was made, which is how rows are to be judged that are compared with it.
    pub fn seeds(&self) -> Seeds {
        match (self.seeds, self.small_bytes) {
            (None, _) => Seeds::Own,
            (Some(seeds), None) => Seeds::All(seeds),
            (Some(seeds), Some(small_bytes)) => Seeds::OfLarge { seeds, small_bytes },
        }
    }

    /// The list as a file.
    pub fn to_toml(&self) -> String {
        let mut text = HEAD.to_owned();
        if let Some(seeds) = self.seeds {
            let _ = writeln!(text, "seeds = {seeds}");
        }
        if let Some(bytes) = self.small_bytes {
            let _ = writeln!(text, "{SMALL_HEAD}small_bytes = {bytes}");
        }
        text += "missed = [\n";
        for row in &self.missed {
            // A setting in the name of a row may have quotation marks.
            let _ = writeln!(text, "  {},", toml::Value::String(row.clone()));
        }
        text + "]\n"
    }

    /// What is not as expected of these rows. What is listed and was not measured is no surprise.
    pub fn compare(&self, rows: &[Row]) -> Surprises {
        let of = |verdict: Verdict, listed: bool| {
            let rows = rows.iter().filter(move |row| row.verdict == verdict);
            rows.map(key).filter(|key| self.missed.contains(key) == listed).collect()
        };
        Surprises { newly_missed: of(Verdict::Missed, false), newly_met: of(Verdict::Met, true) }
    }
}

fn key(row: &Row) -> String {
    format!("{} {} {}", row.scenario, row.controller, row.metric)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::scenario::ControllerName;

    fn row(scenario: &str, verdict: Verdict) -> Row {
        Row {
            scenario: scenario.to_owned(),
            controller: ControllerName::Bbr,
            metric: "completion_s".into(),
            reference: None,
            goal: Some(1.0),
            measured: None,
            verdict,
            alone_mbps: BTreeMap::new(),
            note: None,
            comparison: None,
        }
    }

    #[test]
    fn what_was_met_must_stay_so_and_what_was_missed_may_become_better() {
        let with_setting = row("d endpoints.coupling=\"lia\"", Verdict::Missed);
        let before =
            [row("a", Verdict::Met), row("b", Verdict::Missed), row("c", Verdict::Told), with_setting];
        let expected = Expected::of(&before, Seeds::All(5));
        assert_eq!(Expected::parse("expected.toml", &expected.to_toml()).unwrap(), expected);
        let nothing = Surprises { newly_missed: Vec::new(), newly_met: Vec::new() };
        assert_eq!(expected.compare(&before), nothing);
        let surprises = expected.compare(&[row("a", Verdict::Missed), row("b", Verdict::Met)]);
        assert_eq!(surprises.newly_missed, ["a bbr completion_s"]);
        assert_eq!(surprises.newly_met, ["b bbr completion_s"]);
    }

    #[test]
    fn a_list_says_over_how_many_seeds_it_was_made() {
        for seeds in [Seeds::Own, Seeds::All(5), Seeds::OfLarge { seeds: 3, small_bytes: 1_000 }] {
            let list = Expected::of(&[row("a", Verdict::Missed)], seeds);
            let read = Expected::parse("expected.toml", &list.to_toml()).unwrap();
            assert_eq!((read.seeds(), &read), (seeds, &list));
        }
    }
}
