//! Connections that were closed, of which nothing is left but their names, and the last packet of those that this end has closed
//! (RFC 9000 §10.2).
//!
//! Packets that were late are no reason for a stateless reset, and a peer that has not heard of the end is told again. For that takes
//! the connection IDs and one packet; the connection itself, a hundred times as large, makes room for the next one.

use std::collections::BTreeSet;

use fulmar_base::{HashKey, Instant, KeyedMap, RingMap};
use fulmar_wire::ConnectionId;

use crate::connection::CloseAnswers;
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
    answers: CloseAnswers,
}

impl ClosePacket {
    /// Answers a datagram that is to be answered, if it is long enough.
    fn write(&mut self, datagram: &Datagram, reply: &mut TransmitBatch) -> Option<usize> {
        let len = self.packet.len();
        if len > datagram.payload.len() * AMPLIFICATION {
            return None;
        }
        self.answers.on_answered();
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

/// The connections under their names.
#[derive(Debug)]
pub(super) struct ClosedConnections {
    /// By numbers in the order in which they were left.
    closed: RingMap<Closed>,
    /// The number of the one that was left last.
    last: u64,
    by_cid: KeyedMap<ConnectionId, u64>,
    /// Until when each is known, with its number: of those that are answered, and of the others. A peer decides how long its own
    /// connection is known, not how long another one is.
    closing: BTreeSet<(Instant, u64)>,
    draining: BTreeSet<(Instant, u64)>,
}

impl ClosedConnections {
    pub(super) fn new(key: HashKey) -> Self {
        Self {
            closed: RingMap::new(),
            last: 0,
            by_cid: KeyedMap::new(key),
            closing: BTreeSet::new(),
            draining: BTreeSet::new(),
        }
    }

    /// How many of them this end has closed: their peers may have to be told again.
    pub(super) fn closing(&self) -> usize {
        self.closing.len()
    }

    /// When the time of all that this end has closed will have passed, if there are any.
    pub(super) fn closing_until(&self) -> Option<Instant> {
        self.closing.last().map(|(until, _)| *until)
    }

    /// Adds a connection that was known by these connection IDs. What comes for it until then is answered with `packet`.
    pub(super) fn add(&mut self, until: Instant, cids: Vec<ConnectionId>, packet: Option<Box<[u8]>>) {
        let number = self.last + 1;
        for &cid in &cids {
            self.by_cid.insert(cid, number);
        }
        self.times(packet.is_some()).insert((until, number));
        let packet = packet.map(|packet| ClosePacket { packet, answers: CloseAnswers::new() });
        self.closed.push(number, Closed { until, cids, packet });
        self.last = number;
        if self.closed.len() > CLOSED_MAX
            && let Some(oldest) = self.closed.first_key()
        {
            self.forget(oldest);
        }
    }

    /// Forgets connections whose time has passed.
    pub(super) fn forget_until(&mut self, now: Instant) {
        for is_answered in [true, false] {
            while let Some((until, number)) = self.times(is_answered).first().copied()
                && until <= now
            {
                self.forget(number);
            }
        }
    }

    fn times(&mut self, is_answered: bool) -> &mut BTreeSet<(Instant, u64)> {
        if is_answered { &mut self.closing } else { &mut self.draining }
    }

    fn forget(&mut self, number: u64) {
        let Some(closed) = self.closed.remove(number) else { return };
        self.times(closed.packet.is_some()).remove(&(closed.until, number));
        for cid in closed.cids {
            // Another one may have had the same name since.
            if self.by_cid.get(&cid) == Some(&number) {
                self.by_cid.remove(&cid);
            }
        }
    }

    /// Whether `dst` was the connection ID of one of them.
    pub(super) fn knows(&self, dst: &ConnectionId) -> bool {
        self.by_cid.contains_key(dst)
    }

    fn find(&mut self, dst: &ConnectionId) -> Option<&mut Closed> {
        let number = *self.by_cid.get(dst)?;
        self.closed.get_mut(number)
    }

    /// Whether a datagram to `dst` is one that is dropped without an answer. It counts then.
    pub(super) fn ignores(&mut self, dst: &ConnectionId) -> bool {
        let Some(closed) = self.find(dst) else { return false };
        match &mut closed.packet {
            Some(packet) if packet.answers.is_due() => false,
            Some(packet) => {
                packet.answers.on_ignored();
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
        assert_eq!(known_at(2), [false, false, true], "each has its own time");
        assert_eq!(known_at(3), [false, false, false]);
        assert!(!closed.knows(&cid(11)));
    }

    #[test]
    fn a_name_stands_for_the_one_that_had_it_last() {
        let mut closed = closed_connections();
        closed.add(Instant::from_millis(1), vec![cid(7)], None);
        closed.add(Instant::from_millis(2), vec![cid(7)], None);
        closed.forget_until(Instant::from_millis(1));
        assert!(closed.knows(&cid(7)));
        closed.forget_until(Instant::from_millis(2));
        assert!(!closed.knows(&cid(7)));
    }

    #[test]
    fn a_peer_that_has_closed_decides_nothing_for_others() {
        let mut closed = closed_connections();
        closed.add(Instant::from_millis(50_000), vec![cid(1)], None);
        closed.add(Instant::from_millis(100), vec![cid(2)], Some(Box::from([7; 40])));
        assert_eq!(closed.closing_until(), Some(Instant::from_millis(100)));
        closed.forget_until(Instant::from_millis(100));
        assert_eq!((closed.closing(), closed.knows(&cid(1)), closed.knows(&cid(2))), (0, true, false));
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
        assert_eq!((closed.closing(), closed.closing_until()), (1, Some(Instant::from_millis(3))));
        closed.add(Instant::from_millis(7), vec![cid(3)], packet());
        closed.add(Instant::from_millis(6), vec![cid(5)], packet());
        closed.add(Instant::from_millis(9), vec![cid(4)], None);
        assert_eq!((closed.closing(), closed.closing_until()), (3, Some(Instant::from_millis(7))));
        closed.forget_until(Instant::from_millis(6));
        assert_eq!((closed.closing(), closed.closing_until()), (1, Some(Instant::from_millis(7))));
        closed.forget_until(Instant::from_millis(7));
        assert_eq!((closed.closing(), closed.closing_until()), (0, None));
        assert!(closed.knows(&cid(4)));
    }
}
