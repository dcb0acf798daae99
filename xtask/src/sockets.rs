//! `cargo xtask sockets`: downloads with `fulmar get` from `fulmar serve` over real sockets, through a relay in user
//! space of 50 Mbit/s. The rows and goals are those of the table in `scenarios/README.md`; with `--fec`, small files with and without
//! forward erasure correction, as docs/fec.md tells.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path as FilePath, PathBuf};
use std::process::Command;
use std::time::Duration;

use fulmar_base::Rng;
use serde_json::{Value, json};

use crate::interop::relay::Relay;
use crate::process::Process;
use crate::relay::Path;
use crate::{Result, programs};

/// How long a download, and the start of a server, may take.
const PATIENCE: Duration = Duration::from_secs(120);
const SERVER_PATIENCE: Duration = Duration::from_secs(10);
const RATE_MBPS: f64 = 50.0;

/// A row of the table: round-trip time, loss in percent, size in megabytes, goal in seconds.
#[derive(Debug, Clone, Copy)]
struct Row {
    rtt_ms: f64,
    loss: f64,
    megabytes: u64,
    goal_s: f64,
}

const ROWS: [Row; 8] = [
    Row { rtt_ms: 100.0, loss: 0.0, megabytes: 1, goal_s: 0.55 },
    Row { rtt_ms: 100.0, loss: 0.0, megabytes: 10, goal_s: 2.10 },
    Row { rtt_ms: 100.0, loss: 0.1, megabytes: 10, goal_s: 2.10 },
    Row { rtt_ms: 100.0, loss: 1.0, megabytes: 10, goal_s: 2.15 },
    Row { rtt_ms: 100.0, loss: 1.0, megabytes: 1, goal_s: 0.62 },
    Row { rtt_ms: 100.0, loss: 0.1, megabytes: 20, goal_s: 3.75 },
    Row { rtt_ms: 600.0, loss: 0.0, megabytes: 10, goal_s: 4.6 },
    Row { rtt_ms: 600.0, loss: 1.0, megabytes: 10, goal_s: 5.2 },
];

/// Small files on a link that loses packets, where erasure correction is to help: round-trip time, loss in percent, bytes.
const FEC_LINK: Path = Path { rate: RATE_MBPS, rtt: 100.0, queue: None, loss: 1.0, seed: 1 };
const FEC_BYTES: [u64; 2] = [10_000, 200_000];
/// Ways to meet losses, and the options of both ends.
const WAYS: [(&str, &[&str]); 3] =
    [("none", &["--no-preemptive-repeat"]), ("repeat", &[]), ("tail", &["--fec", "tail"])];

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Downloads of each row; the median counts. Default: 5, and 100 with `--fec`.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Compare ways to meet losses with small files instead: retransmissions alone, copies of what is sent again, repair symbols.
    #[arg(long)]
    fec: bool,
    /// The congestion controller of the server. Default: that of the program.
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    /// Use this program `fulmar` instead of building one.
    #[arg(long)]
    fulmar: Option<PathBuf>,
    /// Print one JSON object per row.
    #[arg(long)]
    json: bool,
}

/// Measures every row and compares it with its goal.
pub(crate) fn run(options: &Options) -> Result<()> {
    let dir = programs::scratch_dir("sockets")?;
    let program = options.fulmar.clone().map_or_else(programs::build_fulmar, Ok)?;
    let bench = Bench { program, www: dir.join("www"), out: dir.join("out"), dir };
    for folder in [&bench.www, &bench.out] {
        fs::create_dir_all(folder)?;
    }
    if options.fec {
        return compare_ways(&bench, options);
    }
    let mut missed = 0;
    for row in ROWS {
        let time = bench.median(row, options)?;
        missed += usize::from(time > row.goal_s);
        print_row(row, time, options.json);
    }
    match missed {
        0 => Ok(()),
        missed => Err(format!("{missed} goals were missed").into()),
    }
}

fn print_row(row: Row, measured_s: f64, json: bool) {
    let verdict = if measured_s <= row.goal_s { "met" } else { "missed" };
    let Row { rtt_ms, loss, megabytes, goal_s } = row;
    if json {
        println!(
            "{}",
            json!({
                "rtt_ms": rtt_ms, "loss_percent": loss, "megabytes": megabytes,
                "goal": goal_s, "measured": measured_s, "verdict": verdict,
            })
        );
    } else {
        println!(
            "{rtt_ms:>4} ms {loss:>4} % {megabytes:>3} MB  {measured_s:>7.3} s  goal {goal_s:>5.2} s  {verdict}"
        );
    }
}

