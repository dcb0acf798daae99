//! When to send repair symbols, and how many.
//!
//! A [`Scheduler`] is told what is sent and what becomes of it, and answers with orders. It knows no packets and no clock;
//! time comes in as an argument.

mod constant;
mod deadline;
mod loss;
mod tail;

use std::fmt;
use std::time::Duration;

use fulmar_base::Instant;

pub use constant::Constant;
pub use deadline::{Deadline, DeadlineConfig};
pub use loss::LossEstimate;
pub use tail::Tail;

/// What became of a source symbol, or of repair symbols. Told in the order in which it becomes known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback {
    /// A source symbol arrived in its own packet.
    Delivered,
    /// The packet of a source symbol was lost, whether or not the symbol was recovered.
    Lost,
    /// The packet of a source symbol that was told to be lost has arrived after all.
    Late,
    /// So many repair symbols recovered something.
    RepairsUsed(u16),
    /// So many repair symbols were not needed.
    RepairsUnused(u16),
    /// So many repair symbols of the newest orders were not sent: something else came that goes first.
    RepairsDropped(u16),
}

/// How things stand when a packet could be sent.
#[derive(Debug, Clone, Copy)]
pub struct Situation {
    /// The time.
    pub now: Instant,
    /// The id of the oldest source symbol of which nothing is known yet; [`Situation::end`] if there is none.
    pub first_unresolved: u64,
    /// The id that the next source symbol will have.
    pub end: u64,
    /// How many source symbols there are between these two of which nothing is known yet.
    pub unresolved: u16,
    /// Whether the application has nothing to send and the congestion window has room.
    pub idle: bool,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// The smallest round-trip time: that of the path without a queue.
    pub min_rtt: Duration,
    /// How long a repair symbol takes on the wire, as far as the path has shown that: zero if nothing had to wait on it.
    pub repair_time: Duration,
    /// How many repair symbols the congestion window has room for.
    pub room: u16,
}

/// Repair symbols to be made and sent now, before another order is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The id of the first source symbol that they cover.
    pub first: u64,
    /// The number of source symbols that they cover.
    pub count: u16,
    /// The number of repair symbols, at least 1.
    pub repairs: u16,
}

/// Decides about redundancy.
pub trait Scheduler: fmt::Debug + Send {
    /// A source symbol leaves. What it carries is of no use after `deadline`, if there is one.
    fn on_source(&mut self, id: u64, now: Instant, deadline: Option<Instant>);

    /// Something is known about symbols that left before.
    fn on_feedback(&mut self, feedback: Feedback);

    /// What to send now. Asked until it gives `None`.
    fn next_order(&mut self, situation: &Situation) -> Option<Order>;

    /// The first source symbol that has to be kept although something is known of all of them; `None` if there is none.
    fn first_needed(&self) -> Option<u64> {
        None
    }

    /// When [`Scheduler::next_order`] should be asked although nothing has happened.
    fn wake_up(&self) -> Option<Instant> {
        None
    }
}

/// Sends no repair symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoRepairs;

impl Scheduler for NoRepairs {
    fn on_source(&mut self, _: u64, _: Instant, _: Option<Instant>) {}

    fn on_feedback(&mut self, _: Feedback) {}

    fn next_order(&mut self, _: &Situation) -> Option<Order> {
        None
    }
}

impl Situation {
    /// As if there were no source symbols from this id on.
    fn up_to(&self, end: u64) -> Self {
        let end = self.end.min(end);
        let first_unresolved = self.first_unresolved.min(end);
        let most = u16::try_from(end - first_unresolved).unwrap_or(u16::MAX);
        Self { first_unresolved, end, unresolved: self.unresolved.min(most), ..*self }
    }

    /// The most repair symbols for so many source symbols that are worth their time: all of them take no longer on the wire than
    /// they save in the mean, which is a round trip as often as one of the source symbols is lost. That is the smallest one: where
    /// there is a queue repairs wait in it as well, and what they take holds up all that follows, the longer the busier the path is.
    fn worth(&self, losses: &LossEstimate, symbols: u16) -> u16 {
        let saved = self.min_rtt.as_secs_f64() * losses.any_lost(symbols);
        // As many as there can be where they take no time.
        (saved / self.repair_time.as_secs_f64()) as u16
    }

    /// An order over all that is not known to have arrived and is among the newest 256, or `None` if that is nothing.
    fn order(&self, repairs: u16) -> Option<Order> {
        let oldest = self.end.saturating_sub(crate::WINDOW_MAX.into());
        let first = self.first_unresolved.max(oldest);
        // At most 256.
        let count = self.end.saturating_sub(first) as u16;
        (count > 0 && repairs > 0).then_some(Order { first, count, repairs })
    }
}

#[cfg(test)]
mod tests;
