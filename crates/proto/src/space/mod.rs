//! A packet number space: the numbers of sent and received packets, acknowledgements, loss detection.
//!
//! Owns the records of sent packets until they are acknowledged or lost, the numbers received, and what is
//! to be acknowledged. Knows no path and no tuple: what an acknowledgement means for the round-trip time,
//! the congestion controller and the owners of frames leaves as an [`AckOutcome`] and as [`Losses`]. RFC 9000 §12.3, §13;
//! RFC 9002 §5, §6 and appendix A.
//!
//! On an ACK the connection calls, in this order: [`NumberSpace::on_ack`]; `Rtt::update` with the sample;
//! [`NumberSpace::detect_lost`], which must see the new estimate; and then applies the outcome.

mod ack_manager;
mod ecn_feedback;
mod loss;
mod probes;
mod pto;
mod received;
mod receiving;
mod repeats;
mod tx_numbers;

use std::time::Duration;

use fulmar_base::{Instant, RingMap, Rng};
use fulmar_wire::{Ack, Frame};

pub(crate) use self::ack_manager::{AckPolicy, YOUNG_PACKETS};
pub(crate) use self::ecn_feedback::EcnFeedback;
pub(crate) use self::loss::{LossContext, MIN_PACKET_THRESHOLD, recovery_parameters};
pub(crate) use self::probes::Probes;
pub(crate) use self::pto::{PtoBackoff, probe_interval_max};

use self::ack_manager::AckManager;
use self::ecn_feedback::{AckedMarks, EcnMonitor};
use self::loss::{LossDetector, Remembered};
use self::received::Received;
use self::tx_numbers::TxNumbers;
use crate::TransportError;
use crate::ids::TupleId;
use crate::packed::{packed, packed_around};
use crate::packet::{AckedFrames, SentPacket};

/// The packets of ACKs alone of which a record is kept. Beyond, they are sent without one: their
/// acknowledgement would bring nothing but an RTT sample.
const MAX_ACK_ONLY_RECORDS: usize = 1_024;

/// A packet of ACKs alone should carry a PING after so many without anything that elicits an ACK, so that
/// the peer's acknowledgement lets old ranges be forgotten (RFC 9000 §13.2.4).
const ACK_ONLY_RUN: u32 = 20;

/// What an ACK brought about.
#[derive(Debug, Default)]
pub(crate) struct AckOutcome {
    /// Newly acknowledged packets.
    pub(crate) packets: usize,
    /// Bytes of them.
    pub(crate) bytes: u64,
    /// Whether one of them elicits an acknowledgement.
    pub(crate) ack_eliciting: bool,
    /// The tokens of their frames, those of stream data that follow one another joined: ranges from the newest to the
    /// oldest, within a range from the oldest to the newest.
    pub(crate) frames: AckedFrames,
    /// Packets that were declared lost before and have arrived after all. They are not among the others, and their
    /// tokens were handed back as lost already.
    pub(crate) spurious: Vec<(u64, SentPacket)>,
    /// The round-trip time of the largest packet acknowledged, if it is news and something that was newly
    /// acknowledged elicits an ACK (RFC 9002 §5.1).
    pub(crate) rtt_sample: Option<RttSample>,
    /// What the ACK tells of ECN marks, if it tells anything.
    pub(crate) ecn: Option<EcnFeedback>,
}

/// What loss detection found.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Packets declared lost, in the order of their numbers. All of them were in flight.
    pub(crate) lost: Vec<(u64, SentPacket)>,
    /// Whether they establish persistent congestion (RFC 9002 §7.6).
    pub(crate) persistent_congestion: bool,
}

/// A sample of the round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RttSample {
    /// From sending to the acknowledgement.
    pub(crate) rtt: Duration,
    /// What the peer says it waited. Means nothing in an Initial or Handshake space.
    pub(crate) ack_delay: Duration,
    /// The tuple whose round-trip time it is.
    pub(crate) tuple: TupleId,
}

/// One packet number space.
#[derive(Debug)]
pub(crate) struct NumberSpace {
    numbers: TxNumbers,
    sent: RingMap<SentPacket>,
    received: Received,
    acks: AckManager,
    loss: LossDetector,
    ecn: EcnMonitor,
    outstanding: Outstanding,
    /// Probe packets that have to be sent.
    pub(crate) probes: Probes,
    /// Whether packets were sent that [`NumberSpace::take_resent`] would find.
    resends: bool,
    /// Whether packets were sent that [`NumberSpace::take_uncopied`] has not seen.
    uncopied: bool,
    /// Whether packets were sent that [`NumberSpace::take_slow`] has not seen.
    unseen: bool,
    largest_acked: Option<u64>,
    last_ack_eliciting: Option<Instant>,
    ack_only_run: u32,
}

packed_around!(NumberSpace {
    numbers,
    received,
    acks,
    ecn,
    outstanding,
    probes,
    resends,
    uncopied,
    unseen,
    largest_acked,
    last_ack_eliciting,
    ack_only_run,
} around { sent: RingMap<SentPacket>, loss: LossDetector });

