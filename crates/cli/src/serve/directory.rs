//! The directory that is served, and nothing outside of it.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant, SystemTime};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use tracing::info;

use super::files::Content;
use super::small_files::{Kept, SmallFile, SmallFiles};
use super::stamp::Stamp;
use crate::failure::Failure;

/// The one name with a dot at its beginning that is served without being asked to: it is made for others (RFC 8615).
const WELL_KNOWN: &str = ".well-known";
/// How many entries of a directory are told at most.
const ENTRIES_MAX: usize = 10_000;

/// How long it is taken for granted that the directory is still the one of its name.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A directory. Symbolic links may be followed as long as they stay inside, also while somebody changes them.
///
/// Where another one takes its place, as a new release does, that is served within [`LOOK_INTERVAL`]. Nothing is watched: a request looks
/// at the name if nobody has for that long.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    place: Arc<Place>,
    /// Whether names that begin with a dot are served.
    has_hidden: bool,
}

#[derive(Debug)]
struct Place {
    /// From the root on: the directory that the program is in may be replaced, too.
    path: PathBuf,
    current: RwLock<Current>,
    small_files: SmallFiles,
}

/// The directory that had the name when it was looked at.
#[derive(Debug, Clone)]
struct Current {
    dir: Arc<Dir>,
    id: Option<(u64, u64)>,
    looked_at: Instant,
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
    pub(super) content: Content,
    pub(super) stamp: Stamp,
    /// Where it is kept what responses say of the file, if that is.
    pub(super) description: Option<Kept>,
}

/// A file or a directory in a directory.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: OsString,
    pub(super) is_directory: bool,
    pub(super) len: u64,
    pub(super) modified: Option<SystemTime>,
}

impl Directory {
    /// The directory at `path`.
    pub(crate) fn open(path: &Path, has_hidden: bool) -> Result<Self, Failure> {
        let cannot = || format!("cannot serve {}", path.display());
        if !path.metadata().map_err(Failure::io(cannot()))?.is_dir() {
            return Err(Failure::Usage(format!("{}: it is no directory", cannot())));
        }
        // Who may not look for names in it finds nothing there, and could only tell clients that nothing is there.
        path.join(".").metadata().map_err(Failure::io(cannot()))?;
        let path = std::path::absolute(path).map_err(Failure::io(cannot()))?;
        let current = RwLock::new(Current::open(&path).map_err(Failure::io(cannot()))?);
        Ok(Self { place: Arc::new(Place { path, current, small_files: SmallFiles::default() }), has_hidden })
    }

    /// Looks whether another directory has the name now. That takes a disk. While there is none, the old one is kept.
    pub(crate) fn look_again(&self) {
        let Place { path, current, .. } = &*self.place;
        let id = path.metadata().ok().and_then(|metadata| id_of(&metadata));
        let is_other = id.is_some() && id != self.current().id;
        let found = is_other.then(|| Current::open(path));
        let mut current = current.write().unwrap_or_else(PoisonError::into_inner);
        current.looked_at = Instant::now();
        match found {
            Some(Ok(found)) => {
                info!(path = %path.display(), "another directory is served");
                *current = found;
            }
            Some(Err(error)) => info!(path = %path.display(), "the new directory is not served: {error}"),
            None => {}
        }
    }

    fn current(&self) -> RwLockReadGuard<'_, Current> {
        self.place.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory, if this access can tell that it is still the one of its name.
    fn dir(&self, access: Access) -> io::Result<Arc<Dir>> {
        if self.current().looked_at.elapsed() >= LOOK_INTERVAL {
            match access {
                Access::Cached => return Err(ErrorKind::WouldBlock.into()),
                Access::Disk => self.look_again(),
            }
        }
        Ok(self.current().dir.clone())
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
        let dir = self.dir(access)?;
        if let Some(SmallFile { content, stamp, description, .. }) = self.place.small_files.find(&dir, path) {
            let content = Content::Memory(content, stamp);
            return Ok(Found::File(Opened { content, stamp, description: Some(description) }));
        }
        let file = match access {
            Access::Cached => open_cached(&dir, path)?,
            Access::Disk => open_wherever(&dir, path).inspect_err(|error| {
                if error.kind() == ErrorKind::PermissionDenied {
                    info!(path = %path.display(), "it is there, but must not be read: {error}");
                }
            })?,
        };
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            Ok(Found::Directory)
        } else if metadata.is_file() {
            let (content, stamp) = (Content::File(file), Stamp::of(&metadata));
            Ok(Found::File(Opened { content, stamp, description: None }))
        } else {
            Err(io::Error::new(ErrorKind::NotFound, "it is no regular file"))
        }
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

