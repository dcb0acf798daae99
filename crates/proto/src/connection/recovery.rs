//! Acknowledgements, losses and probes: what the spaces find out is applied to the tuple and handed to the
//! owners of the frames (RFC 9002).

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{Ack, PacketKind};

use super::Connection;
use super::delivery::Fate;
use super::dispatch::FrameContext;
use super::spaces::SpaceId;
use crate::config::TimerStyle;
use crate::error::TransportError;
use crate::ext::AckFigures;
use crate::log::LogEvent;
use crate::packet::{SentFrames, SentPacket};
use crate::space::{AckOutcome, LossContext, RttSample};

impl Connection {
    /// The peer acknowledged packets of a space.
    pub(super) fn on_ack(&mut self, cx: &FrameContext<'_>, ack: &Ack<'_>) -> Result<(), TransportError> {
        // The outcome is taken out for the call, so that the rest can be borrowed.
        let mut outcome = std::mem::take(&mut self.outcome);
        outcome.clear();
        let result = self.take_ack(cx, ack, &mut outcome);
        self.outcome = outcome;
        result
    }

    fn take_ack(
        &mut self,
        cx: &FrameContext<'_>,
        ack: &Ack<'_>,
        outcome: &mut AckOutcome,
    ) -> Result<(), TransportError> {
        let exponent = self.handshake.peer_parameters().map_or(3, |p| p.ack_delay_exponent);
        let Some(space) = self.space_mut(cx.space) else { return Ok(()) };
        space.on_ack(cx.now, ack, exponent, outcome)?;
        if let SpaceId::Data(path) = cx.space {
            let pto = self.pto_base();
            if let Some(keys) = self.handshake.one_rtt_keys_mut() {
                keys.on_ack(path, ack.largest.get(), cx.generation, cx.now, pto)?;
            }
        }
        // RFC 9002 §6.2.2.1: the server has seen a Handshake packet, and so validated the address.
        self.handshake_acked |= cx.space == SpaceId::Handshake && !outcome.acked.is_empty();
        if let Some(sample) = outcome.rtt_sample {
            self.on_rtt_sample(cx.now, cx.space, sample);
            if let Some(extension) = self.timestamps.as_mut().filter(|_| cx.space.is_data()) {
                extension.on_rtt_sample(sample);
            }
        }
        if outcome.acked.iter().any(|(_, packet)| packet.ack_eliciting) && self.peer_validated_address() {
            self.pto.reset();
            self.probes.cancel(cx.space);
        }
        self.detect_lost(cx.now, cx.space, outcome);
        self.apply(cx.now, cx.space, outcome);
        if cx.space.is_data() {
            self.tune_ack_frequency(cx.now, outcome);
        }
        Ok(())
    }

    /// Lets the extension see what the ACK frame has brought.
    fn tune_ack_frequency(&mut self, now: Instant, outcome: &AckOutcome) {
        let Some(extension) = &mut self.ack_frequency else { return };
        let (tuple, space) = (&self.path.tuple, &self.path.space);
        let figures = AckFigures {
            rtt: &tuple.rtt,
            window: tuple.flow.controller().window(),
            mtu: tuple.mtu(),
            pace: tuple.flow.controller().pacing_rate(),
            packets_sent: space.next_number(),
            packet_threshold: space.packet_threshold(),
        };
        let bytes = outcome.acked.iter().map(|(_, packet)| u64::from(packet.size)).sum();
        extension.on_ack(now, bytes, &figures);
    }

    fn on_rtt_sample(&mut self, now: Instant, space: SpaceId, sample: RttSample) {
        // RFC 9002 §5.3: the delay of the handshake's acknowledgements means nothing.
        let ack_delay = if space.is_data() { sample.ack_delay } else { Duration::ZERO };
        let max_ack_delay = self.handshake.is_confirmed().then(|| self.peer_max_ack_delay());
        if let Some(tuple) = self.path.tuple_mut(sample.tuple) {
            tuple.rtt.update(now, sample.rtt, ack_delay, max_ack_delay);
        }
    }

