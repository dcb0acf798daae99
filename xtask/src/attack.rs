//! `cargo xtask attack`: hostile clients against a server on real sockets, while a client of good faith is served.
//!
//! For each row a server is started anew. Its answers to small requests are timed in quiet and under attack, in turn and several
//! times. It survives if it does not end or panic, if its memory does not grow by more than [`GROWTH_MAX`] at any time, if
//! every request is answered and the slow answers (the median of the 99th percentiles) take at most [`RATIO_MAX`] times as long as
//! in quiet, and if it has done to the attacker what is right, which the attacker itself tells.
//!
//! | file | what it owns |
//! |---|---|
//! | `rows` | the rows: against which server, how often, by whom |
//! | `arena` | processes, cores, priorities, measurements |
//! | `honest` | the client of good faith |
//! | `client` | a client over a real socket that is moved step by step |
//! | `packets` | packets made and read by somebody who knows the keys |
//! | `flood`, `crowd`, `frames`, `proofs` | the attackers |

mod arena;
mod client;
mod crowd;
mod flood;
mod frames;
mod honest;
mod packets;
mod proofs;
mod rows;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;

use self::arena::{Arena, Effort};
use self::rows::Row;
use crate::{Result, programs};

/// By how much the server's memory may grow under an attack, at any time.
const GROWTH_MAX: u64 = 32 << 20;
/// How many times as long as in quiet the slow answers may take.
const RATIO_MAX: f64 = 2.0;
/// How long the slow answers may take where nothing tells how long they take in quiet: a thousand times as long as any row has them wait,
/// since the machine may have other work, and less than what a client is kept waiting that has to wait for its turn.
const SLOW_MAX_US: f64 = 500_000.0;

/// Options of the task.
///
/// Each row starts a server, times requests of a client of good faith in quiet and under attack, in turn, and prints what was done to
/// the server, by how much its memory grew at most, the 99th percentiles in quiet and under attack with their ratio, what the
/// attacker saw, and the verdict. The exit status is 1 if one row is lost. With two cores the server has one for itself; the attacker
/// shares the other one with the client of good faith and runs when that one waits. The server has the priority of any other
/// program, so the machine should have nothing else to do.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these rows.
    #[arg(long = "row", value_name = "NAME", value_delimiter = ',')]
    rows: Vec<Row>,
    /// Fewer and shorter rounds, 10,000 handshakes, streams and datagrams where it is more otherwise.
    #[arg(long)]
    quick: bool,
    /// Judge what the server did to the attacker, and its memory, but of how long requests took only whether it was half a second: where
    /// other programs run as well.
    #[arg(long)]
    no_latency: bool,
    /// These rows are known to be lost by their memory, and by nothing else: it is an error if they are not.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    heavy: Vec<Row>,
    /// Blows per second while latencies are measured [default: 5,000 tickets, of anything else what one core can send]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Use this program `fulmar` instead of building one.
    #[arg(long, value_name = "FILE")]
    fulmar: Option<PathBuf>,
    /// Print one line of JSON for each row.
    #[arg(long)]
    json: bool,
}

/// Somebody with bad intentions.
trait Attacker: Send {
    /// Does its thing once; false if there is nothing to do at present.
    fn strike(&mut self) -> Result<bool>;

    /// What has to be done between blows.
    fn tend(&mut self) -> Result<()> {
        Ok(())
    }

