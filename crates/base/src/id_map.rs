//! A map for IDs that come one after the other and live for a short time.

use crate::{HashKey, KeyedMap};

/// Places for entries at first.
const NEAR_MIN: usize = 8;

/// The lowest bits of an ID, which tell its kind. The IDs of a kind come one after the other.
const KIND_BITS: u32 = 2;

/// A map from IDs to indices.
///
/// Most IDs have a place of their own in an array that is twice as large as there are entries, so that finding one takes
/// a look. One whose place is taken goes into a hash map with a keyed hash, so that a peer that chooses IDs which share
/// a place gains no more than that. There is no iteration.
///
/// Limit: the memory for as many entries as there ever were at a time is kept, until [`IdMap::clear`].
#[derive(Debug)]
pub struct IdMap {
    near: Vec<Entry>,
    /// Entries in `near`.
    near_len: usize,
    /// Those whose place was taken; mostly there were none.
    far: Option<Box<KeyedMap<u64, u32>>>,
    key: HashKey,
}

/// An ID and its index; free where the index is [`FREE`].
#[derive(Debug, Clone, Copy)]
struct Entry {
    id: u64,
    index: u32,
}

/// The index of a place without an entry.
const FREE: u32 = u32::MAX;

impl IdMap {
    /// An empty map.
    pub fn new(key: HashKey) -> Self {
        Self { near: Vec::new(), near_len: 0, far: None, key }
    }

    /// The number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.near_len + self.far.as_ref().map_or(0, |far| far.len())
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index of an ID.
    #[inline]
    pub fn get(&self, id: u64) -> Option<usize> {
        match self.near.get(self.place(id)) {
            Some(entry) if entry.id == id && entry.index != FREE => Some(entry.index as usize),
            _ => self.far.as_ref()?.get(&id).map(|index| *index as usize),
        }
    }

    /// Adds an ID that is not there.
    ///
    /// # Panics
    /// If the index is 2^32 - 1 or more.
    pub fn insert(&mut self, id: u64, index: usize) {
        debug_assert!(self.get(id).is_none(), "an ID is added once");
        let index =
            u32::try_from(index).ok().filter(|index| *index != FREE).expect("fewer than 2^32 entries");
        if self.near_len >= self.near.len() / 2 {
            self.grow();
        }
        let place = self.place(id);
        if self.near[place].index == FREE {
            self.near[place] = Entry { id, index };
            self.near_len += 1;
        } else {
            self.far.get_or_insert_with(|| Box::new(KeyedMap::new(self.key))).insert(id, index);
        }
    }

    /// Takes an ID out. Returns its index.
    pub fn remove(&mut self, id: u64) -> Option<usize> {
        let place = self.place(id);
        match self.near.get_mut(place) {
            Some(entry) if entry.id == id && entry.index != FREE => {
                self.near_len -= 1;
                Some(std::mem::replace(&mut entry.index, FREE) as usize)
            }
            _ => self.far.as_mut()?.remove(&id).map(|index| index as usize),
        }
    }

    /// Removes all IDs and gives the memory back.
    pub fn clear(&mut self) {
        self.near = Vec::new();
        self.near_len = 0;
        self.far = None;
    }

    /// The place of an ID in `near`, whose length is a power of two; anything if that is empty.
    #[inline]
    fn place(&self, id: u64) -> usize {
        let len = self.near.len();
        let kind = id as usize & ((1 << KIND_BITS) - 1);
        // The kinds begin far from one another.
        (id >> KIND_BITS).wrapping_add((kind * (len >> KIND_BITS)) as u64) as usize & len.wrapping_sub(1)
    }

    fn grow(&mut self) {
        let len = (2 * self.near.len()).max(NEAR_MIN);
        let before = std::mem::replace(&mut self.near, vec![Entry { id: 0, index: FREE }; len]);
        self.near_len = 0;
        for Entry { id, index } in before.into_iter().filter(|entry| entry.index != FREE) {
            self.insert(id, index as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Rng;

    fn map() -> IdMap {
        IdMap::new(HashKey::new(&mut Rng::from_u64(1)))
    }

    #[test]
    fn what_was_added_is_found_until_it_is_removed() {
        let (mut map, mut known, mut rng) = (map(), BTreeMap::new(), Rng::from_u64(7));
        for index in 0..5_000 {
            // Few IDs of which many meet, and some from anywhere.
            let id = if rng.chance(0.1) { rng.u64() } else { 4 * rng.below(300) };
            match known.remove(&id) {
                Some(before) => assert_eq!(map.remove(id), Some(before)),
                None => {
                    assert_eq!(map.remove(id), None);
                    map.insert(id, index);
                    known.insert(id, index);
                }
            }
            assert_eq!((map.len(), map.is_empty()), (known.len(), known.is_empty()));
            let other = 4 * rng.below(300);
            assert_eq!(map.get(other), known.get(&other).copied());
        }
        for (id, index) in known {
            assert_eq!(map.get(id), Some(index));
        }
    }

    #[test]
    fn ids_that_follow_one_another_rarely_share_a_place() {
        let mut map = map();
        for first in (0..100_000).step_by(4) {
            map.insert(first, 1);
            if first >= 400 {
                map.remove(first - 400);
            }
            assert!(map.far.is_none(), "{} of {} entries", map.len() - map.near_len, map.len());
        }
        assert_eq!(map.len(), 100);
        assert!(map.near.len() <= 256);
        map.clear();
        assert!(map.is_empty() && map.get(399_996).is_none());
        map.insert(4, 7);
        assert_eq!(map.get(4), Some(7));
    }
}
