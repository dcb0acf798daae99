//! One connection over two links, on real interfaces: what both carry together, and what happens when one goes down and comes up.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use fulmar_base::Rng;

use super::certs::Certificates;
use super::files;
use super::network::{Conditions, INTERFACES, TwoLinks};
use super::peers::Peer;
use super::table::{Outcome, Verdict};
use crate::process::{Finished, Process};
use crate::{Result, programs};

/// Each link: 20 Mbit/s, 10 ms each way.
const RATE_BPS: u64 = 20_000_000;
const DELAY: Duration = Duration::from_millis(10);
/// What is fetched: 16 s over one of the links, 8 s over both.
const FILE: &str = "40m";
const FILE_BYTES: usize = 40_000_000;
const SEED: u64 = 16;
/// The time over both may be this part of the time over one at most, headers and the start included.
const BOTH_PART_MAX: f64 = 0.65;
/// When the first link goes down, and comes up.
const DOWN_AT: Duration = Duration::from_millis(1_500);
const UP_AT: Duration = Duration::from_millis(3_500);
/// The link must be in use again so long after it has come up. Until then the other one carries everything.
const BACK_WITHIN: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(40);

/// What is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Case {
    /// A file over both links.
    TwoLinks,
    /// The same, found without being told of the interfaces.
    TwoLinksFound,
    /// The first link goes down under load and comes back.
    LinkDown,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// What the cases share.
pub(super) struct Stage {
    fulmar: PathBuf,
    certificates: Certificates,
    www: PathBuf,
    logs: PathBuf,
}

impl Stage {
    /// Makes the certificates and the file below `dir`.
    pub(super) fn prepare(dir: &Path, fulmar: Option<&Path>) -> Result<Self> {
        let fulmar = fulmar.map_or_else(programs::build_fulmar, |program| Ok(program.to_owned()))?;
        let www = dir.join("links-www");
        fs::create_dir_all(&www)?;
        let mut content = vec![0; FILE_BYTES];
        Rng::from_u64(SEED).fill(&mut content);
        fs::write(www.join(FILE), content)?;
        let certificates = Certificates::create(&dir.join("links-certs"))?;
        Ok(Self { fulmar, certificates, www, logs: dir.join("links") })
    }

    /// Plays a case.
    pub(super) fn play(&self, case: Case) -> Outcome {
        let start = Instant::now();
        let verdict = match self.run(case) {
            Ok(()) => Verdict::Pass,
            Err(error) => Verdict::Fail(error.to_string()),
        };
        Outcome::new(case, (Peer::Fulmar, Peer::Fulmar), verdict, start.elapsed())
    }

    fn run(&self, case: Case) -> Result<()> {
        let dir = self.logs.join(case.to_string());
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(dir.join("out"))?;
        let conditions = Conditions { delay: DELAY, rate_bps: RATE_BPS, ..Conditions::default() };
        let network = TwoLinks::open(&format!("links-{case}"), &conditions)?;
        let mut server = Process::start(network.on_server(&self.server()), &dir, "server")?;
        server.listening(PATIENCE)?;
        let client = network.on_client(&self.client(case, &dir.join("out")));
        let start = Instant::now();
        let mut client = Process::start(client, &dir, "client")?;
        if case == Case::LinkDown {
            sleep(DOWN_AT);
            network.take_down(0)?;
            sleep(UP_AT - DOWN_AT);
            network.bring_up(0)?;
        }
        let finished = client.wait(PATIENCE)?.ok_or("the client did not end in time")?;
        let took = start.elapsed();
        if !finished.status.success() {
            return Err(format!("the client failed: {}", finished.complaint()).into());
        }
        files::compare(&self.www, &dir.join("out"), &[FILE.to_owned()])?;
        judge(case, took, &finished)
    }

    fn server(&self) -> Command {
        let mut command = Command::new(&self.fulmar);
        command.arg("serve").arg(&self.www).args(["--listen", "0.0.0.0:443", "--no-tcp", "--workers", "1"]);
        let identity = &self.certificates.short;
        command.arg("--cert").arg(&identity.chain).arg("--key").arg(&identity.key);
        command
    }

    fn client(&self, case: Case, out: &Path) -> Command {
        let mut command = Command::new(&self.fulmar);
        command.args(["get", "--json", "--multipath"]);
        if case != Case::TwoLinksFound {
            command.args(INTERFACES.iter().flat_map(|interface| ["--bind", interface]));
        }
        command.arg("--ca").arg(&self.certificates.authority).arg("-o").arg(out);
        command.arg(format!("https://server4/{FILE}"));
        command
    }
}

/// How long one link takes for the file.
fn time_alone() -> Duration {
    Duration::from_secs_f64(FILE_BYTES as f64 * 8.0 / RATE_BPS as f64)
}

fn judge(case: Case, took: Duration, finished: &Finished) -> Result<()> {
    let most = match case {
        Case::TwoLinks | Case::TwoLinksFound => time_alone().mul_f64(BOTH_PART_MAX),
        // Half of the time in which one link carries everything is lost.
        Case::LinkDown => time_alone().mul_f64(BOTH_PART_MAX) + (UP_AT - DOWN_AT + BACK_WITHIN) / 2,
    };
    if took > most {
        return Err(format!(
            "it took {:.1} s, and {:.1} s are the most",
            took.as_secs_f64(),
            most.as_secs_f64()
        )
        .into());
    }
    let report = finished.report().ok_or("the client told nothing")?;
    let paths = report["paths"].as_array().map_or(0, Vec::len);
    if paths != INTERFACES.len() {
        return Err(format!("{paths} paths were open at the end").into());
    }
    Ok(())
}
