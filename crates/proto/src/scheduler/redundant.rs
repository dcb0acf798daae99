//! Messages leave on every path, so that each arrives when the quickest of its copies does.

use fulmar_base::Instant;

use super::earliest_completion::EarliestCompletion;
use super::{PathOrder, PathView, Scheduler, Waiting};

/// Streams are scheduled by earliest completion: what was lost of them is sent again anyway.
#[derive(Debug)]
pub(super) struct Redundant;

impl Scheduler for Redundant {
    fn schedule(&mut self, now: Instant, paths: &[PathView], waiting: &Waiting, order: &mut PathOrder) {
        EarliestCompletion.schedule(now, paths, waiting, order);
    }

    fn repeats_datagrams(&self) -> bool {
        true
    }
}
