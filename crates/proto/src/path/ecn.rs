//! Whether a tuple carries ECN marks (RFC 9000 §13.4.2 and appendix A.4).

use crate::datagram::Ecn;
use crate::log::EcnState;
use crate::space::EcnFeedback;

/// How many packets are sent with a mark before the first answer decides.
const TEST_PACKETS: u64 = 10;
/// How many, where marks had arrived and packets without are acknowledged again after nothing was. If the path drops marked packets
/// now these are lost, and nobody tells an end that it sends acknowledgements alone in vain.
const RETEST_PACKETS: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Packets are marked, and the answers are awaited.
    Testing,
    /// Enough packets were marked: none more until an answer comes.
    Unknown,
    /// The marks arrive.
    Capable,
    /// They did, but nothing is acknowledged any more: packets leave without, to see whether that is the reason.
    Suspected,
    /// The path or the peer does not keep marks, or is not trusted to.
    Failed,
}

/// The ECN validation of a tuple.
#[derive(Debug)]
pub(crate) struct EcnValidation {
    state: State,
    /// Packets that may still be marked in a test.
    left: u64,
}

impl EcnValidation {
    pub(crate) fn new(enabled: bool) -> Self {
        let state = if enabled { State::Testing } else { State::Failed };
        Self { state, left: TEST_PACKETS }
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

    /// The codepoint for the next packet, where the congestion controller asks for `wanted`.
    pub(crate) fn codepoint(&self, wanted: Ecn) -> Ecn {
        match (self.state, wanted) {
            (State::Testing | State::Capable, Ecn::Ect0 | Ecn::Ect1) => wanted,
            _ => Ecn::NotEct,
        }
    }

    /// `packets` were sent with `codepoint`.
    pub(crate) fn on_sent(&mut self, codepoint: Ecn, packets: u64) {
        if codepoint == Ecn::NotEct {
            return;
        }
        self.left = self.left.saturating_sub(packets);
        if self.state == State::Testing && self.left == 0 {
            self.state = State::Unknown;
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
                if validated > 0 {
                    self.state = State::Capable;
                }
                ce
            }
        }
    }

    /// Nothing is acknowledged any more: the path may drop marked packets (RFC 9000 §13.4.2.1).
    pub(crate) fn on_persistent_loss(&mut self) {
        self.state = match self.state {
            State::Capable | State::Suspected => State::Suspected,
            State::Testing | State::Unknown | State::Failed => State::Failed,
        };
    }

    /// Whether marks have arrived until now.
    pub(crate) fn is_capable(&self) -> bool {
        self.state == State::Capable
    }

    /// Something is acknowledged, after [`Self::on_feedback`] of the same frame. Marks that arrived before are tested again: the
    /// path may just have been interrupted.
    pub(crate) fn on_progress(&mut self) {
        if self.state == State::Suspected {
            (self.state, self.left) = (State::Testing, RETEST_PACKETS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_keeps_marks_is_used() {
        let mut ecn = EcnValidation::new(true);
        ecn.on_sent(Ecn::Ect0, TEST_PACKETS);
        assert_eq!(ecn.codepoint(Ecn::Ect0), Ecn::NotEct);
        assert_eq!(ecn.on_feedback(EcnFeedback::Valid { ce: 0, validated: 4 }), 0);
        assert_eq!(ecn.codepoint(Ecn::Ect0), Ecn::Ect0);
        assert_eq!(ecn.on_feedback(EcnFeedback::Valid { ce: 2, validated: 4 }), 2);
    }

    #[test]
    fn a_path_that_comes_to_swallow_marked_packets_is_found_out() {
        let mut ecn = EcnValidation::new(true);
        ecn.on_sent(Ecn::Ect0, 1);
        ecn.on_feedback(EcnFeedback::Valid { ce: 0, validated: 1 });
        ecn.on_persistent_loss();
        assert_eq!(ecn.codepoint(Ecn::Ect0), Ecn::NotEct);
        ecn.on_progress();
        assert_eq!(ecn.codepoint(Ecn::Ect0), Ecn::Ect0, "a second chance");
        ecn.on_persistent_loss();
        ecn.on_progress();
        assert_eq!(ecn.codepoint(Ecn::Ect0), Ecn::NotEct);
    }

    #[test]
    fn a_second_chance_costs_three_packets_even_if_nobody_tells_that_they_are_lost() {
        let mut ecn = EcnValidation::new(true);
        ecn.on_sent(Ecn::Ect0, 1);
        ecn.on_feedback(EcnFeedback::Valid { ce: 0, validated: 1 });
        ecn.on_persistent_loss();
        ecn.on_progress();
        for _ in 0..3 {
            assert_eq!(ecn.codepoint(Ecn::Ect0), Ecn::Ect0);
            ecn.on_sent(Ecn::Ect0, 1);
        }
        assert_eq!(ecn.codepoint(Ecn::Ect0), Ecn::NotEct, "acknowledgements alone, say");
        ecn.on_feedback(EcnFeedback::Valid { ce: 0, validated: 1 });
        assert_eq!(ecn.codepoint(Ecn::Ect0), Ecn::Ect0, "they arrived after all");
    }

    #[test]
    fn an_interruption_does_not_end_marking() {
        let mut ecn = EcnValidation::new(true);
        for _ in 0..5 {
            ecn.on_sent(Ecn::Ect0, 1);
            ecn.on_feedback(EcnFeedback::Valid { ce: 0, validated: 1 });
            ecn.on_persistent_loss();
            ecn.on_progress();
        }
        assert_eq!(ecn.codepoint(Ecn::Ect0), Ecn::Ect0);
    }

    #[test]
    fn the_controller_chooses_the_mark_and_may_choose_none() {
        let ecn = EcnValidation::new(true);
        assert_eq!(ecn.codepoint(Ecn::Ect1), Ecn::Ect1);
        assert_eq!(ecn.codepoint(Ecn::NotEct), Ecn::NotEct);
        assert_eq!(ecn.codepoint(Ecn::Ce), Ecn::NotEct, "congestion is for routers to mark");
        assert_eq!(EcnValidation::new(false).codepoint(Ecn::Ect1), Ecn::NotEct);
    }

    #[test]
    fn a_path_that_lies_or_swallows_marked_packets_is_not() {
        let mut lying = EcnValidation::new(true);
        lying.on_sent(Ecn::Ect0, 1);
        lying.on_feedback(EcnFeedback::Valid { ce: 0, validated: 1 });
        lying.on_feedback(EcnFeedback::Invalid);
        assert_eq!(lying.codepoint(Ecn::Ect0), Ecn::NotEct);
        assert_eq!(lying.on_feedback(EcnFeedback::Valid { ce: 3, validated: 1 }), 0);

        let mut swallowing = EcnValidation::new(true);
        swallowing.on_sent(Ecn::Ect0, TEST_PACKETS);
        swallowing.on_persistent_loss();
        swallowing.on_progress();
        swallowing.on_feedback(EcnFeedback::Valid { ce: 0, validated: 1 });
        assert_eq!(swallowing.codepoint(Ecn::Ect0), Ecn::NotEct);
    }
}
