//! Datagrams that match no connection.
//!
//! Anyone can send them, and they can cost much: the first packet of an attempt to connect has to be decrypted, and perhaps
//! answered. So they wait until all connections were served, and each turn of the worker looks at them for a bounded time
//! only. A flood of them delays new connections, not those that exist.

use std::collections::VecDeque;

use bytes::BytesMut;
use fulmar_base::Instant;
use fulmar_proto::Datagram;

/// Datagrams that wait, at most, and their bytes. With more, new ones are dropped, as by a full socket: clients repeat them.
const DATAGRAMS_MAX: usize = 1_024;
const BYTES_MAX: usize = 2 << 20;

/// The datagrams that wait, in the order in which they came.
#[derive(Default)]
pub(super) struct UnmatchedDatagrams {
    /// Each with the time of its arrival.
    queue: VecDeque<(Instant, Datagram)>,
    bytes: usize,
}

impl UnmatchedDatagrams {
    /// Adds a datagram that came at `came`. Returns false if there is no room.
    pub(super) fn add(&mut self, came: Instant, datagram: Datagram) -> bool {
        let len = datagram.payload.len();
        let has_room = self.queue.len() < DATAGRAMS_MAX && self.bytes + len <= BYTES_MAX;
        if has_room {
            self.bytes += len;
            // In memory of its own: it may be a slice of a much larger receive buffer.
            let datagram = Datagram { payload: BytesMut::from(&datagram.payload[..]), ..datagram };
            self.queue.push_back((came, datagram));
        }
        has_room
    }

    /// Takes the datagram that has waited longest.
    pub(super) fn next(&mut self) -> Option<(Instant, Datagram)> {
        let (came, datagram) = self.queue.pop_front()?;
        self.bytes -= datagram.payload.len();
        Some((came, datagram))
    }

    /// When the one came that has waited longest.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.queue.front().map(|(came, _)| *came)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use fulmar_proto::{Ecn, FourTuple};

    use super::*;

    fn at(millis: usize) -> Instant {
        Instant::from_millis(millis as u64)
    }

    fn datagram(number: usize) -> Datagram {
        let addrs = FourTuple::new(([127, 0, 0, 1], 1).into(), None);
        Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::from(&number.to_be_bytes()[..]) }
    }

    #[test]
    fn the_oldest_is_routed_first_and_there_is_a_limit() {
        let mut unmatched = UnmatchedDatagrams::default();
        let taken = (0..5_000).filter(|number| unmatched.add(at(*number), datagram(*number))).count();
        assert_eq!(taken, DATAGRAMS_MAX);
        for number in 0..taken {
            assert_eq!(unmatched.oldest(), Some(at(number)));
            let (came, next) = unmatched.next().unwrap();
            assert_eq!((came, &next.payload[..]), (at(number), &datagram(number).payload[..]));
        }
        assert!(unmatched.is_empty() && unmatched.next().is_none());
        assert!(unmatched.oldest().is_none() && unmatched.add(at(0), datagram(0)), "there is room again");
    }

    #[test]
    fn large_datagrams_are_fewer() {
        let mut unmatched = UnmatchedDatagrams::default();
        let large = || Datagram { payload: BytesMut::zeroed(60_000), ..datagram(0) };
        let taken = (0..1_000).filter(|_| unmatched.add(at(0), large())).count();
        assert_eq!(taken, BYTES_MAX / 60_000);
        while unmatched.next().is_some() {}
        assert_eq!(unmatched.bytes, 0);
    }
}
