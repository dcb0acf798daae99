//! Bytes are shared among the paths by weights.

use fulmar_base::Instant;
use fulmar_wire::PathId;
use smallvec::SmallVec;

use super::{PathOrder, PathView, Scheduler, Waiting};

/// Shares are counted over this many bytes: when a path has got as many, older ones count half.
const MEMORY_BYTES: u64 = 1 << 20;

/// The path goes first that has sent least, where each of its bytes counts as much as the path costs. One with a full window is
/// passed over, so that shares hold as long as no path is full.
#[derive(Debug, Default)]
pub(super) struct Weighted {
    sent: SmallVec<[(PathId, u64); 8]>,
}

impl Weighted {
    fn sent(&self, id: PathId) -> Option<u64> {
        self.sent.iter().find(|(path, _)| *path == id).map(|(_, bytes)| *bytes)
    }

    /// Forgets paths that are not there, and begins with new ones where the others are, so that they do not carry everything.
    fn follow(&mut self, paths: &[PathView]) {
        self.sent.retain(|(id, _)| paths.iter().any(|path| path.id == *id));
        let others = paths.iter().filter_map(|path| Some(self.sent(path.id)? * u64::from(path.cost.max(1))));
        let least = others.min().unwrap_or(0);
        for path in paths {
            if self.sent(path.id).is_none() {
                self.sent.push((path.id, least / u64::from(path.cost.max(1))));
            }
        }
    }
}

impl Scheduler for Weighted {
    fn schedule(&mut self, _: Instant, paths: &[PathView], _: &Waiting, order: &mut PathOrder) {
        self.follow(paths);
        let load = |path: &PathView| self.sent(path.id).unwrap_or(0) * u64::from(path.cost.max(1));
        let mut by_load: SmallVec<[(u64, PathId); 8]> =
            paths.iter().map(|path| (load(path), path.id)).collect();
        by_load.sort_unstable();
        by_load.iter().for_each(|(_, id)| order.push(*id));
    }

    fn on_sent(&mut self, path: PathId, bytes: usize) {
        let Some(of_path) = self.sent.iter_mut().find(|(id, _)| *id == path) else { return };
        of_path.1 += bytes as u64;
        if of_path.1 > MEMORY_BYTES {
            self.sent.iter_mut().for_each(|(_, bytes)| *bytes /= 2);
        }
    }
}
