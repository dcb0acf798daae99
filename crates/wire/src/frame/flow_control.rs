//! Limits and complaints about them: MAX_DATA, MAX_STREAM_DATA, MAX_STREAMS, DATA_BLOCKED,
//! STREAM_DATA_BLOCKED and STREAMS_BLOCKED (RFC 9000 §19.9 to §19.14).

use super::{Malformed, put_type};
use crate::{Dir, FrameType, Reader, StreamId, VarInt, Writer};

/// There are no more than 2^60 streams of a type, or their IDs would not be encodable (RFC 9000 §4.6).
const STREAMS_MAX: u64 = StreamId::INDEX_MAX + 1;

/// Raises the limit of the whole connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxData {
    /// Bytes that may be sent on all streams together.
    pub maximum: VarInt,
}

impl MaxData {
    /// The bytes that [`MaxData::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + self.maximum.size()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::MAX_DATA, writer);
        writer.put_varint(self.maximum);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { maximum: reader.varint()? })
    }
}

/// Raises the limit of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxStreamData {
    /// The stream.
    pub id: StreamId,
    /// Bytes that may be sent on it.
    pub maximum: VarInt,
}

impl MaxStreamData {
    /// The bytes that [`MaxStreamData::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + self.id.as_varint().size() + self.maximum.size()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::MAX_STREAM_DATA, writer);
        writer.put_varint(self.id.as_varint());
        writer.put_varint(self.maximum);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { id: reader.varint()?.into(), maximum: reader.varint()? })
    }
}

/// Raises the number of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxStreams {
    /// The directions of the streams.
    pub dir: Dir,
    /// How many streams may be opened in the life of the connection, 2^60 at most.
    pub maximum: VarInt,
}

impl MaxStreams {
    /// The type, which tells the direction.
    pub fn frame_type(&self) -> FrameType {
        match self.dir {
            Dir::Bi => FrameType::MAX_STREAMS_BIDI,
            Dir::Uni => FrameType::MAX_STREAMS_UNI,
        }
    }

    /// The bytes that [`MaxStreams::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + self.maximum.size()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(self.frame_type(), writer);
        writer.put_varint(self.maximum);
    }

    pub(super) fn decode(reader: &mut Reader<'_>, dir: Dir) -> Result<Self, Malformed> {
        Ok(Self { dir, maximum: stream_count(reader)? })
    }
}

/// Tells that the limit of the connection holds data back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataBlocked {
    /// The limit, in bytes.
    pub limit: VarInt,
}

impl DataBlocked {
    /// The bytes that [`DataBlocked::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + self.limit.size()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::DATA_BLOCKED, writer);
        writer.put_varint(self.limit);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { limit: reader.varint()? })
    }
}

/// Tells that the limit of a stream holds data back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamDataBlocked {
    /// The stream.
    pub id: StreamId,
    /// The limit, in bytes.
    pub limit: VarInt,
}

impl StreamDataBlocked {
    /// The bytes that [`StreamDataBlocked::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + self.id.as_varint().size() + self.limit.size()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::STREAM_DATA_BLOCKED, writer);
        writer.put_varint(self.id.as_varint());
        writer.put_varint(self.limit);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { id: reader.varint()?.into(), limit: reader.varint()? })
    }
}

/// Tells that the number of streams holds back the opening of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamsBlocked {
    /// The directions of the streams.
    pub dir: Dir,
    /// The limit, in streams, 2^60 at most.
    pub limit: VarInt,
}

impl StreamsBlocked {
    /// The type, which tells the direction.
    pub fn frame_type(&self) -> FrameType {
        match self.dir {
            Dir::Bi => FrameType::STREAMS_BLOCKED_BIDI,
            Dir::Uni => FrameType::STREAMS_BLOCKED_UNI,
        }
    }

    /// The bytes that [`StreamsBlocked::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + self.limit.size()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(self.frame_type(), writer);
        writer.put_varint(self.limit);
    }

    pub(super) fn decode(reader: &mut Reader<'_>, dir: Dir) -> Result<Self, Malformed> {
        Ok(Self { dir, limit: stream_count(reader)? })
    }
}

/// RFC 9000 §19.11, §19.14: a number of streams above 2^60 is a FRAME_ENCODING_ERROR.
fn stream_count(reader: &mut Reader<'_>) -> Result<VarInt, Malformed> {
    let count = reader.varint()?;
    if count.get() > STREAMS_MAX {
        return Err(Malformed::new("more than 2^60 streams"));
    }
    Ok(count)
}
