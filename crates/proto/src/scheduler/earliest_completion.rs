//! Data goes where it arrives first.

use std::time::Duration;

use fulmar_base::Instant;
use smallvec::SmallVec;

use super::{PathOrder, PathView, Scheduler, Waiting};

/// A packet is expected to arrive before its delay and this many times its variation, as for a retransmission timeout (RFC 6298 §2):
/// what comes later than the quicker paths would have brought it holds up the end of a transfer.
const VARIANCES: u32 = 4;

/// A slower path carries data only if its packet arrives before all that waits could arrive over the quicker ones. So the end of
/// a transfer never waits for a slow path, and several are never worse than the best of them
/// ("ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths", CoNEXT 2017).
#[derive(Debug)]
pub(super) struct EarliestCompletion;

impl Scheduler for EarliestCompletion {
    fn schedule(&mut self, _: Instant, paths: &[PathView], waiting: &Waiting, order: &mut PathOrder) {
        let mut quickest: SmallVec<[&PathView; 8]> = paths.iter().collect();
        quickest.sort_unstable_by_key(|path| (path.delay, path.id));
        let mut quicker = Quicker::default();
        for path in quickest {
            let arrival = path.delay + VARIANCES * path.rtt_variance;
            if quicker.completion(waiting).is_none_or(|alone| arrival < alone) {
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
        self.delay = self.delay.or(Some(path.delay));
    }

    /// After what time all that waits would have arrived without other paths; `None` if there is none.
    fn completion(&self, waiting: &Waiting) -> Option<Duration> {
        let micros = u128::from(waiting.stream_bytes) * 1_000_000 / u128::from(self.rate.max(1));
        Some(self.delay? + Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
    }
}

/// What a path carries, in bytes per second: a window each round trip, and no more than the pacer lets leave.
fn rate(path: &PathView) -> u64 {
    let bytes = u128::from(path.window) * 1_000_000 / path.rtt.as_micros().max(1);
    path.pacing_rate.min(u64::try_from(bytes).unwrap_or(u64::MAX))
}
