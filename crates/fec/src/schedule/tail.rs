//! Repairs for the end of what is sent: when there is nothing else to send, they cost nobody anything.

use std::time::Duration;

use fulmar_base::Instant;

use super::{Feedback, LossEstimate, Order, Scheduler, Situation};

/// Tails up to this length get repairs for [`SHORT_TAIL_PART`] of their symbols: a loss there takes a round trip or more.
const SHORT_TAIL: u16 = 11;
const SHORT_TAIL_PART: f64 = 0.6;
/// What a longer tail gets while nothing is known of the losses: a quarter, and no more than this.
const UNKNOWN_MAX: u16 = 5;
/// So many symbols without a loss show a clean path, on which less is spent.
const CLEAN_AFTER: u64 = 200;
/// The part of the repairs that a clean path gets.
const CLEAN_PART: u16 = 3;
/// So many symbols make the estimate of losses worth more than none.
const KNOWN_AFTER: u64 = 50;
/// The second half follows the first one after an eighth of the round-trip time, and not before this, so that a burst of
/// losses does not take both.
const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_PART: u32 = 8;

/// Repair symbols when the application has nothing to send and the congestion window has room, over all symbols of which
/// nothing is known yet, up to the last one of its own. Half of them at once, half a little later.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    losses: LossEstimate,
    /// The id after that of its last symbol. What follows is protected otherwise.
    end: u64,
    /// Symbols below this id had their first half.
    covered: u64,
    /// The second half for the symbols below `covered`.
    second: Option<SecondHalf>,
}

#[derive(Debug, Clone, Copy)]
struct SecondHalf {
    at: Instant,
    repairs: u16,
}

impl Tail {
    /// The number of repair symbols for a tail of so many symbols.
    fn repairs(&self, unresolved: u16) -> u16 {
        let repairs = if unresolved <= SHORT_TAIL {
            (f64::from(unresolved) * SHORT_TAIL_PART).ceil() as u16
        } else if self.losses.seen() < KNOWN_AFTER {
            UNKNOWN_MAX.min(unresolved / 4)
        } else {
            let expected = self.losses.loss_rate() * f64::from(unresolved);
            // Three standard deviations above the mean.
            let wanted = (expected + 3.0 * expected.sqrt()).ceil() as u16;
            let most = (unresolved / 3).max(1);
            wanted.max(UNKNOWN_MAX).min(most)
        };
        if self.losses.seen() >= CLEAN_AFTER && self.losses.lost() == 0 {
            return repairs.div_ceil(CLEAN_PART);
        }
        repairs
    }

    /// The estimate of the losses of the path.
    pub fn losses(&self) -> &LossEstimate {
        &self.losses
    }
}

impl Scheduler for Tail {
    fn on_source(&mut self, id: u64, _: Instant, _: Option<Instant>) {
        self.end = id + 1;
        // It goes on: what is sent now has a tail of its own, which covers the symbols before it, too.
        self.second = None;
    }

    fn on_feedback(&mut self, feedback: Feedback) {
        match feedback {
            Feedback::Delivered => self.losses.note(false),
            Feedback::Lost => self.losses.note(true),
            Feedback::RepairsUsed(_) | Feedback::RepairsUnused(_) => {}
        }
    }

    fn next_order(&mut self, situation: &Situation) -> Option<Order> {
        let situation = &situation.up_to(self.end);
        if situation.unresolved == 0 {
            self.second = None;
            return None;
        }
        if !situation.idle {
            return None;
        }
        if situation.end > self.covered {
            self.covered = situation.end;
            let repairs = self.repairs(situation.unresolved);
            let first_half = repairs.div_ceil(2);
            let pause = PAUSE_MIN.max(situation.smoothed_rtt / PAUSE_PART);
            self.second = (repairs > first_half)
                .then(|| SecondHalf { at: situation.now + pause, repairs: repairs - first_half });
            return situation.order(first_half);
        }
        let second = self.second.filter(|second| second.at <= situation.now)?;
        self.second = None;
        situation.order(second.repairs.min(situation.unresolved))
    }

    fn wake_up(&self) -> Option<Instant> {
        self.second.map(|second| second.at)
    }
}
