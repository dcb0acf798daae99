//! Which packets are lost, and which only seemed so (RFC 9002 §6.1).

mod remembered;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use fulmar_base::{Instant, RingMap};

pub(crate) use self::remembered::Remembered;
use super::tx_numbers::TxNumbers;
use crate::datagram::Ecn;
use crate::ids::TupleId;
use crate::log::LogEvent;
use crate::memory::SharedMemory;
use crate::packed::{packed, packed_around};
use crate::packet::SentPacket;
use crate::rtt::{GRANULARITY, Rtt};

/// A packet is lost when one sent so many packets later was acknowledged (kPacketThreshold).
pub(crate) const MIN_PACKET_THRESHOLD: u64 = 3;

/// How far the packet threshold adapts to reordering. Beyond that the time threshold decides.
const MAX_PACKET_THRESHOLD: u64 = 256;

/// The time threshold in eighths of a round trip (kTimeThreshold is 9/8), and how far it adapts.
const MIN_TIME_THRESHOLD: u32 = 9;
const MAX_TIME_THRESHOLD: u32 = 16;

/// After so many losses in a row that turned out to be real, the thresholds move back towards the minimum,
/// as in RFC 8985 §7.2.
const LOSSES_BEFORE_DECAY: u32 = 16;

/// A lost packet is remembered for three probe timeouts, and for so long at least: a radio that stops for
/// a moment delivers its queue after many round trips of a short path.
const MIN_MEMORY: Duration = Duration::from_secs(2);

/// Probe timeouts that losses must span to be persistent congestion (kPersistentCongestionThreshold).
const PERSISTENT_CONGESTION_THRESHOLD: u32 = 3;

/// What every space begins with, and a controller with this window, for the log.
pub(crate) fn recovery_parameters(initial_rtt: Duration, window: u64, datagram: u16) -> LogEvent {
    LogEvent::RecoveryParameters {
        initial_rtt: initial_rtt.as_nanos() as u64,
        packet_threshold: MIN_PACKET_THRESHOLD as u8,
        time_threshold: MIN_TIME_THRESHOLD as u8,
        persistent_threshold: PERSISTENT_CONGESTION_THRESHOLD as u8,
        datagram,
        window: u32::try_from(window).unwrap_or(u32::MAX),
    }
}

/// What loss detection needs to know of the tuple.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LossContext<'a> {
    /// The round-trip time, updated with the acknowledgement that is being processed.
    pub(crate) rtt: &'a Rtt,
    /// The tuple in use, which it was measured on.
    pub(crate) tuple: TupleId,
    /// The longest delay that the peer promised for acknowledgements, in every space (RFC 9002 §7.6.1).
    pub(crate) max_ack_delay: Duration,
    /// What the connections of the endpoint have for sending, in which the losses count that are remembered.
    pub(crate) memory: &'a Arc<SharedMemory>,
}

/// Declares packets lost, adapts to reordering, recognises persistent congestion.
#[derive(Debug)]
pub(crate) struct LossDetector {
    packet_threshold: u64,
    /// In eighths of a round trip.
    time_threshold: u32,
    /// Detections since the last one that was wrong.
    losses_since_spurious: u32,
    /// When the oldest packet will be lost if it is not acknowledged before.
    deadline: Option<Instant>,
    remembered: Remembered,
    run: Option<LostRun>,
}

packed_around!(LossDetector {
    packet_threshold,
    time_threshold,
    losses_since_spurious,
    deadline,
    run,
} around { remembered: Remembered });

/// Packets lost one after another, none between them acknowledged.
#[derive(Debug, Clone, Copy)]
struct LostRun {
    /// When the first of them that elicits an ACK and had an RTT sample before it was sent.
    start: Option<Instant>,
    /// The packet number after the last of them.
    end: u64,
    tuple: TupleId,
}

packed!(LostRun { start, end, tuple });

impl LossDetector {
    pub(crate) fn new() -> Self {
        Self {
            packet_threshold: MIN_PACKET_THRESHOLD,
            time_threshold: MIN_TIME_THRESHOLD,
            losses_since_spurious: 0,
            deadline: None,
            remembered: Remembered::default(),
            run: None,
        }
    }

    /// A packet is lost when one sent so many packets later was acknowledged.
    pub(crate) fn packet_threshold(&self) -> u64 {
        self.packet_threshold
    }