    fn detect_lost(&mut self, now: Instant, space: SpaceId, outcome: &mut AckOutcome) {
        let rtt = self.path.tuple.rtt.clone();
        let cx = LossContext { rtt: &rtt, max_ack_delay: self.peer_max_ack_delay() };
        if let Some(space) = self.space_mut(space) {
            space.detect_lost(now, &cx, outcome);
        }
    }

    /// Applies what an ACK or a loss timer brought to the tuple, and hands the tokens of the frames back.
    fn apply(&mut self, now: Instant, space: SpaceId, outcome: &AckOutcome) {
        for (_, packet) in &outcome.acked {
            self.on_packet_acked(now, packet);
            self.deliver(space, &packet.frames, Fate::Acked);
        }
        // Whether the path has become narrower must be known before the losses are taken for congestion, and
        // what was too large must be out of flight before the controller looks.
        self.detect_black_hole(now, outcome);
        for tuple in self.path.others_mut() {
            tuple.flow.end_ack(now, None, 0, &tuple.rtt);
        }
        let tuple = &mut self.path.tuple;
        let sample = outcome.rtt_sample.filter(|sample| sample.tuple == tuple.id);
        let ce = outcome.ecn.map_or(0, |feedback| tuple.ecn.on_feedback(feedback));
        if !outcome.acked.is_empty() {
            tuple.ecn.on_progress();
        }
        tuple.flow.end_ack(now, sample.map(|sample| sample.rtt), ce, &tuple.rtt);
        if ce > 0 {
            tuple.flow.on_ce(now, ce, &tuple.rtt);
        }
        for (number, packet) in &outcome.spurious {
            self.stats.packets_spurious += 1;
            if let Some(log) = &mut self.log {
                log.push(now, LogEvent::PacketSpurious { space, number: *number, size: packet.size });
            }
            if packet.tuple == tuple.id {
                tuple.flow.on_spurious(now, packet, &tuple.rtt);
            }
        }
        for (number, packet) in &outcome.lost {
            let SentPacket { size, mtu_probe, .. } = *packet;
            self.note(now, LogEvent::PacketLost { space, number: *number, size, mtu_probe });
            self.on_packet_lost(now, packet);
            if !packet.repeated {
                self.deliver(space, &packet.frames, Fate::Lost);
            }
        }
        for tuple in self.path.others_mut() {
            tuple.flow.end_loss(now, false, &tuple.rtt);
        }
        let tuple = &mut self.path.tuple;
        tuple.flow.end_loss(now, outcome.persistent_congestion, &tuple.rtt);
        for (_, packet) in &outcome.spurious {
            // What was sent again meanwhile need not be sent once more.
            self.deliver(space, &packet.frames, Fate::Acked);
        }
        self.note_figures(now, None);
    }

    fn on_packet_acked(&mut self, now: Instant, packet: &SentPacket) {
        // What left over a tuple that is gone counts for none.
        let Some(tuple) = self.path.tuple_mut(packet.tuple).filter(|_| packet.in_flight) else { return };
        tuple.flow.packet_acked(packet);
        if packet.mtu_probe {
            tuple.mtud.on_probe_acked(packet.size);
            tuple.on_mtu_changed(now);
        } else {
            tuple.mtud.on_packet_acked(packet.size, packet.time_sent);
        }
    }

    fn detect_black_hole(&mut self, now: Instant, outcome: &AckOutcome) {
        let tuple = &mut self.path.tuple;
        let here = |packet: &&SentPacket| packet.tuple == tuple.id && !packet.mtu_probe;
        let lost = || outcome.lost.iter().map(|(_, packet)| packet).filter(here);
        for packet in lost() {
            tuple.mtud.on_small_lost(packet.size, packet.time_sent);
        }
        let mut fell = false;
        for packet in lost() {
            fell |= tuple.mtud.on_packet_lost(now, packet.size, packet.time_sent);
        }
        for packet in lost().filter(|packet| tuple.mtud.explains_loss(packet.size, packet.time_sent)) {
            tuple.flow.packet_discarded(packet);
        }
        if fell {
            self.stats.black_holes += 1;
            tuple.on_mtu_changed(now);
        }
    }

