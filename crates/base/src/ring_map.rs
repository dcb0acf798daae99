//! Values under increasing keys.

use std::collections::VecDeque;
use std::ops::Range;

/// A map from `u64` keys, inserted in increasing order, to values.
///
/// Sent packets live here under their packet numbers: insertion is at the back, look-up is an index, and the
/// front moves up as the oldest entries are removed. Skipped keys cost an empty slot, as long as they are not many times as many as
/// the values: then the values so far are set aside, in a list without empty slots, where look-up is a binary search. So the memory is
/// that of the values, whoever decides which keys are skipped.
///
/// Memory for many values is given back when it was not needed for a while: whenever the map becomes empty, it keeps no more
/// than four times what it has needed since it was empty before.
#[derive(Debug, Clone)]
pub struct RingMap<T> {
    /// In a box, since few maps have any.
    aside: Option<Box<Aside<T>>>,
    slots: VecDeque<Option<T>>,
    /// The key of `slots[0]`.
    first: u64,
    occupied: usize,
    /// The most values since the map was empty.
    peak: usize,
}

/// Values that were set aside, with keys smaller than those of the slots.
#[derive(Debug, Clone)]
struct Aside<T> {
    /// Never empty in front; those in the middle that are removed leave an empty place.
    list: VecDeque<(u64, Option<T>)>,
    occupied: usize,
}

impl<T> Aside<T> {
    fn index(&self, key: u64) -> Option<usize> {
        self.list.binary_search_by_key(&key, |(key, _)| *key).ok()
    }

    fn get(&self, key: u64) -> Option<&T> {
        self.list[self.index(key)?].1.as_ref()
    }

    fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let index = self.index(key)?;
        self.list[index].1.as_mut()
    }

    fn remove(&mut self, key: u64) -> Option<T> {
        let index = self.index(key)?;
        let value = self.list[index].1.take()?;
        self.occupied -= 1;
        self.trim();
        Some(value)
    }

    fn remove_range(&mut self, keys: &Range<u64>, look: &mut impl FnMut(u64, &T)) {
        let place = |key: u64| self.list.partition_point(|(other, _)| *other < key);
        let places = place(keys.start)..place(keys.end.max(keys.start));
        for (key, place) in self.list.range_mut(places) {
            if let Some(value) = place.take() {
                look(*key, &value);
                self.occupied -= 1;
            }
        }
        self.trim();
    }

    fn trim(&mut self) {
        while let Some((_, None)) = self.list.front() {
            self.list.pop_front();
        }
    }

    fn extend(&mut self, values: impl Iterator<Item = (u64, T)>) {
        // What is empty among the older ones is more than half of them at most once.
        if self.list.len() > 2 * self.occupied {
            self.list.retain(|(_, value)| value.is_some());
        }
        self.list.extend(values.map(|(key, value)| (key, Some(value))));
    }
}

/// See [`RingMap`].
const SPARE_MAX: usize = 4;

/// Slots that are always kept: a connection that says little needs no more.
const SLOTS_KEPT: usize = 4;

/// Values are set aside when there would be so many slots, and so many times more than values in them.
const SPARSE_SLOTS: u64 = 256;
const SPARSE_FACTOR: u64 = 4;

impl<T> Default for RingMap<T> {
    fn default() -> Self {
        Self { aside: None, slots: VecDeque::new(), first: 0, occupied: 0, peak: 0 }
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
        self.first().map(|(key, _)| key)
    }

    /// The smallest key in use and its value, found at once.
    #[inline]
    pub fn first(&self) -> Option<(u64, &T)> {
        // Neither front is ever empty, see `trim`.
        match self.aside.as_ref().and_then(|aside| aside.list.front()) {
            Some((key, value)) => Some((*key, value.as_ref()?)),
            None => Some((self.first, self.slots.front()?.as_ref()?)),
        }
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
        assert!(self.is_empty() || key >= self.end_key(), "keys must increase");
        if self.slots.is_empty() {
            self.first = key;
        }
        if self.end_key() < key {
            self.skip_to(key);
        }
        self.slots.push_back(Some(value));
        self.occupied += 1;
        self.peak = self.peak.max(self.occupied);
    }

    #[cold]
    fn skip_to(&mut self, key: u64) {
        let aside = self.aside.as_ref().map_or(0, |aside| aside.occupied);
        let (slots, values) = (key - self.first, (self.occupied - aside) as u64);
        if slots > SPARSE_SLOTS.max(SPARSE_FACTOR * values) {
            self.set_aside();
            self.first = key;
        }
        while self.end_key() < key {
            self.slots.push_back(None);
        }
    }

