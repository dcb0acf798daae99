//! `cargo xtask coverage`: which lines and branches no test runs.
//!
//! That a line is run proves nothing (`cargo xtask mutants` tells more); one that is never run is watched by nobody.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::{Result, programs};

/// The libraries, of which so many percent of the lines are run at least.
const LIBRARIES: [&str; 8] = ["base", "lab", "proto", "qlog", "quic", "sim", "udp", "wire"];
const LINES_LEAST: f64 = 95.0;
/// The crates of which so many percent of the branches are taken at least.
const WITH_BRANCHES: [&str; 2] = ["proto", "wire"];
const BRANCHES_LEAST: f64 = 90.0;
/// How many files are named, of those with the most lines that are not run.
const FILES_SHOWN: usize = 20;

/// Options of the task.
///
/// Runs the tests of the libraries, and writes a page with all lines below `target/coverage/html`. The exit status is 1 if
/// less than 95 % of the lines of a library are run or, with `--branch`, less than 90 % of the branches of `proto` or `wire`
/// are taken.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Count branches, too. Needs a nightly compiler.
    #[arg(long)]
    branch: bool,
    /// Only these crates, by the names of their directories.
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,
    /// Print one object of JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// How many there are, and how many of them are run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    all: u64,
    run: u64,
}

impl Count {
    fn of(summary: &Value) -> Self {
        let get = |name: &str| summary[name].as_u64().unwrap_or(0);
        Self { all: get("count"), run: get("covered") }
    }

    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.run += other.run;
    }

    fn percent(self) -> f64 {
        if self.all == 0 { 100.0 } else { 100.0 * self.run as f64 / self.all as f64 }
    }
}

/// What is run of a file or a crate.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Coverage {
    lines: Count,
    branches: Count,
}

/// Runs the tests and judges what they run.
pub(crate) fn run(options: &Options) -> Result<()> {
    let crates = options.chosen()?;
    check_tool(options.branch)?;
    let dir = programs::scratch_dir("coverage")?;
    let packages: Vec<String> = crates.iter().map(|name| package_of(name)).collect();
    let mut tests = llvm_cov(options.branch);
    tests.arg("--no-report").args(packages.iter().flat_map(|package| ["--package", package.as_str()]));
    succeed(tests, "the tests")?;
    let summary = dir.join("summary.json");
    let mut report = llvm_cov_report(options.branch);
    report.args(["--json", "--summary-only", "--output-path"]).arg(&summary);
    succeed(report, "the summary")?;
    let mut html = llvm_cov_report(options.branch);
    html.arg("--html").arg("--output-dir").arg(&dir);
    succeed(html, "the page")?;
    let files = read_summary(&fs::read_to_string(&summary)?)?;
    let totals = by_crate(&files, &crates);
    let complaints = judge(&totals, options.branch);
    match options.json {
        true => println!("{}", to_json(&totals, &files, &complaints)),
        false => print_table(&totals, &files, options.branch, &dir),
    }
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(complaints.join("; ").into()),
    }
}

impl Options {
    fn chosen(&self) -> Result<Vec<&str>> {
        let is_known = |name: &&String| !LIBRARIES.contains(&name.as_str());
        if let Some(unknown) = self.crates.iter().find(is_known) {
            return Err(format!("{unknown} is none of the libraries: {}", LIBRARIES.join(", ")).into());
        }
        Ok(match self.crates.is_empty() {
            true => LIBRARIES.to_vec(),
            false => self.crates.iter().map(String::as_str).collect(),
        })
    }
}

/// The name of the package in a directory of `crates`.
fn package_of(directory: &str) -> String {
    if directory == "quic" { "fulmar".to_owned() } else { format!("fulmar-{directory}") }
}

fn llvm_cov(branch: bool) -> Command {
    // The program that rustup has put there, as only that one knows other toolchains.
    let mut command = Command::new("cargo");
    if branch {
        command.arg("+nightly");
    }
    command.arg("llvm-cov").current_dir(programs::repository());
    if branch {
        command.arg("--branch");
    }
    command
}

fn llvm_cov_report(branch: bool) -> Command {
    let mut command = Command::new("cargo");
    if branch {
        command.arg("+nightly");
    }
    command.args(["llvm-cov", "report"]).current_dir(programs::repository());
    if branch {
        command.arg("--branch");
    }
    command
}