    /// When a packet will be lost by the time threshold.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Removes from `sent` what is lost and hands it to `on_removed`, packets of ACKs alone included. Returns
    /// whether the losses establish persistent congestion of the tuple in use.
    ///
    /// Packets leave in the order of their numbers, and neither threshold spares an older packet where it
    /// takes a newer one, so the first packet that is not lost ends the search: the cost is that of the
    /// packets removed.
    pub(crate) fn detect(
        &mut self,
        now: Instant,
        largest_acked: u64,
        sent: &mut RingMap<SentPacket>,
        numbers: &TxNumbers,
        cx: &LossContext<'_>,
        mut on_removed: impl FnMut(u64, SentPacket),
    ) -> bool {
        self.deadline = None;
        let delay = self.time_delay(cx.rtt);
        let (mut any, mut persistent) = (false, false);
        while let Some((number, oldest)) = sent.first().filter(|(number, _)| *number < largest_acked) {
            let lost_at = oldest.time_sent + delay;
            if number + self.packet_threshold > largest_acked && now < lost_at {
                self.deadline = Some(lost_at);
                break;
            }
            let Some(packet) = sent.remove(number) else { break };
            persistent |= self.extend_run(number, &packet, numbers, cx);
            if packet.in_flight {
                any = true;
                self.remembered.push(number, packet.clone(), cx.memory);
            }
            on_removed(number, packet);
        }
        if any {
            self.decay();
        }
        self.forget(now, cx);
        persistent
    }

    /// Takes out of the remembered losses those in `acked` and adapts the thresholds to the reordering they
    /// show. `largest_acked` is the largest number ever acknowledged.
    pub(crate) fn take_spurious(
        &mut self,
        acked: &RangeInclusive<u64>,
        largest_acked: u64,
        mut on_spurious: impl FnMut(u64, SentPacket),
    ) {
        let taken = self.remembered.take(acked);
        if taken.len() == 0 {
            return;
        }
        for (number, packet) in taken {
            let extent = largest_acked.saturating_sub(number);
            self.packet_threshold = self.packet_threshold.max((extent + 1).min(MAX_PACKET_THRESHOLD));
            on_spurious(number, packet);
        }
        self.losses_since_spurious = 0;
        self.time_threshold = (self.time_threshold + 1).min(MAX_TIME_THRESHOLD);
    }

    /// Takes out of the remembered losses what left with a mark over `tuple` since then.
    pub(crate) fn take_marked(&mut self, tuple: TupleId, since: Instant) -> Vec<SentPacket> {
        self.remembered.take_where(|packet| {
            packet.tuple == tuple && packet.ecn != Ecn::NotEct && packet.time_sent >= since
        })
    }

    /// The oldest remembered loss: ranges below it need no search.
    pub(crate) fn oldest_remembered(&self) -> Option<u64> {
        self.remembered.oldest()
    }

    /// Forgets everything, when the space is discarded.
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    pub(crate) fn rest(&mut self) {
        self.remembered.shrink();
    }

    fn time_delay(&self, rtt: &Rtt) -> Duration {
        // RFC 9002 §6.1.2.
        (rtt.smoothed().max(rtt.latest()) * self.time_threshold / 8).max(GRANULARITY)
    }

    fn forget(&mut self, now: Instant, cx: &LossContext<'_>) {
        let memory = ((cx.rtt.pto_base() + cx.max_ack_delay) * 3).max(MIN_MEMORY);
        self.remembered.forget(|sent| sent + memory < now);
    }

    fn decay(&mut self) {
        self.losses_since_spurious += 1;
        if self.losses_since_spurious >= LOSSES_BEFORE_DECAY {
            self.losses_since_spurious = 0;
            self.packet_threshold = (self.packet_threshold / 2).max(MIN_PACKET_THRESHOLD);
            self.time_threshold = (self.time_threshold - 1).max(MIN_TIME_THRESHOLD);
        }
    }

    /// Notes a lost packet; returns whether persistent congestion is established with it (RFC 9002 §7.6.2).
    fn extend_run(
        &mut self,
        number: u64,
        packet: &SentPacket,
        numbers: &TxNumbers,
        cx: &LossContext<'_>,
    ) -> bool {
        let continues = |run: &LostRun| {
            // Whatever is missing between two losses and was not skipped was acknowledged.
            run.tuple == packet.tuple && (run.end..number).all(|between| numbers.is_skipped(between))
        };
        let mut run =
            self.run.filter(continues).unwrap_or(LostRun { start: None, end: number, tuple: packet.tuple });
        run.end = number + 1;
        let mut established = false;
        // RFC 9002 §7.6.2: both ends of the period elicit an ACK and were sent after an RTT sample.
        let sampled = cx.rtt.first_sample().is_some_and(|first| first < packet.time_sent);
        // RFC 9000 §9.4: what was lost on the way to another address says nothing of the one in use.
        let here = packet.tuple == cx.tuple;
        // RFC 9000 §14.4: the loss of an MTU probe says nothing about congestion.
        if packet.ack_eliciting && sampled && here && !packet.mtu_probe {
            let start = *run.start.get_or_insert(packet.time_sent);
            // RFC 9002 §7.6.1 has a formula of its own, whatever the probe timeout is made of.
            let variances = (cx.rtt.variance() * 4).max(GRANULARITY);
            let duration =
                (cx.rtt.smoothed() + variances + cx.max_ack_delay) * PERSISTENT_CONGESTION_THRESHOLD;
            if packet.time_sent.saturating_since(start) > duration {
                established = true;
                // The next verdict needs another whole period.
                run.start = Some(packet.time_sent);
            }
        }
        self.run = Some(run);
        established
    }
}

#[cfg(test)]
mod tests;
