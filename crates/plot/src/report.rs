//! The page of the distributions of many runs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::html;
use crate::results::{ResultRow, Results};
use crate::stats::Summary;

const SCRIPT: &str = include_str!("../assets/report.js");

/// So many groups are shown; of more nobody sees anything.
const GROUPS_MAX: usize = 400;

/// The figures in the order of their interest; others follow by name.
const FIRST: &[&str] = &["completion_s", "bytes"];

#[derive(Serialize)]
struct ReportData<'a> {
    title: &'a str,
    subtitle: String,
    figures: Vec<&'a str>,
    groups: &'a [Group],
}

/// The runs of a scenario with the same controller and settings.
#[derive(Serialize)]
struct Group {
    name: String,
    scenario: String,
    controller: String,
    settings: Vec<(String, String)>,
    /// The text of the scenario and the version, where they differ.
    origin: Vec<String>,
    runs: usize,
    failed: usize,
    figures: BTreeMap<String, Summary>,
}

/// The page of some results, grouped by scenario, controller, settings, text of the scenario and version, in the order in which groups
/// first appear.
pub fn report_page(title: &str, results: &Results) -> String {
    let Grouped { groups, left_out, runs, twice, at_odds } = grouped(&results.rows);
    let mut subtitle = format!("{runs} runs in {} groups", groups.len() + left_out);
    let failed: usize = groups.iter().map(|group| group.failed).sum();
    if failed > 0 {
        subtitle.push_str(&format!(", of which {failed} runs failed"));
    }
    if twice > 0 {
        subtitle.push_str(&format!("; {twice} results of runs that were there already count once"));
    }
    if at_odds > 0 {
        subtitle
            .push_str(&format!("; {at_odds} results differ from others of the same seed: builds were mixed"));
    }
    if left_out > 0 {
        subtitle.push_str(&format!("; {left_out} more groups are not shown"));
    }
    let names: BTreeSet<&str> =
        groups.iter().flat_map(|group| group.figures.keys().map(String::as_str)).collect();
    let first = FIRST.iter().copied().filter(|name| names.contains(name));
    let rest = names.iter().copied().filter(|name| !FIRST.contains(name));
    let figures = first.chain(rest).collect();
    html::page(title, &ReportData { title, subtitle, figures, groups: &groups }, SCRIPT)
}

/// Results by group.
struct Grouped {
    groups: Vec<Group>,
    /// Groups beyond those.
    left_out: usize,
    /// All runs, each once.
    runs: usize,
    /// Results that were there already.
    twice: usize,
    /// Results of a seed that has another result in the same group.
    at_odds: usize,
}

/// What the runs of a group have in common: the scenario, the controller, the other settings, the hash of the scenario's text and the
/// version.
type Key<'a> = (&'a str, &'a str, Vec<(String, String)>, &'a str, &'a str);

/// What the runs of a group can tell of one of them: a run is the same everywhere.
type Outcome<'a> = (&'a str, Option<&'a str>);

fn grouped(rows: &[ResultRow]) -> Grouped {
    let mut places: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    let mut members: Vec<Vec<&ResultRow>> = Vec::new();
    let mut known: BTreeMap<(usize, u64), Vec<Outcome<'_>>> = BTreeMap::new();
    let (mut twice, mut at_odds) = (0, 0);
    for row in rows {
        let (hash, version) = (row.scenario_sha256.as_str(), row.version.as_str());
        let key = (row.scenario.as_str(), row.controller.as_str(), own_settings(row), hash, version);
        let place = *places.entry(key).or_insert(members.len());
        if place == members.len() {
            members.push(Vec::new());
        }
        if let Some(seed) = row.seed {
            let outcome = (row.trace_sha256.as_str(), row.error.as_deref());
            let outcomes = known.entry((place, seed)).or_default();
            if outcomes.contains(&outcome) {
                twice += 1;
                continue;
            }
            at_odds += usize::from(!outcomes.is_empty());
            outcomes.push(outcome);
        }
        members[place].push(row);
    }
    let runs = members.iter().map(Vec::len).sum();
    let left_out = members.len().saturating_sub(GROUPS_MAX);
    members.truncate(GROUPS_MAX);
    let naming = Naming::of(&members);
    let groups = members.iter().map(|rows| group(rows, naming)).collect();
    Grouped { groups, left_out, runs, twice, at_odds }
}

/// What the names of groups tell because it is not the same everywhere.
#[derive(Debug, Clone, Copy)]
struct Naming {
    scenario: bool,
    hash: bool,
    version: bool,
}

impl Naming {
    fn of(members: &[Vec<&ResultRow>]) -> Self {
        let firsts = || members.iter().map(|rows| rows[0]);
        let differs = |of: fn(&ResultRow) -> &str| firsts().any(|row| of(row) != of(members[0][0]));
        let scenarios: BTreeSet<&str> = firsts().map(|row| row.scenario.as_str()).collect();
        let texts: BTreeSet<(&str, &str)> =
            firsts().map(|row| (row.scenario.as_str(), row.scenario_sha256.as_str())).collect();
        Self {
            scenario: scenarios.len() > 1,
            // Different scenarios have different texts in any case.
            hash: texts.len() > scenarios.len(),
            version: differs(|row| &row.version),
        }
    }
}

/// The settings without the controller, which a group tells by itself.
fn own_settings(row: &ResultRow) -> Vec<(String, String)> {
    row.settings.iter().filter(|(key, _)| key != "controller").cloned().collect()
}

/// So many digits of a hash tell texts apart.
const HASH_DIGITS: usize = 8;