    fn on_packet_lost(&mut self, now: Instant, packet: &SentPacket) {
        let Some(tuple) = self.path.tuple_mut(packet.tuple) else { return };
        if packet.mtu_probe {
            tuple.flow.packet_lost(now, packet);
            tuple.mtud.on_probe_lost();
            return;
        }
        // Otherwise it is out of flight already.
        if !tuple.mtud.explains_loss(packet.size, packet.time_sent) {
            tuple.flow.packet_lost(now, packet);
        }
        self.stats.packets_lost += 1;
        self.stats.bytes_lost += u64::from(packet.size);
    }

    /// Takes all packets of a space out of flight, because its keys are gone or a Retry made them void. Returns the
    /// tokens of their frames.
    pub(super) fn forget_sent(&mut self, space: SpaceId) -> Vec<SentFrames> {
        let mut forgotten = Vec::new();
        if let Some(space) = self.space_mut(space) {
            forgotten.extend(space.discard());
        }
        let mut frames = Vec::new();
        for (_, packet) in forgotten {
            if packet.in_flight && packet.tuple == self.path.tuple.id {
                self.path.tuple.flow.packet_discarded(&packet);
            }
            frames.push(packet.frames);
        }
        frames
    }

    /// The peer's keys of a handshake level are not needed any more (RFC 9001 §4.9).
    pub(super) fn discard_space(&mut self, now: Instant, space: SpaceId) {
        let discarded = match space {
            SpaceId::Initial => self.handshake.discard_initial(),
            SpaceId::Handshake => self.handshake.discard_handshake(),
            SpaceId::Data(_) => false,
        };
        if !discarded {
            return;
        }
        self.forget_sent(space);
        match space {
            SpaceId::Initial => self.spaces.initial = None,
            _ => self.spaces.handshake = None,
        }
        let of_initial = space == SpaceId::Initial;
        let kind = if of_initial { PacketKind::Initial } else { PacketKind::Handshake };
        self.note(now, LogEvent::KeysDiscarded(kind));
        self.probes.cancel(space);
        // RFC 9002 §6.2.2: the timeout starts anew.
        self.pto.reset();
        self.pto_base_time = now;
    }

    /// Whether the peer is known to have validated this end's address, so that it can answer
    /// (RFC 9002 §6.2.2.1).
    pub(super) fn peer_validated_address(&self) -> bool {
        self.side.is_server() || self.handshake.is_confirmed() || self.handshake_acked
    }

    /// The probe timeout without backoff (RFC 9002 §6.2.1).
    pub(super) fn pto_base(&self) -> Duration {
        self.path.tuple.rtt.pto_base() + self.peer_max_ack_delay()
    }

    /// The longest delay of acknowledgements that the peer promised, or was asked for.
    fn peer_max_ack_delay(&self) -> Duration {
        let announced = || self.handshake.peer_parameters().map(|p| p.max_ack_delay);
        let asked = self.ack_frequency.as_ref().and_then(|extension| extension.peer_max_ack_delay());
        asked.or_else(announced).unwrap_or(Duration::from_millis(25))
    }

    /// How long to wait for an acknowledgement in a space.
    fn pto_delay(&self, space: SpaceId) -> Duration {
        let plain = match space {
            SpaceId::Data(_) => self.pto_base(),
            // RFC 9002 §6.2.1: packets of the handshake are acknowledged without delay.
            _ => self.path.tuple.rtt.pto_base(),
        };
        let patience = match self.handshake.is_complete() {
            true => self.idle.timeout(),
            false => Some(self.config.handshake_timeout),
        };
        self.pto.delay(plain, patience)
    }

    /// When something should have been acknowledged, and in which space a probe is due then.
    pub(super) fn pto_deadline(&self) -> Option<(Instant, SpaceId)> {
        // RFC 9002 §6.2.2.1: a server that may not send waits for the client.
        if !self.has_credit() {
            return None;
        }
        let due = SpaceId::ALL
            .into_iter()
            .filter_map(|id| Some((self.space_pto_deadline(id)?.max(self.pto_base_time), id)))
            .min();
        due.or_else(|| self.anti_deadlock_deadline())
    }

