//! RESET_STREAM_AT (draft-ietf-quic-reliable-stream-reset-10 §4).

use super::{Malformed, put_type, type_len};
use crate::{FrameType, Reader, StreamId, VarInt, Writer};

/// Ends the sending part of a stream abruptly, but for the bytes at its beginning, which are still delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResetStreamAt {
    /// The stream.
    pub id: StreamId,
    /// Why, in the application's terms.
    pub error_code: VarInt,
    /// How many bytes the stream has had, for flow control.
    pub final_size: VarInt,
    /// How many bytes are delivered in spite of the reset; at most `final_size`.
    pub reliable_size: VarInt,
}

impl ResetStreamAt {
    /// The bytes that [`ResetStreamAt::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        type_len(FrameType::RESET_STREAM_AT) + self.fields().into_iter().map(VarInt::size).sum::<usize>()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::RESET_STREAM_AT, writer);
        for field in self.fields() {
            writer.put_varint(field);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let frame = Self {
            id: reader.varint()?.into(),
            error_code: reader.varint()?,
            final_size: reader.varint()?,
            reliable_size: reader.varint()?,
        };
        match frame.reliable_size <= frame.final_size {
            true => Ok(frame),
            false => Err(Malformed::new("the reliable size is larger than the final size")),
        }
    }

    /// In the order of the wire.
    fn fields(&self) -> [VarInt; 4] {
        [self.id.as_varint(), self.error_code, self.final_size, self.reliable_size]
    }
}
