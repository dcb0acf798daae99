//! Many random scenarios in the lab, over all cores.

use std::io::{IsTerminal, Write, stderr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use fulmar_lab::swarm::Worlds;
use fulmar_lab::{Failure, RunReport};
use serde_json::{Value, json};

use crate::Result;

/// How often the progress line is renewed.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// Failures that are described in full; of the others, only the seed and what went wrong.
const FAILURES_SHOWN: usize = 5;

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// How many seeds.
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// One seed only, with its whole scenario and report.
    #[arg(long, conflicts_with_all = ["seeds", "start"])]
    seed: Option<u64>,
    /// Worlds with one to four paths that come and go, in place of those with one link.
    #[arg(long)]
    multipath: bool,
    /// Print one JSON object per seed, and one with the totals.
    #[arg(long)]
    json: bool,
}

/// Runs the swarm; each seed twice, to see that it repeats itself.
pub(crate) fn run(options: &Options) -> Result<()> {
    match options.seed {
        Some(seed) => run_one(options.worlds(), seed, options.json),
        None => run_many(options),
    }
}

impl Options {
    fn worlds(&self) -> Worlds {
        if self.multipath { Worlds::Paths } else { Worlds::OneLink }
    }
}

fn run_one(worlds: Worlds, seed: u64, json: bool) -> Result<()> {
    if !json {
        println!("{:#?}", worlds.scenario(seed));
    }
    match worlds.run_twice(seed) {
        Ok(report) if json => println!("{}", describe(&report)),
        Ok(report) => print!("{report}"),
        Err(failure) if json => {
            println!("{}", describe_failure(worlds, &failure));
            return Err("the seed failed".into());
        }
        Err(failure) => return Err(failure.into()),
    }
    Ok(())
}

/// What the threads share.
struct Progress {
    next: AtomicU64,
    done: AtomicU64,
    failures: Mutex<Vec<Failure>>,
    totals: Mutex<Totals>,
}

#[derive(Default)]
struct Totals {
    connections: usize,
    bytes: u64,
    packets: u64,
    virtual_time: Duration,
}

fn run_many(options: &Options) -> Result<()> {
    let started = Instant::now();
    let end = options.start.saturating_add(options.seeds);
    let progress = Progress {
        next: AtomicU64::new(options.start),
        done: AtomicU64::new(0),
        failures: Mutex::default(),
        totals: Mutex::default(),
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| work(&progress, options.worlds(), end, options.json)))
            .collect();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            show_progress(&progress, options);
            thread::sleep(PROGRESS_INTERVAL);
        }
    });
    finish(&progress, options, started.elapsed())
}

fn work(progress: &Progress, worlds: Worlds, end: u64, json: bool) {
    loop {
        let seed = progress.next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        // A panic in the stack is a failure of its seed like any other.
        let outcome = std::panic::catch_unwind(|| worlds.run_twice(seed));
        match outcome {
            Ok(Ok(report)) => {
                if json {
                    println!("{}", describe(&report));
                }
                lock(&progress.totals).add(&report);
            }
            Ok(Err(failure)) => {
                if json {
                    println!("{}", describe_failure(worlds, &failure));
                }
                lock(&progress.failures).push(failure);
            }
            Err(_) => lock(&progress.failures).push(Failure::panicked(seed)),
        }
        progress.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a thread has locked is whole even if the thread panicked.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Totals {
    fn add(&mut self, report: &RunReport) {
        self.connections += report.connections.len();
        for connection in &report.connections {
            self.bytes += connection.client.bytes_read + connection.server.bytes_read;
        }
        self.packets += report.up.packets_sent + report.down.packets_sent;
        self.virtual_time += report.duration;
    }
}

fn show_progress(progress: &Progress, options: &Options) {
    if options.json || !stderr().is_terminal() {
        return;
    }
    let done = progress.done.load(Ordering::Relaxed);
    let failed = lock(&progress.failures).len();
    eprint!("\r{done} of {} seeds, {failed} failed ", options.seeds);
    // The line is for the eye only.
    let _ = stderr().flush();
}

fn finish(progress: &Progress, options: &Options, elapsed: Duration) -> Result<()> {
    let mut failures = std::mem::take(&mut *lock(&progress.failures));
    failures.sort_by_key(|failure| failure.seed);
    let totals = lock(&progress.totals);
    if options.json {
        println!("{}", describe_totals(options, &totals, failures.len(), elapsed));
    } else {
        show_progress(progress, options);
        println!(
            "{} seeds, each twice, in {:.1} s: {} connections, {:.1} MB, {} packets, {:.0} s of virtual time",
            options.seeds,
            elapsed.as_secs_f64(),
            totals.connections,
            totals.bytes as f64 / 1e6,
            totals.packets,
            totals.virtual_time.as_secs_f64(),
        );
        print_failures(options.worlds(), &failures);
    }
    match failures.len() {
        0 => Ok(()),
        failed => Err(format!("{failed} of {} seeds failed", options.seeds).into()),
    }
}

fn print_failures(worlds: Worlds, failures: &[Failure]) {
    for failure in failures.iter().take(FAILURES_SHOWN) {
        println!("\n{failure}");
    }
    for failure in failures.iter().skip(FAILURES_SHOWN) {
        println!("seed {} at {:?}: {}", failure.seed, failure.at, failure.what);
    }
    for failure in failures {
        println!("repeat with: {}", repeat(worlds, failure));
    }
}

fn describe(report: &RunReport) -> Value {
    let sum =
        |read: fn(&fulmar_lab::ConnectionReport) -> u64| report.connections.iter().map(read).sum::<u64>();
    json!({
        "seed": report.seed,
        "ok": true,
        "trace_sha256": report.trace.to_string(),
        "completion_s": report.duration.as_secs_f64(),
        "steps": report.steps,
        "connections": report.connections.len(),
        "server_connections": report.server_sessions,
        "bytes_to_server": sum(|connection| connection.server.bytes_read),
        "bytes_to_client": sum(|connection| connection.client.bytes_read),
        "packets_up": report.up.packets_sent,
        "packets_down": report.down.packets_sent,
        "packets_dropped": report.up.packets_dropped_in_all() + report.down.packets_dropped_in_all(),
        "packets_corrupted": report.up.packets_corrupted + report.down.packets_corrupted,
    })
}

/// The command that does a failure again.
fn repeat(worlds: Worlds, failure: &Failure) -> String {
    let flag = if worlds == Worlds::Paths { "--multipath " } else { "" };
    format!("cargo xtask swarm {flag}--seed {}", failure.seed)
}

fn describe_failure(worlds: Worlds, failure: &Failure) -> Value {
    json!({
        "seed": failure.seed,
        "ok": false,
        "at_s": failure.at.as_secs_f64(),
        "what": failure.what,
        "repeat": repeat(worlds, failure),
    })
}

fn describe_totals(options: &Options, totals: &Totals, failed: usize, elapsed: Duration) -> Value {
    json!({
        "seeds": options.seeds,
        "start": options.start,
        "failed": failed,
        "duration_s": elapsed.as_secs_f64(),
        "connections": totals.connections,
        "bytes": totals.bytes,
        "packets": totals.packets,
        "virtual_time_s": totals.virtual_time.as_secs_f64(),
    })
}
