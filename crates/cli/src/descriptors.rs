//! File descriptors: how many files and sockets this process may have open.

use std::io;

/// Allows this process as many as the system lets it have. Systems begin with few (1,024) for the sake of programs that use `select`,
/// which this one does not; a server has one for each connection over TCP and for each file that it sends.
pub(crate) fn allow_all() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // Where that is refused it stays as it was.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// How many this process may have open.
pub(crate) fn limit() -> usize {
    #[cfg(unix)]
    if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        return usize::try_from(limit).unwrap_or(usize::MAX);
    }
    usize::MAX
}

/// Whether so many more can be opened.
///
/// # Errors
/// Why not.
pub(crate) fn have(count: usize) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let stdin = io::stdin();
        let copies = (0..count).map(|_| stdin.as_fd().try_clone_to_owned());
        copies.collect::<io::Result<Vec<_>>>()?;
    }
    let _ = count;
    Ok(())
}
