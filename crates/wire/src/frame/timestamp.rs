//! TIMESTAMP (draft-huitema-quic-ts-08 §2.3).

use super::{Malformed, put_type, type_len};
use crate::{FrameType, Reader, VarInt, Writer};

/// When the packet was sent, by the clock of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    /// Microseconds since an epoch of the sender's choice, scaled down by its `ack_delay_exponent`.
    pub time: VarInt,
}

impl Timestamp {
    /// The bytes that [`Timestamp::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        type_len(FrameType::TIMESTAMP) + self.time.size()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::TIMESTAMP, writer);
        writer.put_varint(self.time);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { time: reader.varint()? })
    }
}
