//! 0-RTT packets that overtook the Initial packet of their connection (RFC 9000 §17.2.3).

use std::collections::VecDeque;

use fulmar_base::{HashKey, KeyedMap};
use fulmar_wire::ConnectionId;

use crate::datagram::Datagram;

/// Bytes that are kept for all clients together; the oldest go first.
const BYTES_MAX: usize = 1 << 20;
/// What a datagram counts for in addition to its length.
const OVERHEAD_BYTES: usize = 128;

/// Connection IDs that are kept in order, those included whose datagrams were taken.
const ENTRIES_MAX: usize = BYTES_MAX / OVERHEAD_BYTES;

/// The datagrams that wait for an Initial packet.
#[derive(Debug)]
pub(super) struct EarlyDatagrams {
    by_cid: KeyedMap<ConnectionId, Waiting>,
    /// Who came when: connection IDs and their serial numbers, also of those that were taken meanwhile.
    order: VecDeque<(ConnectionId, u64)>,
    next_serial: u64,
    bytes: usize,
    /// Bytes that are kept for one connection ID.
    each_max: usize,
}

#[derive(Debug)]
struct Waiting {
    serial: u64,
    datagrams: Vec<Datagram>,
    bytes: usize,
}

impl EarlyDatagrams {
    pub(super) fn new(each_max: usize, key: HashKey) -> Self {
        let by_cid = KeyedMap::new(key);
        Self { by_cid, order: VecDeque::new(), next_serial: 0, bytes: 0, each_max: each_max.min(BYTES_MAX) }
    }

    /// Keeps a datagram. Returns false if there are too many for `dst` already.
    pub(super) fn keep(&mut self, dst: ConnectionId, datagram: Datagram) -> bool {
        let cost = datagram.payload.len() + OVERHEAD_BYTES;
        match self.by_cid.get_mut(&dst) {
            Some(waiting) if waiting.bytes + cost > self.each_max => return false,
            Some(waiting) => {
                waiting.bytes += cost;
                waiting.datagrams.push(datagram);
            }
            None if cost > self.each_max => return false,
            None => {
                let serial = self.next_serial;
                self.next_serial += 1;
                self.order.push_back((dst, serial));
                self.by_cid.insert(dst, Waiting { serial, datagrams: vec![datagram], bytes: cost });
            }
        }
        self.bytes += cost;
        while self.bytes > BYTES_MAX || self.order.len() > ENTRIES_MAX {
            self.drop_oldest();
        }
        true
    }

    fn drop_oldest(&mut self) {
        let Some((cid, serial)) = self.order.pop_front() else { return };
        if self.by_cid.get(&cid).is_some_and(|waiting| waiting.serial == serial) {
            self.take(&cid);
        }
    }

    /// Takes out what waits for a client that now shows itself.
    pub(super) fn take(&mut self, dst: &ConnectionId) -> Vec<Datagram> {
        let Some(waiting) = self.by_cid.remove(dst) else { return Vec::new() };
        self.bytes -= waiting.bytes;
        waiting.datagrams
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use fulmar_base::Rng;

    use super::*;
    use crate::datagram::{Ecn, FourTuple};

    fn datagram(len: usize) -> Datagram {
        let addrs = FourTuple::new(([10, 0, 0, 1], 1).into(), None);
        Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::zeroed(len) }
    }

    fn cid(number: u32) -> ConnectionId {
        ConnectionId::new(&[number.to_be_bytes(), [0; 4]].concat()).unwrap()
    }

    #[test]
    fn each_client_and_all_together_are_limited() {
        let mut early = EarlyDatagrams::new(10_000, HashKey::new(&mut Rng::from_u64(1)));
        let kept = (0..100).filter(|_| early.keep(cid(0), datagram(1_000))).count();
        assert_eq!(kept, 10_000 / (1_000 + OVERHEAD_BYTES));
        for number in 1..100_000 {
            assert!(early.keep(cid(number), datagram(1)));
            assert!(early.bytes <= BYTES_MAX && early.order.len() <= ENTRIES_MAX);
        }
        assert!(early.take(&cid(0)).is_empty(), "the oldest are gone");
        assert_eq!(early.take(&cid(99_999)).len(), 1);
        for number in 0..100_000 {
            early.take(&cid(number));
        }
        assert_eq!(early.bytes, 0);
    }

    #[test]
    fn what_came_after_a_client_was_served_is_not_dropped_in_place_of_what_came_before() {
        let mut early = EarlyDatagrams::new(10_000, HashKey::new(&mut Rng::from_u64(1)));
        assert!(early.keep(cid(0), datagram(1)));
        assert_eq!(early.take(&cid(0)).len(), 1);
        assert!((1..5).all(|number| early.keep(cid(number), datagram(1))));
        assert!(early.keep(cid(0), datagram(1)));
        // Four that are older must go before it.
        for _ in 0..4 {
            early.drop_oldest();
        }
        assert_eq!(early.take(&cid(0)).len(), 1);
    }
}
