//! Files that are written anew.

use std::fs;
use std::io;
use std::path::Path;

/// Writes a file anew: under another name first (its own with `new` for the extension), so that it is never seen half written and
/// what it held is not lost before the rest is safe. A link stays one.
pub(crate) fn file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        found => found?,
    };
    let temporary = path.with_extension("new");
    fs::write(&temporary, bytes)?;
    fs::rename(&temporary, &path)
}
