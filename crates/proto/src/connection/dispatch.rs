//! The list of frames and their owners: where each frame that arrives goes.
//!
//! A new frame is a line here; the compiler names it if it is missing.

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_wire::{
    AckFrequency, ConnectionClose, ConnectionId, Crypto, Frame, FrameType, NewToken, ObservedAddress,
    PacketKind, TransportErrorCode,
};

use super::Connection;
use super::migration::Detour;
use crate::error::TransportError;
use crate::events::{ConnectionError, Event, PathEvent};
use crate::ext::{unrequested_address, unrequested_timestamp};
use crate::ids::SpaceId;
use crate::log::LogEvent;
use crate::streams::RecvContext;

/// Where a frame was found.
pub(super) struct FrameContext<'a> {
    pub(super) now: Instant,
    pub(super) space: SpaceId,
    pub(super) kind: PacketKind,
    /// The connection ID that the packet was sent to.
    pub(super) dst: ConnectionId,
    /// The payload that the frame is part of: data in it is kept as slices of it.
    pub(super) payload: &'a Bytes,
    /// The generation of the 1-RTT keys that opened the packet.
    pub(super) generation: u64,
    /// Where the packet came from, if it has not taken the tuple in use.
    pub(super) detour: Option<&'a Detour>,
}

impl Connection {
    /// Hands a frame to its owner.
    pub(super) fn dispatch(&mut self, frame: Frame<'_>, cx: &FrameContext<'_>) -> Result<(), TransportError> {
        let stream_cx = RecvContext {
            now: cx.now,
            rtt: self.path.tuple.rtt.smoothed(),
            early: cx.kind == PacketKind::ZeroRtt,
        };
        match frame {
            Frame::Padding | Frame::Ping => Ok(()),
            Frame::Ack(ack) => self.on_ack(cx, &ack),
            Frame::Crypto(crypto) => self.on_crypto(cx, &crypto),
            Frame::Stream(stream) => {
                self.streams.on_stream(&stream, cx.payload, &stream_cx)?;
                self.tell_of_credit(cx.now);
                Ok(())
            }
            Frame::ResetStream(reset) => self.streams.on_reset_stream(&reset),
            Frame::ResetStreamAt(_) if !self.config.reset_stream_at => Err(not_negotiated()),
            Frame::ResetStreamAt(reset) => self.streams.on_reset_stream_at(&reset),
            Frame::StopSending(stop) => self.streams.on_stop_sending(&stop),
            Frame::MaxData(max) => {
                self.streams.on_max_data(&max);
                Ok(())
            }
            Frame::MaxStreamData(max) => self.streams.on_max_stream_data(&max),
            Frame::MaxStreams(max) => {
                self.streams.on_max_streams(&max);
                Ok(())
            }
            Frame::DataBlocked(blocked) => {
                self.streams.on_data_blocked(&blocked);
                Ok(())
            }
            Frame::StreamDataBlocked(blocked) => self.streams.on_stream_data_blocked(&blocked),
            Frame::StreamsBlocked(blocked) => {
                self.streams.on_streams_blocked(&blocked);
                Ok(())
            }
            Frame::Datagram(datagram) => self.datagrams.on_datagram(&datagram, cx.payload),
            Frame::NewConnectionId(new) => {
                self.path.remote_cids.on_new_connection_id(&new, &mut self.endpoint_events)?;
                self.path.on_cids_changed(&mut self.endpoint_events);
                Ok(())
            }
            Frame::RetireConnectionId(retire) => {
                self.path.local_cids.on_retire(retire.sequence.get(), &cx.dst, &mut self.endpoint_events)
            }
            Frame::PathChallenge(challenge) => {
                self.on_path_challenge(cx, challenge.data);
                Ok(())
            }
            Frame::PathResponse(response) => self.on_path_response(cx.now, response.data),
            Frame::NewToken(token) => self.on_new_token(&token),
            Frame::HandshakeDone => self.on_handshake_done(cx.now),
            Frame::AckFrequency(request) => self.on_ack_frequency(cx, &request),
            Frame::Timestamp(stamp) => {
                self.timestamps.as_mut().ok_or_else(unrequested_timestamp)?.on_frame(&stamp)
            }
            Frame::ObservedAddress(observed) => self.on_observed_address(cx, &observed),
            Frame::ImmediateAck => self.on_immediate_ack(cx),
            Frame::ConnectionClose(close) => {
                self.on_connection_close(cx.now, &close);
                Ok(())
            }
        }
    }

