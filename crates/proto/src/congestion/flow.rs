//! What a tuple has in flight, and whether it may send more.

use std::time::Duration;

use fulmar_base::Instant;

use super::delivery_rate::DeliveryRate;
use super::pacer::Pacer;
use super::{
    AckEvent, Cause, CongestionEvent, Controller, ControllerFactory, DeliverySnapshot, LostPacket, Sent,
    SpuriousLoss,
};
use crate::packet::SentPacket;
use crate::path::Rtt;

/// The congestion state of one tuple: bytes in flight, controller, pacer, delivery rate.
///
/// Packets are reported one by one and summed; the `end_` methods tell the controller of the sum, once for
/// an ACK frame. Packets that do not count in flight are never reported here.
#[derive(Debug)]
pub(crate) struct Flow {
    controller: Box<dyn Controller>,
    pacer: Pacer,
    delivery: DeliveryRate,
    bytes_in_flight: u64,
    /// Whether the last round of sending ended because there was nothing more to send.
    app_limited: bool,
    acked: Option<AckedSum>,
    lost: Option<LostSum>,
    /// When the newest packet acknowledged by the last ACK frame was sent, and the state then.
    last_acked: (Instant, DeliverySnapshot),
}

/// The packets that one ACK frame acknowledges.
#[derive(Debug)]
struct AckedSum {
    bytes: u64,
    packets: u64,
    prior_in_flight: u64,
    newest: (Instant, DeliverySnapshot),
}

/// The packets that were found lost together.
#[derive(Debug)]
struct LostSum {
    bytes: u64,
    packets: u64,
    newest: (Instant, DeliverySnapshot),
}

impl Flow {
    /// A tuple on which nothing was sent.
    pub(crate) fn new(
        now: Instant,
        factory: &dyn ControllerFactory,
        max_datagram_size: u16,
        rtt: &Rtt,
    ) -> Self {
        let controller = factory.build(now, max_datagram_size);
        let rate = pacing_rate(&*controller, rtt);
        Self {
            pacer: Pacer::new(now, rate, max_datagram_size),
            controller,
            delivery: DeliveryRate::new(now),
            bytes_in_flight: 0,
            app_limited: false,
            acked: None,
            lost: None,
            last_acked: (now, DeliverySnapshot::NONE),
        }
    }

    // Sending.

    /// The bytes that the window leaves. Probes may exceed it (RFC 9002 §7.5).
    pub(crate) fn window_left(&self) -> u64 {
        self.controller.window().saturating_sub(self.bytes_in_flight)
    }

    /// The bytes that the pacer lets leave now.
    pub(crate) fn pacing_budget(&mut self, now: Instant) -> u64 {
        self.pacer.budget(now)
    }

    /// When the pacer will let `bytes` leave, if it does not now.
    pub(crate) fn pacing_time(&mut self, now: Instant, bytes: u64) -> Instant {
        self.pacer.next_time(now, bytes)
    }

    /// Notes a packet that counts in flight; what it returns belongs into its record.
    pub(crate) fn on_sent(&mut self, now: Instant, packet_number: u64, size: u16) -> DeliverySnapshot {
        let bytes = u64::from(size);
        let snapshot = self.delivery.on_sent(now, bytes, self.bytes_in_flight);
        self.bytes_in_flight += bytes;
        self.pacer.on_sent(now, bytes);
        let (bytes_in_flight, app_limited) = (self.bytes_in_flight, self.app_limited);
        self.controller.on_sent(now, &Sent { packet_number, bytes, bytes_in_flight, app_limited });
        snapshot
    }

    /// Ends a round of sending. `nothing_left` says whether it ended because there was nothing more to
    /// send, and not because the window, the pacer or something else on this side stopped it.
    pub(crate) fn end_round(&mut self, nothing_left: bool) {
        self.app_limited = nothing_left && self.window_left() > 0;
        if self.app_limited {
            self.delivery.on_app_limited(self.bytes_in_flight);
        }
    }

    // The fate of packets.

    /// Notes a packet that was acknowledged.
    pub(crate) fn packet_acked(&mut self, packet: &SentPacket) {
        let bytes = u64::from(packet.size);
        let newest = (packet.time_sent, packet.delivered);
        let prior_in_flight = self.bytes_in_flight;
        let sum = self.acked.get_or_insert(AckedSum { bytes: 0, packets: 0, prior_in_flight, newest });
        sum.bytes += bytes;
        sum.packets += 1;
        if newest.0 > sum.newest.0 {
            sum.newest = newest;
        }
        self.delivery.on_acked(bytes, packet.time_sent, &packet.delivered);
        self.remove(bytes);
    }

