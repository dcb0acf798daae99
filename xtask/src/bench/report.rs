//! The results as tables and as JSON.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::goals::goals;
use super::pair::Outcome;
use super::plan::{Case, HTTP_STACKS, STREAM_STACKS, Stack, Unit};
use super::results::{Figures, Results, Row};
use crate::{Result, programs};

/// Everything: each run of each stack, the medians, the goals.
pub(crate) fn json(results: &Results) -> Value {
    let rows: Vec<Value> = results.rows.iter().map(row_json).collect();
    let goals: Vec<Value> = goals()
        .iter()
        .map(|goal| {
            let verdict = goal.judge(results);
            json!({ "goal": goal.text, "figure": verdict.figure, "met": verdict.met })
        })
        .collect();
    json!({ "quick": results.quick, "machine": machine(results), "cases": rows, "goals": goals })
}

fn row_json(row: &Row) -> Value {
    let stacks: serde_json::Map<String, Value> = row
        .cells
        .iter()
        .map(|(stack, cell)| {
            let out = match &cell.out {
                Some(Outcome::Nothing(why) | Outcome::Failed(why)) => Some(why),
                Some(Outcome::Figures(_)) | None => None,
            };
            let value = json!({
                "median": row.main(*stack), "spread": row.spread(*stack), "runs": cell.runs, "reason": out,
            });
            (stack.name().to_owned(), value)
        })
        .collect();
    json!({ "case": row.case.name, "unit": unit(&row.case), "options": row.case.load, "both": row.case.transport, "stacks": stacks })
}

/// The tables: figures of streams, figures of files over HTTP, and goals.
pub(crate) fn tables(results: &Results) -> String {
    let (http, streams): (Vec<&Row>, Vec<&Row>) =
        results.rows.iter().partition(|row| row.case.body_bytes.is_some());
    let mut text = String::new();
    if !streams.is_empty() {
        let others = [("of the limit", Stack::Limit), ("x quinn", Stack::Quinn), ("x s2n", Stack::S2n)];
        table(&mut text, &streams, &STREAM_STACKS, &others, main_ratio);
    }
    if !http.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(gap);
        let others = [
            ("server CPU of nginx's", Stack::Nginx),
            ("of h3-quinn's", Stack::H3Quinn),
            ("of our HTTP/2's", Stack::Http2),
        ];
        table(&mut text, &http, &HTTP_STACKS, &others, |row, other| row.server_cpu_of(other));
    }
    let reasons = reasons(results);
    if !reasons.is_empty() {
        let _ = writeln!(text, "\nWhy there is no figure:\n\n{}", reasons.join("\n"));
    }
    let _ = writeln!(text, "\n| goal | figure | met |\n|---|---|---|");
    for goal in goals() {
        let verdict = goal.judge(results);
        let figure = verdict.figure.map_or("-".to_owned(), |figure| format!("{figure:.2}"));
        let met = verdict.met.map_or("not measured", |met| if met { "yes" } else { "no" });
        let _ = writeln!(text, "| {} | {figure} | {met} |", goal.text);
    }
    text
}

/// One table: a column for each stack, and one for each other stack that Fulmar is compared with.
fn table(
    text: &mut String,
    rows: &[&Row],
    stacks: &[Stack],
    others: &[(&str, Stack)],
    ratio: impl Fn(&Row, Stack) -> Option<f64>,
) {
    let names: Vec<&str> = stacks.iter().map(|stack| stack.name()).collect();
    let ratios: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
    let _ = writeln!(text, "| case | unit | {} | {} |", names.join(" | "), ratios.join(" | "));
    let _ = writeln!(text, "|---|---|{}", "---|".repeat(stacks.len() + others.len()));
    for row in rows {
        let cells: Vec<String> = stacks.iter().map(|stack| cell(row, *stack)).collect();
        let shown = |other| ratio(row, other).map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let ratios: Vec<String> = others.iter().map(|(_, other)| shown(*other)).collect();
        let (name, unit) = (&row.case.name, unit(&row.case));
        let _ = writeln!(text, "| {name} | {unit} | {} | {} |", cells.join(" | "), ratios.join(" | "));
    }
}

/// The file for the repository.
pub(crate) fn document(results: &Results) -> Result<String> {
    let date = words(Command::new("date").args(["--utc", "+%Y-%m-%d %H:%M UTC"]));
    let machine = machine(results);
    let lines: Vec<String> = machine.iter().map(|(name, value)| format!("- {name}: {value}")).collect();
    let size = if results.quick { "quick (figures are rough)" } else { "whole" };
    let extent = match &results.chosen[..] {
        [] => size.to_owned(),
        chosen => format!("{size}, of `{}` alone", chosen.join("`, `")),
    };
    Ok(format!(
        "# Results\n\nWritten by `cargo xtask bench` on {date}; extent: {extent}.\n\n{}\n\n\
         Medians over the runs, which took turns. In a cell: the figure, ± half of the spread of the runs, then CPU of the server + that of the \
         client (seconds per gigabyte, or microseconds for each), then the most memory of the server. Server and client had a core each. \
         Ratios are Fulmar's; where less is better, less than one is better. Of the servers of files (`http3`) memory is the sum of the most that each process had.\n\n{}",
        lines.join("\n"),
        tables(results)
    ))
}

