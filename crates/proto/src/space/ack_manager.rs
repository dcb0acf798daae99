//! When and what to acknowledge (RFC 9000 §13.2, draft-ietf-quic-ack-frequency §6).

mod reports;

use std::time::Duration;

use fulmar_base::{Instant, RangeSet};
use fulmar_wire::{AckEncoder, AckWritten, EcnCounts, PathId, VarInt};

use self::reports::{REPEATED_RANGES, Reports};
use crate::datagram::Ecn;
use crate::packed::packed;
use crate::packet::FrameWriter;

/// The ranges that wait to be acknowledged at most; of more, the oldest are given up (RFC 9000 §13.2.3). An ACK carries as
/// many as the packet has room for. There are as many as of [`Received`](super::received::Received): a network that lets
/// packets overtake hundreds of others makes a range of nearly each, and all that come before the next ACK must fit.
pub(crate) const MAX_ACK_RANGES: usize = 256;

/// So many ranges bring an ACK at once, so that none is given up unreported (draft-ietf-quic-ack-frequency §6). All but the
/// newest [`REPEATED_RANGES`] are news then, and half of the room is left for what comes before it can be sent.
const CROWDED_RANGES: usize = MAX_ACK_RANGES / 2;

/// While the window of the peer is young it counts on every second packet to be acknowledged, and the spacing of these acknowledgements
/// shows it the rate of the path. This end asks for nothing else as a sender before so many packets (`ext/ack_frequency/tuning.rs`).
pub(crate) const YOUNG_PACKETS: u32 = 128;

/// How eagerly to acknowledge. A value, so that an extension that negotiates it only replaces the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AckPolicy {
    /// An ACK is due when this many packets that elicit one have come since the last ACK.
    pub(crate) ack_eliciting_threshold: u32,
    /// An ACK is due when the oldest packet that elicits one has waited so long.
    pub(crate) max_ack_delay: Duration,
    /// An ACK is due when a missing packet number lies so far below the largest number received; 1 asks for
    /// an ACK at every gap and every late packet (RFC 9000 §13.2.1), 0 never looks.
    pub(crate) reordering_threshold: u64,
}

packed!(AckPolicy { ack_eliciting_threshold, max_ack_delay, reordering_threshold });

impl AckPolicy {
    /// Acknowledges everything at once, as Initial and Handshake packets must be (RFC 9000 §13.2.1).
    pub(crate) const IMMEDIATE: Self =
        Self { ack_eliciting_threshold: 1, max_ack_delay: Duration::ZERO, reordering_threshold: 1 };
}

impl Default for AckPolicy {
    /// Every second packet, or after 25 ms (RFC 9000 §13.2.2, §18.2).
    fn default() -> Self {
        Self { ack_eliciting_threshold: 2, max_ack_delay: Duration::from_millis(25), reordering_threshold: 1 }
    }
}

/// Collects what is to be acknowledged and decides when.
#[derive(Debug)]
pub(crate) struct AckManager {
    policy: AckPolicy,
    /// Packet numbers that the peer is not known to know about, and always the largest received.
    ranges: RangeSet,
    ecn: EcnCounts,
    /// Packets that elicit an ACK and came since the last one.
    pending: u32,
    /// Whether one of them asks for an ACK without delay.
    immediate: bool,
    /// When the oldest of them must be acknowledged.
    deadline: Option<Instant>,
    largest_eliciting: Option<u64>,
    /// The largest number of the last ACK that was written.
    largest_reported: Option<u64>,
    /// Whether the peer is not known to have that ACK.
    is_unconfirmed: bool,
    /// The smallest number received that no ACK has told yet, or `u64::MAX`.
    smallest_news: u64,
    /// How often the ranges were written.
    reports: Reports,
    /// Whether the packet that was received last carried a mark of congestion.
    last_was_ce: bool,
    /// Packets that elicit an ACK and come before the peer's policy holds, as it suits the window of another path.
    eager: Option<u32>,
}

packed!(AckManager {
    policy,
    ranges,
    ecn,
    pending,
    immediate,
    deadline,
    largest_eliciting,
    largest_reported,
    is_unconfirmed,
    smallest_news,
    reports,
    last_was_ce,
    eager,
});

impl AckManager {
    pub(crate) fn new(policy: AckPolicy) -> Self {
        Self {
            policy,
            ranges: RangeSet::new(),
            ecn: EcnCounts::default(),
            pending: 0,
            immediate: false,
            deadline: None,
            largest_eliciting: None,
            largest_reported: None,
            is_unconfirmed: false,
            smallest_news: u64::MAX,
            reports: Reports::default(),
            last_was_ce: false,
            eager: None,
        }
    }

