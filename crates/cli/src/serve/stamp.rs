//! What tells whether a file is still the one that it was.

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cap_std::fs::Dir;

use super::directory::id_of;

/// What a file was like when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) len: u64,
    pub(super) modified: Option<SystemTime>,
    /// When anything of it was changed last, which no program can set. Where there is such a time.
    changed: Option<SystemTime>,
    /// The device and the inode, where there are such.
    id: Option<(u64, u64)>,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            len: metadata.len(),
            modified: metadata.modified().ok(),
            changed: changed(metadata),
            id: id_of(metadata),
        }
    }

    /// Whether a file that was like this and is now like `now` has the same bytes, as far as can be seen.
    pub(super) fn is_same(self, now: Self) -> bool {
        self.id == now.id && self.len == now.len && self.modified == now.modified
    }

    /// Whether it is the same file and longer: it may have been appended to, or written anew.
    pub(super) fn has_grown(self, now: Self) -> bool {
        self.id == now.id && self.len < now.len
    }

    /// Whether nothing had changed for `least` at that time. Not all file systems keep both times.
    pub(super) fn has_rested(self, at: SystemTime, least: Duration) -> bool {
        let Some((modified, changed)) = self.modified.zip(self.changed) else { return false };
        at.duration_since(modified.max(changed)).is_ok_and(|rest| rest >= least)
    }
}

#[cfg(target_os = "linux")]
impl Stamp {
    /// Of what has the name now, by one call. Links are followed wherever they lead.
    pub(super) fn at(dir: &Dir, path: &Path) -> Option<Self> {
        let stat = rustix::fs::statat(dir, path, rustix::fs::AtFlags::empty()).ok()?;
        Some(Self {
            len: u64::try_from(stat.st_size).ok()?,
            modified: Some(time(stat.st_mtime, stat.st_mtime_nsec as i64)?),
            changed: Some(time(stat.st_ctime, stat.st_ctime_nsec as i64)?),
            id: Some((stat.st_dev, stat.st_ino)),
        })
    }
}

#[cfg(target_os = "linux")]
fn changed(metadata: &Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    time(metadata.ctime(), metadata.ctime_nsec())
}

/// `None` before 1970.
#[cfg(target_os = "linux")]
fn time(seconds: i64, nanos: i64) -> Option<SystemTime> {
    let since = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

#[cfg(not(target_os = "linux"))]
impl Stamp {
    pub(super) fn at(_: &Dir, _: &Path) -> Option<Self> {
        None
    }
}

#[cfg(not(target_os = "linux"))]
fn changed(_: &Metadata) -> Option<SystemTime> {
    None
}