/// What is remembered of packets that were sent, beside a packed space: packets of ACKs alone, as they come last, and lost ones.
#[derive(Debug, Default)]
pub(crate) struct SentRecords {
    sent: RingMap<SentPacket>,
    remembered: Remembered,
}

impl SentRecords {
    /// Appends the space, and returns what is remembered, if that is anything.
    pub(crate) fn pack(space: NumberSpace, out: &mut Vec<u8>) -> Option<Box<Self>> {
        let (sent, loss) = space.pack(out);
        let (remembered,) = loss.pack(out);
        let is_any = !sent.is_empty() || remembered.oldest().is_some();
        is_any.then(|| Box::new(Self { sent, remembered }))
    }

    /// Takes the space from the front.
    pub(crate) fn unpack(input: &mut &[u8], records: Option<Box<Self>>) -> NumberSpace {
        let Self { sent, remembered } = records.map_or_else(Self::default, |records| *records);
        NumberSpace::unpack(input, |input| (sent, LossDetector::unpack(input, |_| (remembered,))))
    }
}

/// Counts over the records of sent packets.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Outstanding {
    ack_eliciting: usize,
    ack_only: usize,
}

packed!(Outstanding { ack_eliciting, ack_only });

impl Outstanding {
    fn add(&mut self, packet: &SentPacket) {
        self.ack_only += usize::from(!packet.in_flight);
        self.ack_eliciting += usize::from(packet.ack_eliciting);
    }

    fn remove(&mut self, packet: &SentPacket) {
        self.ack_only -= usize::from(!packet.in_flight);
        self.ack_eliciting -= usize::from(packet.ack_eliciting);
    }
}

impl NumberSpace {
    /// A space in which nothing was sent or received.
    pub(crate) fn new(policy: AckPolicy, rng: &mut Rng) -> Self {
        Self {
            numbers: TxNumbers::new(rng),
            sent: RingMap::new(),
            received: Received::default(),
            acks: AckManager::new(policy),
            loss: LossDetector::new(),
            ecn: EcnMonitor::default(),
            outstanding: Outstanding::default(),
            probes: Probes::default(),
            resends: false,
            uncopied: false,
            unseen: false,
            largest_acked: None,
            last_ack_eliciting: None,
            ack_only_run: 0,
        }
    }

    // Sending.

