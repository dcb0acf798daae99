//! Programs that are not of this repository: the load generator, which is installed, and servers, which are looked for.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, programs};

/// The load generator, a crate.
const LOAD: &str = "shb";
const LOAD_VERSION: &str = "0.6.0";
/// What nginx says of itself if it was built with HTTP/3.
const NGINX_HTTP3: &str = "--with-http_v3_module";

/// A program, or why there is none.
pub(super) type Found = Result<PathBuf, String>;

/// Where programs are looked for before those of the system: `bin` in this directory below `target`.
fn root() -> Result<PathBuf> {
    programs::scratch_dir("http3-tools")
}

/// The load generator, installed now if it is missing.
pub(super) fn load_generator() -> Result<Found> {
    if let Some(program) = find(LOAD)? {
        return Ok(Ok(program));
    }
    let root = root()?;
    eprintln!("installing {LOAD} {LOAD_VERSION} to {}", root.display());
    let status = Command::new(env!("CARGO"))
        .args(["install", "--locked", "--quiet", LOAD, "--version", LOAD_VERSION, "--root"])
        .arg(&root)
        .status()?;
    if !status.success() {
        return Ok(Err(format!("{LOAD} {LOAD_VERSION} cannot be installed")));
    }
    Ok(find(LOAD)?.ok_or_else(|| format!("{LOAD} is not where cargo has put it")))
}

/// The version of the load generator, which does not tell it itself: known if it was installed here.
pub(super) fn load_version(program: &Path) -> String {
    match root() {
        Ok(root) if program.starts_with(&root) => format!("{LOAD} {LOAD_VERSION}"),
        _ => format!("{LOAD} of unknown version"),
    }
}

/// nginx, if it has HTTP/3.
pub(super) fn nginx() -> Result<Found> {
    let Some(program) = find("nginx")? else { return Ok(Err("nginx is not installed".to_owned())) };
    if !told(&program, "-V").contains(NGINX_HTTP3) {
        let version = version(&program, "-v");
        return Ok(Err(format!("{version} was built without HTTP/3")));
    }
    Ok(Ok(program))
}

pub(super) fn caddy() -> Result<Found> {
    Ok(find("caddy")?.ok_or_else(|| "caddy is not installed".to_owned()))
}

/// What a program says of its version, in one line.
pub(super) fn version(program: &Path, option: &str) -> String {
    let text = told(program, option);
    let words: Vec<&str> = text.split_whitespace().take(3).collect();
    words.join(" ")
}

/// What a program prints, wherever it does.
fn told(program: &Path, option: &str) -> String {
    let Ok(output) = Command::new(program).arg(option).output() else { return String::new() };
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn find(name: &str) -> Result<Option<PathBuf>> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Where Debian keeps servers, which is not in everybody's PATH.
    let dirs =
        [root()?.join("bin")].into_iter().chain(env::split_paths(&path)).chain([PathBuf::from("/usr/sbin")]);
    Ok(dirs.map(|dir| dir.join(name)).find(|program| program.is_file()))
}
