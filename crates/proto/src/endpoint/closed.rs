//! Connections that were closed, of which nothing is left but their names, and the last packet of those that this end has closed
//! (RFC 9000 §10.2).
//!
//! Packets that were late are no reason for a stateless reset, and a peer that has not heard of the end is told again. For that takes
//! the connection IDs and one packet; the connection itself, a hundred times as large, makes room for the next one.

use std::collections::VecDeque;

use fulmar_base::{HashKey, Instant, KeyedMap};
use fulmar_wire::ConnectionId;

use crate::datagram::{Datagram, TransmitBatch};

/// So many of those that were left last are known; when there are more, the oldest is forgotten. A peer that still sends to it gets a
/// stateless reset at most, which tells it the same.
const CLOSED_MAX: usize = 4096;

/// RFC 9000 §10.2.1: who has not proven to be the peer gets three times as many bytes at most as have come.
const AMPLIFICATION: usize = 3;

/// The sealed packet with which this end has closed a connection, to be sent again as it is (RFC 9000 §10.2.1).
#[derive(Debug)]
struct ClosePacket {
    packet: Box<[u8]>,
    /// Datagrams that came since it was last sent, and how many must come before it is sent again.
    received: u32,
    threshold: u32,
}

impl ClosePacket {
    /// One that was sent once.
    fn new(packet: Box<[u8]>) -> Self {
        Self { packet, received: 0, threshold: 1 }
    }

    /// Whether one more datagram is to be answered.
    fn is_due(&self) -> bool {
        self.received + 1 >= self.threshold
    }

    /// Answers a datagram that is to be answered, if it is long enough. The next answer takes twice as many, as that of a connection
    /// that is still whole does (`Close::on_datagram`).
    fn write(&mut self, datagram: &Datagram, reply: &mut TransmitBatch) -> Option<usize> {
        let len = self.packet.len();
        if len > datagram.payload.len() * AMPLIFICATION {
            return None;
        }
        (self.received, self.threshold) = (0, self.threshold.saturating_mul(2));
        reply.room()[..len].copy_from_slice(&self.packet);
        reply.set_len(len);
        Some(len)
    }
}

/// What is left of a connection.
#[derive(Debug)]
struct Closed {
    until: Instant,
    cids: Vec<ConnectionId>,
    /// `None` if the peer has closed: it is not answered (RFC 9000 §10.2.2).
    packet: Option<ClosePacket>,
}

/// The connections in the order in which they were left, under their names.
#[derive(Debug)]
pub(super) struct ClosedConnections {
    closed: VecDeque<Closed>,
    /// How many were forgotten: the number of the first.
    forgotten: u64,
    /// The numbers.
    by_cid: KeyedMap<ConnectionId, u64>,
    /// How many of them are answered, and when the last of those can be forgotten.
    closing: usize,
    closing_until: Instant,
}

impl ClosedConnections {
    pub(super) fn new(key: HashKey) -> Self {
        Self {
            closed: VecDeque::new(),
            forgotten: 0,
            by_cid: KeyedMap::new(key),
            closing: 0,
            closing_until: Instant::ZERO,
        }
    }

    /// How many of them this end has closed: their peers may have to be told again.
    pub(super) fn closing(&self) -> usize {
        self.closing
    }

    /// When the time of all that this end has closed will have passed, if there are any.
    pub(super) fn closing_until(&self) -> Option<Instant> {
        (self.closing > 0).then_some(self.closing_until)
    }

    /// Adds a connection that was known by these connection IDs. What comes for it until then is answered with `packet`. It is not
    /// forgotten before those that were added before it.
    pub(super) fn add(&mut self, until: Instant, cids: Vec<ConnectionId>, packet: Option<Box<[u8]>>) {
        let until = self.closed.back().map_or(until, |before| before.until.max(until));
        let number = self.forgotten + self.closed.len() as u64;
        for &cid in &cids {
            self.by_cid.insert(cid, number);
        }
        if packet.is_some() {
            self.closing += 1;
            self.closing_until = until;
        }
        self.closed.push_back(Closed { until, cids, packet: packet.map(ClosePacket::new) });
        if self.closed.len() > CLOSED_MAX {
            self.forget_oldest();
        }
    }

