//! Files that do not stand under their name before they are complete.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::name::NAME_MAX;
use crate::failure::Failure;

/// How many temporary names are tried.
const NAMES_TRIED_MAX: u64 = 16;

/// A file under a temporary name, `.NAME.part-XXXX`, in the directory where it will stand. Unless it is committed,
/// it is removed when this is dropped.
#[derive(Debug)]
pub(super) struct PartFile {
    file: File,
    path: PathBuf,
    /// Where the file will stand.
    destination: PathBuf,
    committed: bool,
}

impl PartFile {
    /// Makes the temporary file for `destination`.
    pub(super) fn create(destination: PathBuf) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut attempt = 0;
        loop {
            let path = part_path(&destination, random(attempt));
            match options.open(&path) {
                Ok(file) => return Ok(Self { file, path, destination, committed: false }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < NAMES_TRIED_MAX => {
                    attempt += 1
                }
                Err(error) => return Err(cannot_write(&destination)(error)),
            }
        }
    }

    /// Appends `bytes`.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(cannot_write(&self.destination))
    }

    /// Gives the file its name; a file that has the name is replaced.
    pub(super) fn commit(mut self) -> Result<(), Failure> {
        fs::rename(&self.path, &self.destination).map_err(cannot_write(&self.destination))?;
        self.committed = true;
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.committed {
            // Nobody is left to be told if this fails, and the name says what the file is.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn cannot_write(destination: &Path) -> impl FnOnce(io::Error) -> Failure {
    Failure::io(format!("cannot write {}", destination.display()))
}

/// The temporary name for `destination`. A long name is cut, so that the whole stays a legal name.
fn part_path(destination: &Path, random: u64) -> PathBuf {
    let suffix = format!(".part-{random:016x}");
    let name = destination.file_name().unwrap_or_default().to_string_lossy();
    let room = NAME_MAX - suffix.len() - 1;
    let cut = (0..=room.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    destination.with_file_name(format!(".{}{suffix}", &name[..cut]))
}

/// A number that another process will not come upon: each `RandomState` has keys of its own.
fn random(attempt: u64) -> u64 {
    RandomState::new().hash_one(attempt)
}

#[cfg(test)]
mod tests;
