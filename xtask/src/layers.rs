//! `cargo xtask layers`: which crate and which module may use which, where unsafe code is forbidden, and whether
//! ARCHITECTURE.md names files that are there.
//!
//! The table of crates is that of ARCHITECTURE.md: users of a crate stand below it, nothing imports upward. The tables of
//! modules are in `layers/modules.rs`.

mod document;
mod modules;
mod source;

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Result;
use crate::programs::repository;

/// Each crate with the crates of Fulmar that it may use, in tests and builds, too.
const ALLOWED: &[(&str, &[&str])] = &[
    ("fulmar-base", &[]),
    ("fulmar-wire", &["fulmar-base"]),
    ("fulmar-fec", &["fulmar-base"]),
    ("fulmar-sim", &["fulmar-base"]),
    ("fulmar-udp", &[]),
    ("fulmar-qpack", &[]),
    ("fulmar-h3-proto", &["fulmar-base", "fulmar-qpack"]),
    ("fulmar-proto", &["fulmar-base", "fulmar-wire", "fulmar-fec"]),
    ("fulmar-lab", &["fulmar-base", "fulmar-wire", "fulmar-proto", "fulmar-sim"]),
    ("fulmar", &["fulmar-base", "fulmar-proto", "fulmar-udp"]),
    ("fulmar-h3", &["fulmar", "fulmar-h3-proto"]),
    ("h3-fulmar", &["fulmar", "fulmar-h3"]),
    ("fulmar-plot", &["fulmar-base", "fulmar-proto"]),
    (
        "fulmar-qlog",
        &["fulmar-base", "fulmar-proto", "fulmar-h3-proto", "fulmar-plot", "fulmar-lab", "fulmar-sim"],
    ),
    ("fulmar-cli", &["fulmar", "fulmar-h3", "fulmar-lab", "fulmar-plot", "fulmar-qlog"]),
    ("own-controller", &["fulmar-cli"]),
    ("xtask", &["fulmar-base", "fulmar-wire", "fulmar-proto", "fulmar-sim", "fulmar-lab"]),
];

/// The crates that may contain unsafe code: system calls and vector instructions.
const UNSAFE_ALLOWED: &[&str] = &["fulmar-udp", "fulmar-fec"];

const FORBID_UNSAFE: &str = "#![forbid(unsafe_code)]";

/// Checks all crates of the workspace and names every breach.
pub(crate) fn run() -> Result<()> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let mut breaches = Vec::new();
    for package in packages {
        let name = text(&package["name"])?;
        let dependencies = names(&package["dependencies"])?;
        breaches.extend(forbidden_edges(name, &dependencies));
        if !UNSAFE_ALLOWED.contains(&name) {
            breaches.extend(roots_without_forbid(package)?);
        }
    }
    let (modules, breaches_within) = modules::breaches()?;
    breaches.extend(breaches_within);
    breaches.extend(document::breaches()?);
    if breaches.is_empty() {
        println!("{} crates and {modules} modules keep their layers", packages.len());
        return Ok(());
    }
    for breach in &breaches {
        eprintln!("{breach}");
    }
    Err(format!("{} breaches of the layers", breaches.len()).into())
}

/// The members of the workspace with their direct dependencies, as cargo itself reads the manifests.
fn metadata() -> Result<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(repository())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("cargo metadata failed".into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// A sentence for each dependency that the table does not allow.
fn forbidden_edges(name: &str, dependencies: &[&str]) -> Vec<String> {
    let Some((_, allowed)) = ALLOWED.iter().find(|(krate, _)| *krate == name) else {
        return vec![format!("{name} is not in the table of layers")];
    };
    dependencies
        .iter()
        .filter(|dependency| is_ours(dependency) && !allowed.contains(dependency))
        .map(|dependency| format!("{name} must not use {dependency}"))
        .collect()
}

fn is_ours(name: &str) -> bool {
    name == "fulmar" || name == "xtask" || name.starts_with("fulmar-") || name.ends_with("-fulmar")
}

/// A sentence for each library or program of a package that does not forbid unsafe code.
fn roots_without_forbid(package: &Value) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for target in package["targets"].as_array().ok_or("cargo metadata lists no targets")? {
        let kinds = target["kind"].as_array().ok_or("cargo metadata names no kind")?;
        if !kinds.iter().any(|kind| kind == "lib" || kind == "bin") {
            continue;
        }
        let root = text(&target["src_path"])?;
        if !fs::read_to_string(root)?.lines().any(|line| line.trim() == FORBID_UNSAFE) {
            breaches.push(format!("{root} lacks {FORBID_UNSAFE}"));
        }
    }
    Ok(breaches)
}

fn names(list: &Value) -> Result<Vec<&str>> {
    list.as_array()
        .ok_or("cargo metadata lists no dependencies")?
        .iter()
        .map(|entry| text(&entry["name"]))
        .collect()
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(|| "cargo metadata has an unknown form".into())
}

#[cfg(test)]
mod tests;
