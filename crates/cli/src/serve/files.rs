//! Files below one directory, read in blocks: those that the kernel has in memory at once, the others off the runtime's thread.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::SystemTime;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::directory::{Access, Directory, Opened};
use super::samples::Samples;
use super::stamp::Stamp;

/// A file that is being sent, with the length that it had when it was opened first. It is open from a read until it is
/// closed; while it is open it may be replaced by another one of its name, and is sent to its end nevertheless.
#[derive(Debug)]
pub(super) struct Source {
    /// The directory, and the path below it.
    root: Directory,
    path: PathBuf,
    content: Option<Content>,
    sent: Option<Sent>,
}

/// What is known of a file of which a part may have been sent.
#[derive(Debug)]
struct Sent {
    /// What it was like when it was opened first.
    first: Stamp,
    /// The same when it was known last that it begins with what was sent.
    last: Stamp,
    /// Of what was read, unless that was all at once.
    samples: Samples,
    /// Then there is nothing to compare, and mostly no further read.
    was_read_at_once: bool,
}

/// Where the bytes of a file come from.
#[derive(Debug)]
pub(super) enum Content {
    File(File),
    /// All of it, as it was when it was found, and what the file was like then.
    Memory(Bytes, Stamp),
}

/// Why a file cannot be sent, or not to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    /// The file system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// What was sent already does not belong to what the file is now.
    #[error("the file was changed while it was sent")]
    Changed,
}

/// What was read.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    /// Whether the file ends with it.
    pub(super) is_last: bool,
}

impl Source {
    /// The file at `path` below `root`. It is looked at when it is read.
    pub(super) fn new(root: Directory, path: PathBuf) -> Self {
        Self { root, path, content: None, sent: None }
    }

    /// The same of a file that is open.
    pub(super) fn opened(root: Directory, path: PathBuf, Opened { content, stamp, .. }: Opened) -> Self {
        Self { root, path, content: Some(content), sent: Some(Sent::new(stamp)) }
    }

    /// All of it, if that is in memory.
    pub(super) fn in_memory(&self) -> Option<&Bytes> {
        match &self.content {
            Some(Content::Memory(all, _)) => Some(all),
            _ => None,
        }
    }

    /// Reads at most `max` bytes from `offset` on, and nothing beyond the length that the file had at first: what is appended meanwhile is
    /// for the next request. What the kernel does not have in memory is read off the runtime's thread, with a permit of `disk` and into
    /// another buffer.
    ///
    /// # Errors
    /// Those of the file system, and [`SourceError::Changed`] for a file that has shrunk or was written to, other than at its end, as far
    /// as that can be seen. A file that was closed must not even have been replaced.
    pub(super) async fn read(
        mut self,
        offset: u64,
        max: u64,
        disk: &Semaphore,
        buffer: Vec<u8>,
    ) -> Result<(Self, Block), SourceError> {
        match self.read_now(offset, max, Access::Cached, buffer) {
            Err(error) if error.is_not_cached() => {}
            read => return Ok((self, read?)),
        }
        let _permit = disk.acquire().await.map_err(io::Error::other)?;
        let read = spawn_blocking(move || {
            let block = self.read_now(offset, max, Access::Disk, Vec::new())?;
            Ok((self, block))
        });
        read.await.map_err(io::Error::other)?
    }

    /// Closes the file until it is read again.
    pub(super) fn close(&mut self) {
        self.content = None;
    }

    /// The same in the thread that calls it, into a buffer that nobody uses any more. What fails because it takes a disk can be tried
    /// again.
    pub(super) fn read_now(
        &mut self,
        offset: u64,
        max: u64,
        access: Access,
        buffer: Vec<u8>,
    ) -> Result<Block, SourceError> {
        let since = SystemTime::now();
        let content = match self.content.take() {
            Some(content) => content,
            None => self.root.file(&self.path, access)?.content,
        };
        let sent = match &mut self.sent {
            Some(sent) => sent,
            none => none.insert(Sent::new(content.stamp()?)),
        };
        let wanted = sent.first.len.saturating_sub(offset).min(max);
        let is_last = offset + wanted >= sent.first.len;
        // Looked at after the read, so that what was read is of the file as it was.
        let read = content.read(offset, wanted, access, buffer).map_err(SourceError::from);
        let (bytes, now) = match read.and_then(|bytes| Ok((bytes, sent.look_again(&content, access)?))) {
            Err(error) if error.is_not_cached() => {
                self.content = Some(content);
                return Err(error);
            }
            read => read?,
        };
        if (bytes.len() as u64) < wanted {
            return Err(SourceError::Changed);
        }
        sent.last = now;
        let is_all = offset == 0 && is_last;
        match is_all {
            true => sent.was_read_at_once = true,
            false => sent.samples.add(offset, &bytes),
        }
        if let Content::File(_) = content {
            if is_all {
                self.root.keep(&self.path, &bytes, now, since);
            }
            self.content = Some(content);
        }
        Ok(Block { bytes, is_last })
    }
}

