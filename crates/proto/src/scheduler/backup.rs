//! One path carries everything.

use fulmar_base::Instant;

use super::{PathOrder, PathView, Scheduler, Waiting};

/// The path of the least cost, and of these the first that was opened. When it does not answer any more it is not among those
/// that are shown, so the next one takes its place.
#[derive(Debug)]
pub(super) struct Backup;

impl Scheduler for Backup {
    fn schedule(&mut self, _: Instant, paths: &[PathView], _: &Waiting, order: &mut PathOrder) {
        if let Some(path) = paths.iter().min_by_key(|path| (path.cost, path.id)) {
            order.push(path.id);
        }
    }
}
