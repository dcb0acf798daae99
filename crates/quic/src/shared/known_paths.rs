//! What the connections of a server have learned of the paths to its clients, for later ones from the same addresses (RFC 9959).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;

use fulmar_base::Instant;
use fulmar_proto::congestion::SavedPath;

use crate::sync::lock;

/// A bounded store. Nothing of it is trusted: a connection tries what it finds as carefully as RFC 9959 asks.
pub(crate) struct KnownPaths {
    /// Each with the time at which it was learned.
    paths: Mutex<BTreeMap<IpAddr, (Instant, SavedPath)>>,
    /// When there are so many, the oldest is forgotten.
    max: usize,
}

impl KnownPaths {
    pub(super) fn new(max: usize) -> Self {
        Self { paths: Mutex::default(), max }
    }

    /// Keeps what a connection has learned, in the place of what earlier ones have.
    pub(crate) fn keep(&self, now: Instant, path: SavedPath) {
        let remote = path.remote.to_canonical();
        let mut paths = lock(&self.paths);
        if self.max == 0 {
            return;
        }
        if paths.len() >= self.max && !paths.contains_key(&remote) {
            let oldest = paths.iter().min_by_key(|(_, (since, _))| *since).map(|(remote, _)| *remote);
            oldest.and_then(|oldest| paths.remove(&oldest));
        }
        paths.insert(remote, (now, path));
    }

    /// What is known of the path to `remote`. One set is for one connection (RFC 9959 §3.2), so it is gone then.
    pub(crate) fn take(&self, now: Instant, remote: IpAddr) -> Option<SavedPath> {
        let (since, path) = lock(&self.paths).remove(&remote.to_canonical())?;
        path.aged(now.saturating_since(since))
    }
}

#[cfg(test)]
mod tests;
