//! Datagrams that belong to no connection.
//!
//! Who knows no connection can still make an endpoint work: an attempt to connect has to be decrypted, answered, perhaps
//! refused. So these datagrams wait until the connections were served, and are looked at for a bounded time in each
//! turn. What they cost is paid by those who want to come in, and not by those who are there.

use std::collections::VecDeque;

use bytes::BytesMut;
use fulmar_proto::Datagram;

/// Datagrams that wait, at most, and their bytes. With more, new ones are dropped, as by a full socket: clients repeat them.
const DATAGRAMS_MAX: usize = 1_024;
const BYTES_MAX: usize = 2 << 20;

/// The datagrams that wait, in the order in which they came.
#[derive(Default)]
pub(super) struct Strangers {
    queue: VecDeque<Datagram>,
    bytes: usize,
}

impl Strangers {
    /// Takes one in; false if there was no room.
    pub(super) fn add(&mut self, datagram: Datagram) -> bool {
        let len = datagram.payload.len();
        let has_room = self.queue.len() < DATAGRAMS_MAX && self.bytes + len <= BYTES_MAX;
        if has_room {
            self.bytes += len;
            // In memory of its own: it may be a slice of a much larger receive buffer.
            self.queue.push_back(Datagram { payload: BytesMut::from(&datagram.payload[..]), ..datagram });
        }
        has_room
    }

    /// The one that has waited longest.
    pub(super) fn next(&mut self) -> Option<Datagram> {
        let datagram = self.queue.pop_front()?;
        self.bytes -= datagram.payload.len();
        Some(datagram)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use fulmar_proto::{Ecn, FourTuple};

    use super::*;

    fn datagram(number: usize) -> Datagram {
        let addrs = FourTuple { remote: ([127, 0, 0, 1], 1).into(), local_ip: None };
        Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::from(&number.to_be_bytes()[..]) }
    }

    #[test]
    fn who_comes_first_is_met_first_and_a_crowd_has_an_end() {
        let mut strangers = Strangers::default();
        let taken = (0..5_000).filter(|number| strangers.add(datagram(*number))).count();
        assert_eq!(taken, DATAGRAMS_MAX);
        for number in 0..taken {
            assert_eq!(strangers.next().unwrap().payload[..], datagram(number).payload[..]);
        }
        assert!(strangers.is_empty() && strangers.next().is_none());
        assert!(strangers.add(datagram(0)), "there is room again");
    }

    #[test]
    fn large_datagrams_are_fewer() {
        let mut strangers = Strangers::default();
        let large = || Datagram { payload: BytesMut::zeroed(60_000), ..datagram(0) };
        let taken = (0..1_000).filter(|_| strangers.add(large())).count();
        assert_eq!(taken, BYTES_MAX / 60_000);
        while strangers.next().is_some() {}
        assert_eq!(strangers.bytes, 0);
    }
}