    /// Ends an ACK frame: tells the controller of the packets acknowledged since the last call.
    pub(crate) fn end_ack(&mut self, now: Instant, rtt_sample: Option<Duration>, rtt: &Rtt) {
        let Some(sum) = self.acked.take() else { return };
        self.last_acked = sum.newest;
        let event = AckEvent {
            acked_bytes: sum.bytes,
            acked_packets: sum.packets,
            largest_sent_time: sum.newest.0,
            prior_in_flight: sum.prior_in_flight,
            bytes_in_flight: self.bytes_in_flight,
            app_limited: self.app_limited && !self.was_tested(sum.prior_in_flight),
            rtt_sample,
            rate: self.delivery.sample(now, rtt.min()),
            snapshot: sum.newest.1,
            total_delivered: self.delivery.delivered(),
            total_lost: self.delivery.lost(),
            rtt,
        };
        self.controller.on_ack(now, &event);
        self.refresh_rate(now, rtt);
        let train = self.controller.take_train();
        if train > 0 {
            self.pacer.lend(now, train);
        }
    }

    /// Notes a packet that was declared lost.
    pub(crate) fn packet_lost(&mut self, now: Instant, packet: &SentPacket) {
        let bytes = u64::from(packet.size);
        self.remove(bytes);
        // RFC 9000 §14.4: the loss of an MTU probe says nothing about congestion.
        if packet.mtu_probe {
            return;
        }
        let newest = (packet.time_sent, packet.delivered);
        let sum = self.lost.get_or_insert(LostSum { bytes: 0, packets: 0, newest });
        sum.bytes += bytes;
        sum.packets += 1;
        if newest.0 > sum.newest.0 {
            sum.newest = newest;
        }
        self.delivery.on_lost(bytes);
        let lost = LostPacket {
            bytes,
            sent_time: packet.time_sent,
            snapshot: packet.delivered,
            total_delivered: self.delivery.delivered(),
            total_lost: self.delivery.lost(),
        };
        self.controller.on_packet_lost(now, &lost);
    }

    /// Ends a detection of losses: tells the controller of the packets lost since the last call, after
    /// [`Flow::end_ack`] of the same ACK frame.
    pub(crate) fn end_loss(&mut self, now: Instant, persistent: bool, rtt: &Rtt) {
        let Some(sum) = self.lost.take() else { return };
        let event = CongestionEvent {
            cause: Cause::Loss,
            lost_bytes: sum.bytes,
            lost_packets: sum.packets,
            largest_sent_time: sum.newest.0,
            snapshot: sum.newest.1,
            persistent,
            bytes_in_flight: self.bytes_in_flight,
        };
        self.controller.on_congestion(now, &event);
        self.refresh_rate(now, rtt);
    }

    /// The peer reports `ce` more packets that met congestion, in the ACK frame that was ended last.
    pub(crate) fn on_ce(&mut self, now: Instant, ce: u64, rtt: &Rtt) {
        let event = CongestionEvent {
            cause: Cause::Ecn { ce },
            lost_bytes: 0,
            lost_packets: 0,
            largest_sent_time: self.last_acked.0,
            snapshot: self.last_acked.1,
            persistent: false,
            bytes_in_flight: self.bytes_in_flight,
        };
        self.controller.on_congestion(now, &event);
        self.refresh_rate(now, rtt);
    }

    /// A packet that was declared lost has arrived after all.
    pub(crate) fn on_spurious(&mut self, now: Instant, packet: &SentPacket, rtt: &Rtt) {
        if packet.mtu_probe {
            return;
        }
        let spurious = SpuriousLoss { bytes: u64::from(packet.size), sent_time: packet.time_sent };
        self.controller.on_spurious_loss(now, &spurious);
        self.refresh_rate(now, rtt);
    }

    /// Takes a packet out of the bytes in flight whose keys were discarded (RFC 9002 §6.4).
    pub(crate) fn packet_discarded(&mut self, packet: &SentPacket) {
        self.remove(u64::from(packet.size));
    }

    /// The largest size of a datagram changed.
    pub(crate) fn on_mtu(&mut self, now: Instant, max_datagram_size: u16, rtt: &Rtt) {
        self.controller.on_mtu(max_datagram_size);
        self.pacer.set_max_datagram_size(max_datagram_size);
        self.refresh_rate(now, rtt);
    }

    // Figures.

    /// Bytes in flight.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// The controller, for its figures.
    pub(crate) fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// The pacing rate in bytes per second.
    pub(crate) fn pacing_rate(&self) -> u64 {
        self.pacer.rate()
    }

    fn remove(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.bytes_in_flight, "a packet leaves the flight once");
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(bytes);
    }

    /// Whether `in_flight` bytes used enough of the window for it to grow: half of it in slow start, where
    /// it doubles, all of it but a datagram or two later.
    fn was_tested(&self, in_flight: u64) -> bool {
        let window = self.controller.window();
        let slow_start = self.controller.ssthresh().is_none_or(|ssthresh| window < ssthresh);
        if slow_start { in_flight * 2 >= window } else { in_flight + 2 * self.pacer.packet() > window }
    }

    fn refresh_rate(&mut self, now: Instant, rtt: &Rtt) {
        self.pacer.set_rate(now, pacing_rate(&*self.controller, rtt));
    }
}

/// What the controller asks for, or a window per round trip.
fn pacing_rate(controller: &dyn Controller, rtt: &Rtt) -> u64 {
    controller.pacing_rate().unwrap_or_else(|| Pacer::rate_for(controller.window(), rtt.smoothed()))
}

#[cfg(test)]
mod tests;
