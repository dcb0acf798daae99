//! The recovery period (RFC 9002 §7.3.2), and whether its cause was a spurious loss.

use fulmar_base::Instant;

use super::SpuriousLoss;
use crate::packed::{Packed, packed};

/// So many reactions may still turn out to have had no cause. There is one in a round trip, so that a packet which arrives as many round
/// trips after those that have overtaken it takes its reaction back.
const REACTIONS_MAX: usize = 8;

/// What a reaction changes and its undoing restores.
pub(super) trait Before: Clone {
    /// The window in bytes.
    fn window(&self) -> u64;
}

/// For controllers that keep what they restore themselves, and for the last reaction alone.
impl Before for () {
    fn window(&self) -> u64 {
        0
    }
}

/// A period of recovery (RFC 9002 §7.3.2): one reaction to congestion per round trip.
///
/// It begins with the reaction and ends when a packet sent after that is acknowledged. The bytes lost in it
/// are counted, so that the reaction can be undone when all of them arrive after all. That may be known only when others have followed.
#[derive(Debug, Clone)]
pub(super) struct Recovery<S = ()> {
    /// When the last reaction was; packets sent until then are part of its period.
    start: Option<Instant>,
    /// Whether acknowledgements of those packets may grow the window nevertheless.
    released: bool,
    /// The latest reactions that may have had no cause, oldest first.
    reactions: Vec<Reaction<S>>,
    /// What was found to be lost just now, and left after the last reaction.
    uncovered: Lost,
}

impl<S: Packed> Packed for Recovery<S> {
    fn pack(&self, out: &mut Vec<u8>) {
        let Self { start, released, reactions, uncovered } = self;
        start.pack(out);
        released.pack(out);
        reactions.pack(out);
        uncovered.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Self {
        Self {
            start: Packed::unpack(input),
            released: Packed::unpack(input),
            reactions: Packed::unpack(input),
            uncovered: Packed::unpack(input),
        }
    }
}

/// When the first of some lost packets was sent, and their bytes.
#[derive(Debug, Clone, Copy)]
struct Lost {
    since: Instant,
    bytes: u64,
}

packed!(Lost { since, bytes });

impl Lost {
    const NOTHING: Self = Self { since: Instant::ZERO, bytes: 0 };
}

#[derive(Debug, Clone)]
struct Reaction<S> {
    /// Packets sent until then are part of its period, the first of those that have caused it and what was sent after that one.
    at: Instant,
    /// What was lost in the period and has not arrived since.
    lost: Lost,
    /// What was before it.
    before: S,
}

impl<S: Packed> Packed for Reaction<S> {
    fn pack(&self, out: &mut Vec<u8>) {
        let Self { at, lost, before } = self;
        at.pack(out);
        lost.pack(out);
        before.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Self {
        Self { at: Packed::unpack(input), lost: Packed::unpack(input), before: Packed::unpack(input) }
    }
}

/// A reaction had no cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Undone<S> {
    /// What would be without it, had the window not grown since.
    pub(super) state: S,
    /// Whether no later one stands.
    pub(super) is_latest: bool,
}

impl<S> Default for Recovery<S> {
    fn default() -> Self {
        Self { start: None, released: false, reactions: Vec::new(), uncovered: Lost::NOTHING }
    }
}

impl<S: Before> Recovery<S> {
    /// Whether a packet sent at `sent_time` left before the last reaction.
    pub(super) fn covers(&self, sent_time: Instant) -> bool {
        self.start.is_some_and(|start| sent_time <= start)
    }

    /// Whether the acknowledgement of a packet sent at `sent_time` must not grow the window.
    pub(super) fn holds(&self, sent_time: Instant) -> bool {
        !self.released && self.covers(sent_time)
    }

    /// Begins a period; what the reaction changes was `before`. What was found lost and left after the last reaction is its cause.
    pub(super) fn enter(&mut self, now: Instant, before: S) {
        self.start = Some(now);
        self.released = false;
        if self.reactions.len() == REACTIONS_MAX {
            self.reactions.remove(0);
        }
        let lost = std::mem::replace(&mut self.uncovered, Lost::NOTHING);
        self.reactions.push(Reaction { at: now, lost, before });
    }

    /// The reaction takes into account all that was sent until now.
    pub(super) fn extend(&mut self, now: Instant) {
        let latest = self.reactions.last_mut().filter(|latest| Some(latest.at) == self.start);
        self.start = self.start.max(Some(now));
        if let Some(latest) = latest {
            latest.at = latest.at.max(now);
        }
    }

    /// Counts bytes lost of what was sent at `sent_time`, for the reaction that they have caused or are going to.
    pub(super) fn on_lost(&mut self, bytes: u64, sent_time: Instant) {
        if !self.covers(sent_time) {
            let lost = &mut self.uncovered;
            lost.since = if lost.bytes == 0 { sent_time } else { lost.since.min(sent_time) };
            lost.bytes += bytes;
        } else if let Some(reaction) = self.reaction(sent_time) {
            self.reactions[reaction].lost.bytes += bytes;
        }
    }

    /// What was found lost and was no cause of a reaction by now is none.
    pub(super) fn end_losses(&mut self) {
        self.uncovered = Lost::NOTHING;
    }

    /// Makes the reactions so far final, because something else than loss confirmed the last one.
    pub(super) fn make_final(&mut self) {
        self.reactions.clear();
    }

    /// Lets the window grow by packets sent before the last reaction, too. Losses among them still cause
    /// no second reaction.
    pub(super) fn release(&mut self) {
        self.released = true;
    }

    /// What was before the last reaction, unless that is final.
    pub(super) fn before(&self) -> Option<&S> {
        self.reactions.last().map(|reaction| &reaction.before)
    }

    /// Takes a loss back. If that was the last one of a reaction, the reaction had no cause. Those that followed it would have had more
    /// to reduce: `reduced` says what one makes of what was before it.
    pub(super) fn on_spurious(
        &mut self,
        spurious: &SpuriousLoss,
        reduced: impl Fn(&S) -> S,
    ) -> Option<Undone<S>> {
        let index = self.reaction(spurious.sent_time)?;
        let lost = &mut self.reactions[index].lost;
        lost.bytes = lost.bytes.saturating_sub(spurious.bytes);
        if lost.bytes > 0 {
            return None;
        }
        let reaction = self.reactions.remove(index);
        let is_latest = index == self.reactions.len();
        let mut state = reaction.before;
        for later in &mut self.reactions[index..] {
            if state.window() > later.before.window() {
                later.before = state;
            }
            state = reduced(&later.before);
        }
        Some(Undone { state, is_latest })
    }

    /// The reaction in whose period a packet was lost that was sent at `sent_time`, if one was.
    fn reaction(&self, sent_time: Instant) -> Option<usize> {
        self.reactions.iter().position(|it| it.lost.bytes > 0 && (it.lost.since..=it.at).contains(&sent_time))
    }
}

impl Recovery {
    /// Begins a period, and makes the reactions before it final.
    pub(super) fn enter_last(&mut self, now: Instant) {
        self.make_final();
        self.enter(now, ());
    }
}

#[cfg(test)]
mod tests;
