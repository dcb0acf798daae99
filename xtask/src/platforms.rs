//! `cargo xtask platforms`: whether everything compiles for systems other than this one, without a warning.
//!
//! Nothing runs there. What is written in C (the cryptography) is compiled by zig, which has the headers of all systems and comes as a
//! package of Python.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python::{self, run_quietly};
use crate::{Result, programs};

/// Rust's name of a platform, and zig's.
const PLATFORMS: [(&str, &str); 2] =
    [("x86_64-pc-windows-gnu", "x86_64-windows-gnu"), ("aarch64-apple-darwin", "aarch64-macos")];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Check these alone, named as Rust does.
    #[arg(long, value_delimiter = ',', default_values_t = PLATFORMS.map(|(rust, _)| rust.to_owned()))]
    targets: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let dir = programs::scratch_dir("platforms")?;
    let python = match python::environment(&dir, "zig", "python", &["-c", "import ziglang"]) {
        Ok(python) => python,
        Err(error) => {
            println!("skipped: other platforms: {error}");
            return Ok(());
        }
    };
    let source = fs::read_to_string(programs::repository().join("interop/zig/zig.py"))?;
    let archiver = script(&dir.join("ar"), &python, &source)?;
    for target in &options.targets {
        let Some((rust, zig)) = PLATFORMS.iter().find(|(rust, _)| rust == target) else {
            let known = PLATFORMS.map(|(rust, _)| rust).join(", ");
            return Err(format!("{target} is not among the platforms: {known}").into());
        };
        let compiler = script(&dir.join(format!("{zig}-cc")), &python, &source)?;
        check(rust, &compiler, &archiver)?;
    }
    Ok(())
}

/// Lints all that users build, for one platform.
fn check(target: &str, compiler: &Path, archiver: &Path) -> Result<()> {
    run_quietly(Command::new("rustup").args(["target", "add", target]))
        .map_err(|error| format!("Rust's libraries for {target} cannot be installed: {error}"))?;
    let name = target.replace('-', "_");
    let status = Command::new(env!("CARGO"))
        .args([
            "clippy",
            "--quiet",
            "--workspace",
            "--exclude",
            "xtask",
            "--target",
            target,
            "--",
            "-D",
            "warnings",
        ])
        .current_dir(programs::repository())
        .env(format!("CC_{name}"), compiler)
        .env(format!("AR_{name}"), archiver)
        .status()?;
    if !status.success() {
        return Err(format!("it does not compile for {target}").into());
    }
    println!("{target}: compiles");
    Ok(())
}

/// Writes a script that this Python runs.
fn script(path: &Path, python: &Path, source: &str) -> Result<PathBuf> {
    fs::write(path, format!("#!{}\n{source}", python.display()))?;
    fs::set_permissions(path, Permissions::from_mode(0o755))?;
    Ok(path.to_owned())
}
