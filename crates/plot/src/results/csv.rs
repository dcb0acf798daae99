//! Comma-separated values with a header (RFC 4180).

use super::{NOT_FIGURES, ResultRow, ResultsError, error, setting};

/// The columns that are text.
const TEXTS: &[&str] =
    &["id", "scenario", "controller", "scenario_sha256", "version", "trace_sha256", "error"];

/// The runs of a file.
pub(super) fn rows(text: &str) -> Result<Vec<ResultRow>, ResultsError> {
    let mut records = records(text)?.into_iter();
    let Some((_, header)) = records.next() else { return Ok(Vec::new()) };
    let Some(scenario) = header.iter().position(|name| name == "scenario") else {
        return Err(error(1, "a header with the column `scenario`, or a JSON object, is expected"));
    };
    // Parts of a campaign that were put together have their headers.
    let results = records.filter(|(_, record)| *record != header);
    results.map(|(line, record)| row(&header, scenario, line, record)).collect()
}

/// A run. The columns between `id` and `scenario` are the settings of the campaign.
fn row(
    header: &[String],
    scenario: usize,
    line: usize,
    record: Vec<String>,
) -> Result<ResultRow, ResultsError> {
    if record.len() != header.len() {
        let what = format!("{} fields, but the header has {} columns", record.len(), header.len());
        return Err(error(line, what));
    }
    let mut row = ResultRow::default();
    for (column, (name, field)) in header.iter().zip(record).enumerate() {
        match name.as_str() {
            "scenario" => row.scenario = field,
            "controller" => row.controller = field,
            "seed" if column > scenario => row.seed = field.parse().ok(),
            "scenario_sha256" => row.scenario_sha256 = field,
            "version" => row.version = field,
            "trace_sha256" => row.trace_sha256 = field,
            "error" => row.error = (!field.is_empty()).then_some(field),
            name if TEXTS.contains(&name) || NOT_FIGURES.contains(&name) => {}
            _ if column < scenario => row.settings.push((name.clone(), setting(field))),
            _ if field.is_empty() => {}
            _ => {
                let number: f64 = field.parse().map_err(|_| {
                    error(line, format!("`{}` in the column {name} is no number", shown(&field)))
                })?;
                row.figures.insert(name.clone(), number);
            }
        }
    }
    match row.scenario.is_empty() && row.error.is_none() {
        true => Err(error(line, "a result needs the name of its `scenario`")),
        false => Ok(row),
    }
}

/// The beginning of a field, fit to print.
fn shown(field: &str) -> String {
    field.chars().take(40).collect::<String>().escape_debug().to_string()
}

/// All records with the lines on which they begin.
fn records(text: &str) -> Result<Vec<(usize, Vec<String>)>, ResultsError> {
    let mut records = Vec::new();
    let (mut record, mut field) = (Vec::new(), String::new());
    let (mut line, mut begin, mut quoted) = (1, 1, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        line += usize::from(character == '\n');
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => field.extend(characters.next()),
            '"' if quoted => quoted = false,
            _ if quoted => field.push(character),
            '"' if field.is_empty() => quoted = true,
            ',' => record.push(std::mem::take(&mut field)),
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' => {
                end(&mut records, &mut record, &mut field, begin);
                begin = line;
            }
            _ => field.push(character),
        }
    }
    if quoted {
        return Err(error(begin, "a quoted field has no end"));
    }
    end(&mut records, &mut record, &mut field, begin);
    Ok(records)
}

/// Ends a record; an empty line is none.
fn end(records: &mut Vec<(usize, Vec<String>)>, record: &mut Vec<String>, field: &mut String, line: usize) {
    if !record.is_empty() || !field.is_empty() {
        record.push(std::mem::take(field));
        records.push((line, std::mem::take(record)));
    }
}
