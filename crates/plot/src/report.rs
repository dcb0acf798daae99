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
    runs: usize,
    failed: usize,
    figures: BTreeMap<String, Summary>,
}

/// The page of some results, grouped by scenario, controller and settings, in the order in which groups first appear.
pub fn report_page(title: &str, results: &Results) -> String {
    let (groups, left_out) = groups(&results.rows);
    let mut subtitle = format!("{} runs in {} groups", results.rows.len(), groups.len() + left_out);
    let failed: usize = groups.iter().map(|group| group.failed).sum();
    if failed > 0 {
        subtitle.push_str(&format!(", of which {failed} runs failed"));
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

/// The groups, and how many there are beyond those.
fn groups(rows: &[ResultRow]) -> (Vec<Group>, usize) {
    /// The scenario, the controller, and the other settings.
    type Key<'a> = (&'a str, &'a str, Vec<(String, String)>);
    let mut places: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    let mut members: Vec<Vec<&ResultRow>> = Vec::new();
    for row in rows {
        let key = (row.scenario.as_str(), row.controller.as_str(), own_settings(row));
        let place = *places.entry(key).or_insert(members.len());
        if place == members.len() {
            members.push(Vec::new());
        }
        members[place].push(row);
    }
    let left_out = members.len().saturating_sub(GROUPS_MAX);
    members.truncate(GROUPS_MAX);
    let several = members.iter().any(|rows| rows[0].scenario != members[0][0].scenario);
    (members.iter().map(|rows| group(rows, several)).collect(), left_out)
}

/// The settings without the controller, which a group tells by itself.
fn own_settings(row: &ResultRow) -> Vec<(String, String)> {
    row.settings.iter().filter(|(key, _)| key != "controller").cloned().collect()
}

fn group(rows: &[&ResultRow], with_scenario: bool) -> Group {
    let first = rows[0];
    let settings = own_settings(first);
    let mut parts = Vec::new();
    if with_scenario {
        parts.push(first.scenario.clone());
    }
    if !first.controller.is_empty() {
        parts.push(first.controller.clone());
    }
    parts.extend(settings.iter().map(|(key, value)| format!("{key}={value}")));
    let names: BTreeSet<&String> = rows.iter().flat_map(|row| row.figures.keys()).collect();
    let figures = names.into_iter().filter_map(|name| {
        let summary = Summary::of(rows.iter().filter_map(|row| row.figures.get(name).copied()))?;
        Some((name.clone(), summary))
    });
    Group {
        name: if parts.is_empty() { "failed before it began".to_owned() } else { parts.join(" · ") },
        scenario: first.scenario.clone(),
        controller: first.controller.clone(),
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
        let (groups, left_out) = groups(&results().rows);
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
}
