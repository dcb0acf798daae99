//! A queue that is nearly always short.

use std::collections::VecDeque;
use std::{iter, mem, slice};

/// A queue that needs no memory of its own while it has held no more than two values at a time.
///
/// The data of a small request is a chunk or two at either end: it may have come in two packets. A stream that carries one
/// allocates nothing for its queues.
#[derive(Debug)]
pub struct ShortQueue<T>(Repr<T>);

#[derive(Debug)]
enum Repr<T> {
    /// There is a second one only if there is a first.
    Few { first: Option<T>, second: Option<T> },
    /// There were more. It stays so, as the next ones are likely to be many, too.
    Many(VecDeque<T>),
}

/// What [`ShortQueue::iter`] returns.
pub type Iter<'a, T> = iter::Chain<slice::Iter<'a, T>, slice::Iter<'a, T>>;

impl<T> Default for ShortQueue<T> {
    fn default() -> Self {
        Self(Repr::Few { first: None, second: None })
    }
}

impl<T> ShortQueue<T> {
    /// The number of values.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Few { first, second } => usize::from(first.is_some()) + usize::from(second.is_some()),
            Repr::Many(many) => many.len(),
        }
    }

    /// Whether there are no values.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.front().is_none()
    }

    /// The value at this place, counted from the front.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        match (&self.0, index) {
            (Repr::Few { first, .. }, 0) => first.as_ref(),
            (Repr::Few { second, .. }, 1) => second.as_ref(),
            (Repr::Few { .. }, _) => None,
            (Repr::Many(many), _) => many.get(index),
        }
    }

    /// The first value.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        match &self.0 {
            Repr::Few { first, .. } => first.as_ref(),
            Repr::Many(many) => many.front(),
        }
    }

    /// The first value, to change it.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        match &mut self.0 {
            Repr::Few { first, .. } => first.as_mut(),
            Repr::Many(many) => many.front_mut(),
        }
    }

    /// The last value.
    #[inline]
    pub fn back(&self) -> Option<&T> {
        match &self.0 {
            Repr::Few { first, second } => second.as_ref().or(first.as_ref()),
            Repr::Many(many) => many.back(),
        }
    }

    /// The last value, to change it.
    #[inline]
    pub fn back_mut(&mut self) -> Option<&mut T> {
        match &mut self.0 {
            Repr::Few { first, second } => second.as_mut().or(first.as_mut()),
            Repr::Many(many) => many.back_mut(),
        }
    }

    /// Adds a value behind the others.
    #[inline]
    pub fn push_back(&mut self, value: T) {
        match &mut self.0 {
            Repr::Few { first: first @ None, .. } => *first = Some(value),
            Repr::Few { second: second @ None, .. } => *second = Some(value),
            Repr::Few { first, second } => {
                let many = first.take().into_iter().chain(second.take()).chain([value]).collect();
                self.0 = Repr::Many(many);
            }
            Repr::Many(many) => many.push_back(value),
        }
    }

    /// Takes the first value out.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        match &mut self.0 {
            Repr::Few { first, second } => mem::replace(first, second.take()),
            Repr::Many(many) => many.pop_front(),
        }
    }

    /// Takes the last value out.
    #[inline]
    pub fn pop_back(&mut self) -> Option<T> {
        match &mut self.0 {
            Repr::Few { first, second } => second.take().or_else(|| first.take()),
            Repr::Many(many) => many.pop_back(),
        }
    }

    /// The values from the front to the back.
    #[inline]
    pub fn iter(&self) -> Iter<'_, T> {
        let (first, second) = match &self.0 {
            Repr::Few { first, second } => (first.as_slice(), second.as_slice()),
            Repr::Many(many) => many.as_slices(),
        };
        first.iter().chain(second)
    }

    /// The first place whose value does not meet the condition, which all before meet and none behind.
    pub fn partition_point(&self, mut meets: impl FnMut(&T) -> bool) -> usize {
        match &self.0 {
            Repr::Few { .. } => self.iter().take_while(|value| meets(value)).count(),
            Repr::Many(many) => many.partition_point(meets),
        }
    }

    /// Takes all values out.
    pub fn clear(&mut self) {
        drop(mem::take(self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that can be seen of a queue, which must be what it is in a `VecDeque`.
    fn compare(short: &ShortQueue<u32>, known: &VecDeque<u32>) {
        assert_eq!((short.len(), short.is_empty()), (known.len(), known.is_empty()));
        assert_eq!((short.front(), short.back()), (known.front(), known.back()));
        for from in 0..known.len() + 2 {
            assert_eq!(short.get(from), known.get(from));
        }
        assert!(short.iter().eq(known));
        for value in 0..6 {
            assert_eq!(
                short.partition_point(|known| *known < value),
                known.partition_point(|known| *known < value)
            );
        }
    }

    #[test]
    fn it_is_a_queue_whether_it_holds_few_values_or_many() {
        let (mut short, mut known) = (ShortQueue::default(), VecDeque::new());
        for step in 0..200_u32 {
            let was_few = matches!(short.0, Repr::Few { .. });
            assert!(was_few || step > 20, "both are tried");
            match step % 7 {
                0 | 1 | 4 => {
                    let next = known.back().map_or(1, |last| last + 1);
                    short.push_back(next);
                    known.push_back(next);
                }
                2 | 5 => assert_eq!(short.pop_front(), known.pop_front()),
                3 => assert_eq!(short.pop_back(), known.pop_back()),
                _ if step % 3 == 0 || step < 30 => assert_eq!(short.pop_front(), known.pop_front()),
                _ => {
                    assert_eq!(short.front_mut(), known.front_mut());
                    assert_eq!(short.back_mut(), known.back_mut());
                }
            }
            compare(&short, &known);
        }
        short.clear();
        compare(&short, &VecDeque::new());
    }
}
