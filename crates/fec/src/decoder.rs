//! The receiver: takes source and repair symbols in any order and gives back the source symbols that were lost.
//!
//! It keeps a window of the newest ids. For each id in it there is the symbol itself, or an equation in which this symbol
//! is the pivot, or nothing. The equations are in reduced form: a pivot occurs in its own equation only, and symbols that
//! are known occur in none. So an equation with one unknown symbol is that symbol, and nothing has to be solved at the end.

mod budget;
mod row;
mod slots;

use std::collections::VecDeque;

use crate::code::{self, Code, CodeError, ID_LIMIT, RepairId, WINDOW_MAX};
use crate::kernel::Kernel;
use crate::symbol::{self, LENGTH_BYTES, SYMBOL_MAX};
use budget::Budget;
use row::Row;
use slots::{Slot, Slots};

/// What a decoder may take of memory and time.
///
/// Memory is at most `window` times (`symbol` + `window` + 2) bytes, and some for the buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The ids that are looked at, counted from the newest one: 1 to [`WINDOW_MAX`]. Older ones are forgotten.
    pub window: u16,
    /// The bytes of a source symbol: at most [`SYMBOL_MAX`].
    pub symbol: u16,
    /// The bytes that a call may multiply.
    pub work_per_call: u64,
    /// The bytes that may be multiplied in all, unless source symbols earn more.
    pub work_total: u64,
    /// The bytes that may be multiplied for each byte of a source symbol that arrives. What was earned and not used does not
    /// go above `work_total`.
    pub work_per_source_byte: u64,
}

impl Default for Limits {
    /// 256 symbols of 1,500 bytes; a call takes well below a millisecond, and 64 MiB of work are some milliseconds.
    fn default() -> Self {
        Self {
            window: WINDOW_MAX,
            symbol: SYMBOL_MAX,
            work_per_call: 2 << 20,
            work_total: 64 << 20,
            work_per_source_byte: 64,
        }
    }
}

/// What became of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is kept: a new source symbol, or a repair symbol that says something new and may help later.
    Kept,
    /// It let this many source symbols be recovered, which [`Decoder::next_recovered`] gives.
    Recovered(u16),
    /// It says nothing new.
    Redundant,
    /// It concerns symbols that are older than the window.
    Stale,
    /// Using it would take more work than the limits allow, so it was dropped.
    OverBudget,
    /// The decoder was switched off by an inconsistent symbol.
    Off,
}

/// Why a symbol was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A source symbol or a repair symbol is longer than the limit, or a repair symbol is too short.
    #[error("a symbol has {0} bytes, which is not possible")]
    Length(usize),
    /// The id of a source symbol is not below [`ID_LIMIT`].
    #[error("symbol id {0} is too large")]
    Id(u64),
    /// A repair symbol covers more symbols than the limit.
    #[error("a repair symbol over {0} symbols is larger than the window")]
    WindowTooLarge(u16),
    /// The code has no such repair symbol.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The symbols contradict one another. The decoder is off from now on and has given back its memory.
    #[error("the symbols contradict one another")]
    Inconsistent,
}

/// What a decoder has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecoderStats {
    /// Source symbols that were recovered.
    pub recovered: u64,
    /// Repair symbols that said nothing new.
    pub redundant_repairs: u64,
    /// Repair symbols that came too late, or that the budget did not allow.
    pub dropped_repairs: u64,
    /// Equations that were dropped because their symbols left the window, or for the budget.
    pub dropped_equations: u64,
    /// The bytes that were multiplied.
    pub work: u64,
    /// Places of the window that were looked at for equations with symbols that left it. They are no work that is limited, but
    /// few for each equation that was dropped.
    pub visits: u64,
}

/// Recovers lost source symbols, at every symbol that arrives.
///
/// Nothing that a peer sends makes it panic, take more memory or more time than the [`Limits`] say. Repairs of different
/// codes may be mixed.
#[derive(Debug)]
pub struct Decoder {
    kernel: Kernel,
    limits: Limits,
    budget: Budget,
    slots: Slots,
    /// The ids that were recovered and not yet given away; all of them are in the window or just behind it.
    recovered: VecDeque<u64>,
    off: bool,
    stats: DecoderStats,
}

impl Decoder {
    /// A decoder with the fastest kernel. Limits out of their ranges are brought into them.
    pub fn new(limits: Limits) -> Self {
        Self::with_kernel(limits, Kernel::best())
    }

