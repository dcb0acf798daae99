//! CRYPTO (RFC 9000 §19.6).

use super::{Malformed, check_end, put_type};
use crate::{FrameType, Reader, VarInt, Writer};

/// A piece of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crypto<'a> {
    /// Where the data is in the handshake stream of its encryption level, in bytes.
    pub offset: VarInt,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Crypto<'a> {
    /// The bytes that [`Crypto::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + self.offset.size() + super::prefixed_len(self.data)
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::CRYPTO, writer);
        writer.put_varint(self.offset);
        writer.put_length_prefixed(self.data);
    }

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let offset = reader.varint()?;
        let data = reader.length_prefixed()?;
        // RFC 9000 §19.6: the largest offset delivered cannot exceed 2^62-1.
        check_end(offset, data)?;
        Ok(Self { offset, data })
    }
}
