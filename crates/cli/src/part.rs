//! Files that do not stand under their name before they are complete; and devices and pipes, which are written to as they are.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The longest name that common file systems take, in bytes.
pub(crate) const NAME_MAX: usize = 255;

/// How many temporary names are tried.
const NAMES_TRIED_MAX: u64 = 16;

/// A file under a temporary name, in the directory where it will stand. Unless it is committed or kept, it is removed when this is
/// dropped.
///
/// What stands there already and is no regular file, a device or a pipe, is never replaced: it is written to at once.
#[derive(Debug)]
pub(crate) struct PartFile {
    file: File,
    /// The temporary name; none of what is written to as it is.
    path: Option<PathBuf>,
    /// Where the file will stand; where a symbolic link leads, if one stands there.
    destination: PathBuf,
    committed: bool,
    /// Whether it stays when it is not complete, with what it is a part of in a file beside it.
    kept: bool,
    len: u64,
}

impl PartFile {
    /// Opens `NAME.part`, which an earlier download may have left, and tells what that was a part of: a validator of HTTP. Without one
    /// it is empty. What this writes stays if it is not complete.
    ///
    /// # Errors
    /// It cannot be opened, or another download writes it.
    pub(crate) fn resume(destination: PathBuf) -> Result<(Self, Option<String>), Failure> {
        let destination = behind_links(destination);
        if let Some(part) = Self::in_place(&destination)? {
            return Ok((part, None));
        }
        let path = with_suffix(&destination, ".part");
        let mut file = open_alone(&path).map_err(cannot_write(&destination))?;
        if let Some(permissions) = permissions_of(&destination) {
            // A later download has to open it again.
            file.set_permissions(writable(permissions)).map_err(cannot_write(&destination))?;
        }
        let len = file.seek(SeekFrom::End(0)).map_err(cannot_write(&destination))?;
        let validator = fs::read_to_string(with_suffix(&destination, VALIDATOR)).ok().filter(|_| len > 0);
        let mut part = Self { file, path: Some(path), destination, committed: false, kept: true, len };
        if validator.is_none() {
            part.begin_anew(None)?;
        }
        Ok((part, validator))
    }

    /// Whether it is no regular file.
    pub(crate) fn is_stream(&self) -> bool {
        self.path.is_none()
    }

    /// How much is there.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Forgets what is there. What is written next is part of what this validator names.
    ///
    /// # Errors
    /// What has gone to a device or a pipe cannot be taken back.
    pub(crate) fn begin_anew(&mut self, validator: Option<&str>) -> Result<(), Failure> {
        if self.path.is_none() {
            return match self.len {
                0 => Ok(()),
                _ => Err(Failure::CannotBeginAnew(self.destination.display().to_string())),
            };
        }
        // An empty file is left alone: ext4 brings one that was truncated to the disk before `close` returns, a third of a second for 1 GB.
        if self.len > 0 {
            self.file.set_len(0).map_err(cannot_write(&self.destination))?;
            self.file.seek(SeekFrom::Start(0)).map_err(cannot_write(&self.destination))?;
            self.len = 0;
        }
        if !self.kept {
            return Ok(());
        }
        let beside = with_suffix(&self.destination, VALIDATOR);
        match validator {
            Some(validator) => fs::write(&beside, validator).map_err(cannot_write(&beside)),
            None => {
                let _ = fs::remove_file(beside);
                Ok(())
            }
        }
    }

    /// Whether what is there is no regular file. To open it may take until someone reads it.
    pub(crate) fn is_in_place(destination: &Path) -> bool {
        // What a directory in the way means is told when the file gets its name.
        fs::metadata(destination).is_ok_and(|found| !found.is_file() && !found.is_dir())
    }

    /// Opens what is there, if it is no regular file.
    fn in_place(destination: &Path) -> Result<Option<Self>, Failure> {
        if !Self::is_in_place(destination) {
            return Ok(None);
        }
        let file = OpenOptions::new().write(true).open(destination).map_err(cannot_write(destination))?;
        let destination = destination.to_owned();
        Ok(Some(Self { file, path: None, destination, committed: false, kept: false, len: 0 }))
    }

