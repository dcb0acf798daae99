//! The files that the servers offer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fulmar_base::Rng;

use crate::{Result, programs};

/// The file that takes many packets, and one that fits into one.
pub(super) const LARGE: &str = "5m";
pub(super) const SMALL: &str = "1k";
/// The files to be compared, by name and size in bytes.
pub(super) const SIZES: [(&str, usize); 4] = [("empty", 0), ("one", 1), (SMALL, 1 << 10), (LARGE, 5_000_000)];
/// How many small files there are for requests side by side.
const MANY: usize = 99;
/// What of the page is there in compressed form as well.
pub(super) const COMPRESSED: &str = "script.js";
/// A picture of the documents, as the photograph of the page.
const PHOTOGRAPH: &str = "docs/pictures/timers.png";
/// The contents are the same in each run.
const SEED: u64 = 9114;

/// Fills `dir` with the page and the files.
pub(super) fn create(dir: &Path) -> Result<PathBuf> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::create_dir_all(dir)?;
    let repository = programs::repository();
    for entry in fs::read_dir(repository.join("interop/web/site"))? {
        let entry = entry?;
        fs::copy(entry.path(), dir.join(entry.file_name()))?;
    }
    fs::copy(repository.join(PHOTOGRAPH), dir.join("photograph.png"))?;
    let mut rng = Rng::from_u64(SEED);
    let sizes = SIZES.map(|(name, bytes)| (name.to_owned(), bytes));
    for (name, bytes) in sizes.into_iter().chain(many().map(|name| (name, 1 << 10))) {
        let mut content = vec![0; bytes];
        rng.fill(&mut content);
        fs::write(dir.join(name), content)?;
    }
    let status = Command::new("gzip").args(["--keep", "--no-name"]).arg(dir.join(COMPRESSED)).status()?;
    match status.success() {
        true => Ok(dir.to_owned()),
        false => Err("gzip failed".into()),
    }
}

/// The names of small files.
pub(super) fn many() -> impl Iterator<Item = String> {
    (1..=MANY).map(|number| format!("many-{number:02}"))
}

/// The names of the files to be compared.
pub(super) fn names() -> Vec<String> {
    SIZES.iter().map(|(name, _)| (*name).to_owned()).collect()
}
