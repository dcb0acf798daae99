//! `cargo xtask mutants`: changes of the core that no test sees.
//!
//! cargo-mutants changes one expression or function at a time in a copy of the repository and runs the tests of [`TESTS`].
//! A mutant that survives shows something that nothing watches. `mutants.txt` lists those that may, each with its reason; any other
//! one is an error, and so are more than [`SURVIVORS_MAX_PERCENT`] of a whole run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::{Result, programs};

/// The version whose mutants `mutants.txt` lists: another one makes others, and names them otherwise.
const VERSION: &str = "27.1.0";
/// What is mutated when nothing else is said.
const PACKAGES: [&str; 2] = ["fulmar-proto", "fulmar-wire"];
/// Whose tests judge a mutant: what timers and controllers do shows in the lab.
const TESTS: [&str; 3] = ["fulmar-proto", "fulmar-wire", "fulmar-lab"];
/// How many of the viable mutants of a whole run may survive, in percent.
const SURVIVORS_MAX_PERCENT: f64 = 3.0;
/// A mutant whose tests take so many times as long as without it hangs, and at least so many seconds.
const TIMEOUT_FACTOR: &str = "3";
const TIMEOUT_LEAST_S: &str = "60";

/// Options of the task.
///
/// A whole run takes days on two cores: the core has some 11,700 mutants, and each is built and tested. `--changed` looks at
/// what a change touches, `--shard` at a part. The exit status is 1 if a mutant survives that `xtask/mutants.txt` does not list.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these files or directories, from the root of the repository.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only lines that differ from this commit.
    #[arg(long, value_name = "COMMIT", num_args = 0..=1, default_missing_value = "main")]
    changed: Option<String>,
    /// Only the K-th of N parts, counted from 0.
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
    /// How many mutants are built and tested at the same time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// Bytes of address space that a process may have: some mutants take what memory there is.
    #[arg(long, value_name = "BYTES", default_value_t = 8_000_000_000)]
    memory: u64,
    /// Print one object of JSON instead of lines.
    #[arg(long)]
    json: bool,
}

/// What became of the mutants.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    caught: usize,
    /// Tests that hung, which is seen as well.
    timed_out: usize,
    /// What does not compile.
    unviable: usize,
    /// The names of those that survived, without their places in the file.
    survivors: Vec<String>,
}

impl Tally {
    fn viable(&self) -> usize {
        self.caught + self.timed_out + self.survivors.len()
    }

    fn percent(&self) -> f64 {
        100.0 * self.survivors.len() as f64 / self.viable().max(1) as f64
    }
}

/// Runs cargo-mutants and judges what survived.
pub(crate) fn run(options: &Options) -> Result<()> {
    check_version()?;
    limit_memory(options.memory)?;
    let dir = programs::scratch_dir("mutants")?;
    let output = dir.join("mutants.out");
    if output.exists() {
        fs::remove_dir_all(&output)?;
    }
    let mut command = Command::new(env!("CARGO"));
    command.arg("mutants").args(["--no-shuffle", "--cap-lints", "true", "--colors", "never"]);
    command.args(["--timeout-multiplier", TIMEOUT_FACTOR, "--minimum-test-timeout", TIMEOUT_LEAST_S]);
    command.arg("--jobs").arg(options.jobs.to_string()).arg("--output").arg(&dir);
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    for package in TESTS {
        command.args(["--test-package", package]);
    }
    for path in &options.paths {
        command.arg("--file").arg(pattern_of(path)?);
    }
    if let Some(shard) = &options.shard {
        command.args(["--shard", shard]);
    }
    if let Some(base) = &options.changed {
        command.arg("--in-diff").arg(write_diff(base, &dir)?);
    }
    if has_nextest() {
        // It ends with the first test that fails.
        command.args(["--test-tool", "nextest"]);
    }
    command.current_dir(programs::repository()).stdout(Stdio::from(std::io::stderr()));
    let status = command.status()?;
    if !output.join("outcomes.json").exists() {
        return match status.success() {
            true => {
                println!("there is nothing to mutate");
                Ok(())
            }
            false => Err("cargo-mutants failed".into()),
        };
    }
    let tally = read_outcomes(&fs::read_to_string(output.join("outcomes.json"))?)?;
    let listed = read_list(&fs::read_to_string(programs::repository().join("xtask/mutants.txt"))?)?;
    let is_whole = options.paths.is_empty() && options.changed.is_none() && options.shard.is_none();
    report(&tally, &listed, is_whole, options.json)
}

fn check_version() -> Result<()> {
    let install = format!("install it with: cargo install --locked cargo-mutants@{VERSION}");
    let output = Command::new(env!("CARGO")).args(["mutants", "--version"]).output()?;
    if !output.status.success() {
        return Err(format!("cargo-mutants is missing; {install}").into());
    }
    let version = String::from_utf8_lossy(&output.stdout);
    match version.split_whitespace().nth(1) {
        Some(VERSION) => Ok(()),
        _ => Err(format!("{} is not cargo-mutants {VERSION}; {install}", version.trim()).into()),
    }
}

