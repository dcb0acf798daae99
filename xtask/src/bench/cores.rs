//! A core for the server and one for the client.

use std::path::Path;
use std::process::Command;

const SERVER_CORE: usize = 0;
const CLIENT_CORE: usize = 1;

/// How the processes of a benchmark are started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cores {
    /// Whether they are bound to their cores, or run wherever the system puts them.
    pub(crate) pinned: bool,
    /// Their priority, from -20 (highest) to 19.
    pub(crate) nice: i32,
}

impl Cores {
    pub(crate) fn server(self, program: &Path) -> Command {
        self.on_core(program, SERVER_CORE)
    }

    pub(crate) fn client(self, program: &Path) -> Command {
        self.on_core(program, CLIENT_CORE)
    }

    /// `nice` and `taskset` become the program, so that the process is the program's. A priority that is not allowed is left out by `nice`.
    fn on_core(self, program: &Path, core: usize) -> Command {
        let mut command = Command::new("nice");
        command.args(["-n", &self.nice.to_string()]);
        if self.pinned {
            command.args(["taskset", "--cpu-list", &core.to_string()]);
        }
        command.arg(program);
        command
    }
}