    /// As [`Decoder::new`], with the given kernel.
    pub fn with_kernel(mut limits: Limits, kernel: Kernel) -> Self {
        limits.window = limits.window.clamp(1, WINDOW_MAX);
        limits.symbol = limits.symbol.min(SYMBOL_MAX);
        Self {
            kernel,
            limits,
            budget: Budget::new(&limits),
            slots: Slots::new(limits.window.into()),
            recovered: VecDeque::new(),
            off: false,
            stats: DecoderStats::default(),
        }
    }

    /// Takes symbols before this id for too old: they were seen, and not kept. Does nothing once a symbol was taken.
    pub fn start_at(&mut self, first: u64) {
        self.slots.start_at(first);
    }

    /// Takes a source symbol that arrived.
    ///
    /// # Errors
    /// If it is too long, its id too large, or if it contradicts what arrived before.
    pub fn on_source(&mut self, id: u64, payload: &[u8]) -> Result<Outcome, DecodeError> {
        if self.off {
            return Ok(Outcome::Off);
        }
        if payload.len() > self.limits.symbol.into() {
            return Err(DecodeError::Length(payload.len()));
        }
        if id >= ID_LIMIT {
            return Err(DecodeError::Id(id));
        }
        self.budget.begin_call();
        self.budget.earn(payload.len());
        let result = self.take_source(id, payload);
        self.end_call(result)
    }

    /// Takes a repair symbol that arrived, made by `code`.
    ///
    /// # Errors
    /// If there is no such repair symbol, or if it contradicts what arrived before.
    pub fn on_repair(
        &mut self,
        code: &dyn Code,
        id: &RepairId,
        repair: &[u8],
    ) -> Result<Outcome, DecodeError> {
        if self.off {
            return Ok(Outcome::Off);
        }
        if repair.len() < LENGTH_BYTES || repair.len() > usize::from(self.limits.symbol) + LENGTH_BYTES {
            return Err(DecodeError::Length(repair.len()));
        }
        if id.count > self.limits.window {
            return Err(DecodeError::WindowTooLarge(id.count));
        }
        let mut coefficients = [0; WINDOW_MAX as usize];
        let coefficients = code::coefficients(code, id, &mut coefficients)?;
        self.budget.begin_call();
        let result = self.take_repair(id.first, coefficients, repair);
        match result {
            Ok(Outcome::Redundant) => self.stats.redundant_repairs += 1,
            Ok(Outcome::Stale | Outcome::OverBudget) => self.stats.dropped_repairs += 1,
            _ => {}
        }
        self.end_call(result)
    }

    /// The next source symbol that was recovered, with its id. To be called until it gives `None`, after every call that
    /// recovered something: what leaves the window is lost.
    pub fn next_recovered(&mut self) -> Option<(u64, &[u8])> {
        while let Some(id) = self.recovered.pop_front() {
            if self.slots.known(id).is_some() {
                // Asked twice, as a borrow that is returned cannot be given up in the other case.
                return self.slots.known(id).map(|packed| (id, symbol::payload(packed)));
            }
        }
        None
    }

    /// Whether an inconsistent symbol has switched the decoder off.
    pub fn is_off(&self) -> bool {
        self.off
    }

    /// The repair symbols that are kept, as equations that still lack something.
    pub fn equations(&self) -> usize {
        self.slots.rows()
    }

    /// What was done so far.
    pub fn stats(&self) -> DecoderStats {
        DecoderStats { work: self.budget.spent(), ..self.stats }
    }

    /// The bytes of all buffers.
    pub fn memory(&self) -> usize {
        self.slots.memory() + self.recovered.capacity() * size_of::<u64>()
    }

    fn take_source(&mut self, id: u64, payload: &[u8]) -> Result<Outcome, DecodeError> {
        if !self.make_room(id + 1) {
            return Ok(Outcome::Stale);
        }
        if let Some(known) = self.slots.known(id) {
            let same = symbol::payload(known) == payload;
            return if same { Ok(Outcome::Redundant) } else { Err(DecodeError::Inconsistent) };
        }
        let mut packed = self.slots.buffer();
        symbol::pack(payload, &mut packed);
        let column = self.slots.column(id);
        // The equation in which this symbol was the pivot needs another one.
        let homeless = self.slots.take_row(column);
        let rehoming = match &homeless {
            // It is subtracted from, divided, and taken out of all others.
            Some(row) => packed.len() as u64 + (self.slots.rows() as u64 + 1) * row.cost(),
            None => 0,
        };
        let work = self.slots.cost_of_column(column) + rehoming;
        if !self.budget.spend(work) {
            // Equations are never needed. Without them there is nothing to subtract from.
            self.stats.dropped_equations += self.slots.drop_rows() as u64 + u64::from(homeless.is_some());
            self.slots.set_known(column, packed);
            return Ok(Outcome::Kept);
        }
        let kernel = self.kernel;
        for row in self.slots.rows_mut() {
            row.subtract_known(kernel, column, &packed)?;
        }
        let homeless = match homeless {
            Some(mut row) => {
                row.subtract_known(kernel, column, &packed)?;
                Some(row)
            }
            None => None,
        };
        self.slots.set_known(column, packed);
        if let Some(row) = homeless {
            self.settle(row)?;
        }
        self.collect()
    }

