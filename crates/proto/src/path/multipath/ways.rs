//! The ways that acknowledgements of a path come back, its own and those of others, and what the round trip is of each.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::PathId;
use smallvec::SmallVec;

/// The least round trip by each way back.
///
/// What the last sample exceeds that of its own way is the queue. How long a way takes by itself is not asked: a queue of its own may
/// stand there, and a guess that is wrong once by some milliseconds would be a queue to a controller with the next way.
#[derive(Debug, Default)]
pub(super) struct Ways {
    least: SmallVec<[(PathId, Duration); 2]>,
    /// The least of the ways that are gone.
    gone: Option<Duration>,
    /// Of the last sample: by how much it exceeds the least of its way.
    excess: Duration,
    /// The part of it that the peer has not waited, and until when that counts: for a round trip.
    queue: Option<(Duration, Instant)>,
}

impl Ways {
    /// An acknowledgement has come over path `over` after this time, of which the peer had waited a part. The first one that way has
    /// met the queue that was there a moment before.
    pub(super) fn on_sample(&mut self, now: Instant, over: PathId, rtt: Duration, waited: Duration) {
        let least = match self.least.iter_mut().find(|(id, _)| *id == over) {
            Some((_, least)) => {
                *least = rtt.min(*least);
                *least
            }
            None => {
                let queue =
                    self.queue.filter(|(_, until)| now <= *until).map_or(Duration::ZERO, |(queue, _)| queue);
                self.least.push((over, rtt.saturating_sub(queue)));
                rtt.saturating_sub(queue)
            }
        };
        self.excess = rtt - least;
        self.queue = Some((self.excess.saturating_sub(waited), now + rtt));
    }

    /// The last sample as it would have been by the shortest way; `None` if there was no other.
    pub(super) fn steady(&self) -> Option<Duration> {
        let least = self.least.iter().map(|(_, least)| *least).chain(self.gone).min()?;
        (self.least.len() > 1 || self.gone.is_some()).then_some(least + self.excess)
    }

    /// A path is gone, and its ID does not return. What is left is told as if it had brought acknowledgements still.
    pub(super) fn forget(&mut self, over: PathId) {
        let gone = self.least.iter().filter(|(id, _)| *id == over).map(|(_, least)| *least);
        self.gone = gone.chain(self.gone).min();
        self.least.retain(|(id, _)| *id != over);
    }
}