    fn set_aside(&mut self) {
        let first = self.first;
        let values = std::mem::take(&mut self.slots).into_iter().enumerate();
        let values = values.filter_map(|(index, slot)| Some((first + index as u64, slot?)));
        let aside = self.aside.get_or_insert_with(|| Box::new(Aside { list: VecDeque::new(), occupied: 0 }));
        aside.extend(values);
        aside.occupied = self.occupied;
    }

    fn index(&self, key: u64) -> Option<usize> {
        let index = usize::try_from(key.checked_sub(self.first)?).ok()?;
        (index < self.slots.len()).then_some(index)
    }

    /// The value under `key`.
    pub fn get(&self, key: u64) -> Option<&T> {
        match self.index(key) {
            Some(index) => self.slots[index].as_ref(),
            None => self.aside.as_ref()?.get(key),
        }
    }

    /// The value under `key`, to change it.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        match self.index(key) {
            Some(index) => self.slots[index].as_mut(),
            None => self.aside.as_mut()?.get_mut(key),
        }
    }

    /// Takes the value under `key` out.
    pub fn remove(&mut self, key: u64) -> Option<T> {
        let value = match self.index(key) {
            Some(index) => self.slots[index].take()?,
            None => self.aside.as_mut()?.remove(key)?,
        };
        self.occupied -= 1;
        self.trim();
        Some(value)
    }

    /// Removes the values under these keys after `look` has seen each where it is, in key order.
    ///
    /// The work is linear in the keys among the slots, which are at most some times as many as the values.
    #[inline]
    pub fn remove_range(&mut self, keys: Range<u64>, mut look: impl FnMut(u64, &T)) {
        let before = self.occupied;
        if keys.start < self.first
            && let Some(aside) = &mut self.aside
        {
            let before = aside.occupied;
            aside.remove_range(&keys, &mut look);
            self.occupied -= before - aside.occupied;
        }
        let (start, end) = (keys.start.max(self.first), keys.end.min(self.end_key()));
        if start < end {
            // Both are within the slots.
            let places = (start - self.first) as usize..(end - self.first) as usize;
            for (key, slot) in (start..).zip(self.slots.range_mut(places)) {
                if let Some(value) = slot {
                    look(key, value);
                    *slot = None;
                    self.occupied -= 1;
                }
            }
        }
        if self.occupied != before {
            self.trim();
        }
    }

    /// Keeps the front slot occupied, so that `first_key` is the smallest key in use.
    fn trim(&mut self) {
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first += 1;
        }
        if self.occupied == 0 {
            self.on_empty();
        }
    }

    /// Gives back the memory that no value takes.
    pub fn shrink(&mut self) {
        self.slots.shrink_to_fit();
    }

    fn on_empty(&mut self) {
        let kept = SPARE_MAX * self.peak.max(SLOTS_KEPT / SPARE_MAX);
        if self.slots.capacity() > kept {
            self.slots.shrink_to(kept);
        }
        self.aside = None;
        self.peak = 0;
    }

    /// The entries in key order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        let first = self.first;
        let aside = self.aside.iter().flat_map(|aside| &aside.list);
        let aside = aside.filter_map(|(key, value)| Some((*key, value.as_ref()?)));
        let slots = self.slots.iter().enumerate();
        aside.chain(slots.filter_map(move |(i, slot)| Some((first + i as u64, slot.as_ref()?))))
    }

    /// The entries in key order, to change the values.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (u64, &mut T)> {
        let first = self.first;
        let aside = self.aside.iter_mut().flat_map(|aside| &mut aside.list);
        let aside = aside.filter_map(|(key, value)| Some((*key, value.as_mut()?)));
        let slots = self.slots.iter_mut().enumerate();
        aside.chain(slots.filter_map(move |(i, slot)| Some((first + i as u64, slot.as_mut()?))))
    }

    /// Takes all values out, in key order.
    pub fn drain(&mut self) -> impl Iterator<Item = (u64, T)> {
        let first = self.first;
        self.first = self.end_key();
        self.occupied = 0;
        let aside = self.aside.take().into_iter().flat_map(|aside| aside.list);
        let slots = std::mem::take(&mut self.slots).into_iter().enumerate();
        aside
            .filter_map(|(key, value)| Some((key, value?)))
            .chain(slots.filter_map(move |(i, slot)| Some((first + i as u64, slot?))))
    }
}

#[cfg(test)]
mod tests;
