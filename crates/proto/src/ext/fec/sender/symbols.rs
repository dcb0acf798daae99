//! Source symbols that were sent: what is known of each, and what is held back of those that were lost.

mod held;

use std::collections::VecDeque;
use std::mem;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use fulmar_base::{Instant, Timer};
use fulmar_wire::PathId;

pub(super) use self::held::Odds;
use super::Protected;
use crate::packet::{SentFrames, SymbolId};

/// Source symbols of which something is remembered. When there are more, the oldest are forgotten; what was held back of them
/// is sent again.
const SYMBOLS_MAX: usize = 4_096;

/// A lost symbol is remembered until it is older than the window by this: a report that it was recovered may still come.
const LOST_MEMORY: u64 = 256;

/// Source symbols until it is known what became of them.
#[derive(Debug, Default)]
pub(super) struct SentSymbols {
    /// Symbols with consecutive ids, up to the last one.
    symbols: VecDeque<Symbol>,
    /// The id of the first of them.
    first: u64,
    /// How many of them have no verdict.
    unresolved: usize,
    /// How many of them are held back.
    held: usize,
    /// What is to be sent again when all is known that the packet says which is being processed, with the ids of its symbols: a
    /// report may follow the acknowledgement that gave it up.
    released: Vec<(u64, Protected)>,
    /// When the first of the symbols that are held back is to be given up.
    patience: Timer,
}

/// A source symbol that was sent.
#[derive(Debug)]
struct Symbol {
    path: PathId,
    /// The tokens of its frames.
    frames: SentFrames,
    /// How many tokens of its packet are not its own; they come first.
    unprotected: u16,
    state: State,
    /// Repair symbols in flight that cover it.
    covered: u16,
    /// Repair symbols that cover it and have arrived.
    arrived: u16,
    /// When the last of them left; when it left itself, if there was none. Of what is held back: when its loss was known.
    covered_at: Instant,
    /// The first symbol and the number of symbols that this one covers.
    cover: (u64, u16),
}

/// What is known of a source symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing.
    InFlight,
    /// Its packet is lost, and its frames are held back for repair symbols that are in flight.
    Held {
        /// Until then at most.
        until: Instant,
    },
    /// Its packet is lost, and its frames were to be handed back to their owners, but are still here.
    GivenUp,
    /// Its packet is lost, and its frames were handed back to their owners.
    Lost,
    /// The peer has it, and nothing is known of its packet, which counts among the lost ones if it is lost.
    Recovered,
    /// The peer has it, and it is known what became of its packet.
    Delivered,
}

impl State {
    fn is_held(self) -> bool {
        matches!(self, Self::Held { .. })
    }

    fn is_lost(self) -> bool {
        matches!(self, Self::Held { .. } | Self::GivenUp | Self::Lost)
    }
}

/// What a lost packet means for its frames.
#[derive(Debug)]
pub(crate) struct Loss {
    /// The tokens of the packet that are not part of the symbol.
    pub(crate) unprotected: usize,
    /// Whether the others are to be sent again now.
    pub(crate) resend: bool,
}

impl SentSymbols {
    /// The id of the next symbol.
    pub(super) fn end(&self) -> u64 {
        self.first + self.symbols.len() as u64
    }

    /// How many have no verdict.
    pub(super) fn unresolved(&self) -> usize {
        self.unresolved
    }

    /// The id and the path of the first one without a verdict that is not held back.
    pub(super) fn first_in_flight(&self) -> Option<(u64, PathId)> {
        let place = self.symbols.iter().position(|symbol| symbol.state == State::InFlight)?;
        Some((self.first + place as u64, self.symbols[place].path))
    }

    /// A symbol leaves.
    pub(super) fn push(&mut self, now: Instant, path: PathId, frames: SentFrames, unprotected: usize) {
        if self.symbols.len() == SYMBOLS_MAX {
            self.forget_oldest();
        }
        self.symbols.push_back(Symbol {
            path,
            frames,
            unprotected: unprotected as u16,
            state: State::InFlight,
            covered: 0,
            arrived: 0,
            covered_at: now,
            cover: (0, 0),
        });
        self.unresolved += 1;
    }

    /// The packet of a symbol has arrived. Returns whether that is the first verdict.
    pub(super) fn on_acked(&mut self, symbol: SymbolId) -> bool {
        let Some(place) = self.place_of(symbol) else { return false };
        let was = mem::replace(&mut self.symbols[place].state, State::Delivered);
        self.unresolved -= usize::from(was == State::InFlight);
        self.held -= usize::from(was.is_held());
        was == State::InFlight
    }

