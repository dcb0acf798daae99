//! A stranger for Fulmar to talk to, over quinn.
//!
//! `server` and `client` speak HTTP/0.9 over ALPN `hq-interop`: the client opens a bidirectional stream, sends
//! `GET /path\r\n` and ends the stream; the server answers with the bytes of the file and ends the stream. The
//! command line is that of the other peers, so that `cargo xtask interop` starts all of them alike.
//!
//! `extensions` sends datagrams back or gets them back, for the cases about extensions.
//!
//! `perf` speaks the download half of draft-banks-quic-performance over ALPN `perf`, for benchmarks side by side.

mod client;
mod extensions;
mod perf;
mod report;
mod server;
mod tls;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{Parser, Subcommand};

use crate::report::Report;

#[derive(Parser)]
#[command(name = "fulmar-peer-quinn", about = "HTTP/0.9 and perf over quinn")]
struct Arguments {
    /// Threads of the tokio runtime; 1 is the current-thread runtime, which stays on the core it is pinned to.
    #[arg(long, global = true, default_value_t = 1)]
    threads: usize,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a directory over HTTP/0.9.
    Server(server::Options),
    /// Get files over HTTP/0.9.
    Client(client::Options),
    /// Play a case about extensions.
    #[command(subcommand)]
    Extensions(extensions::Command),
    /// Measure a download.
    #[command(subcommand)]
    Perf(perf::Command),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match runtime(arguments.threads) {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let (report, result) = runtime.block_on(async {
        match arguments.command {
            Command::Server(options) => {
                let report = Report::new("server");
                (Some(report.clone()), server::run(options, report).await)
            }
            Command::Client(options) => {
                let report = Report::new("client");
                (Some(report.clone()), client::run(options, report).await)
            }
            Command::Extensions(command) => (None, extensions::run(command).await),
            Command::Perf(command) => (None, perf::run(command).await),
        }
    });
    if let Some(report) = report {
        report.print(result.as_ref().err());
    }
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn runtime(threads: usize) -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = match threads {
        0 | 1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.worker_threads(threads.max(1)).enable_all().build().context("no tokio runtime")
}

/// Reads a duration such as `500ms`, `2s` or `1m`.
fn parse_duration(text: &str) -> anyhow::Result<Duration> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(|| anyhow!("the unit is missing"))?;
    let (number, unit) = text.split_at(unit);
    let number: f64 = number.parse()?;
    let seconds = match unit {
        "ms" => number / 1e3,
        "s" => number,
        "m" => number * 60.0,
        _ => return Err(anyhow!("unknown unit {unit}")),
    };
    Duration::try_from_secs_f64(seconds).map_err(|error| anyhow!(error))
}