    /// Forgets connections whose time has passed.
    pub(super) fn forget_until(&mut self, now: Instant) {
        while self.closed.front().is_some_and(|oldest| oldest.until <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.closed.pop_front() else { return };
        self.forgotten += 1;
        self.closing -= usize::from(oldest.packet.is_some());
        for cid in oldest.cids {
            self.by_cid.remove(&cid);
        }
    }

    /// Whether `dst` was the connection ID of one of them.
    pub(super) fn knows(&self, dst: &ConnectionId) -> bool {
        self.by_cid.contains_key(dst)
    }

    fn find(&mut self, dst: &ConnectionId) -> Option<&mut Closed> {
        let number = *self.by_cid.get(dst)?;
        self.closed.get_mut((number - self.forgotten) as usize)
    }

    /// Whether a datagram to `dst` is one that is dropped without an answer. It counts then.
    pub(super) fn ignores(&mut self, dst: &ConnectionId) -> bool {
        let Some(closed) = self.find(dst) else { return false };
        match &mut closed.packet {
            Some(packet) if packet.is_due() => false,
            Some(packet) => {
                packet.received += 1;
                true
            }
            None => true,
        }
    }

    /// Writes the answer to a datagram to `dst`, if there is to be one. Returns its length.
    pub(super) fn answer(
        &mut self,
        dst: &ConnectionId,
        datagram: &Datagram,
        reply: &mut TransmitBatch,
    ) -> Option<usize> {
        if self.ignores(dst) {
            return None;
        }
        self.find(dst)?.packet.as_mut()?.write(datagram, reply)
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use fulmar_base::Rng;

    use super::*;
    use crate::datagram::{Ecn, FourTuple};

    fn closed_connections() -> ClosedConnections {
        ClosedConnections::new(HashKey::new(&mut Rng::from_u64(1)))
    }

    fn cid(number: u64) -> ConnectionId {
        ConnectionId::new(&number.to_be_bytes()).unwrap()
    }

    fn datagram(len: usize) -> Datagram {
        let addrs = FourTuple::new(([10, 0, 0, 1], 1).into(), None);
        Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::zeroed(len) }
    }

    #[test]
    fn connections_are_known_by_all_their_names_until_their_time_has_passed() {
        let mut closed = closed_connections();
        for n in [1, 3, 2] {
            closed.add(Instant::from_millis(n), vec![cid(n), cid(10 + n)], None);
        }
        let mut known_at = |now| {
            closed.forget_until(Instant::from_millis(now));
            [1, 2, 3].map(|n| closed.ignores(&cid(n)) && closed.knows(&cid(10 + n)))
        };
        assert_eq!(known_at(0), [true, true, true]);
        assert_eq!(known_at(1), [false, true, true]);
        assert_eq!(known_at(2), [false, true, true], "those before it have a longer time");
        assert_eq!(known_at(3), [false, false, false]);
        assert!(!closed.knows(&cid(11)));
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut closed = closed_connections();
        let packet = || Some(Box::from([7; 40]));
        for n in 0..=CLOSED_MAX as u64 {
            assert!(closed.knows(&cid(0)) || n == 0);
            closed.add(Instant::from_millis(9), vec![cid(n)], packet());
        }
        assert!(!closed.knows(&cid(0)) && closed.knows(&cid(1)) && closed.knows(&cid(CLOSED_MAX as u64)));
        assert_eq!(closed.closing(), CLOSED_MAX);
    }

    #[test]
    fn answers_get_rarer_and_are_no_longer_than_three_times_what_has_come() {
        let mut closed = closed_connections();
        closed.add(Instant::from_millis(9), vec![cid(1)], Some(Box::from([7; 40])));
        let mut reply = TransmitBatch::new(1);
        let mut answers = |len, count: usize| -> Vec<usize> {
            let answered = |_: &usize| closed.answer(&cid(1), &datagram(len), &mut reply).is_some();
            (0..count).filter(answered).collect()
        };
        assert_eq!(answers(13, 5), [], "three times 13 are less than 40");
        assert_eq!(answers(14, 16), [0, 2, 6, 14]);
        assert_eq!(reply.bytes(), [7; 40]);
    }

    #[test]
    fn those_that_this_end_has_closed_are_counted_until_the_last_of_them_is_over() {
        let mut closed = closed_connections();
        assert_eq!((closed.closing(), closed.closing_until()), (0, None));
        let packet = || Some(Box::from([7; 40]));
        closed.add(Instant::from_millis(5), vec![cid(1)], None);
        closed.add(Instant::from_millis(3), vec![cid(2)], packet());
        assert_eq!((closed.closing(), closed.closing_until()), (1, Some(Instant::from_millis(5))));
        closed.add(Instant::from_millis(7), vec![cid(3)], packet());
        closed.add(Instant::from_millis(9), vec![cid(4)], None);
        assert_eq!((closed.closing(), closed.closing_until()), (2, Some(Instant::from_millis(7))));
        closed.forget_until(Instant::from_millis(6));
        assert_eq!((closed.closing(), closed.closing_until()), (1, Some(Instant::from_millis(7))));
        closed.forget_until(Instant::from_millis(7));
        assert_eq!((closed.closing(), closed.closing_until()), (0, None));
        assert!(closed.knows(&cid(4)));
    }
}
