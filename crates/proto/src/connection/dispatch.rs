//! The list of frames and their owners: where each frame that arrives goes.
//!
//! A new frame is a line here; the compiler names it if it is missing. What a frame means for more than its owner leaves
//! as a [`Consequence`].

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_wire::{
    AckFrequency, ConnectionId, Crypto, Frame, FrameType, NewToken, ObservedAddress, PacketKind, PathAbandon,
    PathStatus, TransportErrorCode,
};

use super::Connection;
use super::delivery::Owners;
use super::handshake::Progress;
use super::migration::tell_of_given_up;
use super::off_path_arrival::OffPathArrival;
use super::outbox::Outbox;
use super::recovery::Recovery;
use super::telemetry::Telemetry;
use crate::config::TransportConfig;
use crate::datagrams::Datagrams;
use crate::error::TransportError;
use crate::events::{ConnectionError, PathEvent};
use crate::ext::{FecDialect, unrequested_address, unrequested_timestamp};
use crate::ids::SpaceId;
use crate::log::LogEvent;
use crate::path::Pending;
use crate::sessions::SessionView;
use crate::streams::RecvContext;

/// How frames came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// In a packet that was opened.
    Packet,
    /// In what forward erasure correction made again of a packet that was lost: its frames count, the packet is
    /// not acknowledged, and nothing is learned of the path.
    Recovered,
}

/// Where a frame was found.
pub(super) struct FrameContext<'a> {
    pub(super) now: Instant,
    pub(super) origin: Origin,
    pub(super) space: SpaceId,
    pub(super) kind: PacketKind,
    /// The connection ID that the packet was sent to.
    pub(super) dst: ConnectionId,
    /// The payload that the frame is part of: data in it is kept as slices of it.
    pub(super) payload: &'a Bytes,
    /// The generation of the 1-RTT keys that opened the packet.
    pub(super) generation: u64,
    /// Where the packet came from, if it has not taken the tuple in use.
    pub(super) off_path: Option<&'a OffPathArrival>,
    /// Whether it arrived at a socket that this end sends from no more, where no challenge can be answered.
    pub(super) late: bool,
}

/// What a frame means beyond its owner.
pub(super) enum Consequence {
    Nothing,
    /// The handshake has moved on.
    Handshake(Progress),
    /// The server says that the handshake is done.
    HandshakeDone,
    /// Data has arrived: the peer may make use of more than it was told that it can.
    StreamData,
    /// The peer asks whether this end receives where the packet arrived.
    PathChallenge([u8; 8]),
    /// The peer answers such a question.
    PathResponse([u8; 8]),
    /// The peer abandons a path.
    PathAbandon(PathAbandon),
    /// The peer says whether a path should be used.
    PathStatus(PathStatus),
    /// The figures of the path have changed.
    Acked,
    /// The peer has closed the connection.
    Closed(Box<ConnectionError>),
}

/// The owners of frames that arrive, borrowed once.
pub(super) struct Receivers<'c> {
    pub(super) is_server: bool,
    pub(super) config: &'c TransportConfig,
    pub(super) owners: Owners<'c>,
    pub(super) datagrams: &'c mut Datagrams,
    pub(super) sessions: Option<&'c SessionView>,
    pub(super) outbox: &'c mut Outbox,
    pub(super) telemetry: &'c mut Telemetry,
}

impl Connection {
    /// Borrows the owners of frames that arrive.
    #[inline]
    pub(super) fn receivers(&mut self) -> Receivers<'_> {
        Receivers {
            is_server: self.side.is_server(),
            config: &self.config,
            owners: Owners {
                handshake: &mut self.handshake,
                paths: &mut self.paths,
                tokens: &mut self.address_tokens,
                extensions: &mut self.extensions,
                streams: &mut self.streams,
            },
            datagrams: &mut self.datagrams,
            sessions: self.sessions.as_deref(),
            outbox: &mut self.outbox,
            telemetry: &mut self.telemetry,
        }
    }
}

