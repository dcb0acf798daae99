//! Data that was lost once leaves twice when it is sent again, where nothing else waits to be sent.
//!
//! A transfer ends when its last byte arrives. On a path that loses packets by chance some of the data that is sent again is
//! lost as well, and each time that costs a round trip. Where that is long and the sender has nothing else to do, a second
//! copy is cheap: there are as few of them as there were losses. The copies need room in the window and wait for the
//! pacer like all that is sent, and no copy has a copy.

use std::time::Duration;

use super::Connection;
use super::delivery::Fate;
use crate::ids::SpaceId;

/// On shorter paths a further round trip is not worth the copies.
const LONG_RTT: Duration = Duration::from_millis(80);

impl Connection {
    /// Queues what was sent again, and is in flight, once more. Returns whether there is anything to send now.
    pub(super) fn repeat_preemptively(&mut self) -> bool {
        let rtt = &self.path.tuple.rtt;
        if !self.config.preemptive_repeat || !rtt.has_sample() || rtt.min() < LONG_RTT {
            return false;
        }
        let resent = self.path.space.take_resent();
        let frames: Vec<_> = resent.flat_map(|packet| packet.frames.iter().cloned()).collect();
        self.deliver(SpaceId::DATA, &frames, Fate::Probed);
        !frames.is_empty() && self.wants_any()
    }
}
