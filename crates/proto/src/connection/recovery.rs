//! Acknowledgements and losses: what the spaces find out is applied to the tuples and handed to the
//! owners of the frames (RFC 9002).

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::Ack;

use super::Connection;
use super::ack_elsewhere::note_way_back;
use super::delivery::{Fate, Owners};
use super::dispatch::FrameContext;
use super::extensions::Extensions;
use super::handshake::HandshakeState;
use super::marked_packets::MarkedPackets;
use super::stats::Counters;
use crate::error::TransportError;
use crate::ext::AckFigures;
use crate::ids::SpaceId;
use crate::log::{ConnectionLog, LogEvent};
use crate::packet::{SentPacket, SymbolId};
use crate::path::{Path, Paths, Pending, Tuples};
use crate::space::{AckOutcome, LossContext, Losses, NumberSpace, RttSample};

/// The longest delay of acknowledgements that a peer promises before its parameters are known (RFC 9000 §18.2).
const DEFAULT_MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// The packets whose contents a probe repeats.
const PROBE_PACKETS: usize = 2;

/// The longest delay of acknowledgements that the peer promised, or was asked for.
pub(super) fn peer_max_ack_delay(handshake: &HandshakeState, extensions: &Extensions) -> Duration {
    let asked = extensions.ack_frequency.as_ref().and_then(|extension| extension.peer_max_ack_delay());
    let announced = || handshake.peer_parameters().map(|p| p.max_ack_delay);
    asked.or_else(announced).unwrap_or(DEFAULT_MAX_ACK_DELAY)
}

/// The probe timeout of a path without backoff (RFC 9002 §6.2.1).
pub(super) fn pto_base(path: &Path, handshake: &HandshakeState, extensions: &Extensions) -> Duration {
    path.tuple.rtt.pto_base() + peer_max_ack_delay(handshake, extensions)
}

/// The longest probe timeout of all paths without backoff: what was sent to this end so long ago has arrived, whichever path it took.
pub(super) fn pto_base_max(paths: &Paths, handshake: &HandshakeState, extensions: &Extensions) -> Duration {
    paths.iter().map(|path| pto_base(path, handshake, extensions)).max().unwrap_or_default()
}

/// What recovery changes, borrowed once.
pub(super) struct Recovery<'c> {
    pub(super) now: Instant,
    pub(super) owners: Owners<'c>,
    pub(super) stats: &'c mut Counters,
    pub(super) log: Option<&'c mut ConnectionLog>,
}

impl Connection {
    /// Borrows what recovery changes.
    pub(super) fn recovery(&mut self, now: Instant) -> Recovery<'_> {
        Recovery {
            now,
            owners: Owners {
                handshake: &mut self.handshake,
                paths: &mut self.paths,
                tokens: &mut self.address_tokens,
                extensions: &mut self.extensions,
                streams: &mut self.streams,
            },
            stats: &mut self.telemetry.stats,
            log: self.telemetry.log.as_deref_mut(),
        }
    }
}

/// A packet number space and the tuples over which its packets left.
pub(super) fn space_and_tuples<'p>(
    paths: &'p mut Paths,
    handshake: &'p mut HandshakeState,
    space: SpaceId,
) -> Option<(&'p mut NumberSpace, Tuples<'p>)> {
    match space {
        SpaceId::Data(path) => Some(paths.get_mut(path)?.split()),
        _ => Some((handshake.spaces.get_mut(space)?, paths.primary_mut().split().1)),
    }
}

/// The path that packets of a space take.
fn path_of(paths: &mut Paths, space: SpaceId) -> Option<&mut Path> {
    match space {
        SpaceId::Data(path) => paths.get_mut(path),
        _ => Some(paths.primary_mut()),
    }
}

