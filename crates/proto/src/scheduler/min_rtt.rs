//! Data goes to the quickest path that has room.

use fulmar_base::Instant;
use smallvec::SmallVec;

use super::{PathOrder, PathView, Scheduler, Waiting};

/// What most stacks do. A slow path that is used at the end of a transfer holds it up.
#[derive(Debug)]
pub(super) struct MinRtt;

impl Scheduler for MinRtt {
    fn schedule(&mut self, _: Instant, paths: &[PathView], _: &Waiting, order: &mut PathOrder) {
        let mut quickest: SmallVec<[&PathView; 8]> = paths.iter().collect();
        quickest.sort_unstable_by_key(|path| (path.rtt, path.id));
        quickest.iter().for_each(|path| order.push(path.id));
    }
}
