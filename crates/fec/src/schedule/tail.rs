//! Repairs for the end of what is sent: when there is nothing else to send, they cost little.
//!
//! How many repair symbols a tail gets is the least of four numbers:
//! - what it takes to repair the losses that are to be expected (`wanted`);
//! - what is worth its time on the wire, against the round trip that it may save (`Situation::worth`);
//! - what was earned by the losses that there are (`credit`): where nothing is lost, repairs end;
//! - what the congestion window has room for.
//!
//! Repair symbols that are in flight for the same source symbols count. If all of it is less than the losses that are to be
//! expected, it repairs nothing, and there are none.

use std::collections::VecDeque;
use std::time::Duration;

use fulmar_base::Instant;

use super::{Feedback, LossEstimate, Order, Scheduler, Situation};
use crate::WINDOW_MAX;

/// Short tails get repairs for this part of their symbols: a loss there takes a round trip or more, and may take several
/// packets in a row, which nothing has told of yet. More than half, so that two of three symbols can be lost.
const SHORT_PART: f64 = 0.6;
/// So many repairs are for a burst of losses, which an estimate learns of too late; a tail gets more only if more losses are to
/// be expected. Where bursts last for three packets in the mean, as in-flight Wi-Fi has them, seven of eight are no longer.
const BURST_REPAIRS: u16 = 5;
/// Above the mean of the losses by so many standard deviations of a binomial distribution, beyond which one in a thousand is.
const DEVIATIONS: f64 = 3.0;
/// So many repair symbols may be sent for each loss. A loss costs the round trip until it is repaired, a repair the time of all that
/// waits behind it, which grows with the load of the path; and where repairs fill a queue, and so make losses themselves, each loss must
/// earn fewer than it takes to make one (of a stream that fills 80 % of 2 Mbit/s, about ten). Measured in the lab: frames of a stream
/// that fills 80 % of 5 Mbit/s take 6 % less time where 0.5 % are lost and 16 % less where 2 % are, with twice as many 9 and 8 % less;
/// twenty responses of 15 kB over an idle 20 Mbit/s with 2 % of losses take 12 % less, and 16 % without a limit.
const REPAIRS_PER_LOSS: f64 = 5.0;
/// Repair symbols that may be sent before anything is known: three short tails. As many as `overhead_max` does not count.
const CREDIT_START: f64 = 16.0;
/// Repair symbols that may be saved up: three standard deviations above what a window of 256 symbols loses on a path that
/// loses an eighth.
const CREDIT_MAX: f64 = 48.0;
/// The second half follows the first one after an eighth of the round-trip time, and not before this, so that a burst of
/// losses does not take both.
const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_PART: u32 = 8;

/// Repair symbols when the application has nothing to send and the congestion window has room, over all symbols of which
/// nothing is known yet, up to the last one of its own. Half of them at once, half a little later.
#[derive(Debug, Clone)]
pub struct Tail {
    losses: LossEstimate,
    /// The id after that of its last symbol. What follows is protected otherwise.
    end: u64,
    /// Symbols below this id had their first half.
    covered: u64,
    /// The orders whose symbols may be in flight still: the end of the window and the repair symbols.
    ordered: VecDeque<(u64, u16)>,
    /// What was not ordered at once.
    second: Option<SecondHalf>,
    /// Repair symbols that may be ordered.
    credit: f64,
}

#[derive(Debug, Clone, Copy)]
struct SecondHalf {
    at: Instant,
    /// A round trip after the first half, if that left, what it covers is acknowledged: what is lost leaves again as soon as a repair
    /// symbol would. So late is one for which the window had no room before. `None` where the pause is longer than a round trip.
    until: Option<Instant>,
    repairs: u16,
}

impl Default for Tail {
    fn default() -> Self {
        Self {
            losses: LossEstimate::default(),
            end: 0,
            covered: 0,
            ordered: VecDeque::new(),
            second: None,
            credit: CREDIT_START,
        }
    }
}

impl Tail {
    /// The estimate of the losses of the path.
    pub fn losses(&self) -> &LossEstimate {
        &self.losses
    }

