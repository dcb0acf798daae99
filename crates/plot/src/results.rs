//! Results of runs: the JSON of `fulmar lab run --json`, the JSON lines and the CSV of `fulmar lab grid`.

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

mod csv;

/// The figures of a run that say nothing about how it went.
const NOT_FIGURES: &[&str] = &["seed", "settings"];

/// What cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {what}")]
pub struct ResultsError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// A run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResultRow {
    /// The scenario; empty for a run that failed before it had a name.
    pub scenario: String,
    /// The congestion controller.
    pub controller: String,
    /// The seed, if it is told.
    pub seed: Option<u64>,
    /// The hash of the scenario's text; empty if it is not told.
    pub scenario_sha256: String,
    /// The version that has made it; empty if it is not told.
    pub version: String,
    /// The fingerprint of its packets; empty of a run that failed.
    pub trace_sha256: String,
    /// The settings of a campaign, by name; numbers in one form, so that `20` is `20.0`.
    pub settings: Vec<(String, String)>,
    /// Its numbers, those of a side as in `client.packets_lost`, of a path as in `paths.A.down.bytes_sent`.
    pub figures: BTreeMap<String, f64>,
    /// Why there are none.
    pub error: Option<String>,
}

/// All runs of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    /// In the order of the file.
    pub rows: Vec<ResultRow>,
}

impl Results {
    /// Reads results. JSON begins with a brace; all else is taken for CSV with a header.
    ///
    /// # Errors
    /// The first line that is neither, or that is no result.
    pub fn parse(text: &str) -> Result<Self, ResultsError> {
        let text = text.trim_start_matches('\u{feff}');
        let rows = match text.trim_start().starts_with(['{', '[']) {
            true => json_lines(text)?,
            false => csv::rows(text)?,
        };
        match rows.is_empty() {
            true => Err(error(1, "there are no results")),
            false => Ok(Self { rows }),
        }
    }
}

fn error(line: usize, what: impl Into<String>) -> ResultsError {
    ResultsError { line, what: what.into() }
}

/// One JSON object per line.
fn json_lines(text: &str) -> Result<Vec<ResultRow>, ResultsError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            let value: Value = serde_json::from_str(line)
                .map_err(|wrong| error(index + 1, format!("this is not one JSON object: {wrong}")))?;
            row(&value).map_err(|what| error(index + 1, what))
        })
        .collect()
}

fn row(value: &Value) -> Result<ResultRow, String> {
    let object = value.as_object().ok_or("this is JSON, but not an object")?;
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut row = ResultRow {
        scenario: text("scenario"),
        controller: text("controller"),
        scenario_sha256: text("scenario_sha256"),
        version: text("version"),
        trace_sha256: text("trace_sha256"),
        seed: object.get("seed").and_then(Value::as_u64),
        error: object.get("error").and_then(Value::as_str).map(str::to_owned),
        ..ResultRow::default()
    };
    if row.scenario.is_empty() && row.error.is_none() {
        return Err("a result needs the name of its `scenario`".to_owned());
    }
    if let Some(settings) = object.get("settings").and_then(Value::as_object) {
        row.settings = settings.iter().map(|(key, value)| (key.clone(), plain(value))).collect();
    }
    for (name, value) in object.iter().filter(|(name, _)| !NOT_FIGURES.contains(&name.as_str())) {
        match value {
            Value::Object(side) => {
                let numbers = side.iter().filter_map(|(key, value)| Some((key, value.as_f64()?)));
                row.figures.extend(numbers.map(|(key, value)| (format!("{name}.{key}"), value)));
            }
            Value::Array(parts) => {
                let parts = parts.iter().enumerate();
                row.figures.extend(parts.flat_map(|(place, part)| part_figures(name, place, part)));
            }
            other => row.figures.extend(other.as_f64().map(|value| (name.clone(), value))),
        }
    }
    Ok(row)
}

/// The numbers of a part, such as a path or a hop, by its name, or by its number from 1 if it has none: as in
/// `paths.A.down.bytes_sent` and `hops.1.up.load`.
fn part_figures(list: &str, place: usize, part: &Value) -> Vec<(String, f64)> {
    let name = part.get("name").and_then(Value::as_str);
    let name = name.map_or_else(|| (place + 1).to_string(), str::to_owned);
    let name = name.as_str();
    let tables = part.as_object().into_iter().flatten();
    let tables = tables.filter_map(|(table, numbers)| Some((table, numbers.as_object()?)));
    let figures = tables.flat_map(|(table, numbers)| {
        let numbers = numbers.iter().filter_map(|(key, value)| Some((key, value.as_f64()?)));
        numbers.map(move |(key, value)| (format!("{list}.{name}.{table}.{key}"), value))
    });
    figures.collect()
}

/// A value as it was set: strings without quotes.
fn plain(value: &Value) -> String {
    setting(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// The largest whole number up to which a number of 64 bits has all of them.
const WHOLE_MAX: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// A setting; of a number (TOML has `_` between digits) the shortest form.
fn setting(text: String) -> String {
    let is_number = text.trim_start_matches(['+', '-']).starts_with(|first: char| first.is_ascii_digit());
    let number = text.replace('_', "").parse::<f64>().ok();
    match number.filter(|number| is_number && number.abs() <= WHOLE_MAX) {
        Some(number) => number.to_string(),
        None => text,
    }
}

#[cfg(test)]
mod tests;
