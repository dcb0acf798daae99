//! A small map from paths to values.

use fulmar_wire::PathId;
use smallvec::SmallVec;

/// One value for each path with packets in the current generation. The connection's limit of open paths keeps
/// it short, since those of paths that are gone are taken out, and nearly always it has one entry.
#[derive(Debug)]
pub(super) struct PerPath<T>(SmallVec<[(PathId, T); 1]>);

impl<T> PerPath<T> {
    pub(super) fn get(&self, path: PathId) -> Option<&T> {
        self.0.iter().find(|entry| entry.0 == path).map(|entry| &entry.1)
    }

    #[inline]
    pub(super) fn get_or_insert(&mut self, path: PathId, value: T) -> &mut T {
        let index = match self.0.first() {
            // Without multipath there is no other.
            Some(first) if first.0 == path => 0,
            _ => self.0.iter().position(|entry| entry.0 == path).unwrap_or_else(|| {
                self.0.push((path, value));
                self.0.len() - 1
            }),
        };
        &mut self.0[index].1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn remove(&mut self, path: PathId) {
        self.0.retain(|entry| entry.0 != path);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl<T> Default for PerPath<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_a_value_of_its_own() {
        let mut values = PerPath::default();
        for n in [1, 2, 3] {
            assert_eq!(*values.get_or_insert(PathId(n), n), n);
        }
        *values.get_or_insert(PathId(1), 0) += 10;
        *values.get_or_insert(PathId(3), 0) += 20;
        assert_eq!([1, 2, 3, 4].map(|n| values.get(PathId(n)).copied()), [Some(11), Some(2), Some(23), None]);
    }
}
