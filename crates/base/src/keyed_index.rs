//! A hash table of things that are kept elsewhere.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;

use crate::HashKey;

/// A map from keys that a peer may choose to the places of things in a list that knows their keys, so that the keys are not kept
/// twice: an entry takes eight bytes. A thing may have several keys.
///
/// The hash is keyed, as that of a [`KeyedMap`](crate::KeyedMap) is, and there is no iteration.
///
/// Limit: places are below 2^32.
pub struct KeyedIndex {
    entries: HashTable<Entry>,
    key: HashKey,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// Half of the hash of the key: the table finds an entry by it when it grows.
    hash: u32,
    place: u32,
}

impl Entry {
    fn new(key: HashKey, of: &impl Hash, place: usize) -> Self {
        let place = u32::try_from(place).expect("fewer than 2^32 places");
        Self { hash: half_of(key.hash_one(of)), place }
    }

    fn hash(&self) -> u64 {
        whole_of(self.hash)
    }
}

fn half_of(hash: u64) -> u32 {
    hash as u32
}

/// The table looks at the lowest bits and at the highest ones.
fn whole_of(half: u32) -> u64 {
    u64::from(half) << 32 | u64::from(half)
}

impl KeyedIndex {
    /// An empty index.
    pub fn new(key: HashKey) -> Self {
        Self { entries: HashTable::new(), key }
    }

    /// What `look` finds of the thing with this key at its place: it is shown the places of those that may have it.
    pub fn find<T>(&self, key: &impl Hash, look: impl Fn(usize) -> Option<T>) -> Option<T> {
        let hash = half_of(self.key.hash_one(key));
        let mut found = None;
        self.entries.find(whole_of(hash), |entry| {
            if entry.hash == hash {
                found = look(entry.place as usize);
            }
            found.is_some()
        });
        found
    }

    /// Notes that the thing at this place has got this key, which no other one has.
    ///
    /// # Panics
    /// If the place is 2^32 or above.
    pub fn insert(&mut self, key: &impl Hash, place: usize) {
        let entry = Entry::new(self.key, key, place);
        self.entries.insert_unique(entry.hash(), entry, Entry::hash);
    }

    /// The thing at this place has this key no more.
    pub fn remove(&mut self, key: &impl Hash, place: usize) {
        let entry = Entry::new(self.key, key, place);
        if let Ok(found) = self.entries.find_entry(entry.hash(), |other| *other == entry) {
            found.remove();
        }
    }
}

impl fmt::Debug for KeyedIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyedIndex({} entries)", self.entries.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn each_key_leads_to_the_thing_that_has_it_until_it_is_removed() {
        let mut index = KeyedIndex::new(HashKey::new(&mut Rng::from_u64(1)));
        let things: Vec<[u64; 2]> = (0..3_000).map(|number| [number, 1_000_000 + number]).collect();
        for (place, keys) in things.iter().enumerate() {
            keys.iter().for_each(|key| index.insert(key, place));
        }
        let find = |index: &KeyedIndex, key: u64| {
            index.find(&key, |place| things[place].contains(&key).then_some(place))
        };
        for (place, keys) in things.iter().enumerate() {
            assert_eq!(keys.map(|key| find(&index, key)), [Some(place); 2]);
        }
        assert_eq!(find(&index, 5_000), None);
        index.remove(&7u64, 8);
        assert_eq!(find(&index, 7), Some(7), "another one's key");
        index.remove(&7u64, 7);
        assert_eq!((find(&index, 7), find(&index, 1_000_007)), (None, Some(7)));
    }
}