    /// Makes the temporary file for `destination`, with the permissions of the file that it replaces.
    pub(crate) fn create(destination: PathBuf) -> Result<Self, Failure> {
        let destination = behind_links(destination);
        if let Some(part) = Self::in_place(&destination)? {
            return Ok(part);
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut attempt = 0;
        loop {
            let path = part_path(&destination, random(attempt));
            match options.open(&path) {
                Ok(file) => {
                    if let Some(permissions) = permissions_of(&destination) {
                        file.set_permissions(permissions).map_err(cannot_write(&destination))?;
                    }
                    let path = Some(path);
                    return Ok(Self { file, path, destination, committed: false, kept: false, len: 0 });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < NAMES_TRIED_MAX => {
                    attempt += 1
                }
                Err(error) => return Err(cannot_write(&destination)(error)),
            }
        }
    }

    /// Writes a file anew, or for the first time.
    pub(crate) fn replace(destination: &Path, bytes: &[u8]) -> Result<(), Failure> {
        let mut part = Self::create(destination.to_owned())?;
        part.write(bytes)?;
        part.commit()
    }

    /// Appends `bytes`.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(cannot_write(&self.destination))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Gives the file its name; a file that has the name is replaced.
    pub(crate) fn commit(mut self) -> Result<(), Failure> {
        let Some(path) = &self.path else { return Ok(()) };
        if let Some(permissions) = permissions_of(&self.destination).filter(|_| self.kept) {
            self.file.set_permissions(permissions).map_err(cannot_write(&self.destination))?;
        }
        if !is_named(&self.file, path) {
            let error = io::Error::other(format!("another file has taken the place of {}", path.display()));
            return Err(cannot_write(&self.destination)(error));
        }
        fs::rename(path, &self.destination).map_err(cannot_write(&self.destination))?;
        self.committed = true;
        if self.kept {
            let _ = fs::remove_file(with_suffix(&self.destination, VALIDATOR));
        }
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        self.remove_if_useless();
        // Closing the file is not enough: a process that was begun meanwhile may have inherited it, and would keep the lock.
        let _ = self.file.unlock();
    }
}

impl PartFile {
    /// Removes what no later download could continue.
    fn remove_if_useless(&self) {
        let Some(path) = self.path.as_ref().filter(|_| !self.committed) else { return };
        let validator = with_suffix(&self.destination, VALIDATOR);
        // Without a validator nothing could go on there.
        if self.kept && self.len > 0 && validator.exists() {
            return;
        }
        if !is_named(&self.file, path) {
            return;
        }
        // Nobody is left to be told if this fails, and the name says what the file is.
        let _ = fs::remove_file(path);
        if self.kept {
            let _ = fs::remove_file(validator);
        }
    }
}

/// Opens the file of this name, or makes it, and keeps other downloads from it as long as it is open: two would write over each other.
fn open_alone(path: &Path) -> io::Result<File> {
    for _ in 0..NAMES_TRIED_MAX {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            break;
        }
        // Where a file system has no locks, nobody is kept from anything. Who had the lock may have given the file its final name meanwhile.
        if is_named(&file, path) {
            return Ok(file);
        }
    }
    Err(io::Error::new(ErrorKind::ResourceBusy, format!("another download is writing {}", path.display())))
}

/// Whether a file still has this name, as far as the system tells files from each other.
fn is_named(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (Ok(file), Ok(named)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
        (file.dev(), file.ino()) == (named.dev(), named.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// What is added to the name of a file that is not complete, for what names the version of which it is a part.
const VALIDATOR: &str = ".part.of";

/// Those of the file that is going to be replaced, if there is one.
fn permissions_of(destination: &Path) -> Option<Permissions> {
    fs::metadata(destination).ok().filter(fs::Metadata::is_file).map(|replaced| replaced.permissions())
}

/// The same, and its owner may write.
#[cfg(unix)]
fn writable(mut permissions: Permissions) -> Permissions {
    use std::os::unix::fs::PermissionsExt;
    permissions.set_mode(permissions.mode() | 0o200);
    permissions
}

/// The same, and its owner may write.
#[cfg(not(unix))]
fn writable(mut permissions: Permissions) -> Permissions {
    #[allow(
        clippy::permissions_set_readonly_false,
        reason = "where this is compiled, a file that may be written is not open to the world"
    )]
    permissions.set_readonly(false);
    permissions
}

/// Where symbolic links lead, so that they stay. One that leads nowhere is replaced.
fn behind_links(destination: PathBuf) -> PathBuf {
    match destination.is_symlink() {
        true => fs::canonicalize(&destination).unwrap_or(destination),
        false => destination,
    }
}

/// The name of the part, and of what is beside it. A long name is cut, so that the whole stays a legal name, and a checksum of all of it
/// tells it from others that begin alike.
fn with_suffix(destination: &Path, suffix: &str) -> PathBuf {
    let mut name = destination.file_name().unwrap_or_default().to_owned();
    if name.len() + VALIDATOR.len() > NAME_MAX {
        let checksum = format!("-{:08x}", crc32fast::hash(name.as_encoded_bytes()));
        let text = name.to_string_lossy();
        name = (cut(&text, NAME_MAX - VALIDATOR.len() - checksum.len()).to_owned() + &checksum).into();
    }
    name.push(suffix);
    destination.with_file_name(name)
}

/// As much of a name as has so many bytes.
fn cut(name: &str, room: usize) -> &str {
    let end = (0..=room.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    &name[..end]
}

fn cannot_write(destination: &Path) -> impl FnOnce(io::Error) -> Failure {
    |error| Failure::Write { what: destination.display().to_string(), error }
}

/// The temporary name for `destination`. A long name is cut, so that the whole stays a legal name.
fn part_path(destination: &Path, random: u64) -> PathBuf {
    let suffix = format!(".part-{random:016x}");
    let name = destination.file_name().unwrap_or_default().to_string_lossy();
    destination.with_file_name(format!(".{}{suffix}", cut(&name, NAME_MAX - suffix.len() - 1)))
}

/// A number that another process will not come upon: each `RandomState` has keys of its own.
fn random(attempt: u64) -> u64 {
    RandomState::new().hash_one(attempt)
}

#[cfg(test)]
mod tests;