    /// The packet of a symbol is lost. If the repair symbols over it may suffice (`None`: nobody would tell), it is held back for as
    /// long as `patience` after the last of them. Returns whether that is the first verdict, too; `None` if nothing is known of it
    /// any more.
    pub(super) fn on_lost(
        &mut self,
        now: Instant,
        symbol: SymbolId,
        patience: Duration,
        odds: Option<Odds>,
    ) -> Option<(Loss, bool)> {
        let place = self.place_of(symbol)?;
        let suffices = self.symbols[place].covered > 0
            && odds.is_some_and(|odds| odds.may_complete || self.lacks(place, odds.loss_rate, 0.0) == 0);
        let symbol = &mut self.symbols[place];
        let mut loss = Loss { unprotected: symbol.unprotected.into(), resend: false };
        if symbol.state == State::Recovered {
            symbol.state = State::Delivered;
        }
        if symbol.state != State::InFlight {
            return Some((loss, false));
        }
        let (until, cover) = (symbol.covered_at + patience, symbol.cover);
        let held = suffices && until > now;
        symbol.state = if held { State::Held { until } } else { State::Lost };
        symbol.covered_at = now;
        loss.resend = !held;
        self.unresolved -= 1;
        self.held += usize::from(held);
        if held && self.patience.deadline().is_none_or(|first| until < first) {
            self.patience.set(until);
        }
        if !suffices {
            // All or none of what the same repair symbols cover can be recovered.
            self.release(self.places(cover.0, cover.1), |_| true);
        }
        Some((loss, true))
    }

    /// The peer has these symbols. Returns what was known of those that this is news of, and the tokens of their frames.
    pub(super) fn deliver(&mut self, ids: RangeInclusive<u64>) -> Vec<(State, Protected)> {
        let places = self.places_between(*ids.start(), ids.end().saturating_add(1));
        let mut news = Vec::new();
        let ids = self.first + places.start as u64..;
        for (id, symbol) in ids.zip(self.symbols.range_mut(places)) {
            let was = symbol.state;
            if was == State::GivenUp {
                // Nothing of it has left again.
                self.released.retain(|(released, _)| *released != id);
            }
            symbol.state = match was {
                State::InFlight | State::Recovered => State::Recovered,
                State::Held { .. } | State::GivenUp | State::Lost | State::Delivered => State::Delivered,
            };
            if !matches!(was, State::Recovered | State::Delivered) {
                news.push((was, (symbol.path, mem::take(&mut symbol.frames))));
            }
        }
        self.unresolved -= news.iter().filter(|(was, _)| *was == State::InFlight).count();
        self.held -= news.iter().filter(|(was, _)| was.is_held()).count();
        news
    }

    /// The packet of a symbol that was taken for lost has arrived. Returns whether nothing else has told so before.
    pub(super) fn on_spurious(&mut self, symbol: SymbolId) -> bool {
        let Some(place) = self.place_of(symbol) else { return false };
        let symbol = &mut self.symbols[place];
        let was_lost = symbol.state.is_lost();
        self.held -= usize::from(symbol.state.is_held());
        if was_lost {
            symbol.state = State::Delivered;
        }
        was_lost
    }

    /// Whether a repair symbol in flight covers a symbol.
    pub(super) fn is_covered(&self, symbol: SymbolId) -> bool {
        self.place_of(symbol).is_some_and(|place| self.symbols[place].covered > 0)
    }

    /// Whether one of these symbols is lost.
    pub(super) fn lacks_any(&self, first: u64, count: u16) -> bool {
        let mut symbols = self.symbols.range(self.places(first, count));
        symbols.any(|symbol| symbol.state.is_lost())
    }

    /// A repair symbol over these symbols leaves. What is held back of them waits for it as well, for as long as `patience`, but no
    /// longer than twice that since its loss was known: those that make up for what lacks left before, and a peer that recovers nothing
    /// must not be waited for as long as others follow.
    pub(super) fn cover(&mut self, now: Instant, first: u64, count: u16, patience: Duration) {
        let places = self.places(first, count);
        for symbol in self.symbols.range_mut(places) {
            symbol.covered = symbol.covered.saturating_add(1);
            match &mut symbol.state {
                State::Held { until } => *until = (now + patience).min(symbol.covered_at + patience * 2),
                _ => symbol.covered_at = now,
            }
            symbol.cover = (first, count);
        }
    }