    fn space_pto_deadline(&self, id: SpaceId) -> Option<Instant> {
        // RFC 9002 §6.2.1: application data is probed when the handshake is confirmed.
        if id.is_data() && !self.handshake.is_confirmed() {
            return None;
        }
        let space = self.space(id)?;
        let deadline = space.pto_deadline(self.pto_delay(id))?;
        if !id.is_data() {
            return Some(deadline);
        }
        let reminder = self.pto.next_reminder(self.pto_base_time, self.pto_base());
        let stalled = self.stall_deadline();
        Some(reminder.unwrap_or_else(|| stalled.map_or(deadline, |stalled| stalled.min(deadline))))
    }

    /// When the acknowledgements of a steady flow have ceased.
    ///
    /// RFC 9002 §6.2.1 starts the probe timeout anew with every packet that is sent. A sender with a full window
    /// that keeps sending while the last acknowledgements trickle in so learns of a break a round trip late. The
    /// oldest packet tells earlier: all before it were acknowledged, so its own acknowledgement is the next one,
    /// and is expected a round trip after it was sent, as long as the latest one. The flow may become slower
    /// meanwhile, and an acknowledgement may be lost: for that there is a quarter of a round trip.
    fn stall_deadline(&self) -> Option<Instant> {
        Some(self.next_ack_expected()? + self.path.tuple.rtt.smoothed() / STALL_PATIENCE)
    }

    /// Whether the acknowledgements of a steady flow are late, or probes have asked for them. The path may have
    /// become narrower: until they come, datagrams have the size that every path carries. Those bring the news within a
    /// round trip, where large ones would be lost, and cost a few headers if there is no news.
    pub(super) fn is_ack_late(&self, now: Instant) -> bool {
        let late = |at: Instant| at + self.path.tuple.rtt.smoothed() / LATE_PATIENCE <= now;
        let probed = self.config.timers == TimerStyle::OncePerRtt && self.pto.count() > 0;
        self.handshake.is_confirmed() && (probed || self.next_ack_expected().is_some_and(late))
    }

    /// When the oldest packet of application data should be acknowledged, if acknowledgements go on as they came
    /// in the last round trip; `None` if nothing can be said.
    fn next_ack_expected(&self) -> Option<Instant> {
        let rtt = &self.path.tuple.rtt;
        if self.config.timers == TimerStyle::Classic || self.pto.count() > 0 || !rtt.has_sample() {
            return None;
        }
        // The steps between samples show the delays of acknowledgements as well, if there were any.
        let uneven = rtt.jitter().max(self.peer_max_ack_delay());
        Some(self.path.space.oldest_unacked()? + rtt.latest().max(rtt.smoothed()) + uneven)
    }

    /// When a probe is due although nothing is in flight that could be probed.
    fn anti_deadlock_deadline(&self) -> Option<(Instant, SpaceId)> {
        // Bytes of the handshake may wait for room in a window that is full of application data, which is not
        // acknowledged before the handshake is complete.
        let early = [SpaceId::Initial, SpaceId::Handshake];
        let starved = early.into_iter().find(|&space| self.can_send(space) && self.wants_to_send(space));
        let space = match starved {
            Some(space) => space,
            None if self.peer_validated_address() => return None,
            // RFC 9002 §6.2.2.1: a client keeps sending while its server may be waiting for credit.
            None if self.handshake.handshake_keys().is_some() => SpaceId::Handshake,
            None => SpaceId::Initial,
        };
        Some((self.pto_base_time + self.pto_delay(space), space))
    }

    /// When a packet will be lost by the time threshold.
    pub(super) fn loss_deadline(&self) -> Option<Instant> {
        SpaceId::ALL.into_iter().filter_map(|id| self.space(id)?.loss_deadline()).min()
    }

    /// The loss timer of a space has rung.
    pub(super) fn on_loss_timeout(&mut self, now: Instant) {
        for id in SpaceId::ALL {
            if self.space(id).and_then(|s| s.loss_deadline()).is_some_and(|at| at <= now) {
                let mut outcome = std::mem::take(&mut self.outcome);
                outcome.clear();
                self.detect_lost(now, id, &mut outcome);
                self.apply(now, id, &outcome);
                self.outcome = outcome;
            }
        }
    }