    /// The number that the next packet must have.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.next()
    }

    /// The largest number that the peer acknowledged, by which the next ones are shortened
    /// (RFC 9000 §17.1).
    pub(crate) fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// Records a packet that was sent under `number`, which was [`NumberSpace::next_number`].
    pub(crate) fn on_sent(&mut self, number: u64, packet: SentPacket, rng: &mut Rng) {
        debug_assert_eq!(number, self.numbers.next(), "numbers are taken in order");
        self.numbers.advance(rng);
        self.ecn.on_sent(packet.ecn);
        self.resends |= packet.resends > 0;
        self.uncopied |= !packet.copies;
        self.unseen |= !packet.copies;
        if packet.ack_eliciting {
            self.last_ack_eliciting = Some(packet.time_sent);
            self.ack_only_run = 0;
        } else {
            self.ack_only_run = self.ack_only_run.saturating_add(1);
        }
        if packet.in_flight || self.outstanding.ack_only < MAX_ACK_ONLY_RECORDS {
            self.outstanding.add(&packet);
            self.sent.push(number, packet);
        }
    }

    /// Whether the next packet of ACKs alone should carry a PING as well.
    pub(crate) fn wants_ping(&self) -> bool {
        self.ack_only_run >= ACK_ONLY_RUN
    }

    /// Whether an acknowledgement is outstanding.
    pub(crate) fn has_ack_eliciting_in_flight(&self) -> bool {
        self.outstanding.ack_eliciting > 0
    }

    /// The packets without a verdict, oldest first.
    #[cfg(test)]
    pub(crate) fn unacked(&self) -> impl Iterator<Item = (u64, &SentPacket)> {
        self.sent.iter()
    }

    /// Gives up all records, because the keys of the space were discarded (RFC 9002 §6.4). The caller takes
    /// them out of the bytes in flight of their tuples.
    pub(crate) fn discard(&mut self) -> impl Iterator<Item = (u64, SentPacket)> {
        self.loss.clear();
        self.outstanding = Outstanding::default();
        self.last_ack_eliciting = None;
        self.sent.drain()
    }

    /// Whether nothing is in flight.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.sent.len() == self.outstanding.ack_only
    }

    /// Gives back the memory that nothing needs while the path rests.
    pub(crate) fn rest(&mut self) {
        self.numbers.rest();
        self.sent.shrink();
        self.received.rest();
        self.acks.rest();
        self.loss.rest();
    }

    // Acknowledgements of what was sent.

    /// Processes an ACK: shows each packet that it newly acknowledges to `on_acked`, and sums them up in `out`.
    /// `ack_delay_exponent` is the peer's.
    ///
    /// The work is linear in the ranges of the ACK and the packets newly acknowledged.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION for the acknowledgement of a packet that was never sent (RFC 9000 §13.1).
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        ack_delay_exponent: u8,
        out: &mut AckOutcome,
        mut on_acked: impl FnMut(u64, &SentPacket),
    ) -> Result<(), TransportError> {
        let largest = ack.largest.get();
        self.check(ack)?;
        let advances = self.largest_acked.is_none_or(|old| largest > old);
        let largest_ever = self.largest_acked.map_or(largest, |old| old.max(largest));
        self.largest_acked = Some(largest_ever);

        let mut marks = AckedMarks::default();
        let mut newest_sent = None;
        for range in ack.ranges() {
            self.sent.remove_range(*range.start()..range.end() + 1, |number, packet| {
                self.outstanding.remove(packet);
                marks.add(packet.ecn);
                out.packets += 1;
                out.bytes += u64::from(packet.size);
                out.ack_eliciting |= packet.ack_eliciting;
                if number == largest {
                    newest_sent = Some((packet.time_sent, packet.tuple));
                }
                on_acked(number, packet);
                out.frames.extend(&packet.frames);
            });
            if self.loss.oldest_remembered().is_some_and(|oldest| oldest <= *range.end()) {
                self.loss.take_spurious(&range, largest_ever, |number, packet| {
                    out.spurious.push((number, packet));
                });
            }
        }

        // RFC 9002 §5.1: without a packet that elicits an ACK the peer may have waited for any time.
        out.rtt_sample = newest_sent.filter(|_| out.ack_eliciting).map(|(sent, tuple)| RttSample {
            rtt: now.saturating_since(sent),
            ack_delay: unscale_delay(ack.delay.get(), ack_delay_exponent),
            tuple,
        });
        if advances {
            out.ecn = self.ecn.on_ack(ack.ecn, marks);
        }
        Ok(())
    }

    /// Declares packets lost and adds them to `out`: after [`NumberSpace::on_ack`], and when
    /// [`NumberSpace::loss_deadline`] has come.
    pub(crate) fn detect_lost(&mut self, now: Instant, cx: &LossContext<'_>, out: &mut Losses) {
        let Some(largest_acked) = self.largest_acked else { return };
        let Self { loss, sent, numbers, outstanding, .. } = self;
        out.persistent_congestion |= loss.detect(now, largest_acked, sent, numbers, cx, |number, packet| {
            outstanding.remove(&packet);
            // A packet of ACKs alone holds nothing that would be repeated, and its loss is no sign of
            // congestion (RFC 9002 §3): it is dropped in silence.
            if packet.in_flight {
                out.lost.push((number, packet));
            }
        });
        // A path that loses more is slower than it was taken to be.
        self.unseen |= !out.lost.is_empty();
    }

    /// Takes out of the losses that are remembered what left with a mark over `tuple` since then: it was dropped for that.
    pub(crate) fn take_dropped_for_marks(&mut self, tuple: TupleId, since: Instant) -> Vec<SentPacket> {
        self.loss.take_marked(tuple, since)
    }

    /// How many later packets must be acknowledged before one is lost; it adapts to reordering.
    pub(crate) fn packet_threshold(&self) -> u64 {
        self.loss.packet_threshold()
    }

    /// When [`NumberSpace::detect_lost`] will find something.
    pub(crate) fn loss_deadline(&self) -> Option<Instant> {
        self.loss.deadline()
    }

    /// When a probe is due, if an acknowledgement is outstanding. `delay` comes from
    /// [`PtoBackoff::delay`].
    pub(crate) fn pto_deadline(&self, delay: Duration) -> Option<Instant> {
        let last = self.last_ack_eliciting.filter(|_| self.has_ack_eliciting_in_flight())?;
        Some(last + delay)
    }

    /// When the newest packet that elicits an acknowledgement was sent.
    pub(crate) fn last_ack_eliciting_sent(&self) -> Option<Instant> {
        self.last_ack_eliciting
    }

    /// When the oldest packet was sent, if its acknowledgement is the next one to be expected: it elicits one, and
    /// none sent after it was acknowledged.
    pub(crate) fn oldest_unacked(&self) -> Option<Instant> {
        let (_, oldest) = self.sent.first()?;
        (oldest.ack_eliciting && self.loss.deadline().is_none()).then_some(oldest.time_sent)
    }

    /// Refuses acknowledgements of packets that were never sent.
    fn check(&self, ack: &Ack<'_>) -> Result<(), TransportError> {
        let violation =
            |reason| TransportError::protocol_violation(reason).with_frame(Frame::Ack(*ack).frame_type());
        // RFC 9000 §13.1.
        if ack.largest.get() >= self.numbers.next() {
            return Err(violation("acknowledgement of a packet that was not sent"));
        }
        // RFC 9000 §21.4: a peer that acknowledges what it cannot have seen acknowledges blindly.
        if ack.ranges().any(|range| self.numbers.any_skipped(&range)) {
            return Err(violation("acknowledgement of a skipped packet number"));
        }
        Ok(())
    }
}

/// The delay that the ACK Delay field stands for (RFC 9000 §19.3). An exponent is at most 20, and a delay
/// too long to represent is as long as can be.
fn unscale_delay(field: u64, exponent: u8) -> Duration {
    let micros = u128::from(field) << exponent.min(20);
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