impl Receivers<'_> {
    /// Hands a frame to its owner.
    pub(super) fn dispatch(
        &mut self,
        frame: &Frame<'_>,
        cx: &FrameContext<'_>,
    ) -> Result<Consequence, TransportError> {
        self.owners.paths.raise(who_may_answer(frame));
        let Owners { handshake, paths, streams, extensions, .. } = &mut self.owners;
        let events = &mut self.outbox.endpoint_events;
        match frame {
            Frame::Padding | Frame::Ping => {}
            Frame::Ack(ack) => {
                // Application data of a path is acknowledged on any path.
                let space = if cx.space.is_data() { SpaceId::Data(ack.path) } else { cx.space };
                if cx.space.is_data() && paths.get(ack.path).is_none() {
                    return paths.check_never_sent(ack.path).map(|()| Consequence::Nothing);
                }
                self.recovery(cx.now).on_ack(space, ack, cx)?;
                return Ok(Consequence::Acked);
            }
            Frame::Crypto(crypto) => return self.on_crypto(cx, crypto),
            Frame::Stream(stream) => {
                let stream_cx =
                    RecvContext { now: cx.now, rtt: paths.rtt_max(), early: cx.kind == PacketKind::ZeroRtt };
                streams.on_stream(stream, cx.payload, &stream_cx)?;
                return Ok(Consequence::StreamData);
            }
            Frame::ResetStream(reset) => streams.on_reset_stream(reset)?,
            Frame::ResetStreamAt(_) if !self.config.reset_stream_at => return Err(not_negotiated()),
            Frame::ResetStreamAt(reset) => streams.on_reset_stream_at(reset)?,
            Frame::StopSending(stop) => streams.on_stop_sending(stop)?,
            Frame::MaxData(max) => streams.on_max_data(max),
            Frame::MaxStreamData(max) => streams.on_max_stream_data(max)?,
            Frame::MaxStreams(max) => streams.on_max_streams(max),
            Frame::DataBlocked(blocked) => streams.on_data_blocked(blocked),
            Frame::StreamDataBlocked(blocked) => streams.on_stream_data_blocked(blocked)?,
            Frame::StreamsBlocked(blocked) => streams.on_streams_blocked(blocked),
            Frame::Datagram(datagram) => self.datagrams.on_datagram(datagram, cx.payload)?,
            Frame::NewConnectionId(new) => {
                paths.on_new_connection_id(new, events)?;
                if let Some(path) = paths.get_mut(new.path) {
                    tell_of_given_up(cx.now, path, self.outbox, self.telemetry);
                }
            }
            Frame::RetireConnectionId(retire) => paths.on_retire_connection_id(retire, &cx.dst, events)?,
            Frame::PathChallenge(challenge) => return Ok(Consequence::PathChallenge(challenge.data)),
            Frame::PathResponse(response) => return Ok(Consequence::PathResponse(response.data)),
            Frame::NewToken(token) => self.on_new_token(token)?,
            Frame::HandshakeDone if self.is_server => return Err(done_by_client()),
            Frame::HandshakeDone if handshake.is_confirmed() => {}
            Frame::HandshakeDone => return Ok(Consequence::HandshakeDone),
            Frame::AckFrequency(request) => self.on_ack_frequency(cx, request)?,
            Frame::Timestamp(stamp) => {
                extensions.timestamps.as_mut().ok_or_else(unrequested_timestamp)?.on_frame(stamp)?;
            }
            Frame::ObservedAddress(observed) => self.on_observed_address(cx, observed)?,
            Frame::ImmediateAck => self.on_immediate_ack(cx)?,
            Frame::FecSid(sid) => {
                extensions.fec_receiver_of(FecDialect::X).ok_or_else(not_negotiated)?.on_sid(sid)?
            }
            Frame::FecRepair(repair) => {
                let receiver = extensions.fec_receiver_of(FecDialect::X).ok_or_else(not_negotiated)?;
                let event = receiver.on_repair(repair)?;
                self.telemetry.record(cx.now, LogEvent::Fec(event));
            }
            Frame::FecRecovered(report) => {
                let delivered = extensions
                    .fec_sender_of(FecDialect::X)
                    .ok_or_else(not_negotiated)?
                    .on_recovered(report)?;
                self.owners.deliver_recovered(delivered);
            }
            // Taken before, where it belongs to a symbol of the packet: `connection/payload.rs`.
            Frame::SourceSymbol(_) => return Err(not_negotiated()),
            Frame::BlockRepair(repair) => {
                let receiver = extensions.fec_receiver_of(FecDialect::M).ok_or_else(not_negotiated)?;
                let event = receiver.on_block_repair(repair)?;
                self.telemetry.record(cx.now, LogEvent::Fec(event));
            }
            Frame::SymbolAck(ack) => {
                let delivered =
                    extensions.fec_sender_of(FecDialect::M).ok_or_else(not_negotiated)?.on_symbol_ack(ack)?;
                self.owners.deliver_recovered(delivered);
            }
            Frame::FecWindow(window) => {
                let fec = extensions.fec.as_mut().filter(|fec| fec.speaks(FecDialect::M));
                fec.ok_or_else(not_negotiated)?.on_window(window);
            }
            Frame::PathAbandon(abandon) => return Ok(Consequence::PathAbandon(*abandon)),
            Frame::PathStatus(status) => return Ok(Consequence::PathStatus(*status)),
            Frame::MaxPathId(max) => {
                paths.on_max_path_id(max, handshake.all_peer_parameters().as_ref(), events)?;
            }
            Frame::PathsBlocked(blocked) => paths.on_paths_blocked(blocked)?,
            Frame::PathCidsBlocked(blocked) => paths.on_cids_blocked(blocked)?,
            Frame::ConnectionClose(close) => {
                let reason = Bytes::copy_from_slice(close.reason);
                return Ok(Consequence::Closed(Box::new(ConnectionError::from_peer(close.code, reason))));
            }
        }
        Ok(Consequence::Nothing)
    }

    fn recovery(&mut self, now: Instant) -> Recovery<'_> {
        let Owners { handshake, paths, tokens, extensions, streams } = &mut self.owners;
        Recovery {
            now,
            owners: Owners { handshake, paths, tokens, extensions, streams },
            stats: &mut self.telemetry.stats,
            log: self.telemetry.log.as_deref_mut(),
        }
    }

    fn on_crypto(
        &mut self,
        cx: &FrameContext<'_>,
        crypto: &Crypto<'_>,
    ) -> Result<Consequence, TransportError> {
        let handshake = &mut *self.owners.handshake;
        let before = handshake.versions.current;
        let progress = handshake.on_crypto(cx.space.level(), crypto);
        let version = handshake.versions.current;
        if version != before {
            self.telemetry.record(cx.now, LogEvent::VersionChosen(Some(version)));
        }
        Ok(Consequence::Handshake(progress?))
    }

    fn on_ack_frequency(
        &mut self,
        cx: &FrameContext<'_>,
        request: &AckFrequency,
    ) -> Result<(), TransportError> {
        let extension = self.owners.extensions.ack_frequency.as_mut().ok_or_else(not_negotiated)?;
        let policy = extension.on_frame(request)?;
        // What the peer asks for holds on all paths (draft-ietf-quic-multipath §3.3).
        if let (Some(policy), SpaceId::Data(_)) = (policy, cx.space) {
            self.owners.paths.iter_mut().for_each(|path| path.space.set_ack_policy(policy));
        }
        Ok(())
    }

    fn on_immediate_ack(&mut self, cx: &FrameContext<'_>) -> Result<(), TransportError> {
        if self.owners.extensions.ack_frequency.is_none() {
            return Err(not_negotiated());
        }
        if let SpaceId::Data(path) = cx.space
            && let Some(path) = self.owners.paths.get_mut(path)
        {
            path.space.demand_ack();
        }
        Ok(())
    }

    fn on_observed_address(
        &mut self,
        cx: &FrameContext<'_>,
        frame: &ObservedAddress,
    ) -> Result<(), TransportError> {
        let extension = self.owners.extensions.address_discovery.as_ref().ok_or_else(unrequested_address)?;
        let SpaceId::Data(id) = cx.space else { return Ok(()) };
        let Some(path) = self.owners.paths.get_mut(id) else { return Ok(()) };
        let tuple = match cx.off_path {
            None => Some(&mut path.tuple),
            Some(off_path) => path.tuples_mut().find(|tuple| tuple.addrs == off_path.addrs()),
        };
        // What is said of a tuple that is not known yet will be said again when it is.
        let Some(tuple) = tuple else { return Ok(()) };
        let (news, addrs) = (extension.on_frame(frame, &mut tuple.observation)?, tuple.addrs);
        if let Some(address) = news {
            self.outbox.push_path(PathEvent::Observed { path: id, addrs, address });
            self.telemetry.record(cx.now, LogEvent::observed_address(address));
        }
        Ok(())
    }

    fn on_new_token(&mut self, frame: &NewToken<'_>) -> Result<(), TransportError> {
        if self.is_server {
            // RFC 9000 §19.7.
            return Err(TransportError::protocol_violation("a client sent a token"));
        }
        if let Some(sessions) = self.sessions {
            sessions.add_token(frame.token);
        }
        Ok(())
    }
}