fn unit(case: &Case) -> &'static str {
    match case.unit {
        Unit::Bulk => "Gbit/s; s/GB",
        Unit::Rate => "per second; us",
        Unit::Cost => "us of both",
        Unit::Memory => "KB per connection",
    }
}

fn cell(row: &Row, stack: Stack) -> String {
    let Some(figure) = row.main(stack) else { return "-".to_owned() };
    let mut text = match row.case.unit {
        Unit::Bulk | Unit::Cost => format!("{figure:.2}"),
        Unit::Rate => format!("{figure:.0}"),
        Unit::Memory => format!("{figure:.1}"),
    };
    if let Some(spread) = row.spread(stack) {
        let _ = write!(text, " ±{:.0} %", 50.0 * spread);
    }
    if row.case.unit == Unit::Memory {
        if let Some(client) = row.median(stack, |figures| figures.client_bytes) {
            let _ = write!(text, "; client {:.1}", client / 1_024.0);
        }
        return text;
    }
    // Microseconds for each byte are seconds for each megabyte.
    let scale = if row.case.unit == Unit::Bulk { 1e3 } else { 1.0 };
    let server = row.median(stack, Figures::server_micros);
    let client = row.median(stack, |figures| Some(figures.client_micros()));
    if let Some((server, client)) = server.zip(client) {
        let _ = write!(text, "; {:.2} + {:.2}", server * scale, client * scale);
    }
    if let Some(latency) = row.median(stack, |figures| Some(figures.latency_us.as_ref()?.p99)) {
        let _ = write!(text, "; p99 {latency:.0} us");
    }
    if let Some(full) = row.median(stack, |figures| Some(figures.full_handshakes? / figures.amount))
        && full < 1.0
    {
        let _ = write!(text, "; {:.0} % full", 100.0 * full);
    }
    if let Some(peak) = row.median(stack, |figures| figures.server_peak_kb) {
        let _ = write!(text, "; {:.0} MB", peak / 1_024.0);
    }
    text
}

fn main_ratio(row: &Row, other: Stack) -> Option<f64> {
    Some(row.main(Stack::Fulmar)? / row.main(other)?)
}

fn reasons(results: &Results) -> Vec<String> {
    let mut reasons = Vec::new();
    for row in &results.rows {
        for (stack, cell) in &row.cells {
            match &cell.out {
                Some(Outcome::Nothing(why)) => {
                    reasons.push(format!("- {}, {}: {why}", row.case.name, stack.name()))
                }
                Some(Outcome::Failed(why)) => {
                    reasons.push(format!("- {}, {}: failed: {why}", row.case.name, stack.name()))
                }
                Some(Outcome::Figures(_)) | None => {}
            }
        }
    }
    reasons
}

/// What the figures depend on: processor, kernel, versions.
fn machine(results: &Results) -> Vec<(&'static str, String)> {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.to_owned()));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let root = programs::repository();
    let locked = fs::read_to_string(root.join("benches/Cargo.lock")).unwrap_or_default();
    let module = fs::read_to_string(root.join("benches/quic-go/go.mod")).unwrap_or_default();
    let quic_go = module.lines().find_map(|line| {
        line.trim_start_matches("require ").trim().strip_prefix("github.com/quic-go/quic-go ")
    });
    let versions: Vec<String> =
        ["quinn", "quinn-proto", "s2n-quic", "h3", "h3-quinn", "rustls", "ring", "aws-lc-rs"]
            .iter()
            .filter_map(|name| Some(format!("{name} {}", locked_version(&locked, name)?)))
            .chain(quic_go.map(|version| format!("quic-go {version}")))
            .chain(results.versions.iter().cloned())
            .collect();
    vec![
        ("machine", format!("{}, {cores} cores", model.unwrap_or_else(|| "unknown processor".to_owned()))),
        ("kernel", words(Command::new("uname").args(["-s", "-r"]))),
        ("compiler", words(Command::new("rustc").arg("--version"))),
        ("fulmar", words(Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(root))),
        ("others", versions.join(", ")),
    ]
}

fn locked_version(lock: &str, name: &str) -> Option<String> {
    let entry = lock.split("[[package]]").find(|entry| entry.contains(&format!("\nname = \"{name}\"\n")))?;
    let version = entry.lines().find_map(|line| line.strip_prefix("version = "))?;
    Some(version.trim_matches('"').to_owned())
}

fn words(command: &mut Command) -> String {
    let output = command.output().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    output.unwrap_or_else(|_| "unknown".to_owned())
}