impl Recovery<'_> {
    /// The peer acknowledged packets of a space, in a packet with this context, which may be of another path.
    pub(super) fn on_ack(
        &mut self,
        space: SpaceId,
        ack: &Ack<'_>,
        cx: &FrameContext<'_>,
    ) -> Result<(), TransportError> {
        let now = self.now;
        let Owners { handshake, paths, extensions, .. } = &mut self.owners;
        let exponent = handshake.peer_parameters().map_or(3, |p| p.ack_delay_exponent);
        let mut outcome = AckOutcome::default();
        let Some((numbers, mut tuples)) = space_and_tuples(paths, handshake, space) else { return Ok(()) };
        let (used, mut marked) = (tuples.used.id, MarkedPackets::default());
        numbers.on_ack(now, ack, exponent, &mut outcome, |_, packet| {
            marked.add(packet, used);
            // What left over a tuple that is gone counts for none.
            if let Some(tuple) = tuples.get(packet.tuple).filter(|_| packet.in_flight) {
                tuple.on_packet_acked(now, packet);
            }
            if let Some(symbol) = packet.symbol
                && let Some(sender) = extensions.fec_sender()
            {
                sender.on_acked(symbol);
            }
        })?;
        outcome.ecn = outcome.ecn.filter(|feedback| marked.concern(feedback));
        if tuples.used.validation.as_ref().is_some_and(|validation| validation.is_pending())
            && let Some(path) = path_of(paths, space)
        {
            // An address that was not proven is asked again.
            path.pending.raise(Pending::TUPLE);
        }
        if let SpaceId::Data(path) = space {
            // RFC 10069, "Key Phase Update Process": packets under the keys before may still come on any path.
            let pto = pto_base_max(paths, handshake, extensions);
            if let Some(keys) = handshake.keys.one_rtt_mut() {
                keys.on_ack(path, ack.largest.get(), cx.generation, now, pto)?;
            }
        } else if outcome.packets > 0 {
            handshake.on_flight_acked(space);
        }
        outcome.rtt_sample = outcome.rtt_sample.filter(|sample| !self.tells_nothing(space, sample));
        if let Some(sample) = outcome.rtt_sample {
            self.on_rtt_sample(space, sample, cx.space);
        }
        if outcome.ack_eliciting {
            self.reset_pto(space);
        }
        self.owners.deliver(space, &outcome.frames, Fate::Acked);
        let losses = self.detect_lost(space);
        self.apply(space, &outcome, &losses);
        if space.is_data() {
            self.tune_ack_frequency(space, outcome.bytes);
        }
        if outcome.bytes > 0 {
            let flight = self.owners.paths.flight();
            self.owners.streams.set_flight(flight);
        }
        Ok(())
    }

    /// The loss timer of a space has rung.
    pub(super) fn on_loss_timeout(&mut self, space: SpaceId) {
        let losses = self.detect_lost(space);
        self.apply(space, &AckOutcome::default(), &losses);
    }

    /// Whether the acknowledgement was told again after it had been lost, so that its time is none of the path.
    fn tells_nothing(&mut self, space: SpaceId, sample: &RttSample) -> bool {
        let Owners { handshake, paths, extensions, .. } = &mut self.owners;
        // Few have waited at all.
        if sample.ack_delay.is_zero() || !space.is_data() || !handshake.is_confirmed() {
            return false;
        }
        let max_ack_delay = peer_max_ack_delay(handshake, extensions);
        if sample.ack_delay <= max_ack_delay {
            return false;
        }
        path_of(paths, space)
            .and_then(|path| path.tuple_mut(sample.tuple))
            .is_some_and(|tuple| tuple.rtt.tells_nothing(sample.rtt, sample.ack_delay, max_ack_delay))
    }

    /// Whichever path has brought the acknowledgement, the time until it came is what timers, windows and rates go by: most of those
    /// that follow come the same way. What only depends on the way to the peer takes it apart (`path_choice.rs: delay`), and what looks for
    /// queues compares like with like (`Multipath::steady_rtt`).
    fn on_rtt_sample(&mut self, space: SpaceId, sample: RttSample, arrived: SpaceId) {
        let Owners { handshake, paths, extensions, .. } = &mut self.owners;
        let max_ack_delay = handshake.is_confirmed().then(|| peer_max_ack_delay(handshake, extensions));
        // RFC 9002 §5.3: the delay of the handshake's acknowledgements means nothing.
        let ack_delay = if space.is_data() { sample.ack_delay } else { Duration::ZERO };
        if let Some(tuple) = path_of(paths, space).and_then(|path| path.tuple_mut(sample.tuple)) {
            tuple.rtt.update(self.now, sample.rtt, ack_delay, max_ack_delay);
        }
        // The last one that is left may have had other ways back.
        let had_others = || paths.multipath.as_ref().is_some_and(|multipath| multipath.has_lost_paths());
        if (!paths.is_single() || had_others())
            && let (SpaceId::Data(id), SpaceId::Data(over)) = (space, arrived)
        {
            note_way_back(self.now, paths, [id, over], &sample, max_ack_delay);
        }
        if let Some(extension) =
            extensions.timestamps.as_mut().filter(|_| space.is_data() && space == arrived)
        {
            extension.on_rtt_sample(sample);
        }
    }

    /// Something that elicits an acknowledgement was acknowledged: the path works (RFC 9002 §6.2.1).
    fn reset_pto(&mut self, space: SpaceId) {
        let Owners { handshake, paths, .. } = &mut self.owners;
        if !handshake.peer_validated_address() {
            return;
        }
        if let Some(path) = path_of(paths, space) {
            path.pto.backoff.reset();
            path.pto.ping &= !space.is_data();
        }
        if let Some((numbers, _)) = space_and_tuples(paths, handshake, space) {
            numbers.probes.cancel();
        }
    }

    /// Lets the extension see what the ACK frame has brought.
    fn tune_ack_frequency(&mut self, space: SpaceId, bytes: u64) {
        let Owners { handshake, paths, extensions, .. } = &mut self.owners;
        let Some(extension) = &mut extensions.ack_frequency else { return };
        let Some((numbers, tuples)) = space_and_tuples(paths, handshake, space) else { return };
        let tuple = tuples.used;
        let figures = AckFigures {
            rtt: &tuple.rtt,
            window: tuple.congestion.window(),
            mtu: tuple.mtu(),
            pace: tuple.congestion.controller().pacing_rate(),
            packets_sent: numbers.next_number(),
            packet_threshold: numbers.packet_threshold(),
        };
        extension.on_ack(self.now, bytes, &figures);
    }

    fn detect_lost(&mut self, space: SpaceId) -> Losses {
        let mut losses = Losses::default();
        let Owners { handshake, paths, extensions, streams, .. } = &mut self.owners;
        let max_ack_delay = peer_max_ack_delay(handshake, extensions);
        if let Some((numbers, tuples)) = space_and_tuples(paths, handshake, space) {
            let memory = streams.send_memory();
            let cx = LossContext { rtt: &tuples.used.rtt, tuple: tuples.used.id, max_ack_delay, memory };
            numbers.detect_lost(self.now, &cx, &mut losses);
        }
        losses
    }

    /// Applies what an ACK or a loss timer brought to the tuples, and hands the tokens of the frames back.
    fn apply(&mut self, space: SpaceId, outcome: &AckOutcome, losses: &Losses) {
        let now = self.now;
        self.couple(space, losses);
        let multipath = self.owners.paths.multipath.as_deref();
        let steady_rtt = multipath.filter(|_| space.is_data()).and_then(|m| m.steady_rtt(space.path()));
        let Some(path) = path_of(self.owners.paths, space) else { return };
        let (_, Tuples { used: tuple, off_path }) = path.split();
        // Whether the path has become narrower must be known before the losses are taken for congestion, and
        // what was too large must be out of flight before the controller looks.
        if !losses.lost.is_empty() && tuple.detect_black_hole(now, &losses.lost) {
            self.stats.black_holes += 1;
        }
        for tuple in &mut *off_path {
            tuple.congestion.end_ack(now, None, [Duration::ZERO; 2], 0, &tuple.rtt);
        }
        let sample = outcome.rtt_sample.filter(|sample| sample.tuple == tuple.id);
        // RFC 9002 §5.3: the delay of the handshake's acknowledgements means nothing.
        let ack_delay = sample.filter(|_| space.is_data()).map_or(Duration::ZERO, |sample| sample.ack_delay);
        let ce = outcome.ecn.map_or(0, |feedback| tuple.ecn.on_feedback(feedback));
        if outcome.packets > 0 {
            tuple.ecn.on_progress();
        }
        // A way back that has changed is no queue.
        let rtt = sample.map(|sample| steady_rtt.unwrap_or(sample.rtt));
        let detour = sample.zip(rtt).map_or(Duration::ZERO, |(sample, rtt)| sample.rtt.saturating_sub(rtt));
        tuple.congestion.end_ack(now, rtt, [ack_delay, detour], ce, &tuple.rtt);
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
        for (number, packet) in &losses.lost {
            self.on_packet_lost(space, *number, packet);
        }
        let Some(path) = path_of(self.owners.paths, space) else { return };
        let (_, Tuples { used: tuple, off_path }) = path.split();
        for tuple in off_path {
            tuple.congestion.end_loss(now, false, &tuple.rtt);
        }
        if losses.persistent_congestion {
            tuple.rtt.on_persistent_congestion();
        }
        tuple.congestion.end_loss(now, losses.persistent_congestion, &tuple.rtt);
        self.take_back_dropped(space);
        for (_, packet) in &outcome.spurious {
            if let Some(symbol) = packet.symbol
                && let Some(sender) = self.owners.extensions.fec_sender()
            {
                sender.on_spurious(symbol);
            }
            self.owners.deliver_spurious(space, &packet.frames);
        }
    }

    /// Once it is known that the path drops marked packets, their losses were no congestion. Those of the handshake are few, and only of what
    /// was lost in this space it is known that nothing else was.
    fn take_back_dropped(&mut self, space: SpaceId) {
        let now = self.now;
        let Owners { handshake, paths, .. } = &mut self.owners;
        let Some((numbers, Tuples { used: tuple, .. })) = space_and_tuples(paths, handshake, space) else {
            return;
        };
        let Some(since) = tuple.ecn.find_dropped() else { return };
        for packet in numbers.take_dropped_for_marks(tuple.id, since) {
            tuple.congestion.on_dropped_for_mark(now, &packet.for_congestion(), &tuple.rtt);
        }
    }

    fn on_packet_lost(&mut self, space: SpaceId, number: u64, packet: &SentPacket) {
        let SentPacket { size, mtu_probe, .. } = *packet;
        if let Some(log) = &mut self.log {
            log.push(self.now, LogEvent::PacketLost { space, number, size, mtu_probe });
        }
        let path = path_of(self.owners.paths, space);
        if let Some(tuple) = path.and_then(|path| path.tuple_mut(packet.tuple)) {
            tuple.on_packet_lost(self.now, packet);
            if !mtu_probe {
                self.stats.packets_lost += 1;
                self.stats.bytes_lost += u64::from(size);
            }
        }
        if let Some(symbol) = packet.symbol {
            return self.on_symbol_lost(space, symbol, packet);
        }
        match packet.repeated {
            true => self.owners.lose_repeated(space, &packet.frames),
            false => self.owners.deliver(space, &packet.frames, Fate::Lost),
        }
    }

    /// A packet with a source symbol was lost: what the symbol may make again is not sent again before the symbol is given
    /// up, and what the peer has recovered not at all.
    pub(super) fn on_symbol_lost(&mut self, space: SpaceId, symbol: SymbolId, packet: &SentPacket) {
        let Some(sender) = self.owners.extensions.fec_sender() else { return };
        let loss = sender.on_lost(self.now, symbol);
        if packet.repeated {
            return self.owners.lose_repeated(space, &packet.frames);
        }
        let resend = loss.resend && !sender.resend_later(symbol);
        let (unprotected, protected) = packet.frames.split_at(loss.unprotected.min(packet.frames.len()));
        self.owners.deliver(space, unprotected, Fate::Lost);
        let fate = if resend { Fate::Lost } else { Fate::Held };
        self.owners.deliver(space, protected, fate);
    }

    /// Lets the next probe repeat what the oldest packets of a space said.
    pub(super) fn repeat_oldest(&mut self, space: SpaceId) {
        let mut frames = Vec::new();
        let Owners { handshake, paths, .. } = &mut self.owners;
        if let Some((numbers, _)) = space_and_tuples(paths, handshake, space) {
            let oldest = numbers.take_for_probe().take(PROBE_PACKETS);
            frames.extend(oldest.flat_map(|packet| packet.frames.iter().cloned()));
        }
        self.owners.deliver(space, &frames, Fate::Probed);
    }
}
