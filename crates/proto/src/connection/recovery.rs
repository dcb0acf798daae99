//! Acknowledgements and losses: what the spaces find out is applied to the tuple and handed to the
//! owners of the frames (RFC 9002).

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{Ack, PacketKind};

use super::Connection;
use super::delivery::Fate;
use super::dispatch::FrameContext;
use crate::error::TransportError;
use crate::ext::AckFigures;
use crate::ids::SpaceId;
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
            window: tuple.congestion.controller().window(),
            mtu: tuple.mtu(),
            pace: tuple.congestion.controller().pacing_rate(),
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
            tuple.congestion.end_ack(now, None, 0, &tuple.rtt);
        }
        let tuple = &mut self.path.tuple;
        let sample = outcome.rtt_sample.filter(|sample| sample.tuple == tuple.id);
        let ce = outcome.ecn.map_or(0, |feedback| tuple.ecn.on_feedback(feedback));
        if !outcome.acked.is_empty() {
            tuple.ecn.on_progress();
        }
        tuple.congestion.end_ack(now, sample.map(|sample| sample.rtt), ce, &tuple.rtt);
        if ce > 0 {
            tuple.congestion.on_ce(now, ce, &tuple.rtt);
        }
        for (number, packet) in &outcome.spurious {
            self.stats.packets_spurious += 1;
            if let Some(log) = &mut self.log {
                log.push(now, LogEvent::PacketSpurious { space, number: *number, size: packet.size });
            }
            if packet.tuple == tuple.id {
                tuple.congestion.on_spurious(now, &packet.for_congestion(), &tuple.rtt);
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
            tuple.congestion.end_loss(now, false, &tuple.rtt);
        }
        let tuple = &mut self.path.tuple;
        tuple.congestion.end_loss(now, outcome.persistent_congestion, &tuple.rtt);
        for (_, packet) in &outcome.spurious {
            // What was sent again meanwhile need not be sent once more.
            self.deliver(space, &packet.frames, Fate::Acked);
        }
        self.note_figures(now, None);
    }

    fn on_packet_acked(&mut self, now: Instant, packet: &SentPacket) {
        // What left over a tuple that is gone counts for none.
        let Some(tuple) = self.path.tuple_mut(packet.tuple).filter(|_| packet.in_flight) else { return };
        tuple.congestion.packet_acked(&packet.for_congestion());
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
            tuple.congestion.packet_discarded(&packet.for_congestion());
        }
        if fell {
            self.stats.black_holes += 1;
            tuple.on_mtu_changed(now);
        }
    }

    fn on_packet_lost(&mut self, now: Instant, packet: &SentPacket) {
        let Some(tuple) = self.path.tuple_mut(packet.tuple) else { return };
        if packet.mtu_probe {
            tuple.congestion.packet_lost(now, &packet.for_congestion());
            tuple.mtud.on_probe_lost();
            return;
        }
        // Otherwise it is out of flight already.
        if !tuple.mtud.explains_loss(packet.size, packet.time_sent) {
            tuple.congestion.packet_lost(now, &packet.for_congestion());
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
                self.path.tuple.congestion.packet_discarded(&packet.for_congestion());
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
}
