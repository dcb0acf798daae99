//! `cargo xtask bench`: downloads over loopback, Fulmar and quinn in turn.
//!
//! Client and server are processes of their own, each on its own core where `taskset` is at hand. The runs are
//! interleaved in pairs, so that a machine that slows down does so for both.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::interop::certs::Certificates;
use crate::process::{Process, can_pin, command_on};
use crate::{Result, programs};

/// How long one download, and the start of a server, may take.
const PATIENCE: Duration = Duration::from_secs(300);
const SERVER_PATIENCE: Duration = Duration::from_secs(10);
const SERVER_CORE: usize = 0;
const CLIENT_CORE: usize = 1;

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How much to download in each run, such as 250MB or 1GB.
    #[arg(long, default_value = "1GB")]
    size: String,
    /// How many runs of each stack.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Print lines of JSON.
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let dir = programs::scratch_dir("bench")?;
    let pinned = can_pin();
    if !pinned {
        eprintln!("without taskset and two cores, the processes run wherever the system puts them");
    }
    let mut fulmar = Stack::fulmar(&dir, pinned)?;
    let mut quinn = Stack::quinn(&dir, pinned)?;
    for stack in [&mut fulmar, &mut quinn] {
        stack.start_server()?;
    }
    for pair in 1..=options.pairs {
        for stack in [&mut fulmar, &mut quinn] {
            let report = stack.download(&options.size)?;
            print_run(options, pair, stack.name, &report);
        }
    }
    print_summary(options, &fulmar.rates, &quinn.rates);
    Ok(())
}

/// An implementation with a `perf` server and client that have the same command line.
struct Stack {
    name: &'static str,
    program: PathBuf,
    /// Options of the server beyond where to listen.
    server_options: Vec<PathBuf>,
    dir: PathBuf,
    pinned: bool,
    server: Option<(Process, String)>,
    /// Gbit/s of each run so far.
    rates: Vec<f64>,
}

impl Stack {
    fn fulmar(dir: &Path, pinned: bool) -> Result<Self> {
        Ok(Self::new("fulmar", programs::build_fulmar()?, Vec::new(), dir, pinned))
    }

    fn quinn(dir: &Path, pinned: bool) -> Result<Self> {
        let identity = Certificates::create(&dir.join("certs"))?.short;
        let options = vec!["--cert".into(), identity.chain, "--key".into(), identity.key];
        Ok(Self::new("quinn", programs::build_quinn_peer()?, options, dir, pinned))
    }

    fn new(
        name: &'static str,
        program: PathBuf,
        server_options: Vec<PathBuf>,
        dir: &Path,
        pinned: bool,
    ) -> Self {
        Self { name, program, server_options, dir: dir.to_owned(), pinned, server: None, rates: Vec::new() }
    }

    fn start_server(&mut self) -> Result<()> {
        let mut command = self.command(SERVER_CORE);
        command.args(["perf", "server", "--listen", "127.0.0.1:0"]).args(&self.server_options);
        let mut server = Process::start(command, &self.dir, &format!("{}-server", self.name))?;
        let address = server.listening(SERVER_PATIENCE)?;
        self.server = Some((server, address));
        Ok(())
    }

    /// One download; the report is the client's.
    fn download(&mut self, size: &str) -> Result<Value> {
        let (_, address) = self.server.as_ref().ok_or("the server was not started")?;
        let mut command = self.command(CLIENT_CORE);
        command.args(["perf", "client", address, "--insecure", "--json", "--download", size]);
        let mut client = Process::start(command, &self.dir, &format!("{}-client", self.name))?;
        let finished = client.wait(PATIENCE)?.ok_or_else(|| format!("the client of {} hangs", self.name))?;
        if !finished.status.success() {
            return Err(format!("the client of {} failed: {}", self.name, finished.complaint()).into());
        }
        let report =
            finished.report().ok_or_else(|| format!("the client of {} printed no JSON", self.name))?;
        let rate =
            report["gbit_per_s"].as_f64().ok_or_else(|| format!("{} gives no gbit_per_s", self.name))?;
        self.rates.push(rate);
        Ok(report)
    }

    fn command(&self, core: usize) -> Command {
        command_on(&self.program, self.pinned.then_some(core))
    }
}

fn print_run(options: &Options, pair: u32, name: &str, report: &Value) {
    if options.json {
        let mut line = report.clone();
        line["stack"] = json!(name);
        line["pair"] = json!(pair);
        println!("{line}");
    } else {
        let rate = report["gbit_per_s"].as_f64().unwrap_or_default();
        let seconds = report["duration_s"].as_f64().unwrap_or_default();
        println!("pair {pair}  {name:<7} {rate:>7.3} Gbit/s  {seconds:>7.3} s");
    }
}

fn print_summary(options: &Options, fulmar: &[f64], quinn: &[f64]) {
    let ratios: Vec<f64> = fulmar.iter().zip(quinn).map(|(fulmar, quinn)| fulmar / quinn).collect();
    let (fulmar, quinn, ratio) = (median(fulmar), median(quinn), median(&ratios));
    if options.json {
        let summary = json!({
            "fulmar_gbit_per_s": fulmar, "quinn_gbit_per_s": quinn, "ratio": ratio, "ratios": ratios,
        });
        println!("{summary}");
    } else {
        let pairs: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        println!("median  fulmar {fulmar:.3} Gbit/s, quinn {quinn:.3} Gbit/s");
        println!("fulmar / quinn  {} (median {ratio:.2})", pairs.join(" "));
    }
}

/// The middle of the figures, or the mean of the two in the middle.
fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

#[cfg(test)]
mod tests;
