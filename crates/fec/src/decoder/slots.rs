//! The window of a decoder: for each id the symbol, an equation for it, or nothing.

use std::ops::Range;

use super::row::Row;
use crate::code::WINDOW_MAX;
use crate::kernel::Kernel;

/// How many buffers that are not used are kept for the next symbols. More are given back.
const SPARE_MAX: usize = 8;

/// What there is of a source symbol.
#[derive(Debug)]
pub(super) enum Slot {
    Unknown,
    /// The packed symbol.
    Known(Vec<u8>),
    /// An equation with this symbol as its pivot, with the coefficient 1.
    Row(Row),
}

/// A ring of slots. A symbol has the column of its id modulo the length, so that equations stay as they are when the window
/// moves on.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// The ids of the window, at most as many as there are slots.
    ids: Range<u64>,
    /// How many slots have an equation.
    rows: usize,
    spare: Vec<Vec<u8>>,
    /// How many slots were looked at for equations with symbols that left the window.
    visits: u64,
}

impl Slots {
    pub(super) fn new(length: usize) -> Self {
        let slots = std::iter::repeat_with(|| Slot::Unknown).take(length).collect();
        Self { slots, ids: 0..0, rows: 0, spare: Vec::new(), visits: 0 }
    }

    pub(super) fn ids(&self) -> Range<u64> {
        self.ids.clone()
    }

    /// Lets a window that has not been moved yet begin with this id.
    pub(super) fn start_at(&mut self, first: u64) {
        if self.ids.is_empty() {
            self.ids = first..first;
        }
    }

    /// The oldest id of the window.
    pub(super) fn first(&self) -> u64 {
        self.ids.start
    }

    pub(super) fn column(&self, id: u64) -> usize {
        // The remainder is below the number of slots.
        (id % self.slots.len() as u64) as usize
    }

    pub(super) fn get(&self, column: usize) -> &Slot {
        &self.slots[column]
    }

    /// The packed symbol with this id, if it is in the window and known.
    pub(super) fn known(&self, id: u64) -> Option<&[u8]> {
        if !self.ids.contains(&id) {
            return None;
        }
        match self.get(self.column(id)) {
            Slot::Known(packed) => Some(packed),
            _ => None,
        }
    }

    pub(super) fn set_known(&mut self, column: usize, packed: Vec<u8>) {
        self.slots[column] = Slot::Known(packed);
    }

    pub(super) fn set_row(&mut self, column: usize, row: Row) {
        self.slots[column] = Slot::Row(row);
        self.rows += 1;
    }

    pub(super) fn take_row(&mut self, column: usize) -> Option<Row> {
        match std::mem::replace(&mut self.slots[column], Slot::Unknown) {
            Slot::Row(row) => {
                self.rows -= 1;
                Some(row)
            }
            other => {
                self.slots[column] = other;
                None
            }
        }
    }

    /// The number of equations.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// How many slots were looked at so far for equations with symbols that left the window.
    pub(super) fn visits(&self) -> u64 {
        self.visits
    }