/// The writers that may have something to send after a frame. Of frames that come rarely, all of them.
#[inline]
fn who_may_answer(frame: &Frame<'_>) -> Pending {
    match frame {
        // What an acknowledgement brings is told by those whose frames are acknowledged or lost.
        Frame::Padding | Frame::Ping | Frame::Ack(_) | Frame::Timestamp(_) | Frame::ImmediateAck => {
            Pending::NONE
        }
        // What was recovered is told when it is handed on.
        Frame::FecSid(_)
        | Frame::FecRepair(_)
        | Frame::FecRecovered(_)
        | Frame::SourceSymbol(_)
        | Frame::BlockRepair(_)
        | Frame::SymbolAck(_)
        | Frame::FecWindow(_) => Pending::NONE,
        Frame::Stream(_) => Pending::STREAMS.with(Pending::TOKENS),
        Frame::MaxData(_) | Frame::MaxStreamData(_) | Frame::DataBlocked(_) | Frame::StreamDataBlocked(_) => {
            Pending::STREAMS
        }
        Frame::Datagram(_) => Pending::DATAGRAMS,
        _ => Pending::ALL,
    }
}

/// RFC 9000 §19.20.
fn done_by_client() -> TransportError {
    TransportError::protocol_violation("a client declared the handshake done")
        .with_frame(FrameType::HANDSHAKE_DONE)
}

/// A frame of an extension that this end has not announced: it might as well be unknown (RFC 9000 §12.4).
fn not_negotiated() -> TransportError {
    TransportError::new(TransportErrorCode::FRAME_ENCODING_ERROR, "the frame's extension was not negotiated")
}