/// Tells what each way takes, with no goal: over the same losses, as long as the same datagrams leave.
fn compare_ways(bench: &Bench, options: &Options) -> Result<()> {
    for bytes in FEC_BYTES {
        let name = format!("{bytes}B");
        create_file(&bench.www.join(&name), bytes)?;
        for (way, arguments) in WAYS {
            let download = Download { path: FEC_LINK, name: &name, cc: options.cc.as_deref(), arguments };
            let times = bench.times(&download, options.runs.unwrap_or(100))?;
            let quantile = |share: f64| times[((times.len() as f64 * share).ceil() as usize).max(1) - 1];
            let [p50, p95, p99] = [0.5, 0.95, 0.99].map(quantile);
            match options.json {
                true => println!(
                    "{}",
                    json!({ "bytes": bytes, "way": way, "runs": times.len(), "p50_s": p50, "p95_s": p95, "p99_s": p99 })
                ),
                false => {
                    println!("{bytes:>7} bytes  {way:<6}  p50 {p50:.3} s  p95 {p95:.3} s  p99 {p99:.3} s")
                }
            }
        }
    }
    Ok(())
}

/// A download, over and over.
struct Download<'a> {
    path: Path,
    name: &'a str,
    cc: Option<&'a str>,
    /// What both ends are given.
    arguments: &'a [&'a str],
}

struct Bench {
    program: PathBuf,
    dir: PathBuf,
    www: PathBuf,
    out: PathBuf,
}

impl Bench {
    fn median(&self, row: Row, options: &Options) -> Result<f64> {
        let name = format!("{}MB", row.megabytes);
        create_file(&self.www.join(&name), row.megabytes * 1_000_000)?;
        let path = Path { rate: RATE_MBPS, rtt: row.rtt_ms, queue: None, loss: row.loss, seed: 1 };
        let download = Download { path, name: &name, cc: options.cc.as_deref(), arguments: &[] };
        let times = self.times(&download, options.runs.unwrap_or(5))?;
        Ok((times[times.len() / 2] + times[(times.len() - 1) / 2]) / 2.0)
    }

    /// How long so many downloads take, in ascending order. Each has its own losses, which are those of the other ways and rows.
    fn times(&self, download: &Download<'_>, runs: u32) -> Result<Vec<f64>> {
        let run = |seed| self.download(&Download { path: Path { seed, ..download.path }, ..*download });
        let mut times = (1..=u64::from(runs)).map(run).collect::<Result<Vec<f64>>>()?;
        times.sort_by(f64::total_cmp);
        Ok(times)
    }

    /// A download by processes of their own, from the first packet of the client to its last byte.
    fn download(&self, download: &Download<'_>) -> Result<f64> {
        let Download { path, name, cc, arguments } = download;
        let mut command = Command::new(&self.program);
        command.arg("serve").arg(&self.www).args(["--listen", "127.0.0.1:0", "--json"]).args(*arguments);
        if let Some(cc) = cc {
            command.args(["--cc", cc]);
        }
        let mut server = Process::start(command, &self.dir, "server")?;
        let address = server.listening(SERVER_PATIENCE)?.parse()?;
        let relay = Relay::start(address, path.conditions()?)?;
        let mut command = Command::new(&self.program);
        command.args(["get", "--hq"]).arg(format!("https://{}/{name}", relay.address()?));
        command.args(["--insecure", "--json", "--out"]).arg(&self.out).args(*arguments);
        let mut client = Process::start(command, &self.dir, "client")?;
        let finished = client.wait(PATIENCE)?.ok_or("the download hangs")?;
        if !finished.status.success() {
            return Err(format!("the download failed: {}", finished.complaint()).into());
        }
        let report: Value = finished.report().ok_or("the client printed no JSON")?;
        if let Some(lost) = relay.overflows().filter(|lost| *lost > 0) {
            eprintln!("the relay was too busy and lost {lost} datagrams beyond those of the link: {name}");
        }
        let (handshake, rest) = (report["handshake_ms"].as_f64(), report["duration_s"].as_f64());
        let times = handshake.zip(rest).ok_or("the client printed no times")?;
        Ok(times.0 / 1e3 + times.1)
    }
}

/// A file of this length with bytes that no compression makes smaller.
fn create_file(path: &FilePath, len: u64) -> Result<()> {
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() == len) {
        return Ok(());
    }
    let mut rng = Rng::from_u64(len);
    let mut file = BufWriter::new(File::create(path)?);
    for _ in 0..len / 8 {
        file.write_all(&rng.u64().to_le_bytes())?;
    }
    Ok(file.flush()?)
}