fn check_tool(branch: bool) -> Result<()> {
    let is_there = |args: &[&str]| {
        let output = Command::new("cargo").args(args).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !is_there(&["llvm-cov", "--version"]) {
        let how = "cargo install --locked cargo-llvm-cov && rustup component add llvm-tools";
        return Err(format!("cargo-llvm-cov is missing; install it with: {how}").into());
    }
    if branch && !is_there(&["+nightly", "--version"]) {
        let how = "rustup toolchain install nightly --profile minimal --component llvm-tools";
        return Err(format!("branches need a nightly compiler; install it with: {how}").into());
    }
    Ok(())
}

fn succeed(mut command: Command, what: &str) -> Result<()> {
    match command.stdout(Stdio::from(std::io::stderr())).status()?.success() {
        true => Ok(()),
        false => Err(format!("{what} failed").into()),
    }
}

/// What is run of each file, by its path from the root of the repository.
fn read_summary(text: &str) -> Result<BTreeMap<String, Coverage>> {
    let summary: Value = serde_json::from_str(text)?;
    let files = summary["data"][0]["files"].as_array().ok_or("cargo-llvm-cov told of no files")?;
    let mut coverage = BTreeMap::new();
    for file in files {
        let path = file["filename"].as_str().ok_or("a file has no name")?;
        let Some(start) = path.rfind("/crates/") else { continue };
        let summary = &file["summary"];
        let counts =
            Coverage { lines: Count::of(&summary["lines"]), branches: Count::of(&summary["branches"]) };
        coverage.insert(path[start + 1..].to_owned(), counts);
    }
    Ok(coverage)
}

/// The sums over the sources of each crate.
fn by_crate<'c>(files: &BTreeMap<String, Coverage>, crates: &[&'c str]) -> BTreeMap<&'c str, Coverage> {
    let mut totals = BTreeMap::new();
    for name in crates {
        let total: &mut Coverage = totals.entry(*name).or_default();
        let sources = format!("crates/{name}/src/");
        for (_, file) in files.iter().filter(|(path, _)| path.starts_with(&sources)) {
            total.lines.add(file.lines);
            total.branches.add(file.branches);
        }
    }
    totals
}

fn judge(totals: &BTreeMap<&str, Coverage>, branch: bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, Coverage { lines, branches }) in totals {
        if lines.all == 0 {
            complaints.push(format!("nothing is known of {name}"));
        }
        if lines.percent() < LINES_LEAST {
            complaints.push(format!("{:.1} % of the lines of {name} are run", lines.percent()));
        }
        if branch && WITH_BRANCHES.contains(name) && branches.percent() < BRANCHES_LEAST {
            complaints.push(format!("{:.1} % of the branches of {name} are taken", branches.percent()));
        }
    }
    complaints
}

/// The files with the most lines that are not run.
fn worst(files: &BTreeMap<String, Coverage>) -> Vec<(&str, Count)> {
    let mut worst: Vec<_> = files.iter().map(|(path, file)| (path.as_str(), file.lines)).collect();
    worst.sort_by_key(|(path, lines)| (std::cmp::Reverse(lines.all - lines.run), *path));
    worst.truncate(FILES_SHOWN);
    worst
}

fn print_table(
    totals: &BTreeMap<&str, Coverage>,
    files: &BTreeMap<String, Coverage>,
    branch: bool,
    dir: &Path,
) {
    for (name, Coverage { lines, branches }) in totals {
        let taken = if branch { format!("  branches {:>5.1} %", branches.percent()) } else { String::new() };
        println!("{name:<6} lines {:>5.1} % of {:>6}{taken}", lines.percent(), lines.all);
    }
    println!("\nlines that are not run:");
    for (path, lines) in worst(files) {
        println!("{:>5} of {:>5}  {path}", lines.all - lines.run, lines.all);
    }
    println!("\nall lines: {}", dir.join("html/index.html").display());
}

fn to_json(
    totals: &BTreeMap<&str, Coverage>,
    files: &BTreeMap<String, Coverage>,
    complaints: &[String],
) -> Value {
    let count = |count: Count| json!({ "count": count.all, "run": count.run, "percent": count.percent() });
    let entry =
        |coverage: &Coverage| json!({ "lines": count(coverage.lines), "branches": count(coverage.branches) });
    json!({
        "crates": totals.iter().map(|(name, total)| (*name, entry(total))).collect::<BTreeMap<_, _>>(),
        "files": files.iter().map(|(path, file)| (path, entry(file))).collect::<BTreeMap<_, _>>(),
        "complaints": complaints,
    })
}

#[cfg(test)]
mod tests;
