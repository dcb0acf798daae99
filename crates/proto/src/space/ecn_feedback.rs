//! What the peer reports of ECN marks (RFC 9000 §13.4.2.1).

use fulmar_wire::EcnCounts;

use crate::datagram::Ecn;
use crate::packed::packed;

/// What an ACK says of the marks that arrived at the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EcnFeedback {
    /// The counts are consistent; so many more packets were marked as having met congestion. The verdict
    /// covers `validated` packets that were sent with a mark and newly acknowledged.
    Valid {
        /// The increase of the CE count.
        ce: u64,
        /// Newly acknowledged packets that left with a mark.
        validated: u64,
    },
    /// The counts are missing or cannot be true: marking must stop on this path.
    Invalid,
}

/// Compares the counts of a space from ACK to ACK.
#[derive(Debug, Default)]
pub(crate) struct EcnMonitor {
    counts: EcnCounts,
    sent_ect0: u64,
    sent_ect1: u64,
}

packed!(EcnMonitor { counts, sent_ect0, sent_ect1 });

/// Packets that an ACK newly acknowledges, by the mark they left with.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct AckedMarks {
    ect0: u64,
    ect1: u64,
}

impl AckedMarks {
    pub(crate) fn add(&mut self, mark: Ecn) {
        match mark {
            Ecn::Ect0 => self.ect0 += 1,
            Ecn::Ect1 => self.ect1 += 1,
            Ecn::Ce | Ecn::NotEct => {}
        }
    }
}

impl EcnMonitor {
    /// Notes the mark of a packet that is sent.
    pub(crate) fn on_sent(&mut self, mark: Ecn) {
        match mark {
            Ecn::Ect0 => self.sent_ect0 += 1,
            Ecn::Ect1 => self.sent_ect1 += 1,
            Ecn::Ce | Ecn::NotEct => {}
        }
    }

    /// Judges an ACK that raised the largest acknowledged number; others may be reordered and prove
    /// nothing. `None` if the space never sent a mark and the peer reports none.
    pub(crate) fn on_ack(&mut self, counts: Option<EcnCounts>, acked: AckedMarks) -> Option<EcnFeedback> {
        let Some(new) = counts else {
            // RFC 9000 §13.4.2.1: counts must come with the first acknowledgement of a marked packet.
            return (acked.ect0 + acked.ect1 > 0).then_some(EcnFeedback::Invalid);
        };
        let old = std::mem::replace(&mut self.counts, new);
        let increase = |new: u64, old: u64| new.checked_sub(old);
        let (Some(ect0), Some(ect1), Some(ce)) =
            (increase(new.ect0, old.ect0), increase(new.ect1, old.ect1), increase(new.ce, old.ce))
        else {
            // Counts never fall. The highest ones stay the base, so that the fall is not counted as a rise later.
            self.counts = old;
            return Some(EcnFeedback::Invalid);
        };
        // RFC 9000 §13.4.2.1: a mark may turn into CE but not disappear, and none may appear.
        let disappeared = ect0.saturating_add(ce) < acked.ect0 || ect1.saturating_add(ce) < acked.ect1;
        let appeared = new.ect0 > self.sent_ect0
            || new.ect1 > self.sent_ect1
            || new.ce > self.sent_ect0.saturating_add(self.sent_ect1);
        if disappeared || appeared {
            return Some(EcnFeedback::Invalid);
        }
        Some(EcnFeedback::Valid { ce, validated: acked.ect0 + acked.ect1 })
    }
}

#[cfg(test)]
mod tests;
