//! Results, as lines of JSON and as a matrix.

use std::fmt::Write as _;

use serde_json::json;

use super::{Case, Pair};

/// How a case went for a pair.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Pass,
    /// With the goodput in kbit/s.
    Measured(f64),
    /// With what was wrong.
    Fail(String),
    /// With why it could not run.
    Skip(String),
}

/// One cell of the matrix.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) case: Case,
    pub(crate) pair: Pair,
    pub(crate) verdict: Verdict,
    pub(crate) seconds: f64,
}

impl Outcome {
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self.verdict, Verdict::Fail(_))
    }

    pub(crate) fn is_skipped(&self) -> bool {
        matches!(self.verdict, Verdict::Skip(_))
    }

    /// One object for programs to read.
    pub(crate) fn to_json(&self) -> String {
        let (result, detail, kbit_per_s) = match &self.verdict {
            Verdict::Pass => ("pass", None, None),
            Verdict::Measured(figure) => ("measured", None, Some(*figure)),
            Verdict::Fail(detail) => ("fail", Some(detail), None),
            Verdict::Skip(detail) => ("skip", Some(detail), None),
        };
        json!({
            "network": "emulated",
            "case": self.case.to_string(),
            "server": self.pair.server.to_string(),
            "client": self.pair.client.to_string(),
            "result": result,
            "detail": detail,
            "kbit_per_s": kbit_per_s,
            "seconds": self.seconds,
        })
        .to_string()
    }

    /// One line for people to read.
    pub(crate) fn to_line(&self) -> String {
        let Pair { server, client } = self.pair;
        let verdict = match &self.verdict {
            Verdict::Pass => "pass".to_owned(),
            Verdict::Measured(figure) => format!("{figure:.0} kbit/s"),
            Verdict::Fail(reason) => format!("FAIL: {reason}"),
            Verdict::Skip(reason) => format!("skipped: {reason}"),
        };
        let case = self.case.to_string();
        format!("{case:<19} server {server:<7} client {client:<7} {:>6.1} s  {verdict}", self.seconds)
    }
}

/// A row for each case, a column for each pair, and below it why something failed.
pub(crate) fn render(cases: &[Case], pairs: &[Pair], outcomes: &[Outcome]) -> String {
    let headings: Vec<String> = pairs.iter().map(|pair| format!("{}/{}", pair.server, pair.client)).collect();
    let mut table = format!("{:<19}", "server/client");
    for heading in &headings {
        // Writing to a String cannot fail.
        _ = write!(table, " {heading}");
    }
    table.push('\n');
    for case in cases {
        _ = write!(table, "{:<19}", case.to_string());
        for (pair, heading) in pairs.iter().zip(&headings) {
            let outcome = outcomes.iter().find(|outcome| outcome.case == *case && outcome.pair == *pair);
            let word = match outcome.map(|outcome| &outcome.verdict) {
                Some(Verdict::Pass) => "pass".to_owned(),
                Some(Verdict::Measured(figure)) => format!("{figure:.0}"),
                Some(Verdict::Fail(_)) => "FAIL".to_owned(),
                Some(Verdict::Skip(_)) => "-".to_owned(),
                None => String::new(),
            };
            _ = write!(table, " {word:<width$}", width = heading.len());
        }
        table.push('\n');
    }
    for outcome in outcomes.iter().filter(|outcome| outcome.is_failure()) {
        table.push_str(&outcome.to_line());
        table.push('\n');
    }
    table
}
