//! Values under increasing keys.

use std::collections::VecDeque;

/// A map from `u64` keys, inserted in increasing order, to values.
///
/// Sent packets live here under their packet numbers: insertion is at the back, look-up is an index, and the
/// front moves up as the oldest entries are removed. Skipped keys cost an empty slot, so keys should be
/// nearly dense.
///
/// Memory for many values is given back when it was not needed for a while: whenever the map becomes empty, it keeps no more
/// than four times what it has needed since it was empty before.
#[derive(Debug, Clone)]
pub struct RingMap<T> {
    slots: VecDeque<Option<T>>,
    /// The key of `slots[0]`.
    first: u64,
    occupied: usize,
    /// The most values since the map was empty.
    peak: usize,
}

/// See [`RingMap`].
const SPARE_MAX: usize = 4;

/// Slots that are always kept: a connection that says little needs no more.
const SLOTS_KEPT: usize = 4;

impl<T> Default for RingMap<T> {
    fn default() -> Self {
        Self { slots: VecDeque::new(), first: 0, occupied: 0, peak: 0 }
    }
}

impl<T> RingMap<T> {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.occupied
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// The smallest key in use.
    pub fn first_key(&self) -> Option<u64> {
        // The front slot is never empty, see `trim`.
        (!self.slots.is_empty()).then_some(self.first)
    }

    /// One past the largest key that was ever inserted and still has a slot.
    pub fn end_key(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Puts a value under `key`, which is larger than every key inserted before.
    ///
    /// # Panics
    /// Panics if `key` is not larger than the keys in use.
    pub fn push(&mut self, key: u64, value: T) {
        if self.slots.is_empty() {
            self.first = key;
        }
        assert!(key >= self.end_key(), "keys must increase");
        while self.end_key() < key {
            self.slots.push_back(None);
        }
        self.slots.push_back(Some(value));
        self.occupied += 1;
        self.peak = self.peak.max(self.occupied);
    }

    fn index(&self, key: u64) -> Option<usize> {
        let index = usize::try_from(key.checked_sub(self.first)?).ok()?;
        (index < self.slots.len()).then_some(index)
    }

    /// The value under `key`.
    pub fn get(&self, key: u64) -> Option<&T> {
        self.slots[self.index(key)?].as_ref()
    }

    /// The value under `key`, to change it.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let index = self.index(key)?;
        self.slots[index].as_mut()
    }

    /// Takes the value under `key` out.
    pub fn remove(&mut self, key: u64) -> Option<T> {
        let index = self.index(key)?;
        let value = self.slots[index].take()?;
        self.occupied -= 1;
        if index == 0 {
            self.trim();
        }
        Some(value)
    }

    /// Removes the value under `key` after `look` has seen it where it is. Returns whether there was one.
    pub fn remove_with(&mut self, key: u64, look: impl FnOnce(&T)) -> bool {
        let Some(index) = self.index(key) else { return false };
        let Some(value) = &self.slots[index] else { return false };
        look(value);
        self.slots[index] = None;
        self.occupied -= 1;
        if index == 0 {
            self.trim();
        }
        true
    }

    /// Keeps the front slot occupied, so that `first_key` is the smallest key in use.
    fn trim(&mut self) {
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first += 1;
        }
        if self.slots.is_empty() {
            self.on_empty();
        }
    }

    fn on_empty(&mut self) {
        let kept = SPARE_MAX * self.peak.max(SLOTS_KEPT / SPARE_MAX);
        if self.slots.capacity() > kept {
            self.slots.shrink_to(kept);
        }
        self.peak = 0;
    }

    /// The entries in key order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        let first = self.first;
        self.slots.iter().enumerate().filter_map(move |(i, slot)| Some((first + i as u64, slot.as_ref()?)))
    }

    /// The entries in key order, to change the values.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (u64, &mut T)> {
        let first = self.first;
        self.slots
            .iter_mut()
            .enumerate()
            .filter_map(move |(i, slot)| Some((first + i as u64, slot.as_mut()?)))
    }

    /// Takes all values out, in key order.
    pub fn drain(&mut self) -> impl Iterator<Item = (u64, T)> {
        let first = self.first;
        self.first = self.end_key();
        self.occupied = 0;
        std::mem::take(&mut self.slots)
            .into_iter()
            .enumerate()
            .filter_map(move |(i, slot)| Some((first + i as u64, slot?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_no_longer_needed_is_given_back() {
        let mut map = RingMap::new();
        let mut fill = |first: u64, count: u64| {
            (first..first + count).for_each(|key| map.push(key, [0_u8; 100]));
            (first..first + count).for_each(|key| assert!(map.remove(key).is_some()));
            map.slots.capacity()
        };
        let large = fill(0, 1_000);
        assert!(large >= 1_000, "the next may be as many");
        assert_eq!(fill(1_000, 300), large);
        assert!(fill(2_000, 100) <= 400);
        assert!(fill(3_000, 1) <= SLOTS_KEPT);
    }

    #[test]
    fn a_value_is_seen_once_before_it_is_removed() {
        let mut map = RingMap::new();
        map.push(3, 'a');
        map.push(4, 'b');
        let mut seen = Vec::new();
        assert!(map.remove_with(3, |value| seen.push(*value)));
        assert!(!map.remove_with(3, |value| seen.push(*value)));
        assert!(!map.remove_with(7, |value| seen.push(*value)));
        assert_eq!((seen, map.first_key(), map.len()), (vec!['a'], Some(4), 1));
    }

    #[test]
    fn removal_moves_the_front() {
        let mut map = RingMap::new();
        for key in [5, 6, 9] {
            map.push(key, key * 10);
        }
        assert_eq!(map.len(), 3);
        assert_eq!(map.remove(6), Some(60));
        assert_eq!(map.first_key(), Some(5));
        assert_eq!(map.remove(5), Some(50));
        assert_eq!(map.first_key(), Some(9));
        assert_eq!(map.get(7), None);
        assert_eq!(map.remove(5), None);
        assert_eq!(map.iter().map(|(k, v)| (k, *v)).collect::<Vec<_>>(), [(9, 90)]);
        assert_eq!(map.remove(9), Some(90));
        assert!(map.is_empty() && map.first_key().is_none());
        map.push(20, 1);
        assert_eq!(map.drain().collect::<Vec<_>>(), [(20, 1)]);
        map.push(21, 2);
        assert_eq!(map.get(21), Some(&2));
    }
}
