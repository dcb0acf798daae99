//! The encoder's side of the dynamic table: what entries are worth.

use std::collections::VecDeque;

use bytes::Bytes;

use super::history::{ONE, faded};
use crate::field::FieldRef;
use crate::table::{Entry, Table};

/// What is known of an entry beside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Worth {
    /// How often it was used, fading with time, as in the history.
    pub(super) weight: u32,
    /// The section in which it was used last.
    pub(super) last: u32,
    /// How many appearances are to be expected for each that there was: 256 are one.
    pub(super) prospect: u32,
    /// What a reference saves, in bytes.
    pub(super) saving: u32,
}

impl Worth {
    /// The bytes that it is expected to save, times 256.
    pub(super) fn value(&self, now: u32) -> u64 {
        let weight = faded(self.weight, now.wrapping_sub(self.last));
        u64::from(weight) * u64::from(self.prospect) / u64::from(ONE) * u64::from(self.saving)
    }
}

/// The dynamic table with the worth of its entries.
#[derive(Debug, Default)]
pub(super) struct Stored {
    table: Table,
    worth: VecDeque<Worth>,
}

impl Stored {
    pub(super) fn inserted(&self) -> u64 {
        self.table.inserted()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.table.dropped()
    }

    pub(super) fn capacity(&self) -> usize {
        self.table.capacity()
    }

    pub(super) fn free(&self) -> usize {
        self.table.free()
    }

    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.table.set_capacity(capacity);
        self.forget();
    }

    pub(super) fn get(&self, index: u64) -> Option<&Entry> {
        self.table.get(index)
    }

    pub(super) fn worth(&self, index: u64) -> Option<&Worth> {
        self.worth.get(usize::try_from(index.checked_sub(self.dropped())?).ok()?)
    }

    /// Notes that an entry was used.
    pub(super) fn touch(&mut self, index: u64, now: u32, prospect: u32) {
        let Some(at) = index.checked_sub(self.dropped()) else { return };
        let Some(worth) = self.worth.get_mut(at as usize) else { return };
        worth.weight = faded(worth.weight, now.wrapping_sub(worth.last)) + ONE;
        worth.last = now;
        worth.prospect = prospect;
    }

    /// The absolute index of which the lower half is known, if the entry is here and is this field.
    pub(super) fn find(&self, index: u32, field: FieldRef<'_>) -> Option<u64> {
        let index = self.find_name(index, field.name)?;
        (self.get(index)?.value == field.value).then_some(index)
    }

    /// The newest entry with this field among those before an index. All are looked at.
    pub(super) fn find_before(&self, end: u64, field: FieldRef<'_>) -> Option<u64> {
        let has_field = |entry: &Entry| entry.name == field.name && entry.value == field.value;
        (self.dropped()..end).rev().find(|index| self.get(*index).is_some_and(has_field))
    }

    /// The absolute index of which the lower half is known, if the entry is here and has this name.
    pub(super) fn find_name(&self, index: u32, name: &[u8]) -> Option<u64> {
        let back = (self.inserted() as u32).wrapping_sub(index);
        let index = self.inserted().checked_sub(u64::from(back))?;
        (self.get(index)?.name == name).then_some(index)
    }

    /// Inserts a field that fits, and returns its absolute index.
    pub(super) fn insert(&mut self, field: FieldRef<'_>, worth: Worth) -> Option<u64> {
        let name = Bytes::copy_from_slice(field.name);
        let entry = Entry { name, value: Bytes::copy_from_slice(field.value) };
        self.add(entry, worth)
    }

    /// Inserts an entry once more, and returns its new absolute index.
    pub(super) fn duplicate(&mut self, index: u64) -> Option<u64> {
        let (entry, worth) = (self.get(index)?.clone(), *self.worth(index)?);
        if let Some(old) = index.checked_sub(self.dropped()).and_then(|at| self.worth.get_mut(at as usize)) {
            // The old one is worth nothing any more.
            old.weight = 0;
        }
        self.add(entry, worth)
    }

    fn add(&mut self, entry: Entry, worth: Worth) -> Option<u64> {
        if !self.table.insert(entry) {
            return None;
        }
        self.worth.push_back(worth);
        self.forget();
        Some(self.inserted() - 1)
    }

    fn forget(&mut self) {
        let len = (self.inserted() - self.dropped()) as usize;
        self.worth.drain(..self.worth.len() - len);
    }
}
