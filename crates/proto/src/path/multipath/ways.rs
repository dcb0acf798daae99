//! The ways that acknowledgements of a path come back, its own and those of others, and what the round trip is of each.

use std::time::Duration;

use fulmar_wire::PathId;
use smallvec::SmallVec;

/// The least round trip by each way back.
///
/// What the last sample exceeds that of its own way is the queue. How long a way takes by itself is not asked: a queue of its own may
/// stand there, and a guess that is wrong once by some milliseconds would be a queue to a controller with the next way.
#[derive(Debug, Default)]
pub(super) struct Ways {
    least: SmallVec<[(PathId, Duration); 2]>,
    /// Of the last sample.
    queue: Duration,
}

impl Ways {
    /// An acknowledgement has come over path `over` after this time. The first one that way has met the queue that was there before.
    pub(super) fn on_sample(&mut self, over: PathId, rtt: Duration) {
        match self.least.iter_mut().find(|(id, _)| *id == over) {
            Some((_, least)) => {
                *least = rtt.min(*least);
                self.queue = rtt - *least;
            }
            None => self.least.push((over, rtt.saturating_sub(self.queue))),
        }
    }

    /// The last sample as it would have been by the shortest way; `None` if there was no other.
    pub(super) fn steady(&self) -> Option<Duration> {
        let least = self.least.iter().map(|(_, least)| *least).min()?;
        (self.least.len() > 1).then_some(least + self.queue)
    }

    /// A path is gone, and its ID does not return.
    pub(super) fn forget(&mut self, over: PathId) {
        self.least.retain(|(id, _)| *id != over);
    }
}
