//! HTTP/3 with programs that people use, on loopback: curl and Chromium ask `fulmar serve`, `fulmar get` asks caddy and quic-go.
//!
//! Server and client are processes of their own, new for each case. What arrives is compared with what is offered, and a case in which
//! something did not come by HTTP/3 has failed.

mod browser;
mod get;
mod peers;
mod site;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueEnum;

pub(super) use self::peers::{Pair, Peer, Programs};
use super::certs::Certificates;
use super::table::{Outcome, Verdict};
use crate::Result;
use crate::process::{Finished, Process};

/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Case {
    /// Files of 0, 1, 1,024 and 5,000,000 bytes, and one that is not there.
    Files,
    /// Their heads alone.
    Head,
    /// Parts of a file, and one behind its end.
    Ranges,
    /// Requests that depend on the version of a file that the client has.
    Conditions,
    /// A file that stands in the directory of the server as it is and compressed.
    Compressed,
    /// 100 requests at once over one connection, of which one takes longer than the others.
    Parallel,
    /// 5 MB to the server, which sends them back or does not want them.
    Post,
    /// A download that is cut and goes on.
    Resume,
    /// A page with all that belongs to it.
    Page,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

impl Case {
    /// Whether a pair has something to do in this case.
    fn is_for(self, pair: Pair) -> bool {
        let is_for_client = match pair.client {
            Peer::Chromium => self == Self::Page,
            Peer::Curl => !matches!(self, Self::Page | Self::Resume),
            _ => !matches!(self, Self::Page | Self::Compressed),
        };
        // Go's own file server has no tags, compresses nothing, and does not look at the method.
        let is_for_server = match pair.server {
            Peer::QuicGo => !matches!(self, Self::Conditions | Self::Compressed | Self::Post),
            _ => true,
        };
        is_for_client && is_for_server
    }
}

/// What all cases of a run share.
pub(super) struct Stage {
    programs: Programs,
    certificates: Certificates,
    www: PathBuf,
    logs: PathBuf,
}

/// A server that is ready, and where a client leaves what it gets.
struct Scene<'a> {
    stage: &'a Stage,
    pair: Pair,
    /// The root of the server, with a slash at its end.
    url: String,
    dir: PathBuf,
}

impl Stage {
    /// Makes the certificates and files of a run below `dir`.
    pub(super) fn prepare(dir: &Path, programs: Programs) -> Result<Self> {
        let certificates = Certificates::create(&dir.join("certs"))?;
        let www = site::create(&dir.join("site"))?;
        Ok(Self { programs, certificates, www, logs: dir.join("web") })
    }

    /// Why a pair cannot meet on this machine, if it cannot.
    pub(super) fn obstacle(&self, pair: Pair) -> Option<String> {
        self.programs.obstacle(pair)
    }

    /// Runs a case and tells how it went.
    pub(super) fn play(&self, case: Case, pair: Pair) -> Outcome {
        let start = Instant::now();
        let verdict = match self.obstacle(pair) {
            Some(reason) => Verdict::Skip(reason),
            None => match self.run(case, pair) {
                Ok(()) => Verdict::Pass,
                Err(error) => Verdict::Fail(error.to_string()),
            },
        };
        Outcome::new(case, (pair.server, pair.client), verdict, start.elapsed())
    }

    fn run(&self, case: Case, pair: Pair) -> Result<()> {
        let dir = self.logs.join(format!("{case}-{}-{}", pair.server, pair.client));
        if dir.exists() {
            std::fs::remove_dir_all(&dir)?;
        }
        std::fs::create_dir_all(dir.join("out"))?;
        let (mut server, address) =
            self.programs.start_server(pair.server, &self.www, &self.certificates.short, &dir)?;
        // The address, as some clients do not go on to the next one of a name.
        let scene = Scene { stage: self, pair, url: format!("https://{address}/"), dir };
        match pair.client {
            Peer::Curl => scene.run_curl(case)?,
            Peer::Chromium => browser::show(&scene)?,
            _ => get::run(case, &scene)?,
        }
        match server.wait(Duration::ZERO)? {
            Some(finished) => Err(format!("the server failed: {}", finished.complaint()).into()),
            None => Ok(()),
        }
    }
}

impl Scene<'_> {
    /// The whole case is a program of its own, which compares everything itself.
    fn run_curl(&self, case: Case) -> Result<()> {
        let mut command = self.stage.programs.curl()?;
        command.arg(case.to_string()).args(["--url", &self.url]).arg("--www").arg(&self.stage.www);
        command.arg("--ca").arg(&self.stage.certificates.authority);
        if self.pair.server == Peer::Caddy {
            command.arg("--echoes");
        }
        let finished = self.finish(Process::start(command, &self.dir, "client")?)?;
        match finished.status.success() {
            true => Ok(()),
            false => Err(finished.complaint().to_owned().into()),
        }
    }

    /// Waits for the end of a client, whatever it comes to.
    fn finish(&self, mut client: Process) -> Result<Finished> {
        let finished = client.wait(PATIENCE)?;
        finished.ok_or_else(|| format!("the client did not end within {} s", PATIENCE.as_secs()).into())
    }

    fn out(&self) -> PathBuf {
        self.dir.join("out")
    }
}

/// The cases of each pair that it has something to do in, case by case.
pub(super) fn meetings(cases: &[Case], pairs: &[Pair]) -> Vec<(Case, Pair)> {
    let all = cases.iter().flat_map(|case| pairs.iter().map(|pair| (*case, *pair)));
    all.filter(|(case, pair)| case.is_for(*pair)).collect()
}
