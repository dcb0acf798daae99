//! Small files that were read lately, in memory.
//!
//! To open, look at, read, look at again and close a file costs more than to send it, if it is small; and some file systems (overlayfs, of
//! which images of containers are made) cannot be asked whether they have it in memory, so that each read takes another thread.
//! The rule: a file is looked at for each request, by one call, and what was read of it is given again only if that shows the same file,
//! of the same length, changed at the same time. That can be told for files that had rested when they were read: the times that a file
//! system writes down are coarse, and what is changed twice within one tick of its clock looks as if it were changed once. Nothing is
//! watched. What a program writes into a mapping of the file is not always followed by a time, and of a network file system the kernel may
//! have older times than the server: after [`AGE_MAX`] a file is read again in any case.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use cap_std::fs::Dir;

use super::stamp::Stamp;
use super::web::Description;

/// What the files take at most, in bytes, with their names. Beyond it those go that have been there longest.
const MEMORY_BYTES: usize = 8 << 20;
/// How large a file may be, in bytes: with larger ones the calls do not count.
const FILE_BYTES_MAX: usize = 32 << 10;
/// What a file takes beside its content and its names: the entry, what is said of it, and what allocators add.
const ENTRY_BYTES: usize = 512;
/// How long a file is kept.
const AGE_MAX: Duration = Duration::from_secs(10);
/// How long a file must not have been changed before it was read: more than the coarsest tick, which is the two seconds of FAT. Most
/// have 10 ms.
const REST: Duration = Duration::from_secs(3);

/// The files that are kept. Those who find them locked do without.
#[derive(Debug, Default)]
pub(super) struct SmallFiles(Mutex<Files>);

#[derive(Debug, Default)]
struct Files {
    all: BTreeMap<OsString, SmallFile>,
    /// In the order in which they came.
    order: VecDeque<OsString>,
    memory: usize,
}

/// A file that is kept.
#[derive(Debug, Clone)]
pub(super) struct SmallFile {
    pub(super) content: Bytes,
    pub(super) stamp: Stamp,
    pub(super) description: Kept,
    read_at: Instant,
}

/// What responses say of a file, from the first one on: to find it out takes longer than to send a small file.
pub(super) type Kept = Arc<OnceLock<Description>>;

impl SmallFiles {
    /// The file at `path` below `dir` as it is now, if it is kept.
    pub(super) fn find(&self, dir: &Dir, path: &Path) -> Option<SmallFile> {
        self.find_at(Instant::now(), dir, path)
    }

    fn find_at(&self, now: Instant, dir: &Dir, path: &Path) -> Option<SmallFile> {
        let file = self.try_lock()?.all.get(path.as_os_str())?.clone();
        let is_young = now.saturating_duration_since(file.read_at) < AGE_MAX;
        // The kernel had the name in memory so shortly before that to look at it takes no disk. A link may lead out of the directory: what
        // is found counts only if it is the file that was opened below it.
        (is_young && Stamp::at(dir, path) == Some(file.stamp)).then_some(file)
    }

    /// Keeps what was read of a file since `since`, if that is all of it and it is small. `stamp` was made afterwards.
    pub(super) fn keep(&self, path: &Path, content: &[u8], stamp: Stamp, since: SystemTime) {
        let is_fit = content.len() <= FILE_BYTES_MAX && content.len() as u64 == stamp.len;
        if !is_fit || !stamp.has_rested(since, REST) {
            return;
        }
        let Some(mut files) = self.try_lock() else { return };
        let (content, description) = (Bytes::copy_from_slice(content), Kept::default());
        files.put(path.as_os_str(), SmallFile { content, stamp, description, read_at: Instant::now() });
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Files>> {
        match self.0.try_lock() {
            Ok(files) => Some(files),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Files {
    fn put(&mut self, path: &OsStr, file: SmallFile) {
        self.memory += memory_of(path, &file);
        match self.all.insert(path.to_owned(), file) {
            Some(old) => self.memory -= memory_of(path, &old),
            None => self.order.push_back(path.to_owned()),
        }
        while self.memory > MEMORY_BYTES
            && let Some(path) = self.order.pop_front()
        {
            if let Some(old) = self.all.remove(&path) {
                self.memory -= memory_of(&path, &old);
            }
        }
    }
}

fn memory_of(path: &OsStr, file: &SmallFile) -> usize {
    file.content.len() + 2 * path.len() + ENTRY_BYTES
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
