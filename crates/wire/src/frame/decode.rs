//! From the payload of a packet to its frames (RFC 9000 §12.4).

use std::iter::FusedIterator;

use super::{
    Ack, AckFrequency, BlockRepair, ConnectionClose, Crypto, DataBlocked, Datagram, FecRecovered, FecRepair,
    FecSid, FecWindow, Frame, MaxData, MaxPathId, MaxStreamData, MaxStreams, NewConnectionId, NewToken,
    ObservedAddress, PathAbandon, PathChallenge, PathCidsBlocked, PathResponse, PathStatus, PathsBlocked,
    ResetStream, ResetStreamAt, RetireConnectionId, SourceSymbol, StopSending, Stream, StreamDataBlocked,
    StreamsBlocked, SymbolAck, Timestamp,
};
use crate::{Dialect, Dir, FrameType, PathId, Reader, TransportErrorCode, Truncated, VarInt};

/// Why the payload of a packet is not a sequence of frames. The connection closes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{code} in {frame_type}: {reason}")]
pub struct FrameError {
    /// The type on the wire; [`FrameType::PADDING`] if it is not known (RFC 9000 §19.19).
    pub frame_type: FrameType,
    /// The error to close the connection with.
    pub code: TransportErrorCode,
    /// What is wrong, in words.
    pub reason: &'static str,
}

/// Reads the frames of `payload`, the decrypted content of a packet.
///
/// No frames at all are no error here, but one of the packet (RFC 9000 §12.4).
pub fn frames(payload: &[u8], dialect: Dialect) -> Frames<'_> {
    Frames { reader: Reader::new(payload), dialect }
}

/// The frames of a packet, which end after the first error.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    reader: Reader<'a>,
    dialect: Dialect,
}

impl Frames<'_> {
    /// The bytes of the payload that were not read yet.
    pub fn remaining(&self) -> usize {
        self.reader.remaining()
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let frame = read_frame(&mut self.reader, self.dialect);
        if frame.is_err() {
            // Nobody knows where the next frame would begin.
            self.reader = Reader::new(&[]);
        }
        Some(frame)
    }
}

impl FusedIterator for Frames<'_> {}

/// What is wrong with a frame, before its type is added.
#[derive(Debug)]
pub(super) struct Malformed {
    code: TransportErrorCode,
    reason: &'static str,
}

impl Malformed {
    /// A frame that cannot be decoded: FRAME_ENCODING_ERROR.
    pub(super) const fn new(reason: &'static str) -> Self {
        Self { code: TransportErrorCode::FRAME_ENCODING_ERROR, reason }
    }
}

impl From<Truncated> for Malformed {
    fn from(_: Truncated) -> Self {
        Self::new("the frame is truncated")
    }
}

/// Checks that data ends where an offset can still name the end.
pub(super) fn check_end(offset: VarInt, data: &[u8]) -> Result<(), Malformed> {
    let end = offset.get() + data.len() as u64;
    if end > VarInt::MAX.get() { Err(Malformed::new("the data ends beyond 2^62-1")) } else { Ok(()) }
}

fn read_frame<'a>(reader: &mut Reader<'a>, dialect: Dialect) -> Result<Frame<'a>, FrameError> {
    let frame_type = read_type(reader)?;
    let frame = read_body(frame_type, reader, dialect);
    frame.map_err(|Malformed { code, reason }| FrameError { frame_type, code, reason })
}

fn read_type(reader: &mut Reader<'_>) -> Result<FrameType, FrameError> {
    let before = reader.position();
    let value = reader.varint().map_err(|Truncated| FrameError {
        frame_type: FrameType::PADDING,
        code: TransportErrorCode::FRAME_ENCODING_ERROR,
        reason: "the frame type is truncated",
    })?;
    let frame_type = FrameType(value.get());
    // RFC 9000 §12.4: a type takes the shortest encoding; that others are refused is our choice.
    if reader.position() - before != value.size() {
        let code = TransportErrorCode::PROTOCOL_VIOLATION;
        return Err(FrameError { frame_type, code, reason: "the frame type is not in its shortest form" });
    }
    Ok(frame_type)
}

