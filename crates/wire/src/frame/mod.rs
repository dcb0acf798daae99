//! Frames (RFC 9000 §19, RFC 9221, RFC 10069, and the drafts of extensions that the files name).
//!
//! One file for each family: the value, how it is read, how it is written, how long it is. Here is the sum of
//! them and what is said of all: whether a frame elicits acknowledgements, where it may be.
//!
//! Frames always carry their path. The [`Dialect`] says whether it is on the wire; `Dialect::Multipath` is for
//! 1-RTT packets only, as all others are of path 0.

mod ack;
mod ack_frequency;
mod close;
mod connection_id;
mod crypto;
mod datagram;
mod decode;
mod fec;
mod flow_control;
mod multipath;
mod new_token;
mod observed_address;
mod path_validation;
mod reset_stream;
mod reset_stream_at;
mod stream;
mod timestamp;

pub use ack::{Ack, AckEncoder, AckRanges, AckWritten, EcnCounts};
pub use ack_frequency::AckFrequency;
pub use close::{CloseCode, ConnectionClose};
pub use connection_id::{NewConnectionId, RetireConnectionId};
pub use crypto::Crypto;
pub use datagram::Datagram;
pub use decode::{FrameError, Frames, frames};
pub use fec::{BlockRepair, FecRecovered, FecRepair, FecSid, FecWindow, SourceSymbol, SymbolAck};
pub use flow_control::{DataBlocked, MaxData, MaxStreamData, MaxStreams, StreamDataBlocked, StreamsBlocked};
pub use multipath::{MaxPathId, PathAbandon, PathCidsBlocked, PathStatus, PathsBlocked};
pub use new_token::NewToken;
pub use observed_address::ObservedAddress;
pub use path_validation::{PathChallenge, PathResponse};
pub use reset_stream::{ResetStream, StopSending};
pub use reset_stream_at::ResetStreamAt;
pub use stream::{Stream, StreamHeader};
pub use timestamp::Timestamp;

use decode::{Malformed, check_end};