    /// Ends the attack; tells what the server did wrong.
    fn finish(&mut self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// What it has seen.
    fn remark(&self) -> String {
        String::new()
    }
}

/// Plays the chosen rows and fails if one is lost.
pub(crate) fn run(options: &Options) -> Result<()> {
    let fulmar = options.fulmar.clone().map_or_else(programs::build_fulmar, Ok)?.canonicalize()?;
    let (rounds, duration) = if options.quick { (3, 1) } else { (5, 2) };
    let effort = Effort {
        rounds,
        duration: Duration::from_secs(duration),
        rate: options.rate,
        is_quick: options.quick,
        compares: !options.no_latency,
    };
    let arena = Arena::prepare(fulmar, programs::scratch_dir("attack")?, effort)?;
    let chosen = if options.rows.is_empty() { Row::value_variants() } else { &options.rows };
    let mut lost = 0;
    for row in chosen {
        let outcome = arena.play(*row).unwrap_or_else(|error| Outcome {
            unit: row.unit(),
            complaints: vec![error.to_string()],
            ..Outcome::default()
        });
        let complaints = outcome.judge();
        lost += usize::from(match options.heavy.contains(row) {
            true => !outcome.is_lost_by_memory_alone(),
            false => !complaints.is_empty(),
        });
        match options.json {
            true => println!("{}", outcome.to_json(*row, &complaints)),
            false => println!("{}", outcome.to_line(*row, &complaints)),
        }
    }
    match lost {
        0 => Ok(()),
        lost => Err(format!("{lost} of {} rows did not go as they should", chosen.len()).into()),
    }
}

/// What an attack did to the server.
#[derive(Default)]
struct Outcome {
    unit: &'static str,
    /// Blows in all.
    count: u64,
    /// Blows while latencies were measured.
    measured: u64,
    /// The 99th percentile of each round.
    quiet_p99_us: Vec<f64>,
    attacked_p99_us: Vec<f64>,
    /// Processor time of the server in all rounds.
    cpu_quiet: Duration,
    cpu_attacked: Duration,
    /// Resident memory at its peak, beyond what it was before.
    growth: u64,
    remark: String,
    /// What was wrong besides memory and latency.
    complaints: Vec<String>,
}

impl Outcome {
    fn judge(&self) -> Vec<String> {
        let mut complaints = self.complaints.clone();
        if self.growth > GROWTH_MAX {
            complaints.push(format!("the memory grew by {} MiB", self.growth >> 20));
        }
        // A row that failed before it was measured has no ratio, nor has one without rounds in quiet.
        let slow = median(&self.attacked_p99_us);
        if slow.is_infinite() {
            complaints.push("no request was answered".to_owned());
        } else if self.quiet_p99_us.is_empty() && slow > SLOW_MAX_US {
            complaints.push(format!("slow requests took {:.2} s", slow / 1e6));
        } else if self.ratio() > RATIO_MAX {
            complaints.push(format!("slow requests took {:.2} times as long as in quiet", self.ratio()));
        }
        complaints
    }

    /// Whether the memory is all that was wrong.
    fn is_lost_by_memory_alone(&self) -> bool {
        self.growth > GROWTH_MAX && self.judge().len() == 1
    }

    fn ratio(&self) -> f64 {
        median(&self.attacked_p99_us) / median(&self.quiet_p99_us)
    }

    fn to_json(&self, row: Row, complaints: &[String]) -> serde_json::Value {
        json!({
            "row": row.to_string(),
            "unit": self.unit,
            "count": self.count,
            "count_measured": self.measured,
            "memory_growth_bytes": self.growth,
            "quiet_p99_us": median(&self.quiet_p99_us),
            "attacked_p99_us": median(&self.attacked_p99_us),
            "p99_ratio": self.ratio(),
            "quiet_p99_us_rounds": self.quiet_p99_us,
            "attacked_p99_us_rounds": self.attacked_p99_us,
            "server_cpu_quiet_s": self.cpu_quiet.as_secs_f64(),
            "server_cpu_attacked_s": self.cpu_attacked.as_secs_f64(),
            "remark": self.remark,
            "survived": complaints.is_empty(),
            "complaints": complaints,
        })
    }

    fn to_line(&self, row: Row, complaints: &[String]) -> String {
        let verdict = if complaints.is_empty() { "survived".to_owned() } else { complaints.join("; ") };
        let growth = self.growth as f64 / f64::from(1 << 20);
        let attacked = median(&self.attacked_p99_us);
        let latency = match self.quiet_p99_us.is_empty() {
            true => format!("{attacked:>4.0} µs attacked"),
            false => {
                let quiet = median(&self.quiet_p99_us);
                format!("{quiet:>4.0} µs quiet, {attacked:>4.0} µs attacked, ratio {:.2}", self.ratio())
            }
        };
        format!(
            "{row:<14} {:>8} {:<11}  memory +{growth:>5.1} MiB  p99 {latency}  {verdict}  ({})",
            self.count, self.unit, self.remark,
        )
    }
}

/// The middle of the figures; not a number if there is none.
fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests;
