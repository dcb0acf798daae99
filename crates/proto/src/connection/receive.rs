//! A datagram in: split, open each packet, and hand the frames on (RFC 9000 §12.2, RFC 9001 §5.5).

use std::ops::Range;

use bytes::BytesMut;
use fulmar_base::Instant;
use fulmar_wire::{
    Frame, FrameError, PacketKind, PathId, ProtectedKind, ProtectedPacket, SourceSymbol, frames, read_packet,
};

use super::Connection;
use super::dispatch::{Consequence, FrameContext, Origin};
use super::handshake::{is_zero_rtt, kind_of};
use super::lifecycle::State;
use super::migration::OffPathArrival;
use super::opening::{Discard, OpenedPacket, open};
use super::recovery::{pto_base, space_and_tuples};
use super::telemetry::kind_for_log;
use crate::config::MTU_MIN;
use crate::crypto::trailing_token;
use crate::datagram::{Datagram, Ecn};
use crate::error::TransportError;
use crate::events::ConnectionError;
use crate::ext::{FecDialect, may_be_protected};
use crate::ids::SpaceId;
use crate::log::{BarePacket, FecEvent, LogEvent, PacketDropReason};
use crate::path::{AntiAmplification, Pending};
use crate::rtt::TimerStyle;

/// After so many probe timeouts in a row, the next packet that arrives is taken for the return of the path.
const RETURN_PTOS: u32 = 2;

/// How a packet came.
#[derive(Debug, Clone, Copy)]
struct Arrival<'a> {
    ecn: Ecn,
    /// From where, if it has not taken the tuple in use.
    off_path: Option<&'a OffPathArrival>,
    /// Whether it has waited for its keys.
    waited: bool,
    /// Whether it arrived at a socket that this end sends from no more.
    late: bool,
}

/// What the frames of a packet were.
#[derive(Debug, Default, Clone)]
pub(super) struct FramesSeen {
    ack_eliciting: bool,
    /// Whether one is more than a probe of a path.
    non_probing: bool,
    /// Where in the payload its source symbol is, if it has one.
    symbol: Range<usize>,
}

/// What a frame is to forward erasure correction.
enum OfSymbol {
    No,
    /// It is part of a source symbol.
    Yes,
    /// It is part of a source symbol that was recovered before its packet has arrived, and must not count twice.
    Known,
    /// It may stand behind a source symbol, and is not part of it.
    Padding,
}

const UNWANTED: Discard = Discard::Silently(PacketDropReason::Unwanted);

