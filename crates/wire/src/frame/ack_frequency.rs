//! ACK_FREQUENCY and IMMEDIATE_ACK (draft-ietf-quic-ack-frequency-14 §4, §5).
//!
//! IMMEDIATE_ACK has no fields: it is a variant of [`Frame`](super::Frame) alone.

use super::{Malformed, put_type, type_len};
use crate::{FrameType, Reader, VarInt, Writer};

/// Asks the peer to acknowledge more or less often.
///
/// Whether the values are legal depends on the transport parameters of the receiver, and is for it to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckFrequency {
    /// The number of the request: a larger one is newer.
    pub sequence: VarInt,
    /// The packets that elicit an acknowledgement and may come without one being sent; the next one brings it.
    pub ack_eliciting_threshold: VarInt,
    /// The longest time that an acknowledgement may wait, in microseconds.
    pub max_ack_delay_micros: VarInt,
    /// How far below the largest packet number a missing one must lie to bring an acknowledgement at once; 0:
    /// none does.
    pub reordering_threshold: VarInt,
}

impl AckFrequency {
    /// The bytes that [`AckFrequency::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        type_len(FrameType::ACK_FREQUENCY) + self.fields().into_iter().map(VarInt::size).sum::<usize>()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::ACK_FREQUENCY, writer);
        for field in self.fields() {
            writer.put_varint(field);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            sequence: reader.varint()?,
            ack_eliciting_threshold: reader.varint()?,
            max_ack_delay_micros: reader.varint()?,
            reordering_threshold: reader.varint()?,
        })
    }

    /// In the order of the wire.
    fn fields(&self) -> [VarInt; 4] {
        [self.sequence, self.ack_eliciting_threshold, self.max_ack_delay_micros, self.reordering_threshold]
    }
}
