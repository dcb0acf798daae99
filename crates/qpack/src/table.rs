//! The dynamic table (RFC 9204 §3.2), of which both ends have one.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::field::FIELD_OVERHEAD;

/// An entry. Its name and its value have allocations of their own, so that one that is shared does not hold the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Bytes,
    pub(crate) value: Bytes,
}

impl Entry {
    /// What it takes of the capacity, in bytes (RFC 9204 §3.2.1).
    pub(crate) fn size(&self) -> usize {
        self.name.len() + self.value.len() + FIELD_OVERHEAD
    }
}

/// Entries in the order in which they were inserted. Nothing is allocated before the first one.
#[derive(Debug, Default)]
pub(crate) struct Table {
    entries: VecDeque<Entry>,
    /// The sum of the sizes of the entries, in bytes.
    size: usize,
    capacity: usize,
    /// How many were ever inserted, which is the absolute index of the next one.
    inserted: u64,
}

impl Table {
    /// How many entries were ever inserted (the Insert Count).
    pub(crate) fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The absolute index of the oldest entry.
    pub(crate) fn dropped(&self) -> u64 {
        self.inserted - self.entries.len() as u64
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// What is left of the capacity without an eviction, in bytes.
    pub(crate) fn free(&self) -> usize {
        self.capacity - self.size
    }

    /// Changes the capacity, for which the oldest entries may have to go.
    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.evict_to(capacity);
        if capacity == 0 {
            self.entries = VecDeque::new();
        }
    }

    /// The entry of an absolute index, if it is here.
    pub(crate) fn get(&self, index: u64) -> Option<&Entry> {
        let at = index.checked_sub(self.dropped())?;
        self.entries.get(usize::try_from(at).ok()?)
    }

    /// The entry of an index that counts from the newest one: as the encoder stream does (RFC 9204 §3.2.5).
    pub(crate) fn get_relative(&self, index: u64) -> Option<&Entry> {
        self.get(self.inserted.checked_sub(index)?.checked_sub(1)?)
    }

    /// Inserts an entry, and evicts what must go for it. Returns whether it fits at all.
    #[must_use]
    pub(crate) fn insert(&mut self, entry: Entry) -> bool {
        let size = entry.size();
        if size > self.capacity {
            return false;
        }
        self.evict_to(self.capacity - size);
        self.size += size;
        self.inserted += 1;
        self.entries.push_back(entry);
        true
    }

    fn evict_to(&mut self, size: usize) {
        while self.size > size {
            let Some(oldest) = self.entries.pop_front() else { return };
            self.size -= oldest.size();
        }
    }
}

#[cfg(test)]
mod tests;
