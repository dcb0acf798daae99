//! A datagram in: split, open each packet, and hand the frames on (RFC 9000 §12.2, RFC 9001 §5.5).

use bytes::BytesMut;
use fulmar_base::Instant;
use fulmar_wire::{ProtectedKind, ProtectedPacket, frames, read_packet};

use super::Connection;
use super::dispatch::FrameContext;
use super::early_data::EarlyData;
use super::lifecycle::State;
use super::log::kind_for_log;
use super::migration::Detour;
use super::opening::{Drop, is_early, kind_of};
use crate::config::MTU_MIN;
use crate::crypto::{Level, trailing_token};
use crate::datagram::{Datagram, Ecn};
use crate::error::TransportError;
use crate::events::ConnectionError;
use crate::ids::SpaceId;
use crate::log::{BarePacket, LogEvent, PacketDropReason};
use crate::path::AddressCredit;

/// How a packet came.
#[derive(Debug, Clone, Copy)]
struct Arrival<'a> {
    ecn: Ecn,
    /// From where, if it has not taken the tuple in use.
    detour: Option<&'a Detour>,
    /// Whether it has waited for its keys.
    waited: bool,
}

const UNWANTED: Drop = Drop::Silently(PacketDropReason::Unwanted);

impl Connection {
    /// Takes a datagram that the endpoint found to belong to this connection.
    pub fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        match self.lifecycle.state() {
            State::Handshaking | State::Established => {}
            State::Closing => return self.answer_closed(&datagram),
            State::Draining | State::Drained => return,
        }
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += datagram.payload.len() as u64;
        let mut detour = None;
        if self.path.tuple.addrs.is_taken_by(&datagram.addrs) {
            self.path.tuple.credit.on_received(datagram.payload.len() as u64);
        } else {
            detour = self.detour_of(&datagram);
            if detour.is_none() {
                self.stats.packets_dropped += 1;
                self.note_dropped(now, PacketDropReason::Unwanted, None, datagram.payload.len());
                return;
            }
        }
        let reset_token = trailing_token(&datagram.payload);
        let arrival = Arrival { ecn: datagram.ecn, detour: detour.as_ref(), waited: false };
        let size = datagram.payload.len() as u16;
        let authenticated = self.handle_packets(now, datagram.payload, arrival);
        // RFC 9000 §10.3.1: only a datagram of which nothing could be opened can be a stateless reset.
        if !authenticated && reset_token.is_some_and(|token| self.path.remote_cids.is_reset_token(&token)) {
            self.note(now, LogEvent::BareReceived { packet: BarePacket::StatelessReset, size });
            self.drain(now, ConnectionError::Reset);
        }
    }

    /// As [`Connection::handle_datagram`], for a datagram that arrived at a socket which this end has replaced and
    /// sends from no more. What it says counts; a challenge in it cannot be answered where it came from, as it must
    /// be (RFC 9000 §8.2.2), and is left alone.
    pub fn handle_late_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.ignores_challenges = true;
        self.handle_datagram(now, datagram);
        self.ignores_challenges = false;
    }

    /// Takes the packets of a datagram one after the other. Returns whether one of them was authentic.
    fn handle_packets(&mut self, now: Instant, mut rest: BytesMut, arrival: Arrival<'_>) -> bool {
        let mut authenticated = false;
        let cid_len = self.path.local_cids.cid_len();
        // RFC 9000 §14.1: a server discards Initial packets in smaller datagrams.
        let is_full = rest.len() >= usize::from(MTU_MIN) || self.side.is_client();
        let mut first_dst = None;
        while !rest.is_empty() && self.lifecycle.is_open() {
            // RFC 9287 §3: any value of the QUIC bit is taken by who has said so, and by nobody else.
            let known = |packet: &ProtectedPacket| packet.quic_bit || self.config.grease_quic_bit;
            let Some(packet) = read_packet(&rest, cid_len).ok().filter(known) else {
                self.stats.packets_dropped += 1;
                self.note_dropped(now, PacketDropReason::Unreadable, None, rest.len());
                break;
            };
            let bytes = rest.split_to(packet.len);
            let is_initial = matches!(packet.kind, ProtectedKind::Initial { .. });
            // RFC 9000 §12.2: the packets of a datagram go to one connection ID.
            if *first_dst.get_or_insert(packet.dst) != packet.dst || (is_initial && !is_full) {
                self.stats.packets_dropped += 1;
                self.note_dropped(now, PacketDropReason::Unwanted, kind_for_log(&packet.kind), bytes.len());
                continue;
            }
            authenticated |= self.handle_packet(now, packet, bytes, arrival);
        }
        authenticated
    }

    /// Takes one packet. Returns whether it was authentic.
    fn handle_packet(
        &mut self,
        now: Instant,
        packet: ProtectedPacket,
        bytes: BytesMut,
        arrival: Arrival<'_>,
    ) -> bool {
        let size = bytes.len() as u16;
        let kind = kind_for_log(&packet.kind);
        let result = match &packet.kind {
            ProtectedKind::Initial { .. } => {
                self.handle_protected(now, SpaceId::Initial, packet, bytes, arrival)
            }
            ProtectedKind::Handshake { .. } => {
                self.handle_protected(now, SpaceId::Handshake, packet, bytes, arrival)
            }
            ProtectedKind::OneRtt { .. } => self.handle_protected(now, SpaceId::DATA, packet, bytes, arrival),
            ProtectedKind::Retry { token, .. } => self.on_retry(now, &packet, &bytes, token.clone()),
            ProtectedKind::VersionNegotiation { versions } => {
                self.on_version_negotiation(now, &packet, &bytes, versions.clone());
                return false;
            }
            // RFC 9001 §4.6: only clients send early data.
            ProtectedKind::ZeroRtt { .. } if self.side.is_client() => Err(UNWANTED),
            ProtectedKind::ZeroRtt { .. } => {
                self.handle_protected(now, SpaceId::DATA, packet, bytes, arrival)
            }
        };
        match result {
            Ok(()) => true,
            Err(Drop::Silently(reason)) => {
                self.stats.packets_dropped += 1;
                self.note_dropped(now, reason, kind, size.into());
                false
            }
            Err(Drop::Kept) => {
                if let Some(kind) = kind {
                    self.note(now, LogEvent::PacketBuffered { kind, size });
                }
                false
            }
            Err(Drop::Unauthenticated) => {
                self.stats.packets_unauthenticated += 1;
                self.note_dropped(now, PacketDropReason::Unauthenticated, kind, size.into());
                false
            }
            Err(Drop::Close(error)) => {
                self.close_on_error(now, error);
                true
            }
        }
    }

    fn handle_protected(
        &mut self,
        now: Instant,
        space: SpaceId,
        packet: ProtectedPacket,
        mut bytes: BytesMut,
        arrival: Arrival<'_>,
    ) -> Result<(), Drop> {
        if packet.version.is_some() && !self.is_of_this_handshake(&packet) {
            return Err(UNWANTED);
        }
        // RFC 9000 §17.2.2: the Initial packets of a server carry no token.
        if self.side.is_client()
            && matches!(&packet.kind, ProtectedKind::Initial { token, .. } if !token.is_empty())
        {
            return Err(UNWANTED);
        }
        if self.side.is_client() && space == SpaceId::Initial {
            self.expect_other_version(&packet);
        }
        if !self.can_open(space, &packet) {
            // The keys are still to come, or are gone. Those of early data come with those of the handshake.
            let level = if is_early(&packet) { Level::Handshake } else { space.level() };
            let waits = level > Level::Initial && !self.has_had_keys(level);
            let kept = waits && self.undecryptable.keep(level, packet, &bytes, arrival.ecn);
            if kept {
                self.on_packet_without_keys(level);
            }
            return Err(if kept { Drop::Kept } else { Drop::Silently(PacketDropReason::NoKeys) });
        }
        let size = bytes.len() as u16;
        let opened = self.open(space, &packet, &mut bytes)?;
        if self.side.is_client() && space == SpaceId::Initial {
            self.follow_version(now, &packet);
        }
        if self.space(space).is_none_or(|s| s.is_duplicate(opened.number)) {
            return Err(Drop::Silently(PacketDropReason::Duplicate));
        }
        self.on_authenticated(now, space, &packet);
        let cx = FrameContext {
            now,
            space,
            kind: kind_of(&packet),
            dst: packet.dst,
            payload: &opened.payload,
            generation: opened.generation,
            detour: arrival.detour,
        };
        // Early data goes to the ID of the handshake, and has no spin bit.
        if space.is_data() && arrival.detour.is_none() && packet.version.is_none() {
            self.path.tuple.peer_dst = Some(packet.dst);
            if self.path.space.largest_received().is_none_or(|largest| largest < opened.number) {
                self.path.tuple.spin.on_received(opened.spin, self.side);
            }
        }
        let number = opened.number;
        let old_keys = space.is_data() && !is_early(&packet) && opened.generation < self.note_generation(now);
        let result = self.handle_payload(&cx, number, arrival.ecn);
        let (early, Arrival { ecn, waited, .. }) = (is_early(&packet), arrival);
        self.note(now, LogEvent::PacketReceived { space, number, size, early, waited, old_keys, ecn });
        result.map_err(Drop::Close)
    }

    /// Whether a packet with a long header has the version and the source of the handshake.
    fn is_of_this_handshake(&self, packet: &ProtectedPacket) -> bool {
        let version_fits = match packet.kind {
            // RFC 9369 §4.1: the first packets of a client may be of another version than all others.
            ProtectedKind::Initial { .. } => {
                self.side.is_server() || packet.version.is_some_and(|of| self.versions.accepts(of))
            }
            ProtectedKind::ZeroRtt { .. } => packet.version == Some(self.versions.original),
            _ => packet.version == Some(self.versions.current),
        };
        // RFC 9000 §7.2: once the peer has chosen its connection ID, packets with another are discarded.
        version_fits && self.handshake.cids.peer_scid.is_none_or(|scid| scid == packet.src)
    }

    /// An authentic packet of the peer arrived.
    fn on_authenticated(&mut self, now: Instant, space: SpaceId, packet: &ProtectedPacket) {
        self.stats.packets_received += 1;
        // Whoever was heard of is not talked to in another version.
        self.versions.keep();
        if is_early(packet) {
            self.early_data = EarlyData::Accepted;
        } else if space.is_data() && self.side.is_server() {
            // RFC 9001 §4.9.3: what of the early data is still to come is sent again.
            self.handshake.discard_early();
        }
        if self.handshake.cids.peer_scid.is_none() {
            // RFC 9000 §7.2: the peer's choice of a connection ID is in its first packet.
            self.handshake.cids.peer_scid = Some(packet.src);
            self.path.remote_cids.replace_handshake_cid(packet.src);
        }
        if space == SpaceId::Handshake && self.side.is_server() {
            // RFC 9000 §8.1, RFC 9001 §4.9.1: a Handshake packet proves the address, and ends Initial packets.
            self.on_address_validated();
            self.discard_space(now, SpaceId::Initial);
        }
        self.note_return_of_path(now);
        let pto = self.pto_base();
        self.idle.on_received(now, pto);
        if self.side.is_client() {
            self.vigil.on_received(now, self.path.tuple.rtt.smoothed());
        }
    }

    pub(super) fn handle_payload(
        &mut self,
        cx: &FrameContext<'_>,
        number: u64,
        ecn: Ecn,
    ) -> Result<(), TransportError> {
        if cx.payload.is_empty() {
            // RFC 9000 §12.4.
            return Err(TransportError::protocol_violation("a packet without frames"));
        }
        let exponent = self.peer_ack_delay_exponent(cx.space);
        let (mut ack_eliciting, mut moves_path) = (false, false);
        for frame in frames(cx.payload, self.dialect) {
            let frame = frame?;
            if !frame.is_permitted_in(cx.kind) {
                return Err(TransportError::protocol_violation("a frame in a packet that must not carry it")
                    .with_frame(frame.frame_type()));
            }
            ack_eliciting |= frame.is_ack_eliciting();
            moves_path |= !frame.is_probing();
            if let Some(log) = &mut self.log {
                log.push_frame(cx.now, &frame, exponent);
            }
            let frame_type = frame.frame_type();
            self.dispatch(frame, cx).map_err(|error| match error.frame {
                None => error.with_frame(frame_type),
                Some(_) => error,
            })?;
            if !self.lifecycle.is_open() {
                return Ok(());
            }
        }
        if ack_eliciting && !cx.space.is_data() {
            self.on_handshake_asked(cx.now);
        }
        if let Some(extension) = &mut self.timestamps
            && extension.end_packet(cx.now, self.path.tuple.rtt.min())
        {
            self.note_figures(cx.now, None);
        }
        let Some(space) = self.space_mut(cx.space) else { return Ok(()) };
        let is_newest = space.largest_received().is_none_or(|largest| largest < number);
        space.on_received(cx.now, number, ack_eliciting, ecn);
        // RFC 9000 §9.3: a packet that is older than others may have left before the peer moved.
        if let Some(detour) = cx.detour.filter(|_| moves_path && is_newest) {
            self.on_peer_moved(cx, detour);
        }
        Ok(())
    }

    /// Takes the payload of a 1-RTT packet as if it had been opened, and closes on an error as usual: a fuzzer
    /// cannot guess keys.
    #[cfg(fuzzing)]
    pub fn handle_fuzzed_payload(&mut self, now: Instant, payload: bytes::Bytes) {
        let number = self.path.space.largest_received().map_or(0, |largest| largest + 1);
        let dst = self.local_cid;
        let kind = fulmar_wire::PacketKind::OneRtt;
        let cx = FrameContext {
            now,
            space: SpaceId::DATA,
            kind,
            dst,
            payload: &payload,
            generation: 0,
            detour: None,
        };
        if self.lifecycle.is_open()
            && let Err(error) = self.handle_payload(&cx, number, Ecn::NotEct)
        {
            self.close_on_error(now, error);
        }
    }

    /// Opens the packets that waited for keys which have come.
    pub(super) fn open_waiting(&mut self, now: Instant) {
        let level = match (self.handshake.is_complete(), self.handshake.handshake_keys().is_some()) {
            (true, _) => Level::OneRtt,
            (false, true) => Level::Handshake,
            (false, false) => return,
        };
        for waiting in self.undecryptable.take(level) {
            if !self.lifecycle.is_open() {
                return;
            }
            let arrival = Arrival { ecn: waiting.ecn, detour: None, waited: true };
            self.handle_packet(now, waiting.packet, waiting.bytes, arrival);
        }
    }

    /// A datagram for a connection that this end has closed.
    fn answer_closed(&mut self, datagram: &Datagram) {
        let tuple = &mut self.path.tuple;
        if !tuple.addrs.is_taken_by(&datagram.addrs) {
            if !self.handshake.is_confirmed() {
                return;
            }
            // RFC 9000 §10.2.1: a peer that was moved is told too, and whoever else it is gets little.
            tuple.addrs = datagram.addrs;
            tuple.credit = AddressCredit::new(false);
        }
        tuple.credit.on_received(datagram.payload.len() as u64);
        if let Some(close) = &mut self.close {
            close.on_datagram();
        }
    }
}