    /// The path begins beside others, for which the peer may have asked for few ACKs. Its own begins as that of a connection does.
    pub(crate) fn begin_beside_others(&mut self) {
        self.eager = Some(YOUNG_PACKETS);
    }

    /// Whether the path has begun beside others.
    pub(crate) fn began_beside_others(&self) -> bool {
        self.eager.is_some()
    }

    /// How eagerly packets are acknowledged now.
    pub(crate) fn policy(&self) -> AckPolicy {
        self.policy
    }

    /// Changes how eagerly packets are acknowledged, those included that wait already.
    pub(crate) fn set_policy(&mut self, policy: AckPolicy) {
        let old = std::mem::replace(&mut self.policy, policy);
        self.deadline = self.deadline.map(|at| at.saturating_sub(old.max_ack_delay) + policy.max_ack_delay);
    }

    /// The peer asks for an ACK without delay (draft-ietf-quic-ack-frequency §5).
    pub(crate) fn demand(&mut self) {
        self.immediate = true;
    }

    /// Notes a packet that was opened and processed and is no duplicate.
    #[inline]
    pub(crate) fn on_received(&mut self, now: Instant, number: u64, ack_eliciting: bool, ecn: Ecn) {
        self.ranges.insert_one(number);
        if self.ranges.len() > MAX_ACK_RANGES {
            self.ranges.pop_first();
        }
        self.smallest_news = self.smallest_news.min(number);
        self.count_ecn(ecn);
        let congestion_is_news = ecn == Ecn::Ce && self.mark_is_due();
        self.last_was_ce = ecn == Ecn::Ce;
        // RFC 9000 §13.2.1: a packet that elicits nothing never provokes an ACK, gap or not.
        if !ack_eliciting {
            return;
        }
        self.pending = self.pending.saturating_add(1);
        let threshold = self.threshold();
        self.eager = self.eager.map(|left| left.saturating_sub(1));
        let late = self.is_out_of_order(number);
        self.largest_eliciting = self.largest_eliciting.max(Some(number));
        self.immediate |= late
            || self.pending >= threshold
            || congestion_is_news
            || self.gap_is_due()
            || self.ranges.len() >= CROWDED_RANGES;
        self.deadline.get_or_insert(now + self.policy.max_ack_delay);
    }

    /// Whether an ACK must be sent now, in a packet of its own if there is nothing else to send.
    pub(crate) fn needs_ack(&self, now: Instant) -> bool {
        self.immediate || self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Whether a packet that is sent anyway should carry an ACK (RFC 9000 §13.2.1).
    pub(crate) fn has_news(&self) -> bool {
        self.pending > 0
    }

    /// Whether the latest ACK may have been lost: in a packet that asks whether the peer is there it is said again. A peer that waits
    /// for it would go on to wait, however soon it answers.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.is_unconfirmed
    }

