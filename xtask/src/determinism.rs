//! `cargo xtask determinism`: the same seed gives the same packets, wherever it runs.
//!
//! The lightest scenarios run twice in one process of a release build, once more in another process, and in a debug
//! build. The hashes of the traces are compared with each other; none is stored.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Result, programs};

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many scenarios, the lightest first.
    #[arg(long, default_value_t = 50)]
    scenarios: usize,
    /// The seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Use this program `fulmar` instead of building one in release mode.
    #[arg(long, value_name = "FILE")]
    fulmar: Option<PathBuf>,
    /// Use this program `fulmar` with debug assertions instead of building one.
    #[arg(long, value_name = "FILE")]
    fulmar_debug: Option<PathBuf>,
}

/// The hashes of a process, by scenario; one for each time that it ran.
type Hashes = BTreeMap<String, Vec<String>>;

/// Builds both programs, runs them and compares.
pub(crate) fn run(options: &Options) -> Result<()> {
    let release = options.fulmar.clone().map_or_else(programs::build_fulmar, Ok)?;
    let debug = options.fulmar_debug.clone().map_or_else(programs::build_fulmar_for_debugging, Ok)?;
    let mut names = lightest(&release)?;
    if names.len() < options.scenarios {
        return Err(format!("there are only {} scenarios", names.len()).into());
    }
    names.truncate(options.scenarios);
    let twice: Vec<&String> = names.iter().chain(&names).collect();
    let once: Vec<&String> = names.iter().collect();
    let processes = [
        ("release, twice in one process", hashes(&release, &twice, options.seed)?),
        ("release, another process", hashes(&release, &once, options.seed)?),
        ("debug", hashes(&debug, &once, options.seed)?),
    ];
    let differing: Vec<&String> = names.iter().filter(|name| !is_same(&processes, name)).collect();
    for name in &differing {
        println!("{name}");
        for (process, hashes) in &processes {
            println!(
                "  {process}: {}",
                hashes.get(*name).map_or_else(String::new, |hashes| hashes.join(" "))
            );
        }
    }
    if !differing.is_empty() {
        return Err(format!("{} of {} scenarios differ", differing.len(), names.len()).into());
    }
    println!("{} scenarios: the same packets in one process, in another and in a debug build", names.len());
    Ok(())
}

/// Whether all runs of a scenario gave one hash. A run that fails has none.
fn is_same(processes: &[(&str, Hashes)], name: &str) -> bool {
    let of_process = |hashes: &Hashes| hashes.get(name).cloned().unwrap_or_default();
    let all: Vec<String> = processes.iter().flat_map(|(_, hashes)| of_process(hashes)).collect();
    all.len() == 4 && all.iter().all(|hash| *hash == all[0])
}

/// The names of all scenarios, by the bytes that they move.
fn lightest(program: &Path) -> Result<Vec<String>> {
    let listed = objects(Command::new(program).args(["lab", "list", "--json"]))?;
    let weighed =
        listed.iter().map(|object| Some((object["bytes"].as_u64()?, object["name"].as_str()?.to_owned())));
    let mut weighed: Vec<(u64, String)> =
        weighed.collect::<Option<_>>().ok_or("a scenario has no name or size")?;
    weighed.sort();
    Ok(weighed.into_iter().map(|(_, name)| name).collect())
}

fn hashes(program: &PathBuf, names: &[&String], seed: u64) -> Result<Hashes> {
    let mut command = Command::new(program);
    command.args(["lab", "run", "--json", "--seed", &seed.to_string()]).args(names);
    let mut hashes = Hashes::new();
    for object in objects(&mut command)? {
        let [name, hash] =
            ["scenario", "trace_sha256"].map(|field| object[field].as_str().map(str::to_owned));
        let (name, hash) = name.zip(hash).ok_or("a run has no name or no hash")?;
        hashes.entry(name).or_default().push(hash);
    }
    Ok(hashes)
}

/// The lines of JSON that a program prints. A run that fails is printed on standard error and leaves no line.
fn objects(command: &mut Command) -> Result<Vec<Value>> {
    let output = command.output()?;
    if output.stdout.is_empty() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let text = String::from_utf8(output.stdout)?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}