    pub(super) fn rows_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        // Usually there are none, and nothing is looked at.
        let rows = self.slots.iter_mut().filter_map(|slot| match slot {
            Slot::Row(row) => Some(row),
            _ => None,
        });
        rows.take(self.rows)
    }

    fn rows_iter(&self) -> impl Iterator<Item = (usize, &Row)> {
        let rows = self.slots.iter().enumerate().filter_map(|(pivot, slot)| match slot {
            Slot::Row(row) => Some((pivot, row)),
            _ => None,
        });
        rows.take(self.rows)
    }

    /// The work of taking a symbol out of all equations.
    pub(super) fn cost_of_column(&self, column: usize) -> u64 {
        let concerned = self.rows_iter().filter(|(_, row)| row.coefficient(column) != 0);
        concerned.map(|(_, row)| row.cost()).sum()
    }

    /// Takes the pivots of all equations out of a new one.
    pub(super) fn reduce(&self, kernel: Kernel, row: &mut Row) {
        for (pivot, other) in self.rows_iter() {
            row.eliminate(kernel, pivot, other);
        }
    }

    /// Takes the pivot of a new equation out of all others.
    pub(super) fn eliminate(&mut self, kernel: Kernel, pivot: usize, row: &Row) {
        for other in self.rows_mut() {
            other.eliminate(kernel, pivot, row);
        }
    }

    /// Forgets all equations and returns how many there were.
    pub(super) fn drop_rows(&mut self) -> usize {
        let rows = self.rows;
        for column in 0..self.slots.len() {
            self.take_row(column);
        }
        rows
    }

    /// Moves the window on so that it ends at `end`, or leaves it if it goes further. What falls out is forgotten. An equation
    /// that needs a forgotten symbol is used to take that symbol out of the others, as long as `spend` allows the work, and
    /// dropped. Returns how many equations were dropped.
    pub(super) fn slide_to(&mut self, kernel: Kernel, end: u64, mut spend: impl FnMut(u64) -> bool) -> usize {
        if end <= self.ids.end {
            return 0;
        }
        let first = end.saturating_sub(self.slots.len() as u64).max(self.ids.start);
        let mut dropped = 0;
        // A symbol that no equation has is not looked for in all of them: a small repair symbol may move the window by its length.
        let mut used = None;
        for id in self.ids.start..first.min(self.ids.end) {
            let column = self.column(id);
            let is_unknown = matches!(self.slots[column], Slot::Unknown);
            if is_unknown && used.get_or_insert_with(|| self.used_columns())[column] == 0 {
                continue;
            }
            let dropped_now = self.forget(kernel, column, &mut spend);
            if dropped_now > 0 {
                used = None;
            }
            dropped += dropped_now;
        }
        self.ids = first..end;
        dropped
    }

    /// By column, 0 if no equation has its symbol.
    fn used_columns(&mut self) -> [u8; WINDOW_MAX as usize] {
        let mut used = [0; WINDOW_MAX as usize];
        self.count_visits();
        for (_, row) in self.rows_iter() {
            row.mark_used(&mut used);
        }
        used
    }

    /// All slots are looked at, unless there are no equations.
    fn count_visits(&mut self) {
        if self.rows > 0 {
            self.visits += self.slots.len() as u64;
        }
    }

    /// Empties a slot and takes its symbol out of all equations. Returns how many were dropped for that.
    fn forget(&mut self, kernel: Kernel, column: usize, spend: &mut impl FnMut(u64) -> bool) -> usize {
        match std::mem::replace(&mut self.slots[column], Slot::Unknown) {
            Slot::Known(packed) => {
                self.keep_buffer(packed);
                0
            }
            Slot::Row(row) => {
                self.rows -= 1;
                self.recycle(row);
                1
            }
            Slot::Unknown => self.forget_unknown(kernel, column, spend),
        }
    }

    fn forget_unknown(
        &mut self,
        kernel: Kernel,
        column: usize,
        spend: &mut impl FnMut(u64) -> bool,
    ) -> usize {
        let concerned = |row: &Row| row.coefficient(column) != 0;
        self.count_visits();
        let Some(pivot) = self.rows_iter().find(|(_, row)| concerned(row)).map(|(pivot, _)| pivot) else {
            return 0;
        };
        let Some(mut victim) = self.take_row(pivot) else { return 0 };
        let mut dropped = 1;
        if spend(self.cost_of_column(column) + victim.cost()) {
            let buffer = self.buffer();
            let replaced = victim.normalize(kernel, column, buffer);
            self.keep_buffer(replaced);
            self.eliminate(kernel, column, &victim);
        } else {
            for pivot in 0..self.slots.len() {
                if matches!(&self.slots[pivot], Slot::Row(row) if concerned(row)) {
                    self.take_row(pivot);
                    dropped += 1;
                }
            }
        }
        self.recycle(victim);
        dropped
    }

    /// A buffer for a symbol.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps the buffer of an equation that is not needed any more.
    pub(super) fn recycle(&mut self, row: Row) {
        self.keep_buffer(row.into_data());
    }

    pub(super) fn keep_buffer(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(buffer);
        }
    }

    /// The bytes of all buffers.
    pub(super) fn memory(&self) -> usize {
        let slots = self.slots.iter().map(|slot| match slot {
            Slot::Unknown => 0,
            Slot::Known(packed) => packed.capacity(),
            Slot::Row(row) => row.memory(),
        });
        slots.sum::<usize>()
            + self.spare.iter().map(Vec::capacity).sum::<usize>()
            + self.slots.capacity() * size_of::<Slot>()
    }
}
