//! Child processes with their output in files, which end with the value that stands for them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::Result;

/// How often a process and its output are looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A running program. Its output goes to files, so that it is still there when a case has failed.
pub(crate) struct Process {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// What a program left behind.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Process {
    /// Starts `command` with its output in `log_dir/name.out` and `log_dir/name.err`.
    pub(crate) fn start(mut command: Command, log_dir: &Path, name: &str) -> Result<Self> {
        let stdout = log_dir.join(format!("{name}.out"));
        let stderr = log_dir.join(format!("{name}.err"));
        let child = command
            .stdin(Stdio::null())
            .stdout(File::create(&stdout)?)
            .stderr(File::create(&stderr)?)
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", command.get_program().display()))?;
        Ok(Self { child, stdout, stderr })
    }

    /// The number under which the system knows the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the address that a server announces as `listening on ADDR` or as `"listening": "ADDR"`.
    pub(crate) fn listening(&mut self, patience: Duration) -> Result<String> {
        let deadline = Instant::now() + patience;
        loop {
            let output = fs::read_to_string(&self.stdout)?;
            if let Some(address) = output.lines().find_map(listening_address) {
                return Ok(address);
            }
            if self.child.try_wait()?.is_some() {
                let stderr = fs::read_to_string(&self.stderr)?;
                return Err(format!("the server ended at once: {}", last_line(&stderr)).into());
            }
            if Instant::now() > deadline {
                return Err("the server never said where it listens".into());
            }
            sleep(POLL_INTERVAL);
        }
    }

    /// Waits for the end of the program; `None` when `patience` is over before it.
    pub(crate) fn wait(&mut self, patience: Duration) -> Result<Option<Finished>> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait()? {
                let stdout = fs::read_to_string(&self.stdout)?;
                let stderr = fs::read_to_string(&self.stderr)?;
                return Ok(Some(Finished { status, stdout, stderr }));
            }
            if Instant::now() > deadline {
                return Ok(None);
            }
            sleep(POLL_INTERVAL);
        }
    }

    /// Asks the program to end, as Ctrl-C does.
    pub(crate) fn interrupt(&self) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).ok_or("no process id")?;
        Ok(kill_process(pid, Signal::INT)?)
    }

    /// Ends the program without a chance to say goodbye to anybody.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Whether `words`, in lower case, were printed so far, in whatever case.
    pub(crate) fn says(&self, words: &str) -> Result<bool> {
        Ok(contains(&fs::read_to_string(&self.stdout)?, words)
            || contains(&fs::read_to_string(&self.stderr)?, words))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ = self.kill();
    }
}

impl Finished {
    /// The last line of JSON on standard output, which reports on the whole run.
    pub(crate) fn report(&self) -> Option<Value> {
        self.stdout.lines().rev().find_map(|line| serde_json::from_str(line).ok().filter(Value::is_object))
    }

    /// The sentence that tells why the program failed.
    pub(crate) fn complaint(&self) -> &str {
        if self.stderr.trim().is_empty() { last_line(&self.stdout) } else { last_line(&self.stderr) }
    }

    /// Whether `words`, in lower case, were printed anywhere, in whatever case.
    pub(crate) fn says(&self, words: &str) -> bool {
        contains(&self.stdout, words) || contains(&self.stderr, words)
    }
}

/// Whether programs can be given a core each.
pub(crate) fn can_pin() -> bool {
    let has_taskset = Command::new("taskset").arg("--version").stdout(Stdio::null()).status().is_ok();
    has_taskset && available_parallelism().is_ok_and(|cores| cores.get() >= 2)
}

/// A program that runs on one core, or anywhere.
pub(crate) fn command_on(program: &Path, core: Option<usize>) -> Command {
    let Some(core) = core else { return Command::new(program) };
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &core.to_string()]).arg(program);
    command
}

fn contains(output: &str, words: &str) -> bool {
    output.to_lowercase().contains(words)
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().last().unwrap_or("no word of why")
}

fn listening_address(line: &str) -> Option<String> {
    if let Some(address) = line.strip_prefix("listening on ") {
        return address.split_whitespace().next().map(str::to_owned);
    }
    let object: Value = serde_json::from_str(line).ok()?;
    object.get("listening")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests;