fn read_body<'a>(
    frame_type: FrameType,
    reader: &mut Reader<'a>,
    dialect: Dialect,
) -> Result<Frame<'a>, Malformed> {
    const ZERO: PathId = PathId::ZERO;
    Ok(match frame_type {
        FrameType::PADDING => {
            skip_padding(reader)?;
            Frame::Padding
        }
        FrameType::PING => Frame::Ping,
        FrameType::ACK => Frame::Ack(Ack::decode(reader, ZERO, false)?),
        FrameType::ACK_ECN => Frame::Ack(Ack::decode(reader, ZERO, true)?),
        FrameType::RESET_STREAM => Frame::ResetStream(ResetStream::decode(reader)?),
        FrameType::RESET_STREAM_AT => Frame::ResetStreamAt(ResetStreamAt::decode(reader)?),
        FrameType::STOP_SENDING => Frame::StopSending(StopSending::decode(reader)?),
        FrameType::CRYPTO => Frame::Crypto(Crypto::decode(reader)?),
        FrameType::NEW_TOKEN => Frame::NewToken(NewToken::decode(reader)?),
        FrameType(flags @ 0x08..=0x0f) => Frame::Stream(Stream::decode(reader, flags as u8)?),
        FrameType::MAX_DATA => Frame::MaxData(MaxData::decode(reader)?),
        FrameType::MAX_STREAM_DATA => Frame::MaxStreamData(MaxStreamData::decode(reader)?),
        FrameType::MAX_STREAMS_BIDI => Frame::MaxStreams(MaxStreams::decode(reader, Dir::Bi)?),
        FrameType::MAX_STREAMS_UNI => Frame::MaxStreams(MaxStreams::decode(reader, Dir::Uni)?),
        FrameType::DATA_BLOCKED => Frame::DataBlocked(DataBlocked::decode(reader)?),
        FrameType::STREAM_DATA_BLOCKED => Frame::StreamDataBlocked(StreamDataBlocked::decode(reader)?),
        FrameType::STREAMS_BLOCKED_BIDI => Frame::StreamsBlocked(StreamsBlocked::decode(reader, Dir::Bi)?),
        FrameType::STREAMS_BLOCKED_UNI => Frame::StreamsBlocked(StreamsBlocked::decode(reader, Dir::Uni)?),
        FrameType::NEW_CONNECTION_ID => Frame::NewConnectionId(NewConnectionId::decode(reader, ZERO)?),
        FrameType::RETIRE_CONNECTION_ID => {
            Frame::RetireConnectionId(RetireConnectionId::decode(reader, ZERO)?)
        }
        FrameType::PATH_CHALLENGE => Frame::PathChallenge(PathChallenge::decode(reader)?),
        FrameType::PATH_RESPONSE => Frame::PathResponse(PathResponse::decode(reader)?),
        FrameType::CONNECTION_CLOSE => Frame::ConnectionClose(ConnectionClose::decode_transport(reader)?),
        FrameType::APPLICATION_CLOSE => Frame::ConnectionClose(ConnectionClose::decode_application(reader)?),
        FrameType::HANDSHAKE_DONE => Frame::HandshakeDone,
        FrameType::IMMEDIATE_ACK => Frame::ImmediateAck,
        FrameType::ACK_FREQUENCY => Frame::AckFrequency(AckFrequency::decode(reader)?),
        FrameType::FEC_SID => Frame::FecSid(FecSid::decode(reader)?),
        FrameType::FEC_REPAIR => Frame::FecRepair(FecRepair::decode(reader)?),
        FrameType::FEC_RECOVERED => Frame::FecRecovered(FecRecovered::decode(reader)?),
        FrameType::SOURCE_SYMBOL => Frame::SourceSymbol(SourceSymbol::decode(reader)?),
        FrameType::REPAIR => Frame::BlockRepair(BlockRepair::decode(reader)?),
        FrameType::SYMBOL_ACK => Frame::SymbolAck(SymbolAck::decode(reader)?),
        FrameType::FEC_WINDOW => Frame::FecWindow(FecWindow::decode(reader)?),
        FrameType::TIMESTAMP => Frame::Timestamp(Timestamp::decode(reader)?),
        FrameType::OBSERVED_ADDRESS_V4 | FrameType::OBSERVED_ADDRESS_V6 => {
            Frame::ObservedAddress(ObservedAddress::decode(reader, frame_type)?)
        }
        FrameType::DATAGRAM => Frame::Datagram(Datagram::decode(reader, false)?),
        FrameType::DATAGRAM_WITH_LENGTH => Frame::Datagram(Datagram::decode(reader, true)?),
        other if dialect == Dialect::Multipath => read_path_frame(other, reader)?,
        _ => return Err(UNKNOWN_TYPE),
    })
}

