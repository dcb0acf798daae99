//! The files that servers offer and the check of what clients made of them.

use std::fs;
use std::path::{Path, PathBuf};

use fulmar_base::Rng;

use crate::Result;

/// The many small files of the multiplexing case.
pub(super) const SMALL_FILES: usize = 1999;
const SMALL_BYTES: usize = 32;
/// The other files, by name and size in bytes.
const SIZES: [(&str, usize); 5] =
    [("1k", 1 << 10), ("10k", 10 << 10), ("2m", 2 << 20), ("3m", 3 << 20), ("5m", 5 << 20)];
/// The contents are the same in each run.
const SEED: u64 = 9000;

/// Fills `dir` with all files that cases ask for.
pub(super) fn create(dir: &Path) -> Result<PathBuf> {
    fs::create_dir_all(dir)?;
    let mut rng = Rng::from_u64(SEED);
    let small = small_names().map(|name| (name, SMALL_BYTES));
    for (name, bytes) in SIZES.map(|(name, bytes)| (name.to_owned(), bytes)).into_iter().chain(small) {
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
