//! `cargo xtask figures`: computes the figures of the documents anew, or with `--check` tells which are stale.
//!
//! A document holds the template of a table in a comment, and the table behind it:
//!
//! ```text
//! <!-- figures
//! | controller | time |
//! |---|---|
//! | cubic | {completion_s: congestion/l4s --controller cubic --runs 20} s |
//! -->
//! | controller | time |
//! ...
//! <!-- end of figures -->
//! ```
//!
//! Between the braces stand a figure and, behind a colon, the arguments of `fulmar lab run`. The figure is the path of a number in
//! the object that `--json` prints, the median over all runs; `max PATH` is the largest, and `PATH / PATH` a ratio. The runs are in
//! virtual time, so the figures are the same on every machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::{Result, programs};

const BEGIN: &str = "<!-- figures\n";
const END_OF_TEMPLATE: &str = "\n-->\n";
const END: &str = "<!-- end of figures -->";

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Change nothing, and fail if a figure is not what its run gives.
    #[arg(long)]
    check: bool,
    /// Only these documents, by their names in `docs/`.
    names: Vec<String>,
    /// Use this program `fulmar` instead of building one.
    #[arg(long)]
    fulmar: Option<PathBuf>,
}

/// Computes the figures of all documents, or of the chosen ones.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut runs = Runs {
        fulmar: options.fulmar.clone().map_or_else(programs::build_fulmar, Ok)?,
        known: BTreeMap::new(),
    };
    let mut stale = 0;
    for path in documents(&options.names)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let old = fs::read_to_string(&path)?;
        let new =
            renewed(&old, &mut |arguments| runs.of(arguments)).map_err(|error| format!("{name}: {error}"))?;
        if new == old {
            continue;
        }
        if options.check {
            stale += different_lines(&name, &old, &new);
        } else {
            fs::write(&path, new)?;
            println!("{}", path.display());
        }
    }
    println!("{} runs", runs.known.len());
    match stale {
        0 => Ok(()),
        stale => Err(format!("{stale} lines with stale figures: run `cargo xtask figures`").into()),
    }
}

fn documents(names: &[String]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(programs::repository().canonicalize()?.join("docs"))? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_wanted = names.is_empty() || names.contains(&stem);
        if is_wanted && path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
    paths.sort();
    if let Some(missing) = names
        .iter()
        .find(|name| !paths.iter().any(|path| path.file_stem().is_some_and(|stem| stem == name.as_str())))
    {
        return Err(format!("there is no document {missing}").into());
    }
    Ok(paths)
}

/// Tells the lines that differ, and how many they are.
fn different_lines(name: &str, old: &str, new: &str) -> usize {
    let pairs = old.lines().zip(new.lines()).filter(|(old, new)| old != new);
    let count = pairs.inspect(|(old, new)| eprintln!("docs/{name}\n  has {old}\n  not {new}")).count();
    count.max(1)
}

/// The objects of the runs with these arguments.
type RunsOf<'a> = dyn FnMut(&str) -> Result<Vec<Value>> + 'a;

/// The document with the tables of its templates.
fn renewed(text: &str, runs: &mut RunsOf<'_>) -> Result<String> {
    let mut new = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find(BEGIN) {
        let template = begin + BEGIN.len();
        let end = rest[template..].find(END_OF_TEMPLATE).ok_or("a template has no end")? + template;
        let table = end + END_OF_TEMPLATE.len();
        let after = rest[table..].find(END).ok_or("the figures of a template have no end")? + table;
        new += &rest[..table];
        new += &filled(&rest[template..end], runs)?;
        new += "\n";
        rest = &rest[after..];
    }
    Ok(new + rest)
}

/// The template with its figures.
fn filled(template: &str, runs: &mut RunsOf<'_>) -> Result<String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('{') {
        let (inner, after) = behind.split_once('}').ok_or("a figure has no end")?;
        let (figure, arguments) = inner.split_once(':').ok_or_else(|| format!("`{inner}` names no run"))?;
        filled += before;
        filled += &figure_of(figure.trim(), &runs(arguments.trim())?)
            .ok_or_else(|| format!("no run has `{inner}`"))?;
        rest = after;
    }
    Ok(filled + rest)
}

/// A figure over some runs, as it is written.
fn figure_of(figure: &str, objects: &[Value]) -> Option<String> {
    let (largest, path) = match figure.strip_prefix("max ") {
        Some(path) => (true, path),
        None => (false, figure),
    };
    let (path, by) = match path.split_once('/') {
        Some((path, by)) => (path.trim(), Some(by.trim())),
        None => (path.trim(), None),
    };
    let number =
        |object: &Value, path: &str| object.pointer(&format!("/{}", path.replace('.', "/")))?.as_f64();
    let mut values = Vec::new();
    for object in objects {
        let value = number(object, path)?;
        values.push(match by {
            Some(by) => value / number(object, by)?,
            None => value,
        });
    }
    values.sort_by(f64::total_cmp);
    let value = if largest { *values.last()? } else { median(&values)? };
    Some(if by.is_some() { rounded(value) } else { written(path, value) })
}

fn median(sorted: &[f64]) -> Option<f64> {
    let upper = sorted.get(sorted.len() / 2)?;
    Some((sorted[(sorted.len() - 1) / 2] + upper) / 2.0)
}

/// A value with the digits that its kind deserves, by its name.
fn written(path: &str, value: f64) -> String {
    let name = path.rsplit('.').next().unwrap_or(path);
    match name {
        "ack_share" | "load" | "utilisation" => format!("{:.1} %", value * 100.0),
        name if name.contains("bytes") => format!("{} kB", grouped(value / 1e3)),
        name if name.ends_with("_s") || name.ends_with("_ms") || name.ends_with("_mbps") => rounded(value),
        _ => grouped(value),
    }
}

/// Two decimals, fewer of a large number.
fn rounded(value: f64) -> String {
    match value.abs() {
        0.0..100.0 => format!("{value:.2}"),
        100.0..1_000.0 => format!("{value:.1}"),
        _ => grouped(value),
    }
}

/// A whole number, its digits in groups of three.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What the lab has run already.
struct Runs {
    fulmar: PathBuf,
    known: BTreeMap<String, Vec<Value>>,
}

impl Runs {
    fn of(&mut self, arguments: &str) -> Result<Vec<Value>> {
        if let Some(objects) = self.known.get(arguments) {
            return Ok(objects.clone());
        }
        let words = arguments.split_whitespace();
        let output = Command::new(&self.fulmar).args(["lab", "run", "--json"]).args(words).output()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(format!("`fulmar lab run {arguments}` failed: {why}").into());
        }
        let text = String::from_utf8(output.stdout)?;
        let objects = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
        self.known.insert(arguments.to_owned(), objects.clone());
        Ok(objects)
    }
}

#[cfg(test)]
mod tests;
