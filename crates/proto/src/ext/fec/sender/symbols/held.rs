//! What is held back of symbols that were lost, for the repair symbols over them.

use std::ops::Range;

use fulmar_base::Instant;
use fulmar_fec::schedule::Order;

use super::{SentSymbols, State, Symbol};

/// Repair symbols that lack are for the losses that are to be expected and a standard deviation more: five times of six they are
/// enough, and no more of them would be sent as copies otherwise, but for that.
const DEVIATIONS: f64 = 1.0;

/// What is to be expected of repair symbols over a symbol that is lost.
#[derive(Debug, Clone, Copy)]
pub(in crate::ext::fec::sender) struct Odds {
    /// The part of what is in flight that gets lost: 0 to 1.
    pub(in crate::ext::fec::sender) loss_rate: f64,
    /// Whether those that lack are sent now.
    pub(in crate::ext::fec::sender) may_complete: bool,
}

impl SentSymbols {
    /// Whether any symbol is held back.
    pub(in crate::ext::fec::sender) fn holds_any(&self) -> bool {
        self.held > 0
    }

    /// The repair symbols that lack for what is held back, at this rate of losses: over all that is held back and what the others
    /// cover. `None` if they are enough.
    pub(in crate::ext::fec::sender) fn lacking(&self, loss_rate: f64) -> Option<Order> {
        let first = self.held_places().next()?;
        let lacks = |place| (self.lacks(place, loss_rate, DEVIATIONS), place);
        let (repairs, place) = self.held_places().map(lacks).max().filter(|(repairs, _)| *repairs > 0)?;
        let (covered_first, covered_count) = self.symbols[place].cover;
        let first = self.first + first as u64;
        let count = (covered_first + u64::from(covered_count)).checked_sub(first)?;
        Some(Order { first, count: u16::try_from(count).ok()?, repairs })
    }

    /// Gives up what is held back for repair symbols that are too few, at this rate of losses. It is sent again at once, though
    /// nothing comes.
    pub(in crate::ext::fec::sender) fn give_up_lacking(&mut self, now: Instant, loss_rate: f64) {
        let lacks = |place: &usize| self.lacks(*place, loss_rate, 0.0) > 0;
        let lacks: Vec<usize> = self.held_places().filter(lacks).collect();
        for place in lacks {
            self.release(place..place + 1, |_| true);
        }
        if !self.released.is_empty() {
            self.patience.set(now);
        }
    }

    /// The places of what is held back.
    fn held_places(&self) -> impl Iterator<Item = usize> {
        // Asked with each packet: what is remembered is looked through as far as something is held back.
        let symbols = self.symbols.iter().enumerate();
        symbols.filter(|(_, symbol)| symbol.state.is_held()).map(|(place, _)| place).take(self.held)
    }

    /// How many repair symbols those over the symbol at this place, which is lost, lack for the losses that are to be expected among
    /// all that they cover, and so many standard deviations: none if it is recovered more likely than not.
    pub(super) fn lacks(&self, place: usize, loss_rate: f64, deviations: f64) -> u16 {
        let Symbol { covered, arrived, cover: (first, count), state, .. } = self.symbols[place];
        let is_unknown = f64::from(u8::from(state == State::InFlight));
        // The symbol itself is in flight still.
        let (mut lost, mut unknown) = (is_unknown, f64::from(covered) - is_unknown);
        for symbol in self.symbols.range(self.places(first, count)) {
            match symbol.state {
                State::InFlight => unknown += 1.0,
                State::Held { .. } | State::GivenUp | State::Lost => lost += 1.0,
                State::Recovered | State::Delivered => {}
            }
        }
        let expected = unknown * loss_rate;
        let needed = lost + (expected + deviations * expected.sqrt()).round();
        (needed - f64::from(covered + arrived)).max(0.0) as u16
    }

    /// Gives up what is held back of these places and meets a condition.
    pub(super) fn release(&mut self, places: Range<usize>, is_over: impl Fn(&Symbol) -> bool) {
        let ids = self.first + places.start as u64..;
        for (id, symbol) in ids.zip(self.symbols.range_mut(places)) {
            if symbol.state.is_held() && is_over(symbol) {
                symbol.state = State::GivenUp;
                self.held -= 1;
                self.released.push((id, (symbol.path, symbol.frames.clone())));
            }
        }
    }
}
