//! `cargo xtask bench http3`: files over HTTP, from Fulmar and from the servers that people have.
//!
//! Each run has a new server on one core. Our own client fetches the file once and compares it with the original; then the load
//! generator `shb` runs on the other core, first unmeasured. The figures are its own and those of the server's processes in `/proc`.
//!
//! | file | owns |
//! |---|---|
//! | `cases` | the rows |
//! | `tools` | programs of others: looked for, or installed |
//! | `servers` | how each server is configured and started |
//! | `bodies` | the files, and whether they arrive as they are |
//! | `load` | what the load generator tells |
//! | `usage` | CPU time and memory of a tree of processes |

mod bodies;
mod cases;
mod load;
mod servers;
mod tools;
mod usage;

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::cores::Cores;
use super::pair::Outcome;
use super::plan::{Case, Stack, Unit};
use super::results::Figures;
use crate::Result;
use crate::interop::certs::Certificates;
use crate::process::{Finished, Process};

pub(crate) use self::cases::cases;
use self::load::{Load, Report};
use self::servers::{Server, Servers, Site};
use self::tools::Found;

/// The group of all cases here.
pub(crate) const GROUP: &str = "http3";
/// The word for the load generator in a case; the other word is `get`, our own client.
const BY_LOAD_GENERATOR: &str = "shb";
/// How long a run may take, and how long a server may be asked for its first file.
const PATIENCE: Duration = Duration::from_secs(120);
const START_PATIENCE: Duration = Duration::from_secs(15);
const START_PAUSE: Duration = Duration::from_millis(50);
/// How long the load runs before it is measured.
const WARM_UP: &str = "300ms";

/// All that runs need.
pub(crate) struct Http3 {
    dir: PathBuf,
    www: PathBuf,
    cores: Cores,
    certificates: Certificates,
    servers: Servers,
    load_generator: Found,
}

impl Http3 {
    /// Builds and looks for the programs, but for `fulmar` if it is given, and makes the files of the cases.
    pub(crate) fn prepare(
        dir: PathBuf,
        cores: Cores,
        certificates: Certificates,
        cases: &[Case],
        fulmar: Option<PathBuf>,
    ) -> Result<Self> {
        let www = dir.join("www");
        fs::create_dir_all(&www)?;
        fs::create_dir_all(dir.join("downloads"))?;
        for body_bytes in cases.iter().filter_map(|case| case.body_bytes) {
            bodies::make(&www, body_bytes)?;
        }
        let (servers, load_generator) = (Servers::build(fulmar)?, tools::load_generator()?);
        Ok(Self { dir, www, cores, certificates, servers, load_generator })
    }

    /// The versions of the programs that are not of this repository.
    pub(crate) fn versions(&self) -> Vec<String> {
        let load = self.load_generator.iter().map(|program| tools::load_version(program));
        self.servers.versions().into_iter().chain(load).collect()
    }

    /// One run with a new server.
    pub(crate) fn measure(&self, case: &Case, stack: Stack) -> Result<Outcome> {
        let (Some(body_bytes), Some((client, load))) = (case.body_bytes, case.load.split_first()) else {
            return Err(format!("{} has no body or no load", case.name).into());
        };
        let site = Site { www: &self.www, identity: &self.certificates.short, dir: &self.dir };
        let server = match Server::start(&self.servers, stack, self.cores, &site)? {
            Ok(server) => server,
            Err(outcome) => return Ok(outcome),
        };
        let name = cases::file_name(body_bytes);
        let url = format!("https://{}/{name}", server.address);
        if let Err(why) = self.check(&url, &name)? {
            return Ok(Outcome::Failed(why));
        }
        if client != BY_LOAD_GENERATOR {
            return self.measured(&server, body_bytes, case, || self.download(&url, &name, load));
        }
        let program = match &self.load_generator {
            Ok(program) => program,
            Err(why) => return Ok(Outcome::Nothing(why.clone())),
        };
        let version = if stack == Stack::Http2 { "--http2" } else { "--http3" };
        let run = |load: &[String]| {
            let mut command = self.cores.client(program);
            command.args(["--json", "--threads", "1", version]).args(load).arg(&url);
            self.run(Process::start(command, &self.dir, BY_LOAD_GENERATOR)?)
                .map(|finished| finished.and_then(|finished| loaded(&finished)))
        };
        // The download that was checked has warmed up what a single one needs.
        if let Some(warm_up) = warm_up(load)
            && let Err(why) = run(&warm_up)?
        {
            return Ok(Outcome::Failed(why));
        }
        self.measured(&server, body_bytes, case, || run(load))
    }