/// Bounds the address space of each process that is started from now on. A lower limit that holds already stays.
fn limit_memory(bytes: u64) -> Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::As);
    let current = current.map_or(bytes, |current| current.min(bytes));
    Ok(setrlimit(Resource::As, Rlimit { current: Some(current), maximum })?)
}

fn has_nextest() -> bool {
    let output = Command::new(env!("CARGO")).args(["nextest", "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// What cargo-mutants calls a file, or all files of a directory.
fn pattern_of(path: &Path) -> Result<String> {
    let whole = programs::repository().join(path);
    let text = path.to_str().ok_or("a path is no text")?.trim_end_matches('/');
    match (whole.is_dir(), whole.is_file()) {
        (true, _) => Ok(format!("{text}/**/*.rs")),
        (_, true) => Ok(text.to_owned()),
        _ => Err(format!("there is no {text} in the repository").into()),
    }
}

/// Writes what differs from a commit to a file.
fn write_diff(base: &str, dir: &Path) -> Result<PathBuf> {
    let mut git = Command::new("git");
    let output = git.args(["diff", base, "--"]).current_dir(programs::repository()).output()?;
    if !output.status.success() {
        return Err(format!("git diff failed: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let file = dir.join("changed.diff");
    fs::write(&file, &output.stdout)?;
    Ok(file)
}

/// Reads what cargo-mutants leaves in `outcomes.json`.
fn read_outcomes(text: &str) -> Result<Tally> {
    let outcomes: Value = serde_json::from_str(text)?;
    let outcomes = outcomes["outcomes"].as_array().ok_or("cargo-mutants told no outcomes")?;
    let mut tally = Tally::default();
    for outcome in outcomes {
        let mutant = &outcome["scenario"]["Mutant"];
        if mutant.is_null() {
            // The tests without a mutant.
            continue;
        }
        match outcome["summary"].as_str() {
            Some("CaughtMutant") => tally.caught += 1,
            Some("Timeout") => tally.timed_out += 1,
            Some("Unviable") => tally.unviable += 1,
            Some("MissedMutant") => {
                tally.survivors.push(without_place(mutant["name"].as_str().ok_or("a mutant has no name")?));
            }
            other => return Err(format!("cargo-mutants told an unknown outcome: {other:?}").into()),
        }
    }
    Ok(tally)
}

/// `FILE:LINE:COLUMN: WHAT` without line and column, which change with everything above.
fn without_place(name: &str) -> String {
    let (place, what) = name.split_once(": ").unwrap_or((name, ""));
    let file = place.split(':').next().unwrap_or(place);
    format!("{file}: {what}")
}

/// How many of each name may survive. A line is `FILE: WHAT # REASON`; one without a reason is an error.
fn read_list(text: &str) -> Result<BTreeMap<String, usize>> {
    let mut listed = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, reason) = line.split_once(" # ").unwrap_or((line, ""));
        if reason.trim().is_empty() {
            return Err(format!("mutants.txt has no reason for: {line}").into());
        }
        *listed.entry(name.trim().to_owned()).or_insert(0) += 1;
    }
    Ok(listed)
}

/// The survivors that are not listed.
fn unlisted<'t>(tally: &'t Tally, listed: &BTreeMap<String, usize>) -> Vec<&'t str> {
    let mut left = listed.clone();
    let mut unlisted = Vec::new();
    for survivor in &tally.survivors {
        match left.get_mut(survivor) {
            Some(count) if *count > 0 => *count -= 1,
            _ => unlisted.push(survivor.as_str()),
        }
    }
    unlisted
}

fn report(tally: &Tally, listed: &BTreeMap<String, usize>, is_whole: bool, json: bool) -> Result<()> {
    let unlisted = unlisted(tally, listed);
    if json {
        println!("{}", to_json(tally, &unlisted, is_whole));
    } else {
        for name in &unlisted {
            println!("survives and is not listed: {name}");
        }
        println!(
            "{} mutants: {} caught, {} hung, {} unviable, {} survived ({:.1} % of the viable ones), {} of them not listed",
            tally.viable() + tally.unviable,
            tally.caught,
            tally.timed_out,
            tally.unviable,
            tally.survivors.len(),
            tally.percent(),
            unlisted.len(),
        );
    }
    if !unlisted.is_empty() {
        return Err(format!("{} mutants survived that are not listed", unlisted.len()).into());
    }
    if is_whole && tally.percent() > SURVIVORS_MAX_PERCENT {
        return Err(format!("more than {SURVIVORS_MAX_PERCENT} % of the mutants survived").into());
    }
    Ok(())
}

fn to_json(tally: &Tally, unlisted: &[&str], is_whole: bool) -> Value {
    json!({
        "caught": tally.caught,
        "timed_out": tally.timed_out,
        "unviable": tally.unviable,
        "survived": tally.survivors.len(),
        "viable": tally.viable(),
        "survived_percent": tally.percent(),
        "survivors": tally.survivors,
        "not_listed": unlisted,
        "whole": is_whole,
    })
}

#[cfg(test)]
mod tests;