    /// A repair symbol over these symbols has arrived or is lost. What was held back for the last one is given up.
    pub(super) fn uncover(&mut self, first: u64, count: u16, has_arrived: bool) {
        let places = self.places(first, count);
        for symbol in self.symbols.range_mut(places.clone()) {
            symbol.covered = symbol.covered.saturating_sub(1);
            symbol.arrived = symbol.arrived.saturating_add(has_arrived.into());
        }
        self.release(places, |symbol| symbol.covered == 0);
    }

    /// Forgets what has arrived before all others, and what was lost long before the window of the code, which begins with this symbol.
    pub(super) fn forget_resolved(&mut self, window: u64) {
        let old = window.saturating_sub(LOST_MEMORY);
        let is_over = |symbol: &Symbol, first: u64| match symbol.state {
            State::Delivered => true,
            State::Lost => first < old,
            State::InFlight | State::Held { .. } | State::GivenUp | State::Recovered => false,
        };
        while self.symbols.front().is_some_and(|symbol| is_over(symbol, self.first)) {
            self.symbols.pop_front();
            self.first += 1;
        }
    }

    /// Gives back spare memory.
    pub(super) fn rest(&mut self) {
        self.symbols.shrink_to_fit();
        self.released.shrink_to_fit();
    }

    /// The bytes of what is remembered, without those of long lists of tokens.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.symbols.capacity() * size_of::<Symbol>()
            + self.released.capacity() * size_of::<(u64, Protected)>()
    }

    /// What was held back, and is to be sent again now.
    pub(super) fn take_released(&mut self) -> Vec<Protected> {
        if self.released.is_empty() {
            return Vec::new();
        }
        let released = mem::take(&mut self.released);
        let hand_back = |(id, protected): (u64, Protected)| {
            // One that was forgotten has no place any more.
            let place = id.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
            if let Some(symbol) = place.and_then(|place| self.symbols.get_mut(place)) {
                symbol.state = State::Lost;
            }
            protected
        };
        released.into_iter().map(hand_back).collect()
    }

    /// What is to be sent again of a lost symbol waits for the end of the packet that is being processed, if a repair symbol over it
    /// has left, so that a report may follow. Returns whether it does.
    pub(super) fn resend_later(&mut self, symbol: SymbolId) -> bool {
        let Some(place) = self.place_of(symbol) else { return false };
        let id = self.first + place as u64;
        let symbol = &mut self.symbols[place];
        let waits = symbol.state == State::Lost && symbol.cover.1 > 0;
        if waits {
            symbol.state = State::GivenUp;
            self.released.push((id, (symbol.path, symbol.frames.clone())));
        }
        waits
    }

    /// When something that is held back is to be given up, although nothing else happens.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.patience.deadline()
    }

    /// Gives up what was held back long enough.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        if !self.patience.take_expired(now) {
            return;
        }
        let all = 0..self.symbols.len();
        self.release(all, |symbol| matches!(symbol.state, State::Held { until } if until <= now));
        let deadlines = self.symbols.iter().filter_map(|symbol| match symbol.state {
            State::Held { until } => Some(until),
            _ => None,
        });
        if let Some(next) = deadlines.min() {
            self.patience.set(next);
        }
    }

    fn place_of(&self, symbol: SymbolId) -> Option<usize> {
        // Ids of which something is remembered differ in their low bits.
        let place = symbol.0.wrapping_sub(self.first as u32) as usize;
        (place < self.symbols.len()).then_some(place)
    }

    /// Where those of these symbols are that something is remembered of.
    fn places(&self, first: u64, count: u16) -> Range<usize> {
        self.places_between(first, first + u64::from(count))
    }

    fn places_between(&self, first: u64, end: u64) -> Range<usize> {
        let place = |id: u64| (id.clamp(self.first, self.end()) - self.first) as usize;
        place(first)..place(end)
    }

    fn forget_oldest(&mut self) {
        let Some(symbol) = self.symbols.pop_front() else { return };
        self.first += 1;
        match symbol.state {
            State::InFlight => self.unresolved -= 1,
            State::Held { .. } => {
                self.held -= 1;
                self.released.push((self.first - 1, (symbol.path, symbol.frames)));
            }
            State::GivenUp | State::Lost | State::Recovered | State::Delivered => {}
        }
    }
}

#[cfg(test)]
mod tests;