    /// What server and client use while `run` goes on.
    fn measured(
        &self,
        server: &Server,
        body_bytes: u64,
        case: &Case,
        run: impl FnOnce() -> Result<Result<Load, String>>,
    ) -> Result<Outcome> {
        let client_before = usage::of_ended_children()?;
        let server_before = match usage::of_tree(server.id()) {
            Ok(usage) => usage,
            Err(error) => return Ok(Outcome::Failed(error.to_string())),
        };
        let load = match run()? {
            Ok(load) => load,
            Err(why) => return Ok(Outcome::Failed(why)),
        };
        let client_after = usage::of_ended_children()?;
        let server_after = match usage::of_tree(server.id()) {
            Ok(usage) => usage,
            Err(error) => return Ok(Outcome::Failed(error.to_string())),
        };
        let amount = match case.unit {
            Unit::Bulk => load.requests * body_bytes,
            _ => load.requests,
        };
        Ok(Outcome::Figures(Figures {
            seconds: load.seconds,
            amount: amount as f64,
            client_cpu_s: client_after - client_before,
            server_cpu_s: Some(server_after.cpu_s - server_before.cpu_s),
            client_peak_kb: None,
            server_peak_kb: Some(server_after.peak_kb),
            latency_us: load.latency,
            full_handshakes: None,
            lost: None,
            client_bytes: None,
            server_bytes: None,
        }))
    }

    /// Fetches the file until the server answers, and compares it; the reason if that does not go well.
    fn check(&self, url: &str, name: &str) -> Result<Result<(), String>> {
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            match self.download(url, name, &["--http3-only".to_owned()])? {
                Ok(_) => break,
                Err(why) if Instant::now() > deadline => return Ok(Err(why)),
                Err(_) => sleep(START_PAUSE),
            }
        }
        if bodies::are_equal(&self.www.join(name), &self.downloads().join(name))? {
            return Ok(Ok(()));
        }
        Ok(Err("the body is not that of the file".to_owned()))
    }

    /// One download by our own client to a file of this name.
    fn download(&self, url: &str, name: &str, options: &[String]) -> Result<Result<Load, String>> {
        let mut command = self.cores.client(&self.servers.fulmar);
        command.args(["get", "--quiet", "--ca"]).arg(&self.certificates.authority);
        command.args(options).arg("--out").arg(self.downloads()).arg(url);
        // What an earlier run has left is no proof of this one.
        if let Err(error) = fs::remove_file(self.downloads().join(name))
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error.into());
        }
        let start = Instant::now();
        let finished = self.run(Process::start(command, &self.dir, "get")?)?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(finished.map(|_| Load { seconds, requests: 1, latency: None }))
    }

    fn downloads(&self) -> PathBuf {
        self.dir.join("downloads")
    }

    /// Waits for a client; the reason if it fails.
    fn run(&self, mut process: Process) -> Result<Result<Finished, String>> {
        let Some(finished) = process.wait(PATIENCE)? else { return Ok(Err("it hangs".to_owned())) };
        if finished.status.success() { Ok(Ok(finished)) } else { Ok(Err(finished.complaint().to_owned())) }
    }
}

fn loaded(finished: &Finished) -> Result<Load, String> {
    let report: Report = serde_json::from_str(&finished.stdout)
        .map_err(|error| format!("the load generator's report cannot be read: {error}"))?;
    report.load()
}

/// The same load for a shorter time; nothing for loads that are a number of requests.
fn warm_up(load: &[String]) -> Option<Vec<String>> {
    let duration = load.iter().position(|word| word == "-z")? + 1;
    let mut load = load.to_vec();
    WARM_UP.clone_into(load.get_mut(duration)?);
    Some(load)
}
