//! How far apart ACKs must be for a narrow return path.

use std::time::Duration;

use super::tuning::{ACKS_PER_ROUND, Observed};
use crate::rtt::Rtt;

/// The longest delay that is requested.
pub(super) const DELAY_MAX: Duration = Duration::from_secs(1);

/// ACKs are requested this much farther apart than the return path carries them, in quarters. So a part of it stays free, and
/// its queue does not come back.
const HEADROOM_QUARTERS: u32 = 5;

/// With each decision without congestion, this part of the estimate is forgotten. So the path is tried again now and then, as
/// it may have become wider.
const FORGETTING: u32 = 64;

/// An estimate of the time between two ACKs that a congested return path delivers.
///
/// To the end that sends data, a congested return path looks like any other queue: the round trip has grown. The estimate is
/// rather too low: it is the shortest interval of ACKs seen while the round trip was long.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReturnPath {
    /// Zero while nothing is known.
    ack_time: Duration,
}

impl ReturnPath {
    /// The shortest delay of ACKs that the return path asks for now; zero if it is not congested and never was.
    ///
    /// While the round trip is half as long again as it can be, a third less of the ACKs is asked for than came,
    /// time after time, so that the queue drains, if it is theirs; a quarter of the long round trip is no harm in
    /// any case. What was learned that way holds on when the queue is gone.
    pub(super) fn delay(&mut self, rtt: &Rtt, observed: &Observed) -> Duration {
        let interval = observed.interval();
        let mut drain = Duration::ZERO;
        if rtt.smoothed() * 2 > rtt.min() * 3 {
            drain = (interval * 3 / 2).min(rtt.smoothed() / ACKS_PER_ROUND);
            let known = if self.ack_time.is_zero() { Duration::MAX } else { self.ack_time };
            self.ack_time = known.min(interval).min(DELAY_MAX);
        } else {
            self.ack_time -= self.ack_time / FORGETTING;
        }
        drain.max(self.ack_time * HEADROOM_QUARTERS / 4).min(DELAY_MAX)
    }
}

#[cfg(test)]
mod tests;
