//! Results, as lines of JSON and as a table.

use std::fmt::Write as _;

use serde_json::json;

use super::cases::Case;
use super::peers::Pair;

/// How a case went for a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    /// With what was wrong.
    Fail(String),
    /// With why it could not run.
    Skip(String),
}

/// One cell of the table.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) case: Case,
    pub(super) pair: Pair,
    pub(super) verdict: Verdict,
    pub(super) seconds: f64,
}

impl Outcome {
    pub(super) fn is_failure(&self) -> bool {
        matches!(self.verdict, Verdict::Fail(_))
    }

    pub(super) fn is_skipped(&self) -> bool {
        matches!(self.verdict, Verdict::Skip(_))
    }

    /// One object for programs to read.
    pub(super) fn to_json(&self) -> String {
        let (result, detail) = match &self.verdict {
            Verdict::Pass => ("pass", None),
            Verdict::Fail(detail) => ("fail", Some(detail)),
            Verdict::Skip(detail) => ("skip", Some(detail)),
        };
        json!({
            "case": self.case.to_string(),
            "server": self.pair.server.to_string(),
            "client": self.pair.client.to_string(),
            "result": result,
            "detail": detail,
            "seconds": self.seconds,
        })
        .to_string()
    }

    /// One line for people to read.
    pub(super) fn to_line(&self) -> String {
        let Pair { server, client } = self.pair;
        let verdict = match &self.verdict {
            Verdict::Pass => "pass".to_owned(),
            Verdict::Fail(reason) => format!("FAIL: {reason}"),
            Verdict::Skip(reason) => format!("skipped: {reason}"),
        };
        format!(
            "{:<14} server {server:<8} client {client:<8} {:>6.2} s  {verdict}",
            self.case.to_string(),
            self.seconds
        )
    }
}

/// A row for each case, a column for each pair, and below it why something failed or was skipped.
pub(super) fn render(cases: &[Case], pairs: &[Pair], outcomes: &[Outcome]) -> String {
    let headings: Vec<String> = pairs.iter().map(|pair| format!("{}/{}", pair.server, pair.client)).collect();
    let mut table = format!("{:<15}", "server/client");
    for heading in &headings {
        write_cell(&mut table, heading, heading.len());
    }
    table.push('\n');
    for case in cases {
        _ = write!(table, "{:<15}", case.to_string());
        for (pair, heading) in pairs.iter().zip(&headings) {
            let outcome = outcomes.iter().find(|outcome| outcome.case == *case && outcome.pair == *pair);
            let word = match outcome.map(|outcome| &outcome.verdict) {
                Some(Verdict::Pass) => "pass",
                Some(Verdict::Fail(_)) => "FAIL",
                Some(Verdict::Skip(_)) => "skip",
                None => "",
            };
            write_cell(&mut table, word, heading.len());
        }
        table.push('\n');
    }
    for outcome in outcomes.iter().filter(|outcome| outcome.verdict != Verdict::Pass) {
        table.push_str(&outcome.to_line());
        table.push('\n');
    }
    table
}

fn write_cell(table: &mut String, word: &str, width: usize) {
    // Writing to a String cannot fail.
    _ = write!(table, " {word:<width$}");
}

#[cfg(test)]
mod tests;
