//! The congestion state of a tuple: what is in flight, and whether more may be sent.

mod figures;
mod resuming;

use std::time::Duration;

use fulmar_base::Instant;

use super::bridge::{Bridge, Delivery};
use super::capacity::Capacity;
use super::careful_resume::CarefulResume;
use super::delivery_rate::DeliveryRate;
use super::pacer::Pacer;
use super::{
    AckEvent, Cause, CongestionEvent, Controller, ControllerFactory, CoupledShare, DeliverySnapshot,
    LostPacket, Sent, SpuriousLoss,
};
use crate::packed::packed_around;
use crate::rtt::Rtt;

/// The congestion state of one tuple: bytes in flight, controller, pacer, delivery rate.
///
/// Packets are reported one by one and summed; the `end_` methods tell the controller of the sum, once for
/// an ACK frame. Packets that do not count in flight are never reported here.
#[derive(Debug)]
pub(crate) struct CongestionState {
    controller: Box<dyn Controller>,
    pacer: Pacer,
    delivery: DeliveryRate,
    capacity: Capacity,
    /// What an earlier connection knew, until that is used or known to be of no use.
    resume: Option<Box<CarefulResume>>,
    bytes_in_flight: u64,
    /// The largest window so far, as it was after acknowledgements and losses and when packets left.
    window_max: u64,
    /// What may leave while the controller conserves what is under way.
    conserved: Option<u64>,
    /// Bytes that the ACK frame which was ended last acknowledged, until its losses are known, too.
    arrived: u64,
    /// Whether the last round of sending ended because there was nothing more to send.
    app_limited: bool,
    acked: Option<AckedSum>,
    /// Losses are rare.
    lost: Option<Box<LostSum>>,
    /// When the newest packet acknowledged by the last ACK frame was sent, and the state then. While a frame is looked at, the newest of
    /// those of it that were seen.
    last_acked: (Instant, DeliverySnapshot),
    /// By the last sample, in bytes per second.
    delivery_rate: u64,
    /// What may be in flight beside the window, for controllers that begin without a pace of their own.
    bridge: Option<Box<Bridge>>,
}

packed_around!(CongestionState {
    pacer,
    delivery,
    capacity,
    bytes_in_flight,
    window_max,
    conserved,
    arrived,
    app_limited,
    last_acked,
    delivery_rate,
    bridge,
} empty { resume, acked, lost } around { controller: Box<dyn Controller> });

/// A packet that counts in flight, as far as congestion control needs to know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketInFlight {
    /// Its size, as [`CongestionState::on_sent`] was told.
    pub(crate) bytes: u64,
    /// When it was sent.
    pub(crate) sent_time: Instant,
    /// What [`CongestionState::on_sent`] returned.
    pub(crate) snapshot: DeliverySnapshot,
    /// Whether it probed for a larger datagram size.
    pub(crate) mtu_probe: bool,
}

/// The packets that one ACK frame acknowledges.
#[derive(Debug)]
struct AckedSum {
    bytes: u64,
    packets: u64,
    prior_in_flight: u64,
}

/// The packets that were found lost together.
#[derive(Debug)]
struct LostSum {
    bytes: u64,
    packets: u64,
    newest: (Instant, DeliverySnapshot),
}

impl CongestionState {
    /// A tuple on which nothing was sent.
    pub(crate) fn new(
        now: Instant,
        factory: &dyn ControllerFactory,
        max_datagram_size: u16,
        rtt: &Rtt,
    ) -> Self {
        let controller = factory.build(now, max_datagram_size);
        let rate = pacing_rate(&*controller, rtt);
        let bridge = controller.pacing_rate().is_none().then(|| Box::new(Bridge::new(now)));
        let mut pacer = Pacer::new(now, rate, max_datagram_size);
        pacer.set_burst(now, controller.burst());
        Self {
            pacer,
            controller,
            delivery: DeliveryRate::new(now),
            capacity: Capacity::new(now),
            resume: None,
            bytes_in_flight: 0,
            window_max: 0,
            conserved: None,
            arrived: 0,
            app_limited: false,
            acked: None,
            lost: None,
            last_acked: (now, DeliverySnapshot::NONE),
            delivery_rate: 0,
            bridge,
        }
    }

