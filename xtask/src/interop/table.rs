//! Results, as lines of JSON and as a table.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use serde_json::json;

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
    case: String,
    server: String,
    client: String,
    pub(super) verdict: Verdict,
    seconds: f64,
}

impl Outcome {
    /// What came of a case for a server and a client.
    pub(super) fn new<P: Display>(
        case: impl Display,
        (server, client): (P, P),
        verdict: Verdict,
        time: Duration,
    ) -> Self {
        let [case, server, client] = [case.to_string(), server.to_string(), client.to_string()];
        Self { case, server, client, verdict, seconds: time.as_secs_f64() }
    }

    /// How a column of the table is called.
    fn heading(&self) -> String {
        format!("{}/{}", self.server, self.client)
    }

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
            "case": self.case,
            "server": self.server,
            "client": self.client,
            "result": result,
            "detail": detail,
            "seconds": self.seconds,
        })
        .to_string()
    }

    /// One line for people to read.
    pub(super) fn to_line(&self) -> String {
        let Self { case, server, client, seconds, .. } = self;
        let verdict = match &self.verdict {
            Verdict::Pass => "pass".to_owned(),
            Verdict::Fail(reason) => format!("FAIL: {reason}"),
            Verdict::Skip(reason) => format!("skipped: {reason}"),
        };
        format!("{case:<14} server {server:<8} client {client:<8} {seconds:>6.2} s  {verdict}")
    }
}

/// A row for each case, a column for each pair, in the order in which they come, and below it why something failed or was skipped.
pub(super) fn render(outcomes: &[Outcome]) -> String {
    let headings = distinct(outcomes.iter().map(Outcome::heading));
    let mut table = format!("{:<15}", "server/client");
    for heading in &headings {
        write_cell(&mut table, heading, heading.len());
    }
    table.push('\n');
    for case in distinct(outcomes.iter().map(|outcome| outcome.case.clone())) {
        _ = write!(table, "{case:<15}");
        for heading in &headings {
            let outcome =
                outcomes.iter().find(|outcome| outcome.case == case && outcome.heading() == *heading);
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

fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn write_cell(table: &mut String, word: &str, width: usize) {
    // Writing to a String cannot fail.
    _ = write!(table, " {word:<width$}");
}

#[cfg(test)]
mod tests;
