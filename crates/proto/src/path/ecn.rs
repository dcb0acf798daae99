//! Whether a tuple carries ECN marks (RFC 9000 §13.4.2 and appendix A.4).

use fulmar_base::Instant;

use crate::datagram::Ecn;
use crate::log::EcnState;
use crate::packed::{packed, packed_names};
use crate::packet::SentPacket;
use crate::space::EcnFeedback;

/// How many packets are sent with a mark before the first answer decides.
const TEST_PACKETS: u64 = 10;
/// How many, where nothing was acknowledged until packets left without a mark. If the path drops marked packets now these are lost, and
/// nobody tells an end that it sends acknowledgements alone in vain. As many must be lost among others that arrive before marks are
/// held to be the reason.
const RETEST_PACKETS: u64 = 3;
/// How many leave together in a test: fewer than show that marks are the reason, as all of them may be lost in one burst.
const TEST_BATCH_PACKETS: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A few packets of each second batch are marked, and the answers are awaited.
    Testing,
    /// Enough packets were marked: none more until an answer comes.
    Unknown,
    /// The marks arrive.
    Capable,
    /// Nothing is acknowledged any more: packets leave without, to see whether marks are the reason.
    Suspected,
    /// The path or the peer does not keep marks, or is not trusted to.
    Failed,
}

packed_names!(State { Testing, Unknown, Capable, Suspected, Failed });

/// The ECN validation of a tuple.
#[derive(Debug)]
pub(crate) struct EcnValidation {
    state: State,
    /// Packets that may still be marked in a test.
    left: u64,
    /// Whether the last batch left with a mark.
    was_marked: bool,
    /// Whether a mark has ever been confirmed.
    confirmed: bool,
    /// How many packets with a mark have arrived here in a row.
    arrived_in_row: u64,
    /// Whether packets come without that came with marks before, and more of them in a row than a test has.
    peer_has_stopped: bool,
    /// When marks were last suspected: until then they have arrived, or not, whatever becomes of later ones.
    suspected: Option<Instant>,
    /// When the newest marked packet left that has arrived.
    arrived_marked: Instant,
    /// When the first packet left that was dropped for its mark.
    dropped_since: Option<Instant>,
    /// Since a packet with a mark has arrived, if anything has happened since that matters.
    in_row: Option<Box<InRow>>,
}

packed!(EcnValidation {
    state,
    left,
    was_marked,
    confirmed,
    arrived_in_row,
    peer_has_stopped,
    suspected,
    arrived_marked,
    dropped_since,
    in_row,
});

/// What became of packets since one with a mark has arrived.
#[derive(Debug, Default)]
struct InRow {
    /// When the first marked packet left that was lost.
    lost_since: Option<Instant>,
    /// When the first packet without a mark left that has arrived.
    arrived_since: Option<Instant>,
    /// How many marked packets were lost that left after that one.
    lost: u64,
    /// And how many without a mark.
    lost_unmarked: u64,
}

packed!(InRow { lost_since, arrived_since, lost, lost_unmarked });

impl EcnValidation {
    pub(crate) fn new(enabled: bool) -> Self {
        Self {
            state: if enabled { State::Testing } else { State::Failed },
            left: TEST_PACKETS,
            was_marked: true,
            confirmed: false,
            arrived_in_row: 0,
            peer_has_stopped: false,
            suspected: None,
            arrived_marked: Instant::ZERO,
            dropped_since: None,
            in_row: None,
        }
    }

    /// What is known, for the log.
    pub(crate) fn state(&self) -> EcnState {
        match self.state {
            State::Testing => EcnState::Testing,
            State::Unknown | State::Suspected => EcnState::Unknown,
            State::Capable => EcnState::Capable,
            State::Failed => EcnState::Failed,
        }
    }

    /// The codepoint for the next batch, where the congestion controller asks for `wanted`. Of an end that has hardly anything in
    /// flight (`listens`) most packets are acknowledgements alone, of whose loss nobody tells it. A peer whose marked packets are lost
    /// comes to send without: then they leave without as well.
    ///
    /// In a test every second batch has a mark, and the first has none: where marks are dropped the others show it within a round
    /// trip. TCP marks no SYN and no pure acknowledgement either (RFC 3168 §6.1.1, §6.1.4).
    pub(crate) fn codepoint(&self, wanted: Ecn, listens: bool) -> Ecn {
        let marks = match self.state {
            State::Testing => !self.was_marked,
            State::Capable => !(self.peer_has_stopped && listens),
            State::Unknown | State::Suspected | State::Failed => false,
        };
        match wanted {
            Ecn::Ect0 | Ecn::Ect1 if marks => wanted,
            _ => Ecn::NotEct,
        }
    }

    /// How many packets may leave together with this codepoint, if that is limited.
    pub(crate) fn marked_max(&self, codepoint: Ecn) -> Option<usize> {
        (self.state == State::Testing && codepoint != Ecn::NotEct).then_some(TEST_BATCH_PACKETS)
    }

