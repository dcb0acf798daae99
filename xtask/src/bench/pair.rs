//! A server and a client of one stack, each a process on a core of its own.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::cores::Cores;
use super::plan::{Case, Stack};
use super::results::Figures;
use crate::interop::certs::Certificates;
use crate::process::{Finished, Process};
use crate::{Result, programs};

/// How long one run, and the start of a server, may take.
const PATIENCE: Duration = Duration::from_secs(120);
const SERVER_PATIENCE: Duration = Duration::from_secs(10);
/// With this word a program says that its stack has no such thing.
const UNSUPPORTED: &str = "unsupported: ";
const IN_PROCESS: &str = "in-process";

/// The programs that are measured.
pub(crate) struct Programs {
    stacks: PathBuf,
    in_process: PathBuf,
    quic_go: Option<PathBuf>,
}

impl Programs {
    /// Builds them all, optimised.
    pub(crate) fn build() -> Result<Self> {
        Ok(Self {
            stacks: programs::build_bench("fulmar-bench-stacks", "bench-stack")?,
            in_process: programs::build_bench("fulmar-benches", "in-process")?,
            quic_go: programs::build_go_bench()?,
        })
    }
}

/// What a run came to.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Figures(Figures),
    /// The stack has no such thing, for this reason.
    Nothing(String),
    Failed(String),
}

/// How processes are started.
pub(crate) struct Pair {
    pub(crate) dir: PathBuf,
    pub(crate) programs: Programs,
    pub(crate) certificates: Certificates,
    pub(crate) cores: Cores,
    /// The stack of all clients, if it is not the server's.
    pub(crate) client: Option<Stack>,
}

impl Pair {
    /// One run with a new server and a new client.
    pub(crate) fn measure(&self, case: &Case, stack: Stack) -> Result<Outcome> {
        if case.group == IN_PROCESS {
            let mut command = self.cores.client(&self.programs.in_process);
            command.arg(stack.name());
            return self.finish(Process::start(command, &self.dir, IN_PROCESS)?);
        }
        // The limit is no protocol that another one's client could speak.
        let client = self.client.filter(|_| stack != Stack::Limit && stack != Stack::Tcp).unwrap_or(stack);
        let (Some(server), Some(mut command)) = (
            self.program(stack).map(|program| self.cores.server(program)),
            self.program(client).map(|program| self.cores.client(program)),
        ) else {
            return Ok(Outcome::Nothing("there is no Go on this machine".to_owned()));
        };
        let mut server = self.start_server(server, case, stack)?;
        let address = match server.listening(SERVER_PATIENCE) {
            Ok(address) => address,
            Err(error) => return Ok(Outcome::without_figures(&error.to_string())),
        };
        command
            .args(["client", &address, "--stack", client.name(), "--server-pid", &server.id().to_string()])
            .arg("--cert")
            .arg(&self.certificates.authority)
            .args(&case.transport)
            .args(&case.load);
        let outcome = self.finish(Process::start(command, &self.dir, &format!("{}-client", client.name()))?);
        server.kill()?;
        outcome
    }

    fn start_server(&self, mut command: Command, case: &Case, stack: Stack) -> Result<Process> {
        let identity = &self.certificates.short;
        command
            .args(["server", "--stack", stack.name()])
            .arg("--cert")
            .arg(&identity.chain)
            .arg("--key")
            .arg(&identity.key)
            .args(&case.transport);
        Process::start(command, &self.dir, &format!("{}-server", stack.name()))
    }

    fn finish(&self, mut process: Process) -> Result<Outcome> {
        let Some(finished) = process.wait(PATIENCE)? else {
            return Ok(Outcome::Failed("it hangs".to_owned()));
        };
        Ok(Outcome::of(&finished))
    }

    /// The program that speaks for a stack; `None` if it could not be built here.
    fn program(&self, stack: Stack) -> Option<&PathBuf> {
        if stack == Stack::QuicGo { self.programs.quic_go.as_ref() } else { Some(&self.programs.stacks) }
    }
}

impl Outcome {
    fn of(finished: &Finished) -> Self {
        if !finished.status.success() {
            return Self::without_figures(finished.complaint());
        }
        let figures = finished.report().and_then(|report| serde_json::from_value(report).ok());
        figures.map_or_else(|| Self::Failed("it printed no figures".to_owned()), Self::Figures)
    }

    fn without_figures(complaint: &str) -> Self {
        match complaint.split_once(UNSUPPORTED) {
            Some((_, reason)) => Self::Nothing(reason.to_owned()),
            None => Self::Failed(complaint.to_owned()),
        }
    }
}