    /// A probe timeout has passed (RFC 9002 §6.2.4).
    pub(super) fn on_pto(&mut self, now: Instant, space: SpaceId) {
        self.pto_base_time = now;
        if !self.pto.is_due(now) {
            return self.probes.demand_reminder();
        }
        self.stats.pto_count += 1;
        self.pto.on_timeout(now);
        self.note(now, LogEvent::ProbeTimeout { space, count: self.pto.count() });
        // In the handshake the timeouts may come from a guess that is too short, and prove no break of the path.
        let reminds = self.handshake.is_confirmed() && self.pto.reminds();
        if reminds {
            self.pto.begin_reminders(now + self.pto_delay(space));
        }
        // Without an RTT sample the timeout is a guess, and may well be too short: one probe is enough. Where
        // reminders follow, they take the place of the second one.
        let probes = if reminds || !self.path.tuple.rtt.has_sample() { 1 } else { PROBES };
        for id in SpaceId::ALL {
            // The spaces of the handshake share a datagram, so they are probed together.
            let shares = !id.is_data()
                && !space.is_data()
                && self.space(id).is_some_and(|space| space.has_ack_eliciting_in_flight());
            if id == space || shares {
                self.probes.demand(id, probes);
                self.queue_probe_data(id);
            }
        }
        let ecn = &mut self.path.tuple.ecn;
        // Suspicion of marks that used to arrive ends nothing, and packets of the peer may end the silence next.
        let patience = ECN_PATIENCE_PTOS - u32::from(ecn.is_capable());
        if self.pto.count() > patience {
            ecn.on_persistent_loss();
        }
    }

    /// A packet arrives. If it breaks a silence in which probes went unanswered, the path is back, and the probe
    /// that the backoff has put off is due now.
    ///
    /// Where packets keep coming while nothing gets through the other way, the backoff holds.
    pub(super) fn note_return_of_path(&mut self, now: Instant) {
        // In the handshake the timeouts may come from a guess that is too short, and prove no silence.
        if self.config.timers == TimerStyle::OncePerRtt
            && self.handshake.is_confirmed()
            && self.pto.count() >= RETURN_PTOS
            && self.idle.since_received(now) > self.pto_base()
        {
            self.pto.on_return();
        }
    }

    /// Gives the next probe something useful to say (RFC 9002 §6.2.4): data that waits for room in the window, or what
    /// the oldest packets said.
    ///
    /// What waits is of use whatever became of the packets in flight. What they said is not, if they have arrived: a
    /// radio may only have stopped. If they are lost, the acknowledgement of the probe tells that.
    fn queue_probe_data(&mut self, space: SpaceId) {
        if space.is_data() {
            // Until the client knows that the handshake is done, it neither probes its data nor ends its handshake.
            self.handshake.on_done_lost();
            if self.streams.has_data_to_send() {
                return;
            }
        }
        self.repeat_oldest(space);
    }

    /// Lets the next probe repeat what the oldest packets of a space said.
    fn repeat_oldest(&mut self, space: SpaceId) {
        let mut frames = Vec::new();
        if let Some(space) = self.space_mut(space) {
            let oldest = space.take_for_probe().take(PROBE_PACKETS);
            frames.extend(oldest.flat_map(|packet| packet.frames.iter().cloned()));
        }
        self.deliver(space, &frames, Fate::Probed);
    }
}

/// How many probe packets a probe timeout asks for (RFC 9002 §6.2.4).
const PROBES: u8 = 2;

/// The part of a round trip by which an acknowledgement may be late before a probe asks for it, and before
/// datagrams become small.
const STALL_PATIENCE: u32 = 4;
const LATE_PATIENCE: u32 = 16;

/// After so many probe timeouts in a row, the next packet that arrives is taken for the return of the path.
const RETURN_PTOS: u32 = 2;

/// The packets whose contents a probe repeats.
const PROBE_PACKETS: usize = 2;

/// After so many probe timeouts in a row, ECN marks are suspected of being the reason (RFC 9000 §13.4.2).
const ECN_PATIENCE_PTOS: u32 = 2;