/// RFC 9000 §12.4: an unknown type is a FRAME_ENCODING_ERROR.
const UNKNOWN_TYPE: Malformed = Malformed::new("the frame type is unknown");

/// Reads the frames that begin with a path.
fn read_path_frame<'a>(frame_type: FrameType, reader: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    Ok(match frame_type {
        FrameType::PATH_ACK | FrameType::PATH_ACK_ECN => {
            let path = read_path(reader)?;
            Frame::Ack(Ack::decode(reader, path, frame_type == FrameType::PATH_ACK_ECN)?)
        }
        FrameType::PATH_NEW_CONNECTION_ID => {
            let path = read_path(reader)?;
            Frame::NewConnectionId(NewConnectionId::decode(reader, path)?)
        }
        FrameType::PATH_RETIRE_CONNECTION_ID => {
            let path = read_path(reader)?;
            Frame::RetireConnectionId(RetireConnectionId::decode(reader, path)?)
        }
        FrameType::PATH_ABANDON => Frame::PathAbandon(PathAbandon::decode(reader)?),
        FrameType::PATH_STATUS_AVAILABLE => Frame::PathStatus(PathStatus::decode(reader, true)?),
        FrameType::PATH_STATUS_BACKUP => Frame::PathStatus(PathStatus::decode(reader, false)?),
        FrameType::MAX_PATH_ID => Frame::MaxPathId(MaxPathId::decode(reader)?),
        FrameType::PATHS_BLOCKED => Frame::PathsBlocked(PathsBlocked::decode(reader)?),
        FrameType::PATH_CIDS_BLOCKED => Frame::PathCidsBlocked(PathCidsBlocked::decode(reader)?),
        _ => return Err(UNKNOWN_TYPE),
    })
}

pub(super) fn read_path(reader: &mut Reader<'_>) -> Result<PathId, Malformed> {
    let id = u32::try_from(reader.varint()?.get());
    // RFC 10069: a path ID above the limit, which is below 2^32, is a PROTOCOL_VIOLATION.
    id.map(PathId).map_err(|_| Malformed {
        code: TransportErrorCode::PROTOCOL_VIOLATION,
        reason: "the path ID is 2^32 or more",
    })
}

/// Skips the rest of a run of PADDING, sixteen bytes at a time where it is long.
fn skip_padding(reader: &mut Reader<'_>) -> Result<(), Truncated> {
    let (blocks, _) = reader.rest().as_chunks::<16>();
    let zero_blocks = blocks.iter().take_while(|block| **block == [0; 16]).count();
    reader.bytes(zero_blocks * 16)?;
    let zeros = reader.rest().iter().take_while(|byte| **byte == 0).count();
    reader.bytes(zeros)?;
    Ok(())
}

#[cfg(test)]
mod tests;