    fn take_repair(
        &mut self,
        first: u64,
        coefficients: &[u8],
        repair: &[u8],
    ) -> Result<Outcome, DecodeError> {
        if first < self.slots.first() || !self.make_room(first + coefficients.len() as u64) {
            return Ok(Outcome::Stale);
        }
        let covered = (first..).zip(coefficients).filter(|(_, coefficient)| **coefficient != 0);
        let known = covered.clone().filter(|(id, _)| self.slots.known(*id).is_some()).count();
        if known == covered.clone().count() {
            // The usual case on a good path. Whether it is consistent does not matter, as it is not used.
            return Ok(Outcome::Redundant);
        }
        let width = u64::from(self.limits.window);
        let longest = u64::from(self.limits.symbol) + LENGTH_BYTES as u64 + width;
        // Known symbols are subtracted, equations are, and the new equation is subtracted from them.
        let work = known as u64 * repair.len() as u64 + (2 * self.slots.rows() as u64 + 1) * longest;
        if !self.budget.spend(work) {
            return Ok(Outcome::OverBudget);
        }
        let kernel = self.kernel;
        let mut row = Row::new(self.limits.window.into(), self.slots.buffer(), repair);
        for (id, coefficient) in covered {
            row.set(self.slots.column(id), *coefficient);
            if let Some(packed) = self.slots.known(id) {
                row.subtract_known(kernel, self.slots.column(id), packed)?;
            }
        }
        self.slots.reduce(kernel, &mut row);
        if !self.settle(row)? {
            return Ok(Outcome::Redundant);
        }
        self.collect()
    }

    /// Keeps an equation that is reduced by all others. False if it says nothing.
    fn settle(&mut self, mut row: Row) -> Result<bool, DecodeError> {
        let Some(pivot) = row.first_unknown() else {
            let consistent = row.is_zero();
            self.slots.recycle(row);
            return if consistent { Ok(false) } else { Err(DecodeError::Inconsistent) };
        };
        let buffer = self.slots.buffer();
        let replaced = row.normalize(self.kernel, pivot, buffer);
        self.slots.keep_buffer(replaced);
        self.slots.eliminate(self.kernel, pivot, &row);
        self.slots.set_row(pivot, row);
        Ok(true)
    }

    /// Makes symbols of the equations that have one unknown symbol only.
    fn collect(&mut self) -> Result<Outcome, DecodeError> {
        let mut found = 0;
        if self.slots.rows() == 0 {
            return Ok(Outcome::Kept);
        }
        for id in self.slots.ids() {
            let column = self.slots.column(id);
            let solved = match self.slots.get(column) {
                Slot::Row(row) => row.is_solved_for(column),
                _ => false,
            };
            if !solved {
                continue;
            }
            let Some(row) = self.slots.take_row(column) else { continue };
            let mut packed = row.into_data();
            let length = symbol::packed_length(&packed).ok_or(DecodeError::Inconsistent)?;
            packed.truncate(length);
            self.slots.set_known(column, packed);
            self.recovered.push_back(id);
            found += 1;
        }
        self.stats.recovered += u64::from(found);
        Ok(if found > 0 { Outcome::Recovered(found) } else { Outcome::Kept })
    }

    /// Moves the window so that it ends behind `end`, at least. False if ids there are older than the window already.
    fn make_room(&mut self, end: u64) -> bool {
        if end <= self.slots.first() {
            return false;
        }
        let (kernel, budget) = (self.kernel, &mut self.budget);
        self.stats.dropped_equations += self.slots.slide_to(kernel, end, |work| budget.spend(work)) as u64;
        self.stats.visits = self.slots.visits();
        let first = self.slots.first();
        while self.recovered.front().is_some_and(|id| *id < first) {
            self.recovered.pop_front();
        }
        true
    }

    fn end_call(&mut self, result: Result<Outcome, DecodeError>) -> Result<Outcome, DecodeError> {
        if result == Err(DecodeError::Inconsistent) {
            self.off = true;
            self.slots = Slots::new(0);
            self.recovered = VecDeque::new();
        }
        result
    }
}
