//! What marks say: how many packets they are, and what kind of queue sets them.

use std::time::Duration;

use fulmar_base::Instant;

use super::ONE;
use crate::congestion::AckEvent;

/// The average moves by this share of the difference in each round (the draft's gain g, 1/16).
const GAIN_SHIFT: u32 = 4;

/// An L4S queue marks from a millisecond or two packets on. One that holds more than this in a whole round with
/// marks is a classic one: RFC 3168 queues have targets of 5 ms and more.
const SHALLOW: Duration = Duration::from_millis(4);

/// On slow links two packets take longer than that; this many are deep everywhere.
const SHALLOW_PACKETS: u32 = 4;

/// This many rounds more with the marks of a classic queue than with those of another one make it one. Two or three
/// happen when the window is too large for other reasons, such as after slow start.
const CLASSIC_ROUNDS: u32 = 5;

/// More are not remembered.
const CLASSIC_ROUNDS_MAX: u32 = 2 * CLASSIC_ROUNDS;

/// What the controller knows about rounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    /// How long a round is at least.
    pub(super) time: Duration,
    /// The round-trip time without a queue.
    pub(super) min_rtt: Duration,
}

/// Counts marked packets, round by round.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    /// The average share of marked packets, in fractions of [`ONE`] and shifted by [`GAIN_SHIFT`], so that nothing
    /// is lost by rounding; `None` before the first mark.
    alpha: Option<u64>,
    /// When the round began; it ends when a packet sent later is acknowledged.
    start: Instant,
    acked_packets: u64,
    marked_packets: u64,
    /// The shortest round-trip time of the round.
    shortest: Option<Duration>,
    /// How many rounds more looked like those of a classic queue than not.
    classic_rounds: u32,
    classic: bool,
}

impl Marks {
    /// Nothing was marked as yet. The first acknowledgement ends the round before the first one.
    pub(super) fn new() -> Self {
        Self {
            alpha: None,
            start: Instant::ZERO,
            acked_packets: 0,
            marked_packets: 0,
            shortest: None,
            classic_rounds: 0,
            classic: false,
        }
    }

    /// Takes an acknowledgement; returns whether a round is over.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>, round: Round) -> bool {
        self.acked_packets += ack.acked_packets;
        self.marked_packets += ack.ce_packets;
        if let Some(sample) = ack.rtt_sample {
            self.shortest = Some(self.shortest.map_or(sample, |shortest| shortest.min(sample)));
        }
        let elapsed = now.saturating_since(self.start);
        if ack.largest_sent_time < self.start || elapsed < round.time {
            return false;
        }
        self.end_round(elapsed, round.min_rtt);
        *self = Self {
            alpha: self.alpha,
            start: now,
            classic_rounds: self.classic_rounds,
            classic: self.classic,
            ..Self::new()
        };
        true
    }

    /// The share of which the window shrinks by half. Before the first average nothing is known but that the queue
    /// is too long, and the worst is assumed.
    pub(super) fn reduction(&self) -> u64 {
        if self.classic { ONE } else { self.alpha.map_or(ONE, |alpha| alpha >> GAIN_SHIFT) }
    }

    /// Whether the marks come from a queue that is no L4S queue.
    pub(super) fn are_classic(&self) -> bool {
        self.classic
    }

    fn end_round(&mut self, elapsed: Duration, min_rtt: Duration) {
        let share = (self.marked_packets * ONE / self.acked_packets.max(1)).min(ONE);
        self.alpha = match self.alpha {
            Some(alpha) => Some(alpha - (alpha >> GAIN_SHIFT) + share),
            // A departure from the draft, which begins with an average of one: the first mark halves the window, and
            // one half more in each of the next rounds would empty the path.
            None => (share > 0).then_some(share << GAIN_SHIFT),
        };
        if let Some(shortest) = self.shortest.filter(|_| self.marked_packets > 0) {
            self.judge_queue(shortest.saturating_sub(min_rtt), elapsed);
        }
    }

    /// Whether the queue was deep in all of a round with marks.
    fn judge_queue(&mut self, queue: Duration, elapsed: Duration) {
        let packets = u32::try_from(self.acked_packets.max(1)).unwrap_or(u32::MAX);
        let few_packets = elapsed / packets * SHALLOW_PACKETS;
        if queue > SHALLOW.max(few_packets) {
            self.classic_rounds = (self.classic_rounds + 1).min(CLASSIC_ROUNDS_MAX);
            self.classic |= self.classic_rounds >= CLASSIC_ROUNDS;
        } else {
            self.classic_rounds = self.classic_rounds.saturating_sub(1);
            self.classic &= self.classic_rounds > 0;
        }
    }
}
