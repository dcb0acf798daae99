//! A hash map that an attacker cannot steer and that never shows its order.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

use hashbrown::HashMap;
use siphasher::sip::SipHasher13;

use crate::Rng;

/// The secret of a [`KeyedMap`]'s hash.
#[derive(Clone, Copy)]
pub struct HashKey(u64, u64);

impl HashKey {
    /// Draws a key.
    pub fn new(rng: &mut Rng) -> Self {
        Self(rng.u64(), rng.u64())
    }
}

impl std::fmt::Debug for HashKey {
    /// It is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKey(..)")
    }
}

impl BuildHasher for HashKey {
    type Hasher = SipHasher13;
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, self.1)
    }
}

/// A map from keys that a peer may choose to values.
///
/// The hash is keyed, so a peer cannot make keys collide, and there is no iteration, so hash order cannot
/// leak into behaviour. [`KeyedMap::for_each_sorted`] visits the entries in key order.
pub struct KeyedMap<K, V>(HashMap<K, V, HashKey>);

impl<K: Eq + Hash, V> KeyedMap<K, V> {
    /// An empty map.
    pub fn new(key: HashKey) -> Self {
        Self(HashMap::with_hasher(key))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value under `key`.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }

    /// The value under `key`, to change it.
    pub fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.0.get_mut(key)
    }

    /// Whether there is a value under `key`.
    pub fn contains_key<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    /// Puts a value under `key` and returns the one that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }

    /// Takes the value under `key` out.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.remove(key)
    }

    /// Removes all entries and gives their memory back.
    pub fn clear(&mut self) {
        self.0.clear();
        self.0.shrink_to_fit();
    }

    /// The value under `key`, made by `make` if there is none.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        self.0.entry(key).or_insert_with(make)
    }

    /// Visits all entries in the order of their keys. Costs a sort: for rare events and reports only.
    pub fn for_each_sorted(&mut self, mut visit: impl FnMut(&K, &mut V))
    where
        K: Ord,
    {
        let mut entries: Vec<_> = self.0.iter_mut().collect();
        entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
        for (key, value) in entries {
            visit(key, value);
        }
    }
}

impl<K, V> std::fmt::Debug for KeyedMap<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyedMap({} entries)", self.0.len())
    }
}

#[cfg(test)]
mod tests;
