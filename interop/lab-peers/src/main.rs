//! `fulmar-lab-peers`: the same downloads with each stack as server, and Fulmar or quinn as client.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use fulmar_base::Instant;
use fulmar_sim::{Jitter, LinkConfig, Loss, SuspendedSide, Suspension};
use lab_peers::{Download, Stack, run};
use serde_json::json;

/// Compares Fulmar and quinn-proto on the same simulated links.
#[derive(Debug, Parser)]
struct Options {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds; the median counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// One JSON object per download.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut failed = false;
    for (name, link, bytes) in links() {
        for client in [Stack::FulmarBbr, Stack::QuinnCubic] {
            let mut times = Vec::new();
            for server in Stack::ALL {
                match median(&options, &link, bytes, client, server) {
                    Ok(time) => times.push(format!("{server:?} {time:.3} s")),
                    Err(error) => {
                        failed = true;
                        times.push(format!("{server:?} {error}"));
                    }
                }
            }
            if !options.json {
                println!("{name}, client {client:?}: {}", times.join(", "));
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn median(
    options: &Options,
    link: &LinkConfig,
    bytes: u64,
    client: Stack,
    server: Stack,
) -> Result<f64, lab_peers::Failure> {
    let mut times = Vec::new();
    for seed in options.seed..options.seed + options.runs {
        let download =
            Download { client, server, up: link.clone(), down: link.clone(), bytes, moves: Vec::new(), seed };
        let outcome = run(&download)?;
        if options.json {
            println!("{}", json!({"client": client, "server": server, "seed": seed, "outcome": outcome}));
        }
        times.push(outcome.completion_s);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Name, link and size of each download.
fn links() -> Vec<(&'static str, LinkConfig, u64)> {
    let ms = Duration::from_millis;
    let plain = LinkConfig::with_rate(10_000_000, ms(10), ms(20));
    let stop = Suspension { duration: ms(250), side: SuspendedSide::Send };
    vec![
        ("10 Mbit/s, 10 ms", plain.clone(), 4_000_000),
        (
            "the same, 1 % loss",
            LinkConfig { loss: Loss::Uniform { probability: 0.01 }, ..plain.clone() },
            4_000_000,
        ),
        (
            "the same, 5 ms jitter",
            LinkConfig { jitter: Jitter::Normal { mean: ms(5), deviation: ms(2) }, ..plain },
            4_000_000,
        ),
        (
            "Wi-Fi, 6 stops",
            LinkConfig::with_rate(10_000_000, ms(3), ms(260)).suspended(
                Instant::from_millis(1_000),
                ms(500),
                6,
                stop,
            ),
            3_000_000,
        ),
        ("satellite, 300 ms", LinkConfig::with_rate(20_000_000, ms(300), ms(600)), 10_000_000),
    ]
}
