//! The connections that this end has closed and still remembers, so that late packets get the right answer (RFC 9000 §10.2): those that
//! the application still holds, or that had not proven where their peers are. The others are left to the core's endpoint.
//!
//! Each is remembered for three probe timeouts: some hundred milliseconds, but three seconds if its handshake never went so far
//! that a round trip was measured. Whoever begins and ends handshakes as fast as they can would fill the memory with such.

use std::collections::VecDeque;

use fulmar_proto::ConnectionHandle;

/// So many of those that ended last are remembered; when there are more, the oldest is forgotten. A peer that still sends to it
/// gets a stateless reset at most, which tells it the same.
const REMEMBERED_MAX: usize = 500;

/// The connections that ended last, the oldest first, by their handles and the numbers that tell two with one handle apart.
/// Some of them are forgotten already.
#[derive(Default)]
pub(super) struct Remembered {
    ended: VecDeque<(ConnectionHandle, u64)>,
}

impl Remembered {
    /// Adds a connection that has just ended. Returns the one that is to be forgotten for it.
    pub(super) fn add(&mut self, handle: ConnectionHandle, id: u64) -> Option<(ConnectionHandle, u64)> {
        self.ended.push_back((handle, id));
        if self.ended.len() > REMEMBERED_MAX { self.ended.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let mut remembered = Remembered::default();
        for n in 0..REMEMBERED_MAX {
            assert_eq!(remembered.add(ConnectionHandle(n), n as u64), None);
        }
        assert_eq!(remembered.add(ConnectionHandle(7), 10_000), Some((ConnectionHandle(0), 0)));
        assert_eq!(remembered.add(ConnectionHandle(8), 10_001), Some((ConnectionHandle(1), 1)));
    }
}
