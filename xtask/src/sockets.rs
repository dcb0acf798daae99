//! `cargo xtask sockets`: downloads with `fulmar get` from `fulmar serve` over real sockets, through a relay in user
//! space of 50 Mbit/s. The rows and goals are those of the table in `scenarios/README.md`.

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

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Downloads of each row; the median counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
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
        let mut times = Vec::new();
        for _ in 0..options.runs {
            times.push(self.download(row, &name, options)?);
        }
        times.sort_by(f64::total_cmp);
        Ok((times[times.len() / 2] + times[(times.len() - 1) / 2]) / 2.0)
    }

    /// A download by processes of their own, from the first packet of the client to its last byte.
    fn download(&self, row: Row, name: &str, options: &Options) -> Result<f64> {
        let mut command = Command::new(&self.program);
        command.arg("serve").arg(&self.www).args(["--listen", "127.0.0.1:0", "--json"]);
        if let Some(cc) = &options.cc {
            command.args(["--cc", cc]);
        }
        let mut server = Process::start(command, &self.dir, "server")?;
        let address = server.listening(SERVER_PATIENCE)?.parse()?;
        let path = Path { rate: RATE_MBPS, rtt: row.rtt_ms, queue: None, loss: row.loss };
        let relay = Relay::start(address, path.conditions()?)?;
        let mut command = Command::new(&self.program);
        command.args(["get", "--hq"]).arg(format!("https://{}/{name}", relay.address()?));
        command.args(["--insecure", "--json", "--out"]).arg(&self.out);
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
