//! What was known of paths that are gone, for those that are opened over the same addresses: a link that comes back carries what it
//! did before, if careful resume finds it so (RFC 9959).

use std::collections::VecDeque;

use fulmar_base::Instant;

use super::Tuple;
use crate::congestion::{SAVED_PATH_LIFETIME, SavedPath};
use crate::datagram::FourTuple;

/// The most pairs of addresses that are remembered; of more, the latest.
const LEFT_MAX: usize = 16;

/// Paths that are gone, the latest at the end.
///
/// Bounded by [`LEFT_MAX`].
#[derive(Debug, Default)]
pub(crate) struct LeftPaths {
    list: VecDeque<Left>,
}

#[derive(Debug)]
struct Left {
    addrs: FourTuple,
    at: Instant,
    saved: SavedPath,
}

impl LeftPaths {
    /// A path is gone. If nothing is known that is worth remembering, what was known before stays.
    pub(crate) fn keep(&mut self, now: Instant, tuple: &Tuple) {
        let Some(window) = tuple.congestion.capacity() else { return };
        let addrs = tuple.addrs;
        let saved = SavedPath {
            remote: addrs.remote.ip(),
            local: addrs.local_ip,
            window,
            full: tuple.congestion.is_full(),
            rtt: tuple.rtt.min(),
            lifetime: SAVED_PATH_LIFETIME,
        };
        self.list.retain(|left| left.addrs != addrs);
        if self.list.len() >= LEFT_MAX {
            self.list.pop_front();
        }
        self.list.push_back(Left { addrs, at: now, saved });
    }

    /// What is known of the path between these addresses. One path only may use it.
    pub(crate) fn take(&mut self, now: Instant, addrs: &FourTuple) -> Option<SavedPath> {
        let place = self.list.iter().position(|left| left.addrs == *addrs)?;
        let Left { at, saved, .. } = self.list.remove(place)?;
        saved.aged(now.saturating_since(at))
    }
}