fn group(rows: &[&ResultRow], naming: Naming) -> Group {
    let first = rows[0];
    let settings = own_settings(first);
    let mut parts = Vec::new();
    if naming.scenario {
        parts.push(first.scenario.clone());
    }
    if !first.controller.is_empty() {
        parts.push(first.controller.clone());
    }
    parts.extend(settings.iter().map(|(key, value)| format!("{key}={value}")));
    // The page tells lines apart by these.
    let mut origin = Vec::new();
    if naming.hash {
        origin.push(format!("text {}", first.scenario_sha256.get(..HASH_DIGITS).unwrap_or("?")));
    }
    if naming.version {
        origin.push(format!("version {}", if first.version.is_empty() { "?" } else { &first.version }));
    }
    parts.extend(origin.iter().cloned());
    let names: BTreeSet<&String> = rows.iter().flat_map(|row| row.figures.keys()).collect();
    let figures = names.into_iter().filter_map(|name| {
        let summary = Summary::of(rows.iter().filter_map(|row| row.figures.get(name).copied()))?;
        Some((name.clone(), summary))
    });
    Group {
        name: if parts.is_empty() { "failed before it began".to_owned() } else { parts.join(" · ") },
        scenario: first.scenario.clone(),
        controller: first.controller.clone(),
        origin,
        runs: rows.len(),
        failed: rows.iter().filter(|row| row.error.is_some()).count(),
        figures: figures.collect(),
        settings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let mut text = String::new();
        for (controller, base) in [("cubic", 10.0), ("bbr", 5.0)] {
            for seed in 0..21 {
                let completion = base + f64::from(seed) / 10.0;
                text.push_str(&format!(
                    "{{\"settings\":{{\"loss\":1}},\"scenario\":\"s\",\"controller\":\"{controller}\",\"seed\":{seed},\"completion_s\":{completion},\"client\":{{\"packets_lost\":3}}}}\n"
                ));
            }
        }
        text.push_str(
            "{\"settings\":{\"loss\":1},\"scenario\":\"s\",\"controller\":\"bbr\",\"error\":\"hangs\"}\n",
        );
        Results::parse(&text).unwrap()
    }

    #[test]
    fn runs_are_grouped_and_failures_counted() {
        let Grouped { groups, left_out, .. } = grouped(&results().rows);
        let told: Vec<_> = groups.iter().map(|g| (g.name.as_str(), g.runs, g.failed)).collect();
        assert_eq!((told, left_out), (vec![("cubic · loss=1", 21, 0), ("bbr · loss=1", 22, 1)], 0));
        let summary = &groups[0].figures["completion_s"];
        assert_eq!((summary.n, summary.median, summary.min, summary.max), (21, 11.0, 10.0, 12.0));
        assert_eq!(groups[0].figures["client.packets_lost"].median, 3.0);
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let html = report_page("Results", &results());
        for reference in ["src=", "href=", "@import", "url(", "fetch("] {
            assert!(!html.contains(reference), "{reference}");
        }
        assert!(html.contains("43 runs in 2 groups, of which 1 runs failed"));
    }

    /// A line of a run with this seed and completion time, and these other fields.
    fn line(seed: u64, completion_s: f64, more: &str) -> String {
        let trace = format!("{seed}-{completion_s}-{more}").replace('"', "");
        format!(
            "{{\"scenario\":\"s\",\"controller\":\"bbr\",\"seed\":{seed},\"completion_s\":{completion_s},\"trace_sha256\":\"{trace}\"{more}}}\n"
        )
    }

    #[test]
    fn results_of_another_text_or_version_are_a_group_of_their_own() {
        let origin =
            |hash: &str, version: &str| format!(",\"scenario_sha256\":\"{hash}\",\"version\":\"{version}\"");
        let [old, new, newest] = [("0123456789", "0.1.0"), ("abcdef0123", "0.1.0"), ("abcdef0123", "0.2.0")]
            .map(|(hash, version)| origin(hash, version));
        let text = line(1, 4.2, &old) + &line(1, 21.0, &new) + &line(2, 21.5, &new) + &line(1, 3.0, &newest);
        let grouped = grouped(&Results::parse(&text).unwrap().rows);
        let told: Vec<_> = grouped.groups.iter().map(|group| (group.name.as_str(), group.runs)).collect();
        let expected = [
            ("bbr · text 01234567 · version 0.1.0", 1),
            ("bbr · text abcdef01 · version 0.1.0", 2),
            ("bbr · text abcdef01 · version 0.2.0", 1),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_run_counts_once_however_often_its_result_is_there() {
        let text = line(1, 4.0, "") + &line(2, 5.0, "") + &line(1, 4.0, "");
        let page = report_page("Results", &Results::parse(&text).unwrap());
        assert!(page.contains("2 runs in 1 groups; 1 results of runs that were there already count once"));
        let other_build = text + &line(2, 6.0, "");
        let grouped = grouped(&Results::parse(&other_build).unwrap().rows);
        assert_eq!((grouped.runs, grouped.twice, grouped.at_odds), (3, 1, 1));
    }

    #[test]
    fn numbers_that_are_written_otherwise_are_the_same_setting() {
        let with = |value: &str| format!(",\"settings\":{{\"link.rate_mbps\":{value}}}");
        let text =
            line(1, 4.0, &with("20")) + &line(2, 5.0, &with("\"20.0\"")) + &line(3, 5.0, &with("20.0"));
        let grouped = grouped(&Results::parse(&text).unwrap().rows);
        assert_eq!((grouped.groups.len(), grouped.groups[0].name.as_str()), (1, "bbr · link.rate_mbps=20"));
    }
}
