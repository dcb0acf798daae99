//! The files that servers offer and the check of what clients made of them.

use std::fs;
use std::path::{Path, PathBuf};

use fulmar_base::Rng;

use crate::Result;

/// The many small files of the multiplexing case.
pub(super) const SMALL_FILES: usize = 1999;
const SMALL_BYTES: usize = 32;
/// The other files, by name and size in bytes.
const SIZES: [(&str, usize); 9] = [
    ("1k", 1 << 10),
    ("5k", 5 << 10),
    ("10k", 10 << 10),
    ("100k", 100 << 10),
    ("2m", 2 << 20),
    ("3m", 3 << 20),
    ("5m", 5 << 20),
    ("10m", 10 << 20),
    ("25m", 25 << 20),
];
/// The files of the cases with many connections.
const CONNECTION_FILES: usize = 50;
const CONNECTION_BYTES: usize = 1 << 10;
/// The files of the 0-RTT case, whose names are as long as file systems take.
const LONG_NAMES: usize = 40;
const LONG_NAME_LEN: usize = 250;
/// The contents are the same in each run.
const SEED: u64 = 9000;

/// Fills `dir` with all files that cases ask for.
pub(super) fn create(dir: &Path) -> Result<PathBuf> {
    fs::create_dir_all(dir)?;
    let mut rng = Rng::from_u64(SEED);
    let small = small_names().map(|name| (name, SMALL_BYTES));
    let named = SIZES.map(|(name, bytes)| (name.to_owned(), bytes));
    let connections = connection_names(CONNECTION_FILES).map(|name| (name, CONNECTION_BYTES));
    let early = long_names(LONG_NAMES).map(|name| (name, SMALL_BYTES));
    for (name, bytes) in named.into_iter().chain(small).chain(connections).chain(early) {
        let mut content = vec![0; bytes];
        rng.fill(&mut content);
        fs::write(dir.join(name), content)?;
    }
    Ok(dir.to_owned())
}

/// The names of the small files.
pub(super) fn small_names() -> impl Iterator<Item = String> {
    (1..=SMALL_FILES).map(|number| format!("small-{number:04}"))
}

/// The names of files for one connection each.
pub(super) fn connection_names(count: usize) -> impl Iterator<Item = String> {
    (1..=count).map(|number| format!("connection-{number:02}"))
}

/// Names so long that 0-RTT packets have something to carry.
pub(super) fn long_names(count: usize) -> impl Iterator<Item = String> {
    (1..=count).map(|number| format!("{number:0>LONG_NAME_LEN$}"))
}

/// How many bytes the files have together.
pub(super) fn total_bytes(www: &Path, names: &[String]) -> Result<u64> {
    names.iter().map(|name| Ok(fs::metadata(www.join(name))?.len())).sum()
}

/// Compares what arrived in `out` with what is offered in `www`, byte by byte.
pub(super) fn compare(www: &Path, out: &Path, names: &[String]) -> Result<()> {
    for name in names {
        let arrived = fs::read(out.join(name)).map_err(|error| format!("{name} did not arrive: {error}"))?;
        let offered = fs::read(www.join(name))?;
        if arrived.len() != offered.len() {
            return Err(format!("{name} has {} bytes instead of {}", arrived.len(), offered.len()).into());
        }
        if let Some(at) = arrived.iter().zip(&offered).position(|(arrived, offered)| arrived != offered) {
            return Err(format!("{name} differs at byte {at}").into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
