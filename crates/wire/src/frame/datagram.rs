//! DATAGRAM (RFC 9221 §4).

use super::{Malformed, put_type};
use crate::{FrameType, Reader, Writer};

/// Data of the application that is not retransmitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The data, which may be empty.
    pub data: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// The bytes that [`Datagram::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + super::prefixed_len(self.data)
    }

    /// Writes the frame, with its length.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::DATAGRAM_WITH_LENGTH, writer);
        writer.put_length_prefixed(self.data);
    }

    /// Reads the data; without a length it reaches to the end of the packet.
    pub(super) fn decode(reader: &mut Reader<'a>, has_length: bool) -> Result<Self, Malformed> {
        let data = if has_length { reader.length_prefixed()? } else { reader.bytes(reader.remaining())? };
        Ok(Self { data })
    }
}