use crate::{Dialect, FrameType, PacketKind, PathId, VarInt, Writer};

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Bytes that mean nothing (RFC 9000 §19.1). A received run of any length is one frame; one byte is
    /// written.
    Padding,
    /// Asks for an acknowledgement (RFC 9000 §19.2).
    Ping,
    /// Acknowledges packets.
    Ack(Ack<'a>),
    /// Ends the sending part of a stream abruptly.
    ResetStream(ResetStream),
    /// Ends the sending part of a stream abruptly, but for its beginning.
    ResetStreamAt(ResetStreamAt),
    /// Asks the peer to stop sending on a stream.
    StopSending(StopSending),
    /// A piece of the handshake.
    Crypto(Crypto<'a>),
    /// Gives the client a token for a future connection.
    NewToken(NewToken<'a>),
    /// A piece of a stream.
    Stream(Stream<'a>),
    /// Raises the limit of the whole connection.
    MaxData(MaxData),
    /// Raises the limit of a stream.
    MaxStreamData(MaxStreamData),
    /// Raises the number of streams.
    MaxStreams(MaxStreams),
    /// Tells that the limit of the connection holds data back.
    DataBlocked(DataBlocked),
    /// Tells that the limit of a stream holds data back.
    StreamDataBlocked(StreamDataBlocked),
    /// Tells that the number of streams holds back the opening of one.
    StreamsBlocked(StreamsBlocked),
    /// Gives the peer a connection ID.
    NewConnectionId(NewConnectionId),
    /// Promises not to send to a connection ID again.
    RetireConnectionId(RetireConnectionId),
    /// Asks the peer to prove that it receives on a network path.
    PathChallenge(PathChallenge),
    /// Answers a challenge.
    PathResponse(PathResponse),
    /// Closes the connection.
    ConnectionClose(ConnectionClose<'a>),
    /// Confirms the handshake to the client (RFC 9000 §19.20).
    HandshakeDone,
    /// Data that is not retransmitted.
    Datagram(Datagram<'a>),
    /// Asks the peer to acknowledge more or less often.
    AckFrequency(AckFrequency),
    /// Tells when the packet was sent.
    Timestamp(Timestamp),
    /// Tells the peer its address, as this end sees it.
    ObservedAddress(ObservedAddress),
    /// What follows in the packet is protected by forward erasure correction.
    FecSid(FecSid),
    /// A repair symbol of forward erasure correction.
    FecRepair(FecRepair<'a>),
    /// Tells what forward erasure correction has recovered.
    FecRecovered(FecRecovered),
    /// Frames that are protected by forward erasure correction.
    SourceSymbol(SourceSymbol<'a>),
    /// A repair symbol over a block of source symbols.
    BlockRepair(BlockRepair<'a>),
    /// Tells which source symbols arrived or were recovered.
    SymbolAck(SymbolAck<'a>),
    /// Tells how many symbols are kept.
    FecWindow(FecWindow),
    /// Asks for an acknowledgement without delay (draft-ietf-quic-ack-frequency §5).
    ImmediateAck,
    /// Ends a path.
    PathAbandon(PathAbandon),
    /// Says whether the peer should send on a path.
    PathStatus(PathStatus),
    /// Raises the largest path ID.
    MaxPathId(MaxPathId),
    /// Tells that the largest path ID holds back the opening of a path.
    PathsBlocked(PathsBlocked),
    /// Tells that a path has no connection ID.
    PathCidsBlocked(PathCidsBlocked),
}

impl Frame<'_> {
    /// The type, as errors name it. Where bits of the type are flags, the first number stands for all; of the
    /// frames that have a form for several paths, it is that form only for paths other than 0.
    pub fn frame_type(&self) -> FrameType {
        match self {
            Self::Padding => FrameType::PADDING,
            Self::Ping => FrameType::PING,
            Self::Ack(ack) => match (ack.path, ack.ecn) {
                (PathId::ZERO, None) => FrameType::ACK,
                (PathId::ZERO, Some(_)) => FrameType::ACK_ECN,
                (_, None) => FrameType::PATH_ACK,
                (_, Some(_)) => FrameType::PATH_ACK_ECN,
            },
            Self::ResetStream(_) => FrameType::RESET_STREAM,
            Self::ResetStreamAt(_) => FrameType::RESET_STREAM_AT,
            Self::StopSending(_) => FrameType::STOP_SENDING,
            Self::Crypto(_) => FrameType::CRYPTO,
            Self::NewToken(_) => FrameType::NEW_TOKEN,
            Self::Stream(_) => FrameType::STREAM,
            Self::MaxData(_) => FrameType::MAX_DATA,
            Self::MaxStreamData(_) => FrameType::MAX_STREAM_DATA,
            Self::MaxStreams(frame) => frame.frame_type(),
            Self::DataBlocked(_) => FrameType::DATA_BLOCKED,
            Self::StreamDataBlocked(_) => FrameType::STREAM_DATA_BLOCKED,
            Self::StreamsBlocked(frame) => frame.frame_type(),
            Self::NewConnectionId(frame) if frame.path != PathId::ZERO => FrameType::PATH_NEW_CONNECTION_ID,
            Self::NewConnectionId(_) => FrameType::NEW_CONNECTION_ID,
            Self::RetireConnectionId(frame) if frame.path != PathId::ZERO => {
                FrameType::PATH_RETIRE_CONNECTION_ID
            }
            Self::RetireConnectionId(_) => FrameType::RETIRE_CONNECTION_ID,
            Self::PathChallenge(_) => FrameType::PATH_CHALLENGE,
            Self::PathResponse(_) => FrameType::PATH_RESPONSE,
            Self::ConnectionClose(frame) => frame.frame_type(),
            Self::HandshakeDone => FrameType::HANDSHAKE_DONE,
            Self::Datagram(_) => FrameType::DATAGRAM,
            Self::AckFrequency(_) => FrameType::ACK_FREQUENCY,
            Self::ImmediateAck => FrameType::IMMEDIATE_ACK,
            Self::Timestamp(_) => FrameType::TIMESTAMP,
            Self::FecSid(_) => FrameType::FEC_SID,
            Self::FecRepair(_) => FrameType::FEC_REPAIR,
            Self::FecRecovered(_) => FrameType::FEC_RECOVERED,
            Self::SourceSymbol(_) => FrameType::SOURCE_SYMBOL,
            Self::BlockRepair(_) => FrameType::REPAIR,
            Self::SymbolAck(_) => FrameType::SYMBOL_ACK,
            Self::FecWindow(_) => FrameType::FEC_WINDOW,
            Self::ObservedAddress(frame) => frame.frame_type(),
            Self::PathAbandon(_) => FrameType::PATH_ABANDON,
            Self::PathStatus(frame) => frame.frame_type(),
            Self::MaxPathId(_) => FrameType::MAX_PATH_ID,
            Self::PathsBlocked(_) => FrameType::PATHS_BLOCKED,
            Self::PathCidsBlocked(_) => FrameType::PATH_CIDS_BLOCKED,
        }
    }

    /// Whether the receiver has to acknowledge the packet before long (RFC 9002 §2).
    pub fn is_ack_eliciting(&self) -> bool {
        // draft-huitema-quic-ts §2.3: a timestamp is like an acknowledgement.
        !matches!(self, Self::Padding | Self::Ack(_) | Self::ConnectionClose(_) | Self::Timestamp(_))
    }

    /// Whether the frame leaves the peer's address as it is, when it comes from a new one (RFC 9000 §9.1).
    pub fn is_probing(&self) -> bool {
        matches!(
            self,
            Self::Padding
                | Self::PathChallenge(_)
                | Self::PathResponse(_)
                | Self::NewConnectionId(_)
                // draft-ietf-quic-address-discovery §4.1.
                | Self::ObservedAddress(_)
        )
    }

    /// Whether packets of this kind may carry the frame (RFC 9000 §12.4, table 3). Elsewhere it is a
    /// PROTOCOL_VIOLATION.
    pub fn is_permitted_in(&self, kind: PacketKind) -> bool {
        match self {
            Self::Padding | Self::Ping => true,
            Self::ConnectionClose(close) => match close.code {
                CloseCode::Transport { .. } => true,
                // RFC 9000 §12.5: the application's state is not to be exposed before the handshake.
                CloseCode::Application(_) => matches!(kind, PacketKind::ZeroRtt | PacketKind::OneRtt),
            },
            Self::Ack(ack) => match kind {
                PacketKind::Initial | PacketKind::Handshake => ack.path == PathId::ZERO,
                PacketKind::ZeroRtt => false,
                PacketKind::OneRtt => true,
            },
            Self::Crypto(_) => kind != PacketKind::ZeroRtt,
            // A client cannot have received what these answer before the handshake (RFC 9000 §12.5).
            Self::NewToken(_) | Self::RetireConnectionId(_) | Self::PathResponse(_) | Self::HandshakeDone => {
                kind == PacketKind::OneRtt
            }
            // draft-ietf-quic-ack-frequency §3: min_ack_delay, which permits them, is not remembered for 0-RTT.
            Self::AckFrequency(_) | Self::ImmediateAck => kind == PacketKind::OneRtt,
            // What permits them is not remembered for 0-RTT.
            Self::FecSid(_)
            | Self::FecRepair(_)
            | Self::FecRecovered(_)
            | Self::SourceSymbol(_)
            | Self::BlockRepair(_)
            | Self::SymbolAck(_)
            | Self::FecWindow(_) => kind == PacketKind::OneRtt,
            // draft-huitema-quic-ts §2.2.
            Self::Timestamp(_) => kind == PacketKind::OneRtt,
            // RFC 10069 §4.
            Self::PathAbandon(_)
            | Self::PathStatus(_)
            | Self::MaxPathId(_)
            | Self::PathsBlocked(_)
            | Self::PathCidsBlocked(_) => kind == PacketKind::OneRtt,
            Self::NewConnectionId(frame) => match kind {
                PacketKind::Initial | PacketKind::Handshake => false,
                PacketKind::ZeroRtt => frame.path == PathId::ZERO,
                PacketKind::OneRtt => true,
            },
            Self::ResetStream(_)
            | Self::ResetStreamAt(_)
            | Self::StopSending(_)
            | Self::Stream(_)
            | Self::MaxData(_)
            | Self::MaxStreamData(_)
            | Self::MaxStreams(_)
            | Self::DataBlocked(_)
            | Self::StreamDataBlocked(_)
            | Self::StreamsBlocked(_)
            | Self::PathChallenge(_)
            | Self::ObservedAddress(_)
            | Self::Datagram(_) => matches!(kind, PacketKind::ZeroRtt | PacketKind::OneRtt),
        }
    }

    /// The bytes that [`Frame::encode`] writes.
    pub fn encoded_len(&self, dialect: Dialect) -> usize {
        match self {
            Self::Padding | Self::Ping | Self::HandshakeDone | Self::ImmediateAck => 1,
            Self::Ack(frame) => frame.encoded_len(dialect),
            Self::ResetStream(frame) => frame.encoded_len(),
            Self::ResetStreamAt(frame) => frame.encoded_len(),
            Self::StopSending(frame) => frame.encoded_len(),
            Self::Crypto(frame) => frame.encoded_len(),
            Self::NewToken(frame) => frame.encoded_len(),
            Self::Stream(frame) => frame.encoded_len(),
            Self::MaxData(frame) => frame.encoded_len(),
            Self::MaxStreamData(frame) => frame.encoded_len(),
            Self::MaxStreams(frame) => frame.encoded_len(),
            Self::DataBlocked(frame) => frame.encoded_len(),
            Self::StreamDataBlocked(frame) => frame.encoded_len(),
            Self::StreamsBlocked(frame) => frame.encoded_len(),
            Self::NewConnectionId(frame) => frame.encoded_len(dialect),
            Self::RetireConnectionId(frame) => frame.encoded_len(dialect),
            Self::PathChallenge(frame) => frame.encoded_len(),
            Self::PathResponse(frame) => frame.encoded_len(),
            Self::ConnectionClose(frame) => frame.encoded_len(),
            Self::Datagram(frame) => frame.encoded_len(),
            Self::AckFrequency(frame) => frame.encoded_len(),
            Self::Timestamp(frame) => frame.encoded_len(),
            Self::FecSid(_) => FecSid::LEN,
            Self::FecRepair(frame) => frame.encoded_len(),
            Self::FecRecovered(frame) => frame.encoded_len(),
            Self::SourceSymbol(frame) => frame.encoded_len(),
            Self::BlockRepair(frame) => frame.encoded_len(),
            Self::SymbolAck(frame) => frame.encoded_len(),
            Self::FecWindow(frame) => frame.encoded_len(),
            Self::ObservedAddress(frame) => frame.encoded_len(),
            Self::PathAbandon(frame) => frame.encoded_len(),
            Self::PathStatus(frame) => frame.encoded_len(),
            Self::MaxPathId(frame) => frame.encoded_len(),
            Self::PathsBlocked(frame) => frame.encoded_len(),
            Self::PathCidsBlocked(frame) => frame.encoded_len(),
        }
    }

    /// Writes the frame. Frames of paths other than 0 are for `Dialect::Multipath` only.
    ///
    /// # Panics
    /// Panics if `writer` has no room for [`Frame::encoded_len`] bytes.
    pub fn encode(&self, dialect: Dialect, writer: &mut Writer<'_>) {
        match self {
            Self::Padding | Self::Ping | Self::HandshakeDone | Self::ImmediateAck => {
                put_type(self.frame_type(), writer);
            }
            Self::Ack(frame) => frame.encode(dialect, writer),
            Self::ResetStream(frame) => frame.encode(writer),
            Self::ResetStreamAt(frame) => frame.encode(writer),
            Self::StopSending(frame) => frame.encode(writer),
            Self::Crypto(frame) => frame.encode(writer),
            Self::NewToken(frame) => frame.encode(writer),
            Self::Stream(frame) => frame.encode(writer),
            Self::MaxData(frame) => frame.encode(writer),
            Self::MaxStreamData(frame) => frame.encode(writer),
            Self::MaxStreams(frame) => frame.encode(writer),
            Self::DataBlocked(frame) => frame.encode(writer),
            Self::StreamDataBlocked(frame) => frame.encode(writer),
            Self::StreamsBlocked(frame) => frame.encode(writer),
            Self::NewConnectionId(frame) => frame.encode(dialect, writer),
            Self::RetireConnectionId(frame) => frame.encode(dialect, writer),
            Self::PathChallenge(frame) => frame.encode(writer),
            Self::PathResponse(frame) => frame.encode(writer),
            Self::ConnectionClose(frame) => frame.encode(writer),
            Self::Datagram(frame) => frame.encode(writer),
            Self::AckFrequency(frame) => frame.encode(writer),
            Self::Timestamp(frame) => frame.encode(writer),
            Self::FecSid(frame) => frame.encode(writer),
            Self::FecRepair(frame) => frame.encode(writer),
            Self::FecRecovered(frame) => frame.encode(writer),
            Self::SourceSymbol(frame) => frame.encode(writer),
            Self::BlockRepair(frame) => frame.encode(writer),
            Self::SymbolAck(frame) => frame.encode(writer),
            Self::FecWindow(frame) => frame.encode(writer),
            Self::ObservedAddress(frame) => frame.encode(writer),
            Self::PathAbandon(frame) => frame.encode(writer),
            Self::PathStatus(frame) => frame.encode(writer),
            Self::MaxPathId(frame) => frame.encode(writer),
            Self::PathsBlocked(frame) => frame.encode(writer),
            Self::PathCidsBlocked(frame) => frame.encode(writer),
        }
    }
}

fn type_len(frame_type: FrameType) -> usize {
    VarInt::saturating(frame_type.0).size()
}

fn put_type(frame_type: FrameType, writer: &mut Writer<'_>) {
    writer.put_varint(VarInt::saturating(frame_type.0));
}

fn path_len(dialect: Dialect, path: PathId) -> usize {
    match dialect {
        Dialect::SinglePath => 0,
        Dialect::Multipath => VarInt::from(path.0).size(),
    }
}

fn put_path(dialect: Dialect, path: PathId, writer: &mut Writer<'_>) {
    match dialect {
        Dialect::SinglePath => debug_assert_eq!(path, PathId::ZERO, "a connection of one path has path 0"),
        Dialect::Multipath => writer.put_varint(path.0.into()),
    }
}

fn prefixed_len(bytes: &[u8]) -> usize {
    VarInt::saturating(bytes.len() as u64).size() + bytes.len()
}

#[cfg(test)]
mod tests;
