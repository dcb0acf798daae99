//! What a file of results has: lines of a campaign, of other campaigns, and of no campaign.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use serde_json::Value;

use crate::lab::args::GridFormat;

/// What is in a file of results.
pub(super) struct Kept {
    /// The runs whose results it has.
    pub(super) known: BTreeSet<String>,
    /// Those of them that failed.
    pub(super) failed: BTreeSet<String>,
    /// Its lines that stay.
    pub(super) text: Vec<u8>,
    /// Whether these are the first ones of the file, and nothing was left out between them.
    pub(super) is_beginning: bool,
    /// How many results do not stay.
    pub(super) dropped: usize,
    /// The number of the first line with which the campaign cannot go on, and why.
    pub(super) refused: Option<(usize, &'static str)>,
}

/// A line that is none of a campaign's.
const FOREIGN: &str = "is no result of `fulmar lab grid`";
/// A result that does not stand under the columns of this campaign.
const OTHER_COLUMNS: &str = "is a result under other columns than those of this campaign";

/// The complete lines of a file whose runs are of now by their names, with this header if they are CSV.
pub(super) fn read_kept(
    file: &File,
    format: GridFormat,
    header: &str,
    is_of_now: impl Fn(&str) -> bool,
) -> io::Result<Kept> {
    let (known, failed) = Default::default();
    let mut kept = Kept { known, failed, text: Vec::new(), is_beginning: true, dropped: 0, refused: None };
    // Whether what comes next stands under this header.
    let mut has_columns = true;
    let mut has_gap = false;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let is_complete = line.ends_with(b"\n");
        if !is_of_campaign(&line, number == 1, is_complete, format) {
            kept.refused = Some((number, FOREIGN));
            break;
        }
        if !is_complete {
            break;
        }
        let id = id_of(&line, format);
        has_columns = if id.is_none() { line == header.as_bytes() } else { has_columns };
        let is_dropped = id.as_ref().is_some_and(|id| !is_of_now(id));
        match id {
            Some(_) if !is_dropped && !has_columns => {
                kept.refused = Some((number, OTHER_COLUMNS));
                break;
            }
            // Of a header with other columns nothing stays.
            _ if is_dropped || !has_columns => {
                kept.dropped += usize::from(is_dropped);
                has_gap = true;
            }
            id => {
                kept.is_beginning &= !has_gap;
                kept.text.extend_from_slice(&line);
                kept.failed.extend(id.clone().filter(|_| is_failure(&line, format)));
                kept.known.extend(id);
            }
        }
    }
    // A header alone is written anew: another version may have other columns.
    if kept.known.is_empty() {
        kept.text.clear();
        kept.is_beginning = true;
    }
    Ok(kept)
}

/// How the lines of results begin.
const JSON_BEGIN: &[u8] = br#"{"id":""#;
const CSV_BEGIN: &[u8] = b"id,";

/// Whether a campaign has written a line. Of one that was not finished only its beginning tells.
fn is_of_campaign(line: &[u8], is_first: bool, is_complete: bool, format: GridFormat) -> bool {
    let begins = |begin: &[u8]| line.starts_with(begin) || !is_complete && begin.starts_with(line);
    match format {
        GridFormat::Jsonl => begins(JSON_BEGIN) && (!is_complete || is_run(id_of(line, format))),
        GridFormat::Csv if is_first => begins(CSV_BEGIN),
        // Parts that were put together have their headers.
        GridFormat::Csv => !is_complete || line.starts_with(CSV_BEGIN) || is_run(id_of(line, format)),
    }
}

/// Whether this is the name of a run, of any campaign.
fn is_run(id: Option<String>) -> bool {
    id.is_some_and(|id| id.contains(" scenario=") && id.contains(" version="))
}

/// The name of the run whose result a line is; `None` for a header.
pub(super) fn id_of(line: &[u8], format: GridFormat) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    match format {
        GridFormat::Jsonl => serde_json::from_str::<Value>(&text)
            .ok()
            .and_then(|value| value["id"].as_str().map(str::to_owned)),
        GridFormat::Csv => Some(first_field(&text)).filter(|id| id != "id"),
    }
}

/// Whether the line of a run says what went wrong, which is its last field.
fn is_failure(line: &[u8], format: GridFormat) -> bool {
    match format {
        GridFormat::Jsonl => {
            serde_json::from_slice::<Value>(line).is_ok_and(|value| !value["error"].is_null())
        }
        GridFormat::Csv => !line.trim_ascii_end().ends_with(b","),
    }
}

/// The lines by the ranks of their runs, after a header and after those of runs without one.
pub(super) fn sorted(text: &[u8], format: GridFormat, ranks: &BTreeMap<String, usize>) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    lines.sort_by_cached_key(|line| id_of(line, format).and_then(|id| ranks.get(&id)));
    lines.concat()
}

/// The first field of a CSV line.
pub(super) fn first_field(line: &str) -> String {
    match line.strip_prefix('"') {
        None => line.trim_end().split(',').next().unwrap_or_default().to_owned(),
        Some(rest) => {
            // Two quotes stand for one; a single one ends the field.
            let mut field = String::new();
            let mut characters = rest.chars().peekable();
            while let Some(character) = characters.next() {
                if character == '"' && characters.next_if_eq(&'"').is_none() {
                    break;
                }
                field.push(character);
            }
            field
        }
    }
}
