//! The directory that is served, and nothing outside of it.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use crate::failure::Failure;

/// The one name with a dot at its beginning that is served without being asked to: it is made for others (RFC 8615).
const WELL_KNOWN: &str = ".well-known";
/// How many entries of a directory are told at most.
const ENTRIES_MAX: usize = 10_000;

/// A directory. Symbolic links may be followed as long as they stay inside, also while somebody changes them.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    dir: Arc<Dir>,
    /// Whether names that begin with a dot are served.
    has_hidden: bool,
}

/// How far one may go for what is in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// To what the kernel has in memory, which takes no longer than a copy of it: the thread of a runtime may do that. Whatever needs more
    /// fails with [`ErrorKind::WouldBlock`].
    Cached,
    /// To the disk.
    Disk,
}

/// What a path names.
#[derive(Debug)]
pub(super) enum Found {
    File(Opened),
    Directory,
}

/// A regular file that is open, and what it was like then.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) metadata: Metadata,
}

/// A file or a directory in a directory.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) is_directory: bool,
    pub(super) len: u64,
    pub(super) modified: Option<SystemTime>,
}

impl Directory {
    /// The directory at `path`, as it is now.
    pub(crate) fn open(path: &Path, has_hidden: bool) -> Result<Self, Failure> {
        let cannot = || format!("cannot serve {}", path.display());
        if !path.metadata().map_err(Failure::io(cannot()))?.is_dir() {
            return Err(Failure::Usage(format!("{}: it is no directory", cannot())));
        }
        let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(Failure::io(cannot()))?;
        Ok(Self { dir: Arc::new(dir), has_hidden })
    }

    /// What is at `path`, which is relative.
    ///
    /// # Errors
    /// Those of the file system; [`ErrorKind::NotFound`] also for what is hidden, leads out of the directory, or is neither a
    /// directory nor a regular file; [`ErrorKind::WouldBlock`] for what needs another [`Access`].
    pub(super) fn find(&self, path: &Path, access: Access) -> io::Result<Found> {
        if !self.has_hidden && is_hidden(path) {
            return Err(ErrorKind::NotFound.into());
        }
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let file = match access {
            Access::Cached => self.open_cached(path)?,
            Access::Disk => self.open_wherever(path)?,
        };
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            Ok(Found::Directory)
        } else if metadata.is_file() {
            Ok(Found::File(Opened { file, metadata }))
        } else {
            Err(io::Error::new(ErrorKind::NotFound, "it is no regular file"))
        }
    }

    fn open_wherever(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true);
        // To open a pipe would wait for its other end.
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt;
            options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        }
        Ok(self.dir.open_with(path, &options).map_err(outside)?.into_std())
    }

    /// Opens what the kernel finds without a disk, below the directory and nowhere else. Of what it refuses only that a name is not there is
    /// taken as the last word: the other way decides what else means what.
    #[cfg(target_os = "linux")]
    fn open_cached(&self, path: &Path) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::CACHED;
        match openat2(&*self.dir, path, flags, Mode::empty(), resolve) {
            Ok(file) => Ok(file.into()),
            Err(rustix::io::Errno::NOENT) => Err(ErrorKind::NotFound.into()),
            Err(_) => Err(ErrorKind::WouldBlock.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open_cached(&self, _: &Path) -> io::Result<File> {
        Err(ErrorKind::WouldBlock.into())
    }

    /// The regular file at `path`.
    ///
    /// # Errors
    /// As those of [`find`](Self::find), and [`ErrorKind::NotFound`] for a directory.
    pub(super) fn file(&self, path: &Path, access: Access) -> io::Result<Opened> {
        match self.find(path, access)? {
            Found::File(opened) => Ok(opened),
            Found::Directory => Err(io::Error::new(ErrorKind::NotFound, "it is a directory")),
        }
    }

    /// What is served of the directory at `path`: directories first, each in the order of names, and whether that is all.
    pub(super) fn list(&self, path: &Path) -> io::Result<(Vec<Entry>, bool)> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let (mut entries, mut is_all) = (Vec::new(), true);
        for entry in self.dir.read_dir(path).map_err(outside)? {
            let name = entry?.file_name();
            // A name that is no text cannot be asked for.
            let Ok(name) = name.into_string() else { continue };
            if !self.has_hidden && name.starts_with('.') {
                continue;
            }
            // Links are followed, as they are when they are asked for; those that lead out or nowhere are left out.
            let Ok(metadata) = self.dir.metadata(path.join(&name)) else { continue };
            if !metadata.is_dir() && !metadata.is_file() {
                continue;
            }
            if entries.len() == ENTRIES_MAX {
                is_all = false;
                break;
            }
            let modified = metadata.modified().ok().map(cap_std::time::SystemTime::into_std);
            entries.push(Entry { name, is_directory: metadata.is_dir(), len: metadata.len(), modified });
        }
        entries
            .sort_by_cached_key(|entry| (!entry.is_directory, entry.name.to_lowercase(), entry.name.clone()));
        Ok((entries, is_all))
    }
}

fn is_hidden(path: &Path) -> bool {
    path.components().enumerate().any(|(index, component)| match component {
        Component::Normal(name) if index == 0 && name == WELL_KNOWN => false,
        Component::Normal(name) => name.as_encoded_bytes().starts_with(b"."),
        _ => false,
    })
}

/// A link that leads out is as good as none. The system's refusals have numbers, and this one has not.
fn outside(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        return io::Error::new(ErrorKind::NotFound, "it leads out of the directory");
    }
    error
}
