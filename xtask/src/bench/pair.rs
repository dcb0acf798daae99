//! A server and a client of one stack, each a process on a core of its own.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::plan::{Case, Stack};
use super::results::Figures;
use crate::interop::certs::Certificates;
use crate::process::{Finished, Process};
use crate::{Result, programs};

/// How long one run, and the start of a server, may take.
const PATIENCE: Duration = Duration::from_secs(120);
const SERVER_PATIENCE: Duration = Duration::from_secs(10);
const SERVER_CORE: usize = 0;
const CLIENT_CORE: usize = 1;
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
    pub(crate) pinned: bool,
    pub(crate) nice: i32,
    /// The stack of all clients, if it is not the server's.
    pub(crate) client: Option<Stack>,
}

impl Pair {
    /// One run with a new server and a new client.
    pub(crate) fn measure(&self, case: &Case, stack: Stack) -> Result<Outcome> {
        if case.group == IN_PROCESS {
            let mut command = self.on_core(&self.programs.in_process, CLIENT_CORE);
            command.arg(stack.name());
            return self.finish(Process::start(command, &self.dir, IN_PROCESS)?);
        }
        // The limit is no protocol that another one's client could speak.
        let client = self.client.filter(|_| stack != Stack::Limit && stack != Stack::Tcp).unwrap_or(stack);
        let (Some(server), Some(mut command)) =
            (self.command(stack, SERVER_CORE), self.command(client, CLIENT_CORE))
        else {
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

    fn command(&self, stack: Stack, core: usize) -> Option<Command> {
        let program = match stack {
            Stack::QuicGo => self.programs.quic_go.as_ref()?,
            Stack::Limit | Stack::Fulmar | Stack::Quinn | Stack::S2n | Stack::Tcp => &self.programs.stacks,
        };
        Some(self.on_core(program, core))
    }

    /// `nice` and `taskset` become the program, so that the process is the program's. A priority that is not allowed is left out by `nice`.
    fn on_core(&self, program: &PathBuf, core: usize) -> Command {
        let mut command = Command::new("nice");
        command.args(["-n", &self.nice.to_string()]);
        if self.pinned {
            command.args(["taskset", "--cpu-list", &core.to_string()]);
        }
        command.arg(program);
        command
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