    /// Whether nothing is under way.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.resume.is_none() && self.acked.is_none() && self.lost.is_none()
    }

    // Sending.

    /// The bytes that the window leaves, as far as the controller need not conserve what is under way. Probes may exceed
    /// it (RFC 9002 §7.5).
    pub(crate) fn window_left(&self) -> u64 {
        let left = self.window().saturating_sub(self.bytes_in_flight);
        // Two packets are always under way: without any, nothing would arrive.
        let conserved = self.conserved.filter(|_| self.bytes_in_flight >= 2 * self.pacer.packet());
        conserved.map_or(left, |conserved| left.min(conserved))
    }

    /// The bytes that the pacer lets leave now.
    pub(crate) fn pacing_budget(&mut self, now: Instant) -> u64 {
        self.pacer.budget(now)
    }

    /// When the pacer will let `bytes` leave, if it does not now.
    pub(crate) fn pacing_time(&mut self, now: Instant, bytes: u64) -> Instant {
        self.pacer.next_time(now, bytes)
    }

    /// A packet that counts in flight has left. The snapshot that this returns belongs into its record.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, packet_number: u64, size: u16) -> DeliverySnapshot {
        let bytes = u64::from(size);
        let snapshot = self.delivery.on_sent(now, bytes, self.bytes_in_flight);
        let begins = self.bytes_in_flight == 0;
        self.bytes_in_flight += bytes;
        self.conserved = self.conserved.map(|conserved| conserved.saturating_sub(bytes));
        self.pacer.on_sent(now, bytes);
        let (bytes_in_flight, app_limited) = (self.bytes_in_flight, self.app_limited);
        self.controller.on_sent(now, &Sent { packet_number, bytes, bytes_in_flight, app_limited });
        if let Some(resume) = &mut self.resume {
            let step = resume.on_sent(now, bytes, bytes_in_flight, self.pacer.packet());
            self.apply_resume(now, step);
        }
        if begins {
            if let Some(bridge) = &mut self.bridge {
                bridge.on_begin(now);
            }
            self.refresh_busy(now);
        }
        snapshot
    }

    /// Ends a round of sending. `nothing_left` says whether it ended because there was nothing more to
    /// send, and not because the window, the pacer or something else on this side stopped it.
    ///
    /// Returns whether there is room for more after all, because the flow resumes an earlier one.
    pub(crate) fn end_round(&mut self, now: Instant, nothing_left: bool, rtt: &Rtt) -> bool {
        self.app_limited = nothing_left && self.window_left() > 0;
        if self.app_limited {
            self.delivery.on_app_limited(self.bytes_in_flight);
        }
        let (in_flight, window) = (self.bytes_in_flight, self.controller.window());
        let resume = self.resume.as_mut().filter(|_| !nothing_left);
        let step = resume.and_then(|resume| resume.on_blocked(now, in_flight, window, rtt));
        self.apply_resume(now, step);
        if step.is_some() {
            self.refresh_rate(now, rtt);
        }
        self.window_max = self.window_max();
        step.is_some()
    }

    /// What a coupling of the paths leaves to the controller.
    pub(crate) fn couple(&mut self, share: CoupledShare) {
        self.controller.couple(share);
    }

    // The fate of packets.

    /// A packet was acknowledged.
    pub(crate) fn packet_acked(&mut self, packet: &PacketInFlight) {
        let bytes = packet.bytes;
        if self.acked.is_none() || packet.sent_time > self.last_acked.0 {
            self.last_acked = (packet.sent_time, packet.snapshot);
        }
        let prior_in_flight = self.bytes_in_flight;
        let sum = self.acked.get_or_insert(AckedSum { bytes: 0, packets: 0, prior_in_flight });
        sum.bytes += bytes;
        sum.packets += 1;
        self.delivery.on_acked(bytes, packet.sent_time, &packet.snapshot);
        self.remove(bytes);
        if let Some(resume) = &mut self.resume {
            resume.on_arrived(bytes, packet.sent_time);
        }
    }

    /// An ACK frame ends: the controller hears of the packets acknowledged since the last call. If the frame has shown a
    /// round-trip time, it is `rtt_sample`, and the peer has kept the acknowledgement for `ack_delay` of it;
    /// it had come by `detour` sooner by the shortest way back. The peer reports
    /// `ce` more packets to be marked.
    pub(crate) fn end_ack(
        &mut self,
        now: Instant,
        rtt_sample: Option<Duration>,
        [ack_delay, detour]: [Duration; 2],
        ce: u64,
        rtt: &Rtt,
    ) {
        let Some(sum) = self.acked.take() else { return };
        let (largest_sent_time, snapshot) = self.last_acked;
        self.arrived = sum.bytes;
        let rate = self.delivery.sample(now, rtt.min());
        self.delivery_rate = rate.as_ref().map_or(self.delivery_rate, |sample| sample.delivery_rate);
        let event = AckEvent {
            acked_bytes: sum.bytes,
            acked_packets: sum.packets,
            ce_packets: ce,
            largest_sent_time,
            prior_in_flight: sum.prior_in_flight,
            bytes_in_flight: self.bytes_in_flight,
            app_limited: self.app_limited && !self.was_tested(sum.prior_in_flight),
            rtt_sample,
            ack_delay,
            detour,
            rate,
            snapshot,
            total_delivered: self.delivery.delivered(),
            total_lost: self.delivery.lost(),
            rtt,
        };
        self.follow_stops(now, &event);
        self.controller.on_ack(now, &event);
        self.capacity.on_ack(now, &event);
        let in_flight = self.bytes_in_flight;
        let resume = self.resume.as_mut();
        let step = resume.and_then(|resume| resume.on_ack(now, largest_sent_time, in_flight, rtt));
        self.apply_resume(now, step);
        self.refresh_rate(now, rtt);
    }

    /// Looks for stops of the path, before the controller hears of the acknowledgement.
    fn follow_stops(&mut self, now: Instant, ack: &AckEvent<'_>) {
        let Some(bridge) = &mut self.bridge else { return };
        let delivery = Delivery {
            window: self.controller.window(),
            pace: self.pacer.rate(),
            acked_bytes: ack.acked_bytes,
            prior_delivered: ack.snapshot.delivered,
            total_delivered: ack.total_delivered,
            min_rtt: ack.rtt.min(),
            smoothed_rtt: ack.rtt.smoothed(),
        };
        bridge.on_ack(now, &delivery);
    }

    /// A packet was declared lost.
    pub(crate) fn packet_lost(&mut self, now: Instant, packet: &PacketInFlight) {
        let bytes = packet.bytes;
        self.remove(bytes);
        // RFC 9000 §14.4: the loss of an MTU probe says nothing about congestion.
        if packet.mtu_probe {
            return;
        }
        let newest = (packet.sent_time, packet.snapshot);
        let sum = self.lost.get_or_insert_with(|| Box::new(LostSum { bytes: 0, packets: 0, newest }));
        sum.bytes += bytes;
        sum.packets += 1;
        if newest.0 > sum.newest.0 {
            sum.newest = newest;
        }
        self.delivery.on_lost(bytes);
        let lost = LostPacket {
            bytes,
            sent_time: packet.sent_time,
            snapshot: packet.snapshot,
            total_delivered: self.delivery.delivered(),
            total_lost: self.delivery.lost(),
        };
        self.controller.on_packet_lost(now, &lost);
    }

    /// A detection of losses ends: the controller hears of the packets lost since the last call. Comes after
    /// [`CongestionState::end_ack`] of the same ACK frame. Then the controller also says whether a packet train is due.
    pub(crate) fn end_loss(&mut self, now: Instant, persistent: bool, rtt: &Rtt) {
        if let Some(sum) = self.lost.take() {
            self.report_losses(now, &sum, persistent, rtt);
        }
        self.window_max = self.window_max();
        self.conserve();
        let train = self.controller.take_packet_train();
        if train > 0 {
            self.pacer.lend(now, train, rtt.smoothed());
        }
    }

    /// What has arrived may leave again. The first lost packet may be sent again in any case.
    fn conserve(&mut self) {
        let arrived = std::mem::take(&mut self.arrived);
        let conserved =
            self.conserved.map_or(arrived.max(self.pacer.packet()), |left| left.saturating_add(arrived));
        self.conserved = self.controller.conserves().then_some(conserved);
    }

    fn report_losses(&mut self, now: Instant, sum: &LostSum, persistent: bool, rtt: &Rtt) {
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
        if let Some(bridge) = self.bridge.as_mut().filter(|_| persistent) {
            bridge.forget();
        }
        let by_chance = self.controller.took_for_chance() && !persistent;
        let step = self.resume.as_deref_mut().and_then(|resume| resume.on_losses(by_chance));
        self.apply_resume(now, step);
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
        self.resume_after_congestion(now);
        self.refresh_rate(now, rtt);
    }

    /// A packet that was declared lost has arrived after all.
    pub(crate) fn on_spurious(&mut self, now: Instant, packet: &PacketInFlight, rtt: &Rtt) {
        self.take_back_loss(now, packet, false, rtt);
    }

    /// A packet that was declared lost was dropped for its mark.
    pub(crate) fn on_dropped_for_mark(&mut self, now: Instant, packet: &PacketInFlight, rtt: &Rtt) {
        self.take_back_loss(now, packet, true, rtt);
    }

    fn take_back_loss(&mut self, now: Instant, packet: &PacketInFlight, dropped_for_mark: bool, rtt: &Rtt) {
        if packet.mtu_probe {
            return;
        }
        let spurious = SpuriousLoss { bytes: packet.bytes, sent_time: packet.sent_time, dropped_for_mark };
        self.controller.on_spurious_loss(now, &spurious);
        self.refresh_rate(now, rtt);
    }

    /// Takes a packet out of the bytes in flight whose keys were discarded (RFC 9002 §6.4).
    pub(crate) fn packet_discarded(&mut self, packet: &PacketInFlight) {
        self.remove(packet.bytes);
        if let Some(resume) = &mut self.resume {
            resume.on_arrived(packet.bytes, packet.sent_time);
        }
    }

    /// What is in flight counts no more: it left from another address, and its acknowledgements count nowhere.
    pub(crate) fn forget_flight(&mut self) {
        self.bytes_in_flight = 0;
    }

    /// The largest size of a datagram changed.
    pub(crate) fn on_mtu(&mut self, now: Instant, max_datagram_size: u16, rtt: &Rtt) {
        self.controller.on_mtu(max_datagram_size);
        self.pacer.set_max_datagram_size(max_datagram_size);
        self.refresh_rate(now, rtt);
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

    /// Tells the pacer whether acknowledgements set the pace. A rise that doubles the window in each round trip needs the bursts
    /// that they ask for.
    fn refresh_busy(&mut self, now: Instant) {
        self.pacer.set_busy(now, self.bytes_in_flight > 0 && !self.controller.is_searching());
    }

    fn refresh_rate(&mut self, now: Instant, rtt: &Rtt) {
        self.refresh_busy(now);
        self.pacer.set_rate(now, pacing_rate(&*self.controller, rtt));
        self.pacer.set_burst(now, self.controller.burst());
    }
}

/// What the controller asks for, or a window per round trip.
fn pacing_rate(controller: &dyn Controller, rtt: &Rtt) -> u64 {
    controller.pacing_rate().unwrap_or_else(|| Pacer::rate_for(controller.window(), rtt.smoothed()))
}

#[cfg(test)]
mod tests;
