//! Repairs for what has to arrive in time.

use std::collections::VecDeque;
use std::time::Duration;

use fulmar_base::Instant;

use super::{Feedback, LossEstimate, Order, Scheduler, Situation};
use crate::WINDOW_MAX;

/// The most repair symbols of an order.
const ORDER_MAX: u16 = 16;
/// Repair symbols that may be saved up for a burst of source symbols.
const CREDIT_MAX: f64 = 8.0;
/// So many repair symbols in a row that nobody needed switch the scheduler off until the next loss.
const UNUSED_MAX: u16 = 64;
/// What is lost is found and sent again within so many round-trip times; deadlines that leave more time need no repairs.
const RETRANSMISSION_RTTS: u32 = 2;

/// What [`Deadline`] aims at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeadlineConfig {
    /// The probability with which a symbol is to arrive in time: 0 to 1.
    pub target: f64,
    /// The most repair symbols for each source symbol: 0 to 1.
    pub overhead_max: f64,
}

impl Default for DeadlineConfig {
    /// 99.9 %, at the cost of at most a quarter.
    fn default() -> Self {
        Self { target: 0.999, overhead_max: 0.25 }
    }
}

/// As many repair symbols as let the symbols with deadlines arrive in time with the wanted probability, for the losses that
/// were measured; none where a retransmission is in time, too.
#[derive(Debug, Clone)]
pub struct Deadline {
    config: DeadlineConfig,
    losses: LossEstimate,
    /// Symbols with deadlines in the order of their ids, at most [`WINDOW_MAX`]; the oldest are forgotten.
    waiting: VecDeque<Waiting>,
    /// The orders whose symbols may be waiting still: the end of the window and the repair symbols.
    ordered: VecDeque<(u64, u16)>,
    /// Repair symbols that may be sent. One is given in advance, so that a single message can be protected.
    credit: f64,
    unused: u16,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    id: u64,
    sent: Instant,
    deadline: Instant,
}

impl Deadline {
    /// A scheduler that knows nothing of the losses yet and expects one in a hundred. Values out of their range are brought
    /// into it.
    pub fn new(config: DeadlineConfig) -> Self {
        let config = DeadlineConfig {
            target: config.target.clamp(0.0, 1.0),
            overhead_max: config.overhead_max.clamp(0.0, 1.0),
        };
        Self {
            config,
            losses: LossEstimate::default(),
            waiting: VecDeque::new(),
            ordered: VecDeque::new(),
            credit: 1.0,
            unused: 0,
        }
    }

    /// Whether repair symbols went unused for so long that none are sent until the next loss.
    pub fn is_off(&self) -> bool {
        self.unused >= UNUSED_MAX
    }

    /// The estimate of the losses of the path.
    pub fn losses(&self) -> &LossEstimate {
        &self.losses
    }

    /// Forgets symbols that are known to have arrived or that no repair symbol can help any more.
    fn forget_done(&mut self, situation: &Situation) {
        let arrival = situation.now + situation.smoothed_rtt / 2;
        let oldest = situation.end.saturating_sub(WINDOW_MAX.into()).max(situation.first_unresolved);
        self.waiting.retain(|symbol| symbol.id >= oldest && symbol.deadline > arrival);
        let first = self.waiting.front().map_or(u64::MAX, |symbol| symbol.id);
        self.ordered.retain(|(end, _)| *end > first);
    }
}

impl Waiting {
    /// Whether a retransmission would come too late.
    fn needs_repairs(&self, rtt: Duration) -> bool {
        self.deadline < self.sent + rtt * RETRANSMISSION_RTTS
    }
}

impl Scheduler for Deadline {
    fn on_source(&mut self, id: u64, now: Instant, deadline: Option<Instant>) {
        let Some(deadline) = deadline else { return };
        if self.waiting.len() == usize::from(WINDOW_MAX) {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting { id, sent: now, deadline });
        self.credit = (self.credit + self.config.overhead_max).min(CREDIT_MAX);
    }

    fn on_feedback(&mut self, feedback: Feedback) {
        match feedback {
            Feedback::Delivered => self.losses.note(false),
            Feedback::Late => self.losses.excuse(),
            Feedback::Lost => {
                self.losses.note(true);
                self.unused = 0;
            }
            Feedback::RepairsUsed(_) => self.unused = 0,
            Feedback::RepairsUnused(count) => self.unused = self.unused.saturating_add(count),
            // Its own are never dropped.
            Feedback::RepairsDropped(_) => {}
        }
    }

    fn next_order(&mut self, situation: &Situation) -> Option<Order> {
        self.forget_done(situation);
        if self.is_off() || self.credit < 1.0 {
            return None;
        }
        let urgent = |symbol: &&Waiting| symbol.needs_repairs(situation.smoothed_rtt);
        let first = self.waiting.iter().find(urgent)?.id;
        let last = self.waiting.iter().rfind(urgent)?.id;
        // Both are among the newest 256.
        let count = (last + 1 - first) as u16;
        // Enough for what is waiting, less what was sent for it already.
        let sent: u16 = self.ordered.iter().map(|(_, repairs)| *repairs).sum();
        let mut needed = self.losses.repairs_for(count, self.config.target, ORDER_MAX);
        // On the empty path a retransmission would be in time: what makes it late is a queue, which repairs would make longer.
        let path_is_long = self.waiting.iter().any(|symbol| symbol.needs_repairs(situation.min_rtt));
        if !path_is_long {
            needed = needed.min(situation.worth(&self.losses, count));
        }
        let affordable = self.credit as u16;
        let repairs = needed.saturating_sub(sent).min(affordable);
        if repairs == 0 {
            return None;
        }
        self.credit -= f64::from(repairs);
        self.ordered.push_back((last + 1, repairs));
        Some(Order { first, count, repairs })
    }
}
