//! Files below one directory, read in blocks off the runtime's thread.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::task::spawn_blocking;

use crate::failure::Failure;

/// The directory to serve, as the file system knows it.
pub(crate) fn root(dir: &Path) -> Result<PathBuf, Failure> {
    let cannot = || format!("cannot serve {}", dir.display());
    let root = dir.canonicalize().map_err(Failure::io(cannot()))?;
    if root.is_dir() { Ok(root) } else { Err(Failure::Usage(format!("{}: it is no directory", cannot()))) }
}

/// A file that is being sent. It is open from a read until it is closed.
#[derive(Debug)]
pub(super) struct Source {
    /// The directory, canonical, and the path below it.
    root: PathBuf,
    path: PathBuf,
    file: Option<File>,
    /// What the file was like when it was opened first.
    stamp: Option<Stamp>,
}

/// What changes when a file is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

/// What was read.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    /// Whether the file ends with it.
    pub(super) is_last: bool,
}

impl Source {
    /// The file at `path` below `root`, which is canonical. It is looked at when it is read.
    pub(super) fn new(root: PathBuf, path: PathBuf) -> Self {
        Self { root, path, file: None, stamp: None }
    }

    /// Reads at most `max` bytes from `offset` on, off the runtime's thread.
    ///
    /// # Errors
    /// Those of the file system. A file that was closed must not have changed.
    pub(super) async fn read(mut self, offset: u64, max: u64) -> io::Result<(Self, Block)> {
        let read = spawn_blocking(move || {
            let block = self.read_now(offset, max)?;
            Ok((self, block))
        });
        read.await.map_err(io::Error::other)?
    }

    /// Closes the file until it is read again.
    pub(super) fn close(&mut self) {
        self.file = None;
    }

    fn read_now(&mut self, offset: u64, max: u64) -> io::Result<Block> {
        let (mut file, stamp) = match (self.file.take(), self.stamp) {
            (Some(file), Some(stamp)) => (file, stamp),
            _ => self.open()?,
        };
        file.seek(SeekFrom::Start(offset))?;
        // One byte more than expected, so that the end is seen without another read. A hint: the file may grow.
        let expected = stamp.len.saturating_sub(offset).saturating_add(1).min(max);
        let mut bytes = Vec::with_capacity(expected as usize);
        let read = (&file).take(max).read_to_end(&mut bytes)? as u64;
        self.file = Some(file);
        Ok(Block { bytes, is_last: read < max })
    }

    fn open(&mut self) -> io::Result<(File, Stamp)> {
        let file = open_inside(&self.root, &self.path)?;
        let metadata = file.metadata()?;
        let stamp = Stamp { len: metadata.len(), modified: metadata.modified().ok() };
        match self.stamp.replace(stamp) {
            Some(before) if before != stamp => {
                Err(io::Error::other("the file was changed while it was sent"))
            }
            _ => Ok((file, stamp)),
        }
    }
}

/// Opens the regular file at `path` below `root`, which is canonical.
///
/// A symbolic link may be followed as long as it stays inside. Whoever may change the directory while it is served
/// could swap a link between the check and the opening; such a person could as well put the file there.
fn open_inside(root: &Path, path: &Path) -> io::Result<File> {
    let real = root.join(path).canonicalize()?;
    if !real.starts_with(root) {
        return Err(io::Error::new(ErrorKind::NotFound, "it leads out of the directory"));
    }
    // Asked before it is opened: to open a pipe would wait for its other end.
    if !real.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::NotFound, "it is no regular file"));
    }
    File::open(real)
}

#[cfg(test)]
mod tests;