impl Sent {
    fn new(stamp: Stamp) -> Self {
        Self { first: stamp, last: stamp, samples: Samples::new(stamp.len), was_read_at_once: false }
    }

    /// What the file is like now that `content` is of, if it still begins with what was sent.
    fn look_again(&self, content: &Content, access: Access) -> Result<Stamp, SourceError> {
        let now = content.stamp()?;
        // While something is appended the times may already be those of what is not there yet: they tell nothing of a file that has grown.
        let is_right = self.first.is_same(now)
            || self.last.is_same(now)
            || (self.first.has_grown(now)
                && !self.was_read_at_once
                && self.samples.are_in(|offset, len| content.read(offset, len, access, Vec::new()))?);
        if is_right { Ok(now) } else { Err(SourceError::Changed) }
    }
}

impl Content {
    /// What the file is like now, or was when all of it was read.
    fn stamp(&self) -> io::Result<Stamp> {
        match self {
            Self::File(file) => Ok(Stamp::of(&file.metadata()?)),
            Self::Memory(_, stamp) => Ok(*stamp),
        }
    }

    /// Reads what there is, less than is wanted if the file is shorter, into a buffer that nobody uses any more.
    fn read(&self, offset: u64, wanted: u64, access: Access, buffer: Vec<u8>) -> io::Result<Vec<u8>> {
        match (self, access) {
            (Self::Memory(all, _), _) => Ok(copied(all, offset, wanted, buffer)),
            (Self::File(file), Access::Cached) => read_cached(file, offset, wanted, buffer),
            (Self::File(file), Access::Disk) => read_wherever(file, offset, wanted, buffer),
        }
    }
}

/// Reads what the kernel has in memory: all of it or nothing.
#[cfg(target_os = "linux")]
fn read_cached(file: &File, offset: u64, wanted: u64, mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    if bytes.capacity() < wanted as usize {
        bytes = vec![0; wanted as usize];
    } else {
        bytes.resize(wanted as usize, 0);
    }
    let into = &mut [io::IoSliceMut::new(&mut bytes)];
    let read = match preadv2(file, into, offset, ReadWriteFlags::NOWAIT) {
        // The file system cannot be asked.
        Err(Errno::OPNOTSUPP) if is_in_memory(file) => preadv2(file, into, offset, ReadWriteFlags::empty()),
        read => read,
    };
    match read {
        Ok(read) if read as u64 == wanted => Ok(bytes),
        _ => Err(ErrorKind::WouldBlock.into()),
    }
}

/// Whether the file system keeps its files in memory alone (tmpfs, ramfs). What was swapped out of it comes from a disk, as anything else
/// of this program would.
#[cfg(target_os = "linux")]
fn is_in_memory(file: &File) -> bool {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    const RAMFS_MAGIC: u64 = 0x8584_58f6;
    rustix::fs::fstatfs(file).is_ok_and(|found| matches!(found.f_type as u64, TMPFS_MAGIC | RAMFS_MAGIC))
}

#[cfg(not(target_os = "linux"))]
fn read_cached(_: &File, _: u64, _: u64, _: Vec<u8>) -> io::Result<Vec<u8>> {
    Err(ErrorKind::WouldBlock.into())
}

/// A part of what is in memory.
fn copied(all: &[u8], offset: u64, len: u64, mut into: Vec<u8>) -> Vec<u8> {
    let rest = all.get(offset as usize..).unwrap_or_default();
    into.clear();
    into.extend_from_slice(&rest[..rest.len().min(len as usize)]);
    into
}

/// Reads what there is, less than is wanted if the file has become shorter.
fn read_wherever(mut file: &File, offset: u64, wanted: u64, mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    bytes.clear();
    bytes.reserve(wanted as usize);
    file.take(wanted).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl SourceError {
    /// Whether it takes a disk to know more.
    pub(super) fn is_not_cached(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == ErrorKind::WouldBlock)
    }
}

#[cfg(test)]
mod tests;
