//! Round trips that are counted in packets, not by a clock: they stand still while nothing is sent.

use crate::packed::packed;

/// Counts packet-timed round trips (draft-ietf-ccwg-bbr, "BBR.round_count").
///
/// A round ends when a packet is acknowledged that was sent after the round began. The state of delivery is
/// the clock: what was delivered when the packet was sent against what was delivered when the round began.
#[derive(Debug, Clone, Default)]
pub(in crate::congestion) struct Rounds {
    count: u64,
    /// A packet that was sent when so much was delivered ends the round.
    end: u64,
    /// Whether the last acknowledgement ended one.
    started: bool,
}

packed!(Rounds { count, end, started });

impl Rounds {
    /// Takes an acknowledgement; `prior_delivered` was delivered when its newest packet was sent. Returns
    /// whether a round begins with it.
    pub(in crate::congestion) fn on_ack(&mut self, prior_delivered: u64, total_delivered: u64) -> bool {
        self.started = prior_delivered >= self.end;
        if self.started {
            self.restart(total_delivered);
            self.count += 1;
        }
        self.started
    }

    /// Begins a round now, without counting one: what was sent before belongs to the past.
    pub(in crate::congestion) fn restart(&mut self, total_delivered: u64) {
        self.end = total_delivered;
    }

    /// Whether the last acknowledgement began a round.
    pub(in crate::congestion) fn started(&self) -> bool {
        self.started
    }

    /// The rounds until now.
    pub(in crate::congestion) fn count(&self) -> u64 {
        self.count
    }
}