    /// How long the second half waits behind the first one.
    fn pause(smoothed_rtt: Duration) -> Duration {
        PAUSE_MIN.max(smoothed_rtt / PAUSE_PART)
    }

    /// The number of repair symbols that a tail of so many symbols needs, whatever they cost.
    fn wanted(&self, unresolved: u16) -> u16 {
        let part = (f64::from(unresolved) * SHORT_PART).ceil() as u16;
        let expected = self.losses.loss_rate() * f64::from(unresolved);
        let enough = (expected + DEVIATIONS * expected.sqrt()).ceil() as u16;
        enough.max(BURST_REPAIRS).min(part)
    }

    /// How many repair symbols are to be ordered beside those in flight.
    fn missing(&self, situation: &Situation) -> u16 {
        let unresolved = situation.unresolved.min(WINDOW_MAX);
        let in_flight: u16 = self.ordered.iter().map(|(_, repairs)| *repairs).sum();
        let most = self.wanted(unresolved).min(situation.worth(&self.losses, unresolved));
        let missing = most.saturating_sub(in_flight).min(self.credit as u16);
        let expected = (self.losses.loss_rate() * f64::from(unresolved)).round() as u16;
        if in_flight + missing < expected { 0 } else { missing }
    }

    fn order(&mut self, situation: &Situation, repairs: u16) -> Option<Order> {
        let order = situation.order(repairs.min(situation.room))?;
        self.credit -= f64::from(order.repairs);
        self.ordered.push_back((situation.end, order.repairs));
        Some(order)
    }

    /// Repair symbols of the newest orders are not sent.
    fn take_back(&mut self, mut repairs: u16) {
        self.credit = (self.credit + f64::from(repairs)).min(CREDIT_MAX);
        while let Some((_, ordered)) = self.ordered.back_mut().filter(|_| repairs > 0) {
            let taken = repairs.min(*ordered);
            *ordered -= taken;
            repairs -= taken;
            if *ordered == 0 {
                self.ordered.pop_back();
            }
        }
    }
}

impl Scheduler for Tail {
    fn on_source(&mut self, id: u64, _: Instant, _: Option<Instant>) {
        self.end = id + 1;
        self.credit = (self.credit + REPAIRS_PER_LOSS * self.losses.loss_rate()).min(CREDIT_MAX);
    }

    fn on_feedback(&mut self, feedback: Feedback) {
        match feedback {
            Feedback::Delivered => self.losses.note(false),
            Feedback::Lost => self.losses.note(true),
            Feedback::Late => self.losses.excuse(),
            Feedback::RepairsDropped(repairs) => self.take_back(repairs),
            Feedback::RepairsUsed(_) | Feedback::RepairsUnused(_) => {}
        }
    }

    fn next_order(&mut self, situation: &Situation) -> Option<Order> {
        let situation = &situation.up_to(self.end);
        self.ordered.retain(|(end, _)| *end > situation.first_unresolved);
        if situation.unresolved == 0 {
            self.second = None;
            return None;
        }
        if !situation.idle {
            return None;
        }
        let missing = self.missing(situation);
        self.second.take_if(|second| second.until.is_some_and(|until| until <= situation.now));
        if let Some(second) = self.second.take_if(|second| second.at <= situation.now) {
            return self.order(situation, second.repairs.min(missing));
        }
        if situation.end <= self.covered {
            return None;
        }
        self.covered = situation.end;
        // What waits for its time goes on waiting, whatever follows.
        let later = self.second.map_or(0, |second| second.repairs);
        let order = self.order(situation, missing.saturating_sub(later).div_ceil(2));
        let repairs = missing - order.map_or(0, |order| order.repairs);
        let at = self.second.map_or(situation.now + Self::pause(situation.smoothed_rtt), |second| second.at);
        let until = order.map(|_| situation.now + situation.min_rtt).filter(|until| at < *until);
        self.second = (repairs > 0).then_some(SecondHalf { at, until, repairs });
        order
    }

    fn wake_up(&self) -> Option<Instant> {
        self.second.map(|second| second.at)
    }
}
