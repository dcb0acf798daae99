//! Whom marks of congestion concern that an acknowledgement reports (RFC 9000 §13.4).

use crate::datagram::Ecn;
use crate::ids::TupleId;
use crate::packet::SentPacket;
use crate::space::EcnFeedback;

/// Where the packets left that an ACK newly acknowledges and that left with a mark of ECN.
#[derive(Debug, Default)]
pub(super) struct MarkedPackets {
    over_tuple_in_use: bool,
    elsewhere: bool,
}

impl MarkedPackets {
    /// Adds a packet; `used` is the tuple in use.
    pub(super) fn add(&mut self, packet: &SentPacket, used: TupleId) {
        let is_marked = packet.ecn != Ecn::NotEct;
        self.over_tuple_in_use |= is_marked && packet.tuple == used;
        self.elsewhere |= is_marked && packet.tuple != used;
    }

    /// Whether what the ACK says of marks tells something of the tuple in use. Marks are counted over all tuples of a space: if
    /// some were lost of packets that left over several, it is not known where.
    pub(super) fn concern(&self, feedback: &EcnFeedback) -> bool {
        match feedback {
            EcnFeedback::Invalid => !self.elsewhere,
            EcnFeedback::Valid { .. } => self.over_tuple_in_use || !self.elsewhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use fulmar_base::Instant;

    use super::*;

    #[test]
    fn marks_concern_the_tuple_in_use_unless_they_may_be_of_another() {
        let concerns = |over_tuple_in_use, elsewhere| {
            let marked = MarkedPackets { over_tuple_in_use, elsewhere };
            let valid = EcnFeedback::Valid { ce: 1, validated: 1 };
            (marked.concern(&valid), marked.concern(&EcnFeedback::Invalid))
        };
        assert_eq!(concerns(true, false), (true, true));
        assert_eq!(
            concerns(false, false),
            (true, true),
            "none was marked: counts that rise are wrong here, too"
        );
        assert_eq!(concerns(false, true), (false, false));
        assert_eq!(
            concerns(true, true),
            (true, false),
            "marks are there, but what is missing may be missing elsewhere"
        );
    }

    #[test]
    fn only_packets_that_left_with_a_mark_count() {
        let packet =
            |tuple, ecn| SentPacket { tuple: TupleId(tuple), ecn, ..SentPacket::sent_at(Instant::ZERO) };
        let added = |tuple, ecn| {
            let mut marked = MarkedPackets::default();
            marked.add(&packet(tuple, ecn), TupleId(4));
            (marked.over_tuple_in_use, marked.elsewhere)
        };
        assert_eq!(added(4, Ecn::NotEct), (false, false));
        assert_eq!(added(5, Ecn::NotEct), (false, false));
        assert_eq!(added(4, Ecn::Ect0), (true, false));
        assert_eq!(added(5, Ecn::Ect0), (false, true));
    }
}