    /// When an ACK will be due if nothing else comes. An ACK that is due already has no deadline, see
    /// [`AckManager::needs_ack`].
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.immediate { None } else { self.deadline }
    }

    /// Writes an ACK. Returns false, and changes nothing, if there is nothing to acknowledge or no room.
    ///
    /// `largest_time` is when the packet with the largest number came.
    pub(crate) fn write(
        &mut self,
        now: Instant,
        path: PathId,
        largest_time: Instant,
        ack_delay_exponent: u8,
        out: &mut FrameWriter<'_>,
    ) -> bool {
        let Some(written) = self.write_copy(now, path, largest_time, ack_delay_exponent, out) else {
            return false;
        };
        if self.tells_all_news(written.ranges) {
            self.smallest_news = u64::MAX;
        }
        self.reports.on_written(&mut self.ranges, written.ranges);
        self.largest_reported = Some(written.largest);
        self.is_unconfirmed = true;
        self.pending = 0;
        self.immediate = false;
        self.deadline = None;
        true
    }

    /// Writes an ACK as [`AckManager::write`] does, and changes nothing: what is due stays due.
    pub(crate) fn write_copy(
        &self,
        now: Instant,
        path: PathId,
        largest_time: Instant,
        ack_delay_exponent: u8,
        out: &mut FrameWriter<'_>,
    ) -> Option<AckWritten> {
        if self.ranges.is_empty() {
            return None;
        }
        let ack = AckEncoder {
            path,
            delay: scale_delay(now.saturating_since(largest_time), ack_delay_exponent),
            ranges: &self.ranges,
            ecn: (self.ecn != EcnCounts::default()).then_some(self.ecn),
            max_ranges: MAX_ACK_RANGES,
        };
        out.write_ack(&ack)
    }

    /// Forgets what the peer knows: it acknowledged a packet with an ACK whose largest number was
    /// `largest` (RFC 9000 §13.2.4).
    pub(crate) fn on_ack_acked(&mut self, largest: u64) {
        self.is_unconfirmed &= self.largest_reported > Some(largest);
        // RFC 9000 §13.2.3: the largest number received stays, so that no later ACK reports a smaller one.
        // What came after that ACK was written, and late, is not in it.
        if let Some(max) = self.ranges.max() {
            self.ranges.remove_below(max.min(largest.saturating_add(1)).min(self.smallest_news));
        }
    }

    pub(crate) fn rest(&mut self) {
        self.ranges.shrink();
        self.reports.rest();
    }

    /// How many packets that elicit an ACK make one due. Sooner than asked for is always allowed
    /// (draft-ietf-quic-ack-frequency §4: the threshold is the most that may come before).
    fn threshold(&self) -> u32 {
        let asked = self.policy.ack_eliciting_threshold;
        let is_eager = self.eager.is_some_and(|left| left > 0);
        if is_eager { asked.min(AckPolicy::default().ack_eliciting_threshold) } else { asked }
    }

    fn count_ecn(&mut self, ecn: Ecn) {
        match ecn {
            Ecn::Ect0 => self.ecn.ect0 += 1,
            Ecn::Ect1 => self.ecn.ect1 += 1,
            Ecn::Ce => self.ecn.ce += 1,
            Ecn::NotEct => {}
        }
    }

    /// Whether a mark of congestion must be reported at once.
    fn mark_is_due(&self) -> bool {
        // RFC 9000 §13.2.1: each one; where the peer asked for fewer ACKs, the first of several
        // (draft-ietf-quic-ack-frequency §6.3).
        self.policy.ack_eliciting_threshold <= AckPolicy::default().ack_eliciting_threshold
            || !self.last_was_ce
    }

    /// Whether `number` came so late that the peer must hear of it at once.
    fn is_out_of_order(&self, number: u64) -> bool {
        match self.policy.reordering_threshold {
            0 => false,
            // After a larger one that elicits an ACK (RFC 9000 §13.2.1).
            1 => self.largest_eliciting.is_some_and(|largest| number < largest),
            // When the peer has taken it for lost (draft-ietf-quic-ack-frequency §6.2).
            threshold => self.largest_reported.is_some_and(|largest| number + threshold <= largest),
        }
    }

    /// Whether the newest `count` ranges hold everything that no ACK has told yet.
    fn tells_all_news(&self, count: usize) -> bool {
        let oldest = || self.ranges.iter().rev().take(count).next_back();
        count >= self.ranges.len() || oldest().is_some_and(|oldest| oldest.start <= self.smallest_news)
    }

    /// Whether a missing number lies far enough below the largest one to be reported.
    ///
    /// A gap is reported once: those that the last ACK could show as lost are not looked at again.
    fn gap_is_due(&self) -> bool {
        let threshold = self.policy.reordering_threshold;
        let (Some(largest), true) = (self.largest_eliciting, threshold > 0) else {
            return false;
        };
        // The peer can judge every number up to here from the last ACK.
        let judged = self.largest_reported.map_or(0, |reported| (reported + 1).saturating_sub(threshold));
        // A gap reaches from the end of a range to the start of the next one. Only one range is there while packets come in
        // order. Between those below the newest are gaps that were reported and forgotten.
        let mut gap_end = None;
        for range in self.ranges.iter().rev().take(REPEATED_RANGES) {
            let missing = judged.max(range.end);
            if gap_end.is_some_and(|end| missing < end) && missing + threshold <= largest {
                return true;
            }
            if range.start <= judged {
                return false;
            }
            gap_end = Some(range.start);
        }
        // What lies below the oldest range was reported and forgotten, unless nothing was ever reported.
        self.largest_reported.is_none() && threshold <= largest
    }
}

/// The delay field of an ACK: microseconds, divided by 2 to the power of the exponent (RFC 9000 §19.3).
fn scale_delay(delay: Duration, exponent: u8) -> VarInt {
    let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
    VarInt::try_from(micros >> exponent.min(63)).unwrap_or(VarInt::MAX)
}

#[cfg(test)]
mod tests;
