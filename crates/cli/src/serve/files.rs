//! Files below one directory, read in blocks off the runtime's thread.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::failure::Failure;

/// How much is read at once, in bytes: enough that the way to another thread and back does not count.
const BLOCK_BYTES: u64 = 256 << 10;

/// The directory to serve, as the file system knows it.
pub(crate) fn root(dir: &Path) -> Result<PathBuf, Failure> {
    let cannot = || format!("cannot serve {}", dir.display());
    let root = dir.canonicalize().map_err(Failure::io(cannot()))?;
    if root.is_dir() { Ok(root) } else { Err(Failure::Usage(format!("{}: it is no directory", cannot()))) }
}

/// A file that is being sent.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    /// How many bytes the file had left when it was opened. It may grow or shrink while it is read, so this is no
    /// more than a hint of how much memory to take.
    left: u64,
}

/// A read under way.
#[derive(Debug)]
pub(super) struct Reading(JoinHandle<io::Result<(Option<Source>, Bytes)>>);

impl Source {
    /// Opens the file at `path` below `root` and reads its first block.
    pub(super) fn open(root: PathBuf, path: PathBuf) -> Reading {
        Reading(spawn_blocking(move || {
            let file = open_inside(&root, &path)?;
            let left = file.metadata()?.len();
            Self { file, left }.read_block()
        }))
    }

    /// Reads the next block.
    pub(super) fn read_on(self) -> Reading {
        Reading(spawn_blocking(move || self.read_block()))
    }

    /// A block, and the file if there may be more of it.
    fn read_block(mut self) -> io::Result<(Option<Self>, Bytes)> {
        // One byte more than expected, so that the end is seen without another read.
        let expected = self.left.saturating_add(1).min(BLOCK_BYTES);
        let mut block = Vec::with_capacity(expected as usize);
        let read = (&self.file).take(BLOCK_BYTES).read_to_end(&mut block)? as u64;
        self.left = self.left.saturating_sub(read);
        let more = (read == BLOCK_BYTES).then_some(self);
        Ok((more, block.into()))
    }
}

impl Reading {
    /// Waits for the block. Without a file beside it, it is the last one and may be empty.
    pub(super) async fn finish(self) -> io::Result<(Option<Source>, Bytes)> {
        self.0.await.map_err(io::Error::other)?
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
