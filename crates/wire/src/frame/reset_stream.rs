//! RESET_STREAM and STOP_SENDING (RFC 9000 §19.4, §19.5).

use super::{Malformed, put_type};
use crate::{FrameType, Reader, StreamId, VarInt, Writer};

/// Ends the sending part of a stream abruptly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResetStream {
    /// The stream.
    pub id: StreamId,
    /// Why, in the application's terms.
    pub error_code: VarInt,
    /// How many bytes the stream has had, for flow control.
    pub final_size: VarInt,
}

impl ResetStream {
    /// The bytes that [`ResetStream::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + self.id.as_varint().size() + self.error_code.size() + self.final_size.size()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::RESET_STREAM, writer);
        writer.put_varint(self.id.as_varint());
        writer.put_varint(self.error_code);
        writer.put_varint(self.final_size);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let id = reader.varint()?.into();
        Ok(Self { id, error_code: reader.varint()?, final_size: reader.varint()? })
    }
}

/// Asks the peer to stop sending on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopSending {
    /// The stream.
    pub id: StreamId,
    /// Why, in the application's terms.
    pub error_code: VarInt,
}

impl StopSending {
    /// The bytes that [`StopSending::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + self.id.as_varint().size() + self.error_code.size()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::STOP_SENDING, writer);
        writer.put_varint(self.id.as_varint());
        writer.put_varint(self.error_code);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { id: reader.varint()?.into(), error_code: reader.varint()? })
    }
}
