//! A payload in: each frame is handed to its owner, and what it means beyond that is done (RFC 9000 §12.4, §13.1).

use std::ops::Range;

use fulmar_base::Instant;
use fulmar_wire::{Frame, FrameError, PacketKind, SourceSymbol, frames};

use super::Connection;
use super::dispatch::{Consequence, FrameContext, Origin};
use super::recovery::space_and_tuples;
use crate::datagram::Ecn;
use crate::error::TransportError;
use crate::ext::{FecDialect, may_be_protected};
use crate::ids::SpaceId;
use crate::log::{FecEvent, LogEvent};
use crate::path::Pending;

/// What the frames of a packet were.
#[derive(Debug, Default, Clone)]
struct FramesSeen {
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

impl Connection {
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
                if cx.payload.first() == Some(&0) && frames.remaining() == 0 && *frame == Frame::Padding {
                    log.push(cx.now, LogEvent::PADDING);
                }
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
        let Some(path) = self.paths.get_mut(id) else {
            if let Some(multipath) = &mut self.paths.multipath {
                multipath.abandoned.on_received(now, id, number, seen.ack_eliciting, ecn);
            }
            return;
        };
        if cx.off_path.is_none() {
            path.tuple.ecn.on_received(ecn);
        }
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
        if self.side.is_server()
            && !self.handshake.is_complete()
            && !on_its_way
            && self.handshake.repeat_asked_flight(now, path.tuple.rtt.pto_base())
        {
            // It takes the place of a probe: a client that is far away shall not get more of them because it asks.
            self.paths.primary_mut().pto.backoff.on_timeout(now);
        }
        let path = self.paths.primary();
        let rtt = &path.tuple.rtt;
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
    pub fn handle_fuzzed_payload(&mut self, now: Instant, id: fulmar_wire::PathId, payload: bytes::Bytes) {
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
}
