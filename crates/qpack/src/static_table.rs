//! The static table (RFC 9204 §3.1 and appendix A), and how a field is found in it.

mod entries;

use bytes::Bytes;

use self::entries::ENTRIES;
use crate::hash::hash;

/// How many entries there are.
pub(crate) const LEN: usize = ENTRIES.len();

/// The slots of the table of names. There are 52 names, so that most are found where they are looked for first.
const SLOTS: usize = 128;

/// The end of a chain of entries, and an empty slot.
const NONE: u8 = u8::MAX;

/// The first entry of a name in each slot, at its hash or behind it.
static FIRST: [u8; SLOTS] = first_of_names();

/// The next entry with the name of each entry.
static NEXT: [u8; LEN] = next_of_names();

/// Where a field was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    /// An entry has the name and the value.
    Field(u8),
    /// An entry has the name. It is the one with the lowest index, which is the shortest to write.
    Name(u8),
}

impl Match {
    /// An entry with the name.
    pub(crate) fn index(self) -> u8 {
        match self {
            Self::Field(index) | Self::Name(index) => index,
        }
    }
}

/// The entry at an index, if there is one.
pub(crate) fn get(index: u64) -> Option<(Bytes, Bytes)> {
    let (name, value) = ENTRIES.get(usize::try_from(index).ok()?)?;
    Some((Bytes::from_static(name.as_bytes()), Bytes::from_static(value.as_bytes())))
}

/// Looks for a field of which `name_hash` is the [`hash`] of the name from zero.
pub(crate) fn find(name_hash: u64, name: &[u8], value: &[u8]) -> Option<Match> {
    let first = first_with_name(name_hash, name)?;
    let mut at = first;
    while at != NONE {
        if ENTRIES[usize::from(at)].1.as_bytes() == value {
            return Some(Match::Field(at));
        }
        at = NEXT[usize::from(at)];
    }
    Some(Match::Name(first))
}

fn first_with_name(name_hash: u64, name: &[u8]) -> Option<u8> {
    let mut slot = slot_of(name_hash);
    loop {
        let entry = FIRST[slot];
        if entry == NONE {
            return None;
        }
        if ENTRIES[usize::from(entry)].0.as_bytes() == name {
            return Some(entry);
        }
        slot = (slot + 1) % SLOTS;
    }
}

const fn slot_of(name_hash: u64) -> usize {
    (name_hash >> 40) as usize % SLOTS
}

const fn first_of_names() -> [u8; SLOTS] {
    let mut first = [NONE; SLOTS];
    let mut entry = 0;
    while entry < LEN {
        let name = ENTRIES[entry].0.as_bytes();
        let mut slot = slot_of(hash(0, name));
        while first[slot] != NONE && !equal(ENTRIES[first[slot] as usize].0.as_bytes(), name) {
            slot = (slot + 1) % SLOTS;
        }
        if first[slot] == NONE {
            first[slot] = entry as u8;
        }
        entry += 1;
    }
    first
}

const fn next_of_names() -> [u8; LEN] {
    let mut next = [NONE; LEN];
    let mut entry = 0;
    while entry < LEN {
        let mut other = entry + 1;
        while other < LEN && !equal(ENTRIES[entry].0.as_bytes(), ENTRIES[other].0.as_bytes()) {
            other += 1;
        }
        if other < LEN {
            next[entry] = other as u8;
        }
        entry += 1;
    }
    next
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests;
