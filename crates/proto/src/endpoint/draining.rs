//! Connections that their peers have closed, of which nothing is left but their names (RFC 9000 §10.2.2).
//!
//! Packets that were late are no reason for a stateless reset. To know them takes the connection IDs; the connection itself, a hundred
//! times as large, makes room for the next one.

use std::collections::VecDeque;

use fulmar_base::Instant;

use super::ConnectionHandle;

/// So many of those that were left last are known; when there are more, the oldest is forgotten. A peer that still sends to it gets a
/// stateless reset at most, which tells it the same.
const DRAINING_MAX: usize = 4096;

/// The connections in the order in which they were left, and until when they are known.
#[derive(Debug, Default)]
pub(super) struct Draining(VecDeque<(Instant, ConnectionHandle)>);

impl Draining {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a connection. Returns the one that is to be forgotten for it.
    pub(super) fn add(&mut self, until: Instant, handle: ConnectionHandle) -> Option<ConnectionHandle> {
        self.0.push_back((until, handle));
        if self.0.len() > DRAINING_MAX { self.0.pop_front().map(|(_, handle)| handle) } else { None }
    }

    /// Takes a connection whose time has passed. One with a longer time keeps those that were left after it.
    pub(super) fn take_over(&mut self, now: Instant) -> Option<ConnectionHandle> {
        let (until, handle) = *self.0.front()?;
        if until > now {
            return None;
        }
        self.0.pop_front();
        Some(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_known_until_their_time_has_passed() {
        let mut draining = Draining::default();
        for n in [1, 3, 2] {
            assert_eq!(draining.add(Instant::from_millis(n), ConnectionHandle(n as usize)), None);
        }
        let mut taken_at = |now| draining.take_over(Instant::from_millis(now)).map(|handle| handle.0);
        assert_eq!([taken_at(0), taken_at(1), taken_at(2)], [None, Some(1), None]);
        assert_eq!([taken_at(3), taken_at(3), taken_at(3)], [Some(3), Some(2), None]);
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut draining = Draining::default();
        for n in 0..DRAINING_MAX {
            assert_eq!(draining.add(Instant::from_millis(9), ConnectionHandle(n)), None);
        }
        assert_eq!(draining.add(Instant::from_millis(9), ConnectionHandle(7)), Some(ConnectionHandle(0)));
        assert_eq!(draining.len(), DRAINING_MAX);
    }
}
