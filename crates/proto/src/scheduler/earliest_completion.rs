//! Data goes where it arrives first.

use std::time::Duration;

use fulmar_base::Instant;
use smallvec::SmallVec;

use super::{PathOrder, PathView, Scheduler, Waiting};

/// A slower path carries data only if its packet arrives before all that waits could arrive over the quicker ones. So the end of
/// a transfer never waits for a slow path, and several are never worse than the best of them
/// ("ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths", CoNEXT 2017).
///
/// It errs on the side of the slower path. One that was used in vain costs bytes: what it brings late is repeated on the quicker
/// ones once these have nothing else to send (`connection/reinjection.rs`), which then carry no more than they would have alone.
/// One that was left out in vain costs time, as nothing makes up for what it would have carried, and its window does not grow. So
/// a quick path counts for no more than it was seen to carry, and the variation of a slow one is not held against it.
#[derive(Debug)]
pub(super) struct EarliestCompletion;

impl Scheduler for EarliestCompletion {
    fn schedule(&mut self, _: Instant, paths: &[PathView], waiting: &Waiting, order: &mut PathOrder) {
        let mut quickest: SmallVec<[&PathView; 8]> = paths.iter().collect();
        quickest.sort_unstable_by_key(|path| (delay(path), path.id));
        let mut quicker = Quicker::default();
        for path in quickest {
            if quicker.completion(waiting).is_none_or(|alone| delay(path) < alone) {
                order.push(path.id);
                quicker.add(path);
            }
        }
    }
}

/// The paths before one of them.
#[derive(Debug, Default)]
struct Quicker {
    /// Bytes per second, all together.
    rate: u64,
    delay: Option<Duration>,
}

impl Quicker {
    fn add(&mut self, path: &PathView) {
        self.rate = self.rate.saturating_add(rate(path));
        self.delay = self.delay.or(Some(delay(path)));
    }

    /// After what time all that waits would have arrived without other paths; `None` if there is none.
    fn completion(&self, waiting: &Waiting) -> Option<Duration> {
        let micros = u128::from(waiting.stream_bytes) * 1_000_000 / u128::from(self.rate.max(1));
        Some(self.delay? + Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
    }
}

/// How much longer the last round trip took than usual. On a path that was just found a queue of many round trips fills within one,
/// which the smoothed time shows when it is over.
fn excess(path: &PathView) -> Duration {
    path.rtt_latest.saturating_sub(path.rtt)
}

/// How long a packet is on its way to the peer.
fn delay(path: &PathView) -> Duration {
    path.delay + excess(path)
}

/// What a path carries, in bytes per second: a window each round trip, no more than the pacer lets leave, and no more in a round
/// trip than it has delivered since it was there. A new path has a window that nothing has confirmed, and by that a short one would
/// be faster than any long one.
fn rate(path: &PathView) -> u64 {
    let bytes = u128::from(path.window.min(path.bytes_delivered)) * 1_000_000;
    let rate = bytes / (path.rtt + excess(path)).as_micros().max(1);
    path.pacing_rate.min(u64::try_from(rate).unwrap_or(u64::MAX))
}