    fn on_crypto(&mut self, cx: &FrameContext<'_>, crypto: &Crypto<'_>) -> Result<(), TransportError> {
        let progress = self.handshake.on_crypto(cx.space.level(), crypto)?;
        self.on_handshake_progress(cx.now, progress)
    }

    fn on_ack_frequency(
        &mut self,
        cx: &FrameContext<'_>,
        request: &AckFrequency,
    ) -> Result<(), TransportError> {
        let extension = self.ack_frequency.as_mut().ok_or_else(not_negotiated)?;
        let policy = extension.on_frame(request)?;
        if let (Some(policy), Some(space)) = (policy, self.space_mut(cx.space)) {
            space.set_ack_policy(policy);
        }
        Ok(())
    }

    fn on_immediate_ack(&mut self, cx: &FrameContext<'_>) -> Result<(), TransportError> {
        if self.ack_frequency.is_none() {
            return Err(not_negotiated());
        }
        if let Some(space) = self.space_mut(cx.space) {
            space.demand_ack();
        }
        Ok(())
    }

    fn on_observed_address(
        &mut self,
        cx: &FrameContext<'_>,
        frame: &ObservedAddress,
    ) -> Result<(), TransportError> {
        let extension = self.address_discovery.as_ref().ok_or_else(unrequested_address)?;
        let tuple = match cx.detour {
            None => Some(&mut self.path.tuple),
            Some(detour) => self.path.tuples_mut().find(|tuple| tuple.addrs == detour.addrs()),
        };
        // What is said of a tuple that is not known yet will be said again when it is.
        let Some(tuple) = tuple else { return Ok(()) };
        let (news, addrs) = (extension.on_frame(frame, &mut tuple.observation)?, tuple.addrs);
        if let Some(address) = news {
            self.events.push_back(Event::Path(PathEvent::Observed { addrs, address }));
            self.note(cx.now, LogEvent::observed_address(address));
        }
        Ok(())
    }

    fn on_new_token(&mut self, frame: &NewToken<'_>) -> Result<(), TransportError> {
        if self.side.is_server() {
            // RFC 9000 §19.7.
            return Err(TransportError::protocol_violation("a client sent a token"));
        }
        if let Some(sessions) = &self.sessions {
            sessions.add_token(frame.token);
        }
        Ok(())
    }

    fn on_handshake_done(&mut self, now: Instant) -> Result<(), TransportError> {
        if self.side.is_server() {
            // RFC 9000 §19.20.
            return Err(TransportError::new(
                TransportErrorCode::PROTOCOL_VIOLATION,
                "a client declared the handshake done",
            )
            .with_frame(FrameType::HANDSHAKE_DONE));
        }
        if !self.handshake.is_confirmed() {
            self.handshake.confirm();
            self.on_handshake_confirmed(now);
        }
        Ok(())
    }

    fn on_connection_close(&mut self, now: Instant, close: &ConnectionClose<'_>) {
        let reason = Bytes::copy_from_slice(close.reason);
        self.drain(now, ConnectionError::from_peer(close.code, reason));
    }
}

/// A frame of an extension that this end has not announced: it might as well be unknown (RFC 9000 §12.4).
fn not_negotiated() -> TransportError {
    TransportError::new(TransportErrorCode::FRAME_ENCODING_ERROR, "the frame's extension was not negotiated")
}