impl Connection {
    /// Takes a datagram that the endpoint found to belong to this connection.
    pub fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.receive(now, datagram, false);
    }

    /// As [`Connection::handle_datagram`], for a datagram that arrived at a socket which this end has replaced and
    /// sends from no more. What it says counts; a challenge in it cannot be answered where it came from, as it must
    /// be (RFC 9000 §8.2.2), and is left alone.
    pub fn handle_late_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.receive(now, datagram, true);
    }

    fn receive(&mut self, now: Instant, datagram: Datagram, late: bool) {
        match self.lifecycle.state() {
            State::Handshaking | State::Established => {}
            State::Closing => return self.answer_closed(&datagram),
            State::Draining | State::Drained => return,
        }
        self.take(now, datagram, late);
        self.let_go_if_over();
    }

    fn take(&mut self, now: Instant, datagram: Datagram, late: bool) {
        let len = datagram.payload.len();
        self.telemetry.stats.datagrams_received += 1;
        self.telemetry.stats.bytes_received += len as u64;
        let mut off_path = None;
        let mut path = self.paths.of_datagram(&datagram.payload).map(|id| self.paths.get_mut(id));
        if let Some(Some(path)) = &mut path
            && path.tuple.addrs.is_taken_by(&datagram.addrs)
        {
            path.tuple.amplification.on_received(len as u64);
        } else {
            off_path = match path {
                Some(Some(path)) => OffPathArrival::of(&datagram, path, self.side, &self.handshake),
                Some(None) if self.side.is_server() => {
                    OffPathArrival::on_new_path(&datagram, self.paths.primary().tuple.addrs.remote)
                }
                // A server opens no path, and one that is gone takes no packets.
                Some(None) | None => None,
            };
            if off_path.is_none() {
                self.telemetry.record_dropped(now, PacketDropReason::Unwanted, None, len);
                return;
            }
        }
        let reset_token = trailing_token(&datagram.payload);
        let arrival = Arrival { ecn: datagram.ecn, off_path: off_path.as_ref(), waited: false, late };
        let authenticated = self.handle_packets(now, datagram.payload, arrival);
        // RFC 9000 §10.3.1: only a datagram of which nothing could be opened can be a stateless reset.
        let is_reset = |token| self.paths.iter().any(|path| path.remote_cids.is_reset_token(&token));
        if !authenticated && reset_token.is_some_and(is_reset) {
            let (packet, size) = (BarePacket::StatelessReset, len as u16);
            self.telemetry.record(now, LogEvent::BareReceived { packet, size });
            self.drain(now, ConnectionError::Reset);
        }
    }

    /// Takes the packets of a datagram one after the other. Returns whether one of them was authentic.
    fn handle_packets(&mut self, now: Instant, mut rest: BytesMut, arrival: Arrival<'_>) -> bool {
        let mut authenticated = false;
        let cid_len = self.paths.primary().local_cids.cid_len();
        // RFC 9000 §14.1: a server discards Initial packets in smaller datagrams.
        let is_full = rest.len() >= usize::from(MTU_MIN) || self.side.is_client();
        let mut first_dst = None;
        while !rest.is_empty() && self.lifecycle.is_open() {
            // RFC 9287 §3: any value of the QUIC bit is taken by who has said so, and by nobody else.
            let known = |packet: &ProtectedPacket| packet.quic_bit || self.config.grease_quic_bit;
            let Some(packet) = read_packet(&rest, cid_len).ok().filter(known) else {
                self.telemetry.record_dropped(now, PacketDropReason::Unreadable, None, rest.len());
                break;
            };
            let bytes =
                if packet.len == rest.len() { std::mem::take(&mut rest) } else { rest.split_to(packet.len) };
            let is_initial = matches!(packet.kind, ProtectedKind::Initial { .. });
            // RFC 9000 §12.2: the packets of a datagram go to one connection ID.
            let is_other = first_dst.is_some_and(|first| first != packet.dst);
            first_dst = first_dst.or(Some(packet.dst));
            if is_other || (is_initial && !is_full) {
                let (reason, kind) = (PacketDropReason::Unwanted, kind_for_log(&packet.kind));
                self.telemetry.record_dropped(now, reason, kind, bytes.len());
                continue;
            }
            authenticated |= self.handle_packet(now, &packet, bytes, arrival);
        }
        authenticated
    }

    /// Takes one packet. Returns whether it was authentic.
    fn handle_packet(
        &mut self,
        now: Instant,
        packet: &ProtectedPacket,
        bytes: BytesMut,
        arrival: Arrival<'_>,
    ) -> bool {
        let size = bytes.len() as u16;
        let result = match &packet.kind {
            ProtectedKind::Initial { .. } => {
                self.handle_protected(now, SpaceId::Initial, packet, bytes, arrival)
            }
            ProtectedKind::Handshake { .. } => {
                self.handle_protected(now, SpaceId::Handshake, packet, bytes, arrival)
            }
            ProtectedKind::Retry { token, .. } => self.on_retry(now, packet, &bytes, token.clone()),
            ProtectedKind::VersionNegotiation { versions } => {
                self.on_version_negotiation(now, packet, &bytes, versions.clone());
                return false;
            }
            // RFC 9001 §4.6: only clients send early data.
            ProtectedKind::ZeroRtt { .. } if self.side.is_client() => Err(UNWANTED),
            // RFC 10069 §2.3: it is of path 0, and of nobody when that is gone.
            ProtectedKind::ZeroRtt { .. } => {
                self.handle_protected(now, SpaceId::Data(PathId::ZERO), packet, bytes, arrival)
            }
            ProtectedKind::OneRtt { .. } => match self.paths.of_cid(&packet.dst) {
                Some(path) => self.handle_protected(now, SpaceId::Data(path), packet, bytes, arrival),
                None => Err(UNWANTED),
            },
        };
        let kind = || kind_for_log(&packet.kind);
        match result {
            Ok(()) => {
                // Only now, as the frames in the log belong to the packet that is recorded after them.
                if matches!(packet.kind, ProtectedKind::Initial { .. } | ProtectedKind::Handshake { .. }) {
                    self.open_waiting(now);
                }
                true
            }
            Err(Discard::Silently(reason)) => {
                self.telemetry.record_dropped(now, reason, kind(), size.into());
                false
            }
            Err(Discard::Kept) => {
                if let Some(kind) = kind() {
                    self.telemetry.record(now, LogEvent::PacketBuffered { kind, size });
                }
                false
            }
            Err(Discard::Unauthenticated) => {
                let reason = PacketDropReason::Unauthenticated;
                self.telemetry.record_dropped(now, reason, kind(), size.into());
                false
            }
            Err(Discard::Close(error)) => {
                self.close_on_error(now, error);
                true
            }
        }
    }

    /// Takes a packet that has a number: opens it, and hands its frames to their owners.
    fn handle_protected(
        &mut self,
        now: Instant,
        space: SpaceId,
        packet: &ProtectedPacket,
        mut bytes: BytesMut,
        arrival: Arrival<'_>,
    ) -> Result<(), Discard> {
        let size = bytes.len() as u16;
        let opened = self.open_packet(now, space, packet, &mut bytes, arrival.ecn)?;
        let arrival = self.follow_if_new(now, space, arrival)?;
        let zero_rtt = is_zero_rtt(packet);
        let number = opened.number;
        self.on_authenticated(now, space, packet, &opened, arrival.off_path.is_some());
        let cx = FrameContext {
            now,
            origin: Origin::Packet,
            space,
            kind: kind_of(packet),
            dst: packet.dst,
            payload: &opened.payload,
            generation: opened.generation,
            off_path: arrival.off_path,
            late: arrival.late,
        };
        let newest = self.telemetry.record_generation(now, &self.handshake);
        let old_keys = space.is_data() && !zero_rtt && opened.generation < newest;
        let result = self.handle_payload(&cx, number, arrival.ecn);
        let Arrival { ecn, waited, .. } = arrival;
        let early = zero_rtt;
        self.telemetry
            .record(now, LogEvent::PacketReceived { space, number, size, early, waited, old_keys, ecn });
        result.map_err(Discard::Close)
    }

    /// Opens a packet, if it is of this handshake and its keys are there, and is no duplicate.
    fn open_packet(
        &mut self,
        now: Instant,
        space: SpaceId,
        packet: &ProtectedPacket,
        bytes: &mut BytesMut,
        ecn: Ecn,
    ) -> Result<OpenedPacket, Discard> {
        let handshake = &mut self.handshake;
        if packet.version.is_some() && !handshake.admits(packet) {
            return Err(UNWANTED);
        }
        if self.side.is_client() && space == SpaceId::Initial {
            handshake.expect_other_version(packet);
        }
        if !handshake.can_open(space, packet) {
            return Err(handshake.keep_for_later(space, packet, bytes, ecn));
        }
        let numbers = match space {
            SpaceId::Data(path) => self.paths.get(path).map(|path| &path.space),
            _ => handshake.spaces.get(space),
        };
        let largest = numbers.and_then(|numbers| numbers.largest_received());
        let opened = open(&mut handshake.keys, space, largest, packet, bytes)?;
        // On a path that is not open yet, nothing has arrived.
        let is_duplicate = match numbers {
            Some(numbers) => numbers.is_duplicate(opened.number),
            None => !space.is_data(),
        };
        if self.side.is_client()
            && space == SpaceId::Initial
            && let Some(version) = handshake.follow_version(packet)
        {
            self.on_version(now, version);
        }
        if is_duplicate { Err(Discard::Silently(PacketDropReason::Duplicate)) } else { Ok(opened) }
    }

    /// The first packet of a path opens it, and has taken its addresses then.
    fn follow_if_new<'a>(
        &mut self,
        now: Instant,
        space: SpaceId,
        arrival: Arrival<'a>,
    ) -> Result<Arrival<'a>, Discard> {
        let SpaceId::Data(id) = space else { return Ok(arrival) };
        if self.paths.get(id).is_some() {
            return Ok(arrival);
        }
        match arrival.off_path.is_some_and(|from| self.follow_path(now, id, from)) {
            true => Ok(Arrival { off_path: None, ..arrival }),
            false => Err(UNWANTED),
        }
    }

    /// An authentic packet of the peer arrived.
    fn on_authenticated(
        &mut self,
        now: Instant,
        space: SpaceId,
        packet: &ProtectedPacket,
        opened: &OpenedPacket,
        is_off_path: bool,
    ) {
        self.telemetry.stats.packets_received += 1;
        if let Some(scid) = self.handshake.on_authenticated(space, packet) {
            self.paths.primary_mut().remote_cids.replace_handshake_cid(scid);
        }
        if space == SpaceId::Handshake && self.side.is_server() {
            // RFC 9000 §8.1, RFC 9001 §4.9.1: a Handshake packet proves the address, and ends Initial packets.
            self.on_address_validated();
            self.recovery(now).discard_space(SpaceId::Initial);
        }
        let Self { paths, handshake, extensions, liveness, .. } = self;
        let Some(path) = paths.get_mut(space.path()) else { return };
        // A packet that breaks a silence in which probes went unanswered shows that the path is back, and the probe that
        // the backoff has put off is due now. Where packets keep coming while nothing gets through the other way, the
        // backoff holds. In the handshake the timeouts may come from a guess that is too short, and prove no silence.
        if self.config.timers == TimerStyle::OncePerRtt
            && path.pto.backoff.count() >= RETURN_PTOS
            && handshake.is_confirmed()
            && liveness.idle.since_received(now) > pto_base(path, handshake, extensions)
        {
            path.pto.backoff.on_return();
        }
        liveness.idle.on_received(now, || pto_base(path, handshake, extensions));
        if self.side.is_client() {
            liveness.watchdog.on_received(now, path.tuple.rtt.smoothed());
        }
        // Early data goes to the ID of the handshake, and has no spin bit.
        if space.is_data() && !is_off_path && packet.version.is_none() {
            path.tuple.peer_dst = Some(packet.dst);
            if path.space.largest_received().is_none_or(|largest| largest < opened.number) {
                path.tuple.spin.on_received(opened.spin, self.side);
            }
        }
    }

    /// Takes the payload of a packet: its frames first, then the packet itself.
    pub(super) fn handle_payload(
        &mut self,
        cx: &FrameContext<'_>,
        number: u64,
        ecn: Ecn,
    ) -> Result<(), TransportError> {
        let seen = self.handle_frames(cx)?;
        if self.extensions.fec.is_some() && cx.space.is_data() && self.lifecycle.is_open() {
            if seen.ack_eliciting && self.extensions.fec_receiver().is_some_and(|fec| fec.repeat_reports()) {
                self.paths.raise(Pending::FEC);
            }
            self.take_recovered(cx, seen.symbol.clone())?;
        }
        if self.lifecycle.is_open() {
            self.end_packet(cx, number, ecn, seen);
        }
        Ok(())
    }

    /// The frames of a packet were taken: lets the decoder have its source symbol, and takes the frames of what was
    /// recovered by it, or by the repair symbols of the packet. Nothing else is learned of the lost packets: they are not
    /// acknowledged, and did not take this path.
    #[cold]
    fn take_recovered(&mut self, cx: &FrameContext<'_>, symbol: Range<usize>) -> Result<(), TransportError> {
        if let Some(receiver) = self.extensions.fec_receiver() {
            receiver.end_packet(&cx.payload[symbol])?;
        }
        while self.lifecycle.is_open()
            && let Some((id, frames)) = self.extensions.fec_receiver().and_then(|fec| fec.next_recovered())
        {
            self.paths.raise(Pending::FEC);
            self.telemetry.record(cx.now, LogEvent::Fec(FecEvent::Recovered { id }));
            let recovered =
                FrameContext { origin: Origin::Recovered, payload: &frames, off_path: None, ..*cx };
            self.handle_recovered(&recovered)?;
        }
        if self.extensions.fec_receiver().is_some_and(|fec| fec.take_switched_off()) {
            self.telemetry.record(cx.now, LogEvent::Fec(FecEvent::DecoderOff));
        }
        self.resend_released(cx.now);
        Ok(())
    }

    /// Sends again what was held back for repair symbols that did not help.
    pub(super) fn resend_released(&mut self, now: Instant) {
        let released = self.extensions.fec_sender().map(|sender| sender.take_released()).unwrap_or_default();
        self.recovery(now).owners.resend(&released);
    }

    /// Hands on the frames of a source symbol that was recovered.
    #[cold]
    fn handle_recovered(&mut self, cx: &FrameContext<'_>) -> Result<(), TransportError> {
        self.handle_frames(cx).map(|_| ())
    }

    /// Whether a frame, which ends at `end`, is one that was recovered before. Follows the source symbol of the packet.
    #[cold]
    fn is_known(
        &mut self,
        cx: &FrameContext<'_>,
        frame: &Frame<'_>,
        end: usize,
        seen: &mut FramesSeen,
    ) -> Result<bool, TransportError> {
        if let Frame::SourceSymbol(symbol) = frame
            && self.is_own_symbol(cx)
        {
            self.take_source_symbol(cx, symbol, seen)?;
            return Ok(true);
        }
        match self.is_of_symbol(cx, frame)? {
            OfSymbol::No => seen.symbol = end..end,
            OfSymbol::Yes => seen.symbol.end = end,
            OfSymbol::Known => {
                seen.symbol.end = end;
                seen.ack_eliciting = true;
                seen.non_probing = true;
                return Ok(true);
            }
            OfSymbol::Padding => {}
        }
        Ok(false)
    }

    /// Whether a frame may be a source symbol by itself.
    fn is_own_symbol(&mut self, cx: &FrameContext<'_>) -> bool {
        let receiver = self.extensions.fec_receiver_of(FecDialect::M);
        let in_packet = cx.origin == Origin::Packet && cx.kind == PacketKind::OneRtt;
        in_packet && receiver.is_some_and(|receiver| !receiver.is_in_symbol())
    }

    /// Takes the frames within a SOURCE_SYMBOL frame, and lets the decoder have them.
    fn take_source_symbol(
        &mut self,
        cx: &FrameContext<'_>,
        symbol: &SourceSymbol<'_>,
        seen: &mut FramesSeen,
    ) -> Result<(), TransportError> {
        let Some(receiver) = self.extensions.fec_receiver() else { return Ok(()) };
        receiver.on_source_symbol(symbol);
        if let Some(log) = &mut self.telemetry.log {
            let exponent = self.handshake.tls.peer_ack_delay_exponent(cx.space);
            log.push_frame(cx.now, &Frame::SourceSymbol(*symbol), exponent);
        }
        seen.ack_eliciting = true;
        seen.non_probing = true;
        let payload = cx.payload.slice_ref(symbol.frames);
        self.handle_frames(&FrameContext { payload: &payload, ..*cx })?;
        match self.extensions.fec_receiver() {
            Some(receiver) => receiver.end_packet(&payload),
            None => Ok(()),
        }
    }

    /// Hands the frames of a payload to their owners, until one of them has ended the connection.
    #[inline]
    fn handle_frames(&mut self, cx: &FrameContext<'_>) -> Result<FramesSeen, TransportError> {
        if cx.payload.is_empty() {
            // RFC 9000 §12.4.
            return Err(TransportError::protocol_violation("a packet without frames"));
        }
        let mut seen = FramesSeen::default();
        let mut frames = frames(cx.payload, self.paths.dialect_of(cx.kind));
        loop {
            // Looked at where it is: a frame is a large value.
            let next = frames.next();
            let frame = match &next {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(self.refuse_unreadable(cx.kind, *error)),
                None => return Ok(seen),
            };
            if self.extensions.fec.is_some() && cx.space.is_data() {
                let end = cx.payload.len() - frames.remaining();
                if self.is_known(cx, frame, end, &mut seen)? {
                    continue;
                }
            }
            if !frame.is_permitted_in(cx.kind) {
                return Err(TransportError::protocol_violation("a frame in a packet that must not carry it")
                    .with_frame(frame.frame_type()));
            }
            seen.ack_eliciting |= frame.is_ack_eliciting();
            seen.non_probing |= !frame.is_probing();
            if let Some(log) = &mut self.telemetry.log {
                log.push_frame(cx.now, frame, self.handshake.tls.peer_ack_delay_exponent(cx.space));
            }
            let result = match self.receivers().dispatch(frame, cx) {
                Ok(Consequence::Nothing) => Ok(()),
                Ok(consequence) => self.follow(cx, consequence),
                Err(error) => Err(error),
            };
            result.map_err(|error| match error.frame {
                None => error.with_frame(frame.frame_type()),
                Some(_) => error,
            })?;
            if !self.lifecycle.is_open() {
                return Ok(seen);
            }
        }
    }

    /// What the peer is told of a frame that cannot be read.
    #[cold]
    fn refuse_unreadable(&self, kind: PacketKind, error: FrameError) -> TransportError {
        let offers_multipath = self.config.multipath.is_some();
        if offers_multipath && kind != PacketKind::OneRtt && error.frame_type.is_multipath() {
            // RFC 10069 §4. To who has not offered the extension it is unknown.
            return TransportError::protocol_violation("a frame for several paths outside of a 1-RTT packet")
                .with_frame(error.frame_type);
        }
        TransportError::from(error)
    }

    /// What a frame is to forward erasure correction. The frames behind FEC_SID are the symbol, up to the last one that is
    /// not padding.
    fn is_of_symbol(&mut self, cx: &FrameContext<'_>, frame: &Frame<'_>) -> Result<OfSymbol, TransportError> {
        let Some(receiver) = self.extensions.fec_receiver() else { return Ok(OfSymbol::No) };
        let is_recovered = cx.origin == Origin::Recovered;
        if !is_recovered && !receiver.is_in_symbol() {
            return Ok(OfSymbol::No);
        }
        match frame {
            Frame::Padding | Frame::Ping if !is_recovered && !receiver.has_framed_symbols() => {
                Ok(OfSymbol::Padding)
            }
            // A symbol whose frames were recovered: a datagram would come twice.
            Frame::Datagram(_) if !is_recovered && receiver.is_known() => Ok(OfSymbol::Known),
            _ if may_be_protected(frame) => Ok(OfSymbol::Yes),
            _ => {
                let error = "a frame in a source symbol that must not carry it";
                Err(TransportError::protocol_violation(error).with_frame(frame.frame_type()))
            }
        }
    }

    /// Does what a frame means beyond its owner.
    fn follow(&mut self, cx: &FrameContext<'_>, consequence: Consequence) -> Result<(), TransportError> {
        if matches!(consequence, Consequence::StreamData) {
            if self.side.is_client()
                && let Some(path) = self.paths.get(cx.space.path())
            {
                self.liveness.watchdog.on_data(cx.now, path.tuple.rtt.smoothed());
            }
            self.grow_address_token(cx.now);
            return Ok(());
        }
        self.liveness.idle.on_pto_changed();
        match consequence {
            Consequence::Nothing | Consequence::StreamData => {}
            Consequence::Acked => self.log_figures(cx.now, cx.space.path(), None),
            Consequence::Handshake(progress) => self.on_handshake_progress(cx.now, progress)?,
            Consequence::HandshakeDone => {
                let handshake = &mut self.handshake;
                handshake.tls.confirm(&mut handshake.keys);
                self.on_handshake_confirmed(cx.now);
            }
            Consequence::PathChallenge(data) => self.on_path_challenge(cx, data),
            Consequence::PathResponse(data) => self.on_path_response(cx.now, cx.space.path(), data)?,
            Consequence::PathAbandon(frame) => self.on_path_abandon(cx.now, &frame)?,
            Consequence::PathStatus(frame) => self.on_path_status(&frame)?,
            Consequence::Closed(error) => self.drain(cx.now, *error),
        }
        Ok(())
    }

    /// The frames of a packet were handed on: it is to be acknowledged, and may have come from elsewhere.
    fn end_packet(&mut self, cx: &FrameContext<'_>, number: u64, ecn: Ecn, seen: FramesSeen) {
        if seen.ack_eliciting && !cx.space.is_data() {
            self.on_handshake_asked(cx.now, cx.space);
        }
        let (id, now) = (cx.space.path(), cx.now);
        let Some(path) = self.paths.get_mut(id) else { return };
        if let Some(extension) = &mut self.extensions.timestamps
            && extension.end_packet(now, path.tuple.rtt.min())
        {
            self.log_figures(now, id, None);
        }
        let found = space_and_tuples(&mut self.paths, &mut self.handshake, cx.space);
        let Some((numbers, _)) = found else { return };
        let is_newest = numbers.largest_received().is_none_or(|largest| largest < number);
        numbers.on_received(now, number, seen.ack_eliciting, ecn);
        // RFC 9000 §9.3: a packet that is older than others may have left before the peer moved.
        if let Some(off_path) = cx.off_path.filter(|_| seen.non_probing && is_newest) {
            self.on_peer_moved(cx, off_path);
        }
    }

    /// A packet of the handshake came that asks for an acknowledgement. What is sent now carries it as well, within what
    /// may be sent to the client's address.
    fn on_handshake_asked(&mut self, now: Instant, space: SpaceId) {
        let path = self.paths.primary();
        let rtt = &path.tuple.rtt;
        let on_its_way = rtt.has_sample() && now < path.pto.started + rtt.smoothed();
        if self.side.is_server() && !self.handshake.is_complete() && !on_its_way {
            self.handshake.repeat_asked_flight();
        }
        // What the client has sent behind the end of its handshake was most likely in the same datagram: the server cannot
        // answer before it has both. No timeout has passed, so that the window must have room (RFC 9002 §7.5).
        let (id, half) = (path.id, rtt.smoothed() / 2);
        let room = path.tuple.congestion.window_left() / u64::from(path.tuple.mtu());
        let is_data_out = path.space.has_ack_eliciting_in_flight();
        if self.side.is_client()
            && space == SpaceId::Handshake
            && self.handshake.is_complete()
            && room >= 1
            && self.handshake.repeat_asked_end(now.saturating_sub(half))
            && is_data_out
            && room >= 2
        {
            self.recovery(now).probe(SpaceId::Data(id), 1);
        }
    }

    /// Takes the payload of a 1-RTT packet of a path as if it had been opened, and closes on an error as usual: a fuzzer
    /// cannot guess keys. Without effect if there is no such path.
    #[cfg(fuzzing)]
    pub fn handle_fuzzed_payload(&mut self, now: Instant, id: PathId, payload: bytes::Bytes) {
        let Some(path) = self.paths.get(id) else { return };
        let number = path.space.largest_received().map_or(0, |largest| largest + 1);
        let dst = path.tuple.peer_dst.unwrap_or(self.handshake.tls.cids.local);
        let kind = PacketKind::OneRtt;
        let cx = FrameContext {
            now,
            origin: Origin::Packet,
            space: SpaceId::Data(path.id),
            kind,
            dst,
            payload: &payload,
            generation: 0,
            off_path: None,
            late: false,
        };
        if self.lifecycle.is_open()
            && let Err(error) = self.handle_payload(&cx, number, Ecn::NotEct)
        {
            self.close_on_error(now, error);
        }
    }

    /// Opens the packets that waited for keys which have come.
    fn open_waiting(&mut self, now: Instant) {
        let Some(level) = self.handshake.opened_level() else { return };
        for waiting in self.handshake.undecryptable.take(level) {
            if !self.lifecycle.is_open() {
                return;
            }
            let arrival = Arrival { ecn: waiting.ecn, off_path: None, waited: true, late: false };
            self.handle_packet(now, &waiting.packet, waiting.bytes, arrival);
        }
    }

    /// A datagram for a connection that this end has closed.
    fn answer_closed(&mut self, datagram: &Datagram) {
        let tuple = &mut self.paths.primary_mut().tuple;
        if !tuple.addrs.is_taken_by(&datagram.addrs) {
            if !self.handshake.is_confirmed() {
                return;
            }
            // RFC 9000 §10.2.1: a peer that was moved is told too, and whoever else it is gets little.
            tuple.addrs = datagram.addrs;
            tuple.amplification = AntiAmplification::new(false);
        }
        tuple.amplification.on_received(datagram.payload.len() as u64);
        self.lifecycle.on_datagram_while_closing();
    }
}
