//! `cargo xtask attack`: floods of datagrams against a server on real sockets, while a client of good faith is served.
//!
//! For each attack a `fulmar perf server` is started anew. Its answers to small requests are timed in quiet, and again while the
//! attack runs. It survives if it does not end, does not grow by more than [`GROWTH_MAX`], answers every request, and the slow
//! answers (the 99th percentile) take at most twice as long as in quiet. What needs valid keys is tested in the crates, without
//! sockets.

mod flood;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;

use self::flood::{Attack, Flood};
use crate::process::Process;
use crate::{Result, programs};

/// By how much the server's memory may grow under an attack.
const GROWTH_MAX: u64 = 64 << 20;
/// How long the client of good faith makes requests, in quiet and under attack.
const DURATION: &str = "5s";
/// How long a program may take for that, or to start.
const PATIENCE: Duration = Duration::from_secs(30);
/// Answers faster than this are as good as immediate: below it, the scheduler decides and not the server.
const LATENCY_FLOOR_US: u64 = 5_000;
const PAGE_BYTES: u64 = 4096;

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these attacks.
    #[arg(long = "attack", value_delimiter = ',')]
    attacks: Vec<Attack>,
    /// Datagrams of the attacker per second.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Use this program `fulmar` instead of building one.
    #[arg(long)]
    fulmar: Option<PathBuf>,
    /// Print one line of JSON for each attack.
    #[arg(long)]
    json: bool,
}

/// Runs the chosen attacks and fails if the server did not survive one.
pub(crate) fn run(options: &Options) -> Result<()> {
    let fulmar = options.fulmar.clone().map_or_else(programs::build_fulmar, Ok)?;
    let dir = programs::scratch_dir("attack")?;
    let chosen = if options.attacks.is_empty() { Attack::value_variants() } else { &options.attacks };
    let mut defeats = 0;
    for attack in chosen {
        let outcome = run_attack(&fulmar, &dir, *attack, options.rate)?;
        let complaints = outcome.complaints();
        defeats += usize::from(!complaints.is_empty());
        outcome.print(*attack, &complaints, options.json);
    }
    match defeats {
        0 => Ok(()),
        defeats => Err(format!("{defeats} of {} attacks did harm", chosen.len()).into()),
    }
}

/// What an attack did to the server.
struct Outcome {
    quiet_p99_us: u64,
    attacked_p99_us: u64,
    /// Resident memory at the start and at the end.
    memory: (u64, u64),
    datagrams: u64,
}

impl Outcome {
    fn growth(&self) -> u64 {
        self.memory.1.saturating_sub(self.memory.0)
    }

    fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        if self.growth() > GROWTH_MAX {
            complaints.push(format!("the memory grew by {} MiB", self.growth() >> 20));
        }
        let allowed = 2 * self.quiet_p99_us.max(LATENCY_FLOOR_US);
        if self.attacked_p99_us > allowed {
            complaints
                .push(format!("requests took {} us instead of {allowed} at most", self.attacked_p99_us));
        }
        complaints
    }

    fn print(&self, attack: Attack, complaints: &[String], as_json: bool) {
        let Self { quiet_p99_us, attacked_p99_us, datagrams, .. } = self;
        let growth = self.growth();
        if as_json {
            let line = json!({
                "attack": attack.to_string(), "datagrams": datagrams, "quiet_p99_us": quiet_p99_us,
                "attacked_p99_us": attacked_p99_us, "memory_growth_bytes": growth,
                "survived": complaints.is_empty(), "complaints": complaints,
            });
            println!("{line}");
            return;
        }
        let verdict = if complaints.is_empty() { "survived".to_owned() } else { complaints.join("; ") };
        println!(
            "{:<14} {datagrams:>7} datagrams  p99 {quiet_p99_us} us quiet, {attacked_p99_us} us attacked  memory +{} KiB  {verdict}",
            attack.to_string(),
            growth >> 10,
        );
    }
}

fn run_attack(fulmar: &Path, dir: &Path, attack: Attack, rate: u32) -> Result<Outcome> {
    let mut command = Command::new(fulmar);
    command.args(["perf", "server", "--listen", "127.0.0.1:0"]);
    let mut server = Process::start(command, dir, "server")?;
    let address: SocketAddr = server.listening(PATIENCE)?.parse()?;
    let quiet_p99_us = request_p99(fulmar, dir, address, "quiet")?;
    let before = resident_bytes(&server)?;

    let mut flood = Flood::prepare(attack, address, fulmar, dir)?;
    let stop = AtomicBool::new(false);
    let (result, datagrams) = std::thread::scope(|scope| {
        let attacker = scope.spawn(|| flood.run(rate, &stop));
        let result = request_p99(fulmar, dir, address, "attacked");
        stop.store(true, Ordering::Relaxed);
        (result, attacker.join())
    });
    let datagrams = datagrams.map_err(|_| "the attacker panicked")??;
    let after = resident_bytes(&server)?;
    Ok(Outcome { quiet_p99_us, attacked_p99_us: result?, memory: (before, after), datagrams })
}

/// Makes requests for a while; each must be answered.
fn request_p99(fulmar: &Path, dir: &Path, server: SocketAddr, name: &str) -> Result<u64> {
    let mut command = Command::new(fulmar);
    command.args(["perf", "client", &server.to_string(), "--insecure", "--json"]);
    command.args(["--requests", "1000000000", "--duration", DURATION]);
    let finished = Process::start(command, dir, name)?.wait(PATIENCE)?.ok_or("the client hangs")?;
    if !finished.status.success() {
        return Err(format!("the client of good faith failed: {}", finished.complaint()).into());
    }
    let report = finished.report().ok_or("the client does not report")?;
    Ok(report["latency_us"]["p99"].as_u64().ok_or("the report has no latencies")?)
}

/// How much memory a process has in use.
fn resident_bytes(process: &Process) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{}/statm", process.id()))
        .map_err(|error| format!("the server is gone: {error}"))?;
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    Ok(pages.ok_or("the system does not tell the memory of a process")? * PAGE_BYTES)
}
