//! Environments of Python with packages from its registry, each made when it is asked for and kept.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Result, programs};

/// Such an environment in `dir`, with what the `requirements.txt` of `interop/{peer}` names.
///
/// Returns the path of `program` in it, which is there already if it succeeds with the arguments of `probe`.
pub(crate) fn environment(dir: &Path, peer: &str, program: &str, probe: &[&str]) -> Result<PathBuf> {
    let bin = dir.join("bin");
    let program = bin.join(program);
    if run_quietly(Command::new(&program).args(probe)).is_ok() {
        return Ok(program);
    }
    run_quietly(Command::new("python3").args(["-m", "venv"]).arg(dir))
        .map_err(|error| format!("no Python environment can be made: {error}"))?;
    let requirements = programs::repository().join("interop").join(peer).join("requirements.txt");
    let mut install = Command::new(bin.join("python"));
    install.args(["-m", "pip", "install", "--quiet", "-r"]).arg(requirements);
    run_quietly(&mut install).map_err(|error| format!("{peer} cannot be installed: {error}"))?;
    run_quietly(Command::new(&program).args(probe))
        .map_err(|error| format!("{peer} was installed and does not work: {error}"))?;
    Ok(program)
}

/// Runs a command to its end. The error is the last that it said.
pub(crate) fn run_quietly(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(complaint.trim().lines().last().unwrap_or("it failed without a word").to_owned().into())
}
