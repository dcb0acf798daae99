//! `cargo xtask bench instructions`: what the core costs in instructions, which noise does not change, and in bytes of memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Result, programs};

const LIMITS: &str = "benches/instructions.json";
/// A figure may rise to so many percent of its limit before the check fails: compilers differ, and so do processors in what their
/// libraries choose.
const PERCENT_MAX: u64 = 103;
/// Programs, their arguments, and the names under which the counts are kept.
const COUNTED: [(&str, &str, &[&str]); 4] = [
    ("transfer_20_mb", "transfer", &["20"]),
    ("transfer_20_mb_fec", "transfer", &["20", "fec"]),
    ("requests_10000", "requests", &["10000"]),
    ("handshakes_200", "handshakes", &["200"]),
];

/// Counts; then compares with the limits, or writes them.
pub(crate) fn run(check: bool) -> Result<()> {
    let counts = count()?;
    let path = programs::repository().join(LIMITS);
    if !check {
        fs::write(&path, serde_json::to_string_pretty(&counts)? + "\n")?;
        for (name, count) in &counts {
            println!("{name:<24} {count:>14}");
        }
        eprintln!("written: {LIMITS}");
        return Ok(());
    }
    let limits: BTreeMap<String, u64> = serde_json::from_str(&fs::read_to_string(&path)?)?;
    let risen = compare(&counts, &limits)?;
    if risen.is_empty() {
        Ok(())
    } else {
        Err(format!("risen by more than 3 %: {}", risen.join(", ")).into())
    }
}

fn count() -> Result<BTreeMap<String, u64>> {
    let dir = programs::scratch_dir("instructions")?;
    let mut counts = BTreeMap::new();
    for (name, program, arguments) in COUNTED {
        let program = programs::build_bench("fulmar-benches", program)?;
        counts.insert(name.to_owned(), instructions(&program, arguments, &dir.join(name))?);
    }
    let memory = programs::build_bench("fulmar-benches", "idle-memory")?;
    let output = Command::new(memory).output()?;
    let bytes: Value = serde_json::from_slice(&output.stdout)?;
    for field in ["client_heap", "server_heap", "inline"] {
        let figure = bytes[field].as_u64().ok_or_else(|| format!("idle-memory gives no {field}"))?;
        counts.insert(format!("idle_bytes_{field}"), figure);
    }
    Ok(counts)
}

/// Instructions of a run under callgrind.
fn instructions(program: &Path, arguments: &[&str], output: &PathBuf) -> Result<u64> {
    let finished = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", &format!("--callgrind-out-file={}", output.display())])
        .arg(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("valgrind does not start: {error}"))?;
    if !finished.status.success() {
        return Err(String::from_utf8_lossy(&finished.stderr).into_owned().into());
    }
    let profile = fs::read_to_string(output)?;
    summary(&profile).ok_or_else(|| "callgrind wrote no sum".into())
}

/// The sum that stands in a profile.
fn summary(profile: &str) -> Option<u64> {
    let sum =
        |line: &str| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")).map(str::to_owned);
    profile.lines().rev().find_map(sum)?.trim().parse().ok()
}

/// Prints each count beside its limit, and gives those that have risen.
fn compare(counts: &BTreeMap<String, u64>, limits: &BTreeMap<String, u64>) -> Result<Vec<String>> {
    let mut risen = Vec::new();
    for (name, count) in counts {
        let limit = limits.get(name).ok_or_else(|| format!("{LIMITS} has no {name}"))?;
        let change = *count as f64 / *limit as f64 - 1.0;
        println!("{name:<24} {count:>14}  {:>+6.1} %", 100.0 * change);
        if count * 100 > limit * PERCENT_MAX {
            risen.push(format!("{name} by {:.1} %", 100.0 * change));
        }
    }
    Ok(risen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(count: u64) -> BTreeMap<String, u64> {
        BTreeMap::from([("transfer".to_owned(), count)])
    }

    #[test]
    fn a_rise_of_more_than_three_percent_is_told() {
        let limits = counts(1_000);
        assert!(compare(&counts(1_030), &limits).unwrap().is_empty());
        assert!(compare(&counts(500), &limits).unwrap().is_empty());
        assert_eq!(compare(&counts(1_031), &limits).unwrap(), ["transfer by 3.1 %"]);
        assert!(compare(&counts(1), &BTreeMap::new()).is_err());
    }

    #[test]
    fn the_sum_of_a_profile_is_found() {
        assert_eq!(summary("events: Ir\nfn=(1)\n1 5\ntotals: 1234\n"), Some(1_234));
        assert_eq!(summary("events: Ir\n"), None);
    }
}
