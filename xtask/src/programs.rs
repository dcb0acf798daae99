//! Builds the programs that the tasks start.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Result;

/// The root of the repository.
pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// A directory of one task below `target`, made if it is not there.
pub(crate) fn scratch_dir(task: &str) -> Result<PathBuf> {
    let dir = repository().canonicalize()?.join("target").join(task);
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// Builds the program `fulmar` and gives its path.
pub(crate) fn build_fulmar() -> Result<PathBuf> {
    build_with_cargo(&repository().join("Cargo.toml"), "fulmar-cli", Target::Program("fulmar"), "release")
}

/// Builds the program `fulmar` with debug assertions and few optimisations, and gives its path.
pub(crate) fn build_fulmar_for_debugging() -> Result<PathBuf> {
    build_with_cargo(&repository().join("Cargo.toml"), "fulmar-cli", Target::Program("fulmar"), "dev")
}

/// Builds the example of the library with which others try extensions, and gives its path.
pub(crate) fn build_extensions_example() -> Result<PathBuf> {
    build_with_cargo(&repository().join("Cargo.toml"), "fulmar", Target::Example("extensions"), "release")
}

/// Builds the peer over quinn and gives its path.
pub(crate) fn build_quinn_peer() -> Result<PathBuf> {
    let program = Target::Program("fulmar-peer-quinn");
    build_with_cargo(&repository().join("interop/Cargo.toml"), "quinn-peer", program, "release")
}

/// Builds the peer over quic-go and gives its path; `None` where there is no Go.
pub(crate) fn build_go_peer() -> Result<Option<PathBuf>> {
    build_with_go("interop/quic-go", "interop/bin/fulmar-peer-go")
}

fn build_with_go(module: &str, program: &str) -> Result<Option<PathBuf>> {
    if Command::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        return Ok(None);
    }
    let root = repository().canonicalize()?;
    let program = root.join(program);
    let status = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(root.join(module))
        .status()?;
    if !status.success() {
        return Err(format!("{module} does not build").into());
    }
    Ok(Some(program))
}

/// Builds a program of the benchmarks and gives its path.
pub(crate) fn build_bench(package: &str, program: &'static str) -> Result<PathBuf> {
    build_with_cargo(&repository().join("benches/Cargo.toml"), package, Target::Program(program), "release")
}

/// Builds the end of a benchmark over quic-go and gives its path; `None` where there is no Go.
pub(crate) fn build_go_bench() -> Result<Option<PathBuf>> {
    build_with_go("benches/quic-go", "benches/target/bench-quic-go")
}

/// What of a package is to be built.
#[derive(Clone, Copy)]
enum Target {
    Program(&'static str),
    Example(&'static str),
}

/// Cargo itself says where it left the program, wherever the target directory may be.
fn build_with_cargo(manifest: &Path, package: &str, target: Target, profile: &str) -> Result<PathBuf> {
    let (kind, name) = match target {
        Target::Program(name) => ("--bin", name),
        Target::Example(name) => ("--example", name),
    };
    let output = Command::new(env!("CARGO"))
        .args([
            "build",
            "--profile",
            profile,
            "--quiet",
            "--message-format=json-render-diagnostics",
            "--package",
            package,
            kind,
            name,
        ])
        .arg("--manifest-path")
        .arg(manifest)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{package} does not build").into());
    }
    let messages = String::from_utf8(output.stdout)?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| format!("cargo built no program {name}").into())
}