    /// `packets` were sent with `codepoint`.
    pub(crate) fn on_sent(&mut self, codepoint: Ecn, packets: u64) {
        self.was_marked = codepoint != Ecn::NotEct;
        if !self.was_marked {
            return;
        }
        self.left = self.left.saturating_sub(packets);
        if self.state == State::Testing && self.left == 0 {
            self.state = State::Unknown;
        }
    }

    /// A packet has arrived with this codepoint.
    #[inline]
    pub(crate) fn on_received(&mut self, codepoint: Ecn) {
        if codepoint == Ecn::NotEct {
            self.peer_has_stopped |= self.arrived_in_row > TEST_PACKETS;
            self.arrived_in_row = 0;
        } else {
            self.arrived_in_row += 1;
            self.peer_has_stopped = false;
        }
    }

    /// An ACK told about marks. Returns how many packets met congestion that was not told before.
    pub(crate) fn on_feedback(&mut self, feedback: EcnFeedback) -> u64 {
        match (self.state, feedback) {
            (State::Failed, _) => 0,
            (_, EcnFeedback::Invalid) => {
                self.state = State::Failed;
                0
            }
            (_, EcnFeedback::Valid { ce, validated }) => {
                // An acknowledgement may come late, of what left before.
                if validated > 0 && self.suspected.is_none_or(|since| self.arrived_marked > since) {
                    self.state = State::Capable;
                    self.confirmed = true;
                }
                ce
            }
        }
    }

    /// A packet was acknowledged that left over this tuple.
    #[inline]
    pub(crate) fn on_packet_acked(&mut self, packet: &SentPacket) {
        if packet.ecn != Ecn::NotEct {
            self.in_row = None;
            self.arrived_marked = self.arrived_marked.max(packet.time_sent);
        } else if self.state != State::Failed {
            let row = self.in_row.get_or_insert_default();
            let since = row.arrived_since.get_or_insert(packet.time_sent);
            *since = packet.time_sent.min(*since);
        }
    }

    /// A packet was lost that left over this tuple.
    pub(crate) fn on_packet_lost(&mut self, packet: &SentPacket) {
        if self.state == State::Failed {
            return;
        }
        let is_marked = packet.ecn != Ecn::NotEct;
        let row = self.in_row.get_or_insert_default();
        if is_marked && packet.time_sent > self.arrived_marked {
            let since = row.lost_since.get_or_insert(packet.time_sent);
            *since = packet.time_sent.min(*since);
        }
        if row.arrived_since.is_none_or(|arrived| packet.time_sent < arrived) {
            return;
        }
        match is_marked {
            true => row.lost += 1,
            false => {
                // What is lost whether it is marked or not asks for more of a test.
                row.lost_unmarked += 1;
                if matches!(self.state, State::Testing | State::Unknown) {
                    (self.state, self.left) = (State::Testing, self.left + 1);
                }
            }
        }
    }

    /// After losses: whether all marked packets of a while were lost, and those among them that had no mark have arrived. Then marking ends,
    /// and what was lost was dropped for its mark. Returns since when.
    pub(crate) fn find_dropped(&mut self) -> Option<Instant> {
        let row = self.in_row.as_ref()?;
        if self.state == State::Failed || row.lost < RETEST_PACKETS + row.lost_unmarked {
            return None;
        }
        self.state = State::Failed;
        self.dropped_since = self.in_row.take()?.lost_since;
        self.dropped_since
    }

    /// Whether the loss of a packet says nothing about congestion: marks are known to be dropped, or it tests whether they are.
    pub(crate) fn explains_loss(&self, packet: &SentPacket) -> bool {
        let since = match self.state {
            State::Failed => self.dropped_since,
            State::Testing | State::Unknown => self.suspected,
            State::Capable | State::Suspected => None,
        };
        packet.ecn != Ecn::NotEct && since.is_some_and(|since| packet.time_sent >= since)
    }

    /// Nothing is acknowledged any more: the path may drop marked packets (RFC 9000 §13.4.2.1), and what probes it leaves without.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if !matches!(self.state, State::Suspected | State::Failed) {
            self.state = State::Suspected;
            self.suspected = Some(now);
        }
    }

    /// Something is acknowledged, after [`Self::on_feedback`] of the same frame. Marks are tested again: the path may just have been
    /// interrupted.
    pub(crate) fn on_progress(&mut self) {
        if self.state == State::Suspected {
            // An end that has never seen a mark arrive loses no more of them than the first test would.
            self.left = if self.confirmed { RETEST_PACKETS } else { self.left.min(RETEST_PACKETS) };
            self.state = if self.left > 0 { State::Testing } else { State::Unknown };
        }
    }
}

#[cfg(test)]
mod tests;
