//! The sender: keeps the last source symbols and makes repair symbols of them.

use std::collections::VecDeque;
use std::ops::Range;

use crate::code::{self, Code, CodeError, ID_LIMIT, RepairId, WINDOW_MAX};
use crate::kernel::Kernel;
use crate::symbol::{self, LENGTH_BYTES, SYMBOL_MAX};

/// The source symbols that repair symbols can be made of: the last ones that were pushed.
///
/// Ids are given one after the other. When the window is full the oldest symbol is forgotten. Memory: at most the capacity
/// times the length of the longest symbol.
#[derive(Debug)]
pub struct SourceWindow {
    kernel: Kernel,
    /// The most symbols that are kept: 1 to [`WINDOW_MAX`].
    capacity: usize,
    /// The id of the oldest symbol that is kept.
    first: u64,
    /// Packed symbols with consecutive ids.
    symbols: VecDeque<Vec<u8>>,
    /// The buffer of the symbol that was forgotten last, so that a full window allocates nothing.
    spare: Vec<u8>,
}

/// Why a symbol was not taken or a repair symbol was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A source symbol has more than [`SYMBOL_MAX`] bytes.
    #[error("a source symbol of {0} bytes is too long")]
    SymbolTooLong(usize),
    /// All ids are used up.
    #[error("there are no more symbol ids")]
    IdsExhausted,
    /// The window of the repair symbol has symbols that were forgotten or are not there yet.
    #[error("not all symbols of the repair symbol are in the window")]
    NotInWindow,
    /// The code has no such repair symbol.
    #[error(transparent)]
    Code(#[from] CodeError),
}

impl SourceWindow {
    /// A window for `capacity` symbols (1 to [`WINDOW_MAX`]; others are brought into this range) whose first one has the
    /// id 0, with the fastest kernel.
    pub fn new(capacity: u16) -> Self {
        Self::with_kernel(capacity, Kernel::best())
    }

    /// As [`SourceWindow::new`], with the given kernel.
    pub fn with_kernel(capacity: u16, kernel: Kernel) -> Self {
        Self {
            kernel,
            capacity: capacity.clamp(1, WINDOW_MAX).into(),
            first: 0,
            symbols: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Lets the ids begin elsewhere; what is in the window is forgotten.
    #[must_use]
    pub fn starting_at(mut self, first: u64) -> Self {
        self.symbols.clear();
        self.first = first.min(ID_LIMIT);
        self
    }

    /// The ids of the symbols that are in the window. The end is the id of the next symbol.
    pub fn ids(&self) -> Range<u64> {
        self.first..self.first + self.symbols.len() as u64
    }

    /// The bytes of the longest symbol from this one on, and so of a repair symbol over them; 0 without any.
    pub fn longest_from(&self, first: u64) -> usize {
        let skipped = usize::try_from(first.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.symbols.iter().skip(skipped).map(Vec::len).max().unwrap_or_default()
    }

    /// Adds a source symbol and returns its id.
    ///
    /// # Errors
    /// If the symbol is too long or there are no more ids. The window is as before then.
    pub fn push(&mut self, payload: &[u8]) -> Result<u64, EncodeError> {
        if payload.len() > usize::from(SYMBOL_MAX) {
            return Err(EncodeError::SymbolTooLong(payload.len()));
        }
        let id = self.ids().end;
        if id >= ID_LIMIT {
            return Err(EncodeError::IdsExhausted);
        }
        if self.symbols.len() == self.capacity {
            self.forget_oldest();
        }
        let mut packed = std::mem::take(&mut self.spare);
        symbol::pack(payload, &mut packed);
        self.symbols.push_back(packed);
        Ok(id)
    }

    /// Forgets the symbols before this id, and gives back their memory.
    pub fn forget_before(&mut self, id: u64) {
        while self.first < id && !self.symbols.is_empty() {
            self.forget_oldest();
        }
        self.spare = Vec::new();
        self.symbols.shrink_to_fit();
    }

    /// The bytes of all buffers.
    pub fn memory(&self) -> usize {
        let symbols = self.symbols.iter().map(Vec::capacity).sum::<usize>();
        symbols + self.spare.capacity() + self.symbols.capacity() * size_of::<Vec<u8>>()
    }

    /// The repair symbol with this key over the symbols that are in the window from `first` on, or `None` if there are
    /// none.
    pub fn repair_from(&self, first: u64, key: u16) -> Option<RepairId> {
        let first = first.max(self.first);
        let count = self.ids().end.checked_sub(first).filter(|count| *count > 0)?;
        // The window has at most 256 symbols.
        Some(RepairId { first, count: count as u16, key })
    }

    /// The length of repair symbols over a window, in bytes: that of its longest symbol and [`LENGTH_BYTES`] more.
    ///
    /// # Errors
    /// If a symbol is not in the window.
    pub fn repair_length(&self, id: &RepairId) -> Result<usize, EncodeError> {
        let symbols = self.symbols_of(id)?;
        Ok(symbols.map(Vec::len).max().unwrap_or(LENGTH_BYTES))
    }

    /// Replaces what is in `out` by a repair symbol. Takes time in proportion to the bytes of the window.
    ///
    /// # Errors
    /// If a symbol is not in the window, or the code has no such repair symbol. `out` is as before then.
    pub fn repair(&self, code: &dyn Code, id: &RepairId, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut coefficients = [0; WINDOW_MAX as usize];
        let coefficients = code::coefficients(code, id, &mut coefficients)?;
        let length = self.repair_length(id)?;
        out.clear();
        out.resize(length, 0);
        for (symbol, coefficient) in self.symbols_of(id)?.zip(coefficients) {
            self.kernel.mul_add(out, symbol, *coefficient);
        }
        Ok(())
    }

    fn symbols_of(&self, id: &RepairId) -> Result<impl Iterator<Item = &Vec<u8>>, EncodeError> {
        let ids = self.ids();
        let end = id.end().filter(|end| *end <= ids.end).ok_or(EncodeError::NotInWindow)?;
        if id.first < ids.start {
            return Err(EncodeError::NotInWindow);
        }
        // Both are within the window, which has at most 256 symbols.
        Ok(self.symbols.range((id.first - self.first) as usize..(end - self.first) as usize))
    }

    fn forget_oldest(&mut self) {
        if let Some(packed) = self.symbols.pop_front() {
            self.spare = packed;
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests;
