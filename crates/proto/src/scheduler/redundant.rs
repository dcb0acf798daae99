//! Messages leave on every path, so that each arrives when the quickest of its copies does.

use fulmar_base::Instant;
use fulmar_wire::PathId;

use super::earliest_completion::EarliestCompletion;
use super::{PathOrder, PathView, Scheduler, Waiting};

/// Streams are scheduled by earliest completion: what was lost of them is sent again anyway.
#[derive(Debug, Default)]
pub(super) struct Redundant(EarliestCompletion);

impl Scheduler for Redundant {
    fn schedule(&mut self, now: Instant, paths: &[PathView], waiting: &Waiting, order: &mut PathOrder) {
        self.0.schedule(now, paths, waiting, order);
    }

    fn on_sent(&mut self, path: PathId, bytes: usize) {
        self.0.on_sent(path, bytes);
    }

    fn repeats_datagrams(&self) -> bool {
        true
    }
}
