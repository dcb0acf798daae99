//! Files of one directory, read in blocks where they are asked for.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

/// How much is read at once, in bytes: as much as `fulmar serve` does.
const BLOCK: u64 = 128 << 10;

/// What is served: files right in one directory.
pub(crate) struct Directory(PathBuf);

/// An open file.
pub(crate) struct Found {
    file: File,
    size: u64,
    left: u64,
    changed: SystemTime,
}

impl Directory {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The file of this path; a name is one component that does not begin with a dot, so nothing outside is found.
    pub(crate) fn find(&self, path: &str) -> Option<Found> {
        let name = path.strip_prefix('/')?;
        if name.is_empty() || name.starts_with('.') || name.contains('/') {
            return None;
        }
        let file = File::open(self.0.join(name)).ok()?;
        let metadata = file.metadata().ok()?;
        let changed = metadata.modified().ok()?;
        metadata.is_file().then_some(Found { file, size: metadata.len(), left: metadata.len(), changed })
    }
}

impl Found {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn changed(&self) -> SystemTime {
        self.changed
    }

    /// An entity tag of length and time, as file servers make it.
    pub(crate) fn tag(&self) -> String {
        let since = self.changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("\"{:x}-{:x}\"", self.size, since.as_nanos())
    }

    /// The next bytes; `None` after the last.
    pub(crate) fn next_block(&mut self) -> io::Result<Option<Bytes>> {
        if self.left == 0 {
            return Ok(None);
        }
        let wanted = self.left.min(BLOCK);
        let mut block = Vec::with_capacity(usize::try_from(wanted).unwrap_or_default());
        let read = Read::by_ref(&mut self.file).take(wanted).read_to_end(&mut block)?;
        if u64::try_from(read) != Ok(wanted) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= wanted;
        Ok(Some(block.into()))
    }
}
