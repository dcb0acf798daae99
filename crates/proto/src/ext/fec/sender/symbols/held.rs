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

/// What is known of the symbols of a window.
#[derive(Debug, Clone, Copy, Default)]
struct Within {
    lost: f64,
    unknown: f64,
}

impl Within {
    fn add(&mut self, state: State) {
        match state {
            State::InFlight => self.unknown += 1.0,
            State::Held { .. } | State::GivenUp | State::Lost => self.lost += 1.0,
            State::Recovered | State::Delivered => {}
        }
    }
}

impl Symbol {
    /// The repair symbols over it that are in flight, and that have arrived.
    fn repairs(&self) -> (u16, u16) {
        (self.covered, self.arrived)
    }
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
    ///
    /// Repair symbols over a window serve for all that is lost in it, and those over longer ones for what is lost before it as well. So
    /// they are counted by where they begin: from each beginning on, those that begin no earlier are to be enough for what is lost
    /// there, and one beginning for which they are will do.
    pub(super) fn lacks(&self, place: usize, loss_rate: f64, deviations: f64) -> u16 {
        let symbol = &self.symbols[place];
        let end = self.places(symbol.cover.0, symbol.cover.1).end.max(place + 1);
        let mut within = Within::default();
        // Its loss is to be repaired, whether it is known already or not.
        within.lost += 1.0;
        self.symbols.range(place + 1..end).for_each(|behind| within.add(behind.state));
        let mut least = u16::MAX;
        for first in (0..=place).rev() {
            if first < place {
                within.add(self.symbols[first].state);
            }
            // Those over the symbol before begin earlier.
            let before = first.checked_sub(1).map_or((0, 0), |before| self.symbols[before].repairs());
            let (in_flight, arrived) = symbol.repairs();
            let in_flight = f64::from(in_flight.saturating_sub(before.0));
            let arrived = f64::from(arrived.saturating_sub(before.1));
            let expected = (within.unknown + in_flight) * loss_rate;
            let needed = within.lost + (expected + deviations * expected.sqrt()).round();
            least = least.min((needed - in_flight - arrived).max(0.0) as u16);
            if before == (0, 0) || least == 0 {
                break;
            }
        }
        least
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