    /// Keeps what was read of a file at `path` since `since`, if it is small, for requests that come later. `stamp` was made after it was
    /// read.
    pub(super) fn keep(&self, path: &Path, content: &[u8], stamp: Stamp, since: SystemTime) {
        self.place.small_files.keep(path, content, stamp, since);
    }

    /// What is served of the directory at `path`: directories first, each in the order of names, and whether that is all.
    pub(super) fn list(&self, path: &Path) -> io::Result<(Vec<Entry>, bool)> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let (mut entries, mut is_all) = (Vec::new(), true);
        let dir = self.dir(Access::Disk)?;
        for entry in dir.read_dir(path).map_err(outside)? {
            let name = entry?.file_name();
            if !self.has_hidden && name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            // Links are followed, as they are when they are asked for; those that lead out or nowhere are left out.
            let Ok(metadata) = dir.metadata(path.join(&name)) else { continue };
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
        entries.sort_by_cached_key(|entry| {
            (!entry.is_directory, entry.name.to_string_lossy().to_lowercase(), entry.name.clone())
        });
        Ok((entries, is_all))
    }
}

impl Current {
    fn open(path: &Path) -> io::Result<Self> {
        let looked_at = Instant::now();
        let dir = Dir::open_ambient_dir(path, ambient_authority())?;
        // Of what was opened: the name may be another one's by now, which the next look shows.
        let id = id_of(&dir.try_clone()?.into_std_file().metadata()?);
        Ok(Self { dir: Arc::new(dir), id, looked_at })
    }
}

/// The device and the inode, where there are such.
pub(super) fn id_of(metadata: &Metadata) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        None
    }
}

fn open_wherever(dir: &Dir, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    // To open a pipe would wait for its other end.
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    Ok(dir.open_with(path, &options).map_err(outside)?.into_std())
}

/// Opens what the kernel finds without a disk, below the directory and nowhere else. Of what it refuses only that a name is not there is
/// taken as the last word: the other way decides what else means what.
#[cfg(target_os = "linux")]
fn open_cached(dir: &Dir, path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::CACHED;
    match openat2(dir, path, flags, Mode::empty(), resolve) {
        Ok(file) => Ok(file.into()),
        Err(rustix::io::Errno::NOENT) => Err(ErrorKind::NotFound.into()),
        Err(_) => Err(ErrorKind::WouldBlock.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_cached(_: &Dir, _: &Path) -> io::Result<File> {
    Err(ErrorKind::WouldBlock.into())
}

fn is_hidden(path: &Path) -> bool {
    path.components().enumerate().any(|(index, component)| match component {
        Component::Normal(name) if index == 0 && name == WELL_KNOWN => false,
        Component::Normal(name) => name.as_encoded_bytes().starts_with(b"."),
        _ => false,
    })
}

/// A link that leads out is as good as none. The system's refusals have numbers, and this one has not. Sockets, and devices that are not
/// there, cannot be opened at all, and are no more regular files than those that can.
fn outside(error: io::Error) -> io::Error {
    #[cfg(unix)]
    if let Some(rustix::io::Errno::NXIO | rustix::io::Errno::NODEV) = rustix::io::Errno::from_io_error(&error)
    {
        return io::Error::new(ErrorKind::NotFound, "it is no regular file");
    }
    if error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        return io::Error::new(ErrorKind::NotFound, "it leads out of the directory");
    }
    error
}
