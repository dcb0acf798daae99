//! STREAM (RFC 9000 §19.8).

use super::{Malformed, check_end};
use crate::{FrameType, Reader, StreamId, VarInt, Writer};

const OFFSET_BIT: u8 = 0x04;
const LENGTH_BIT: u8 = 0x02;
const FIN_BIT: u8 = 0x01;

/// A piece of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream<'a> {
    /// The stream.
    pub id: StreamId,
    /// Where the data is in the stream, in bytes.
    pub offset: VarInt,
    /// Whether the stream ends after the data.
    pub fin: bool,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Stream<'a> {
    /// The bytes that [`Stream::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        self.header().encoded_len() + self.data.len()
    }

    /// Writes the frame, with its length.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        self.header().encode(writer);
        writer.put_bytes(self.data);
    }

    fn header(&self) -> StreamHeader {
        let Self { id, offset, fin, data } = *self;
        StreamHeader { id, offset, len: data.len(), fin, explicit_len: true }
    }

    /// Reads what follows a type whose low bits are `flags`.
    pub(super) fn decode(reader: &mut Reader<'a>, flags: u8) -> Result<Self, Malformed> {
        let id = reader.varint()?.into();
        let offset = if flags & OFFSET_BIT != 0 { reader.varint()? } else { VarInt::ZERO };
        let data = if flags & LENGTH_BIT != 0 {
            reader.length_prefixed()?
        } else {
            reader.bytes(reader.remaining())?
        };
        // RFC 9000 §19.8: the largest offset delivered cannot exceed 2^62-1.
        check_end(offset, data)?;
        Ok(Self { id, offset, fin: flags & FIN_BIT != 0, data })
    }
}

/// What precedes the data of a STREAM frame, for senders that copy the data into the packet themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamHeader {
    /// The stream.
    pub id: StreamId,
    /// Where the data is in the stream, in bytes. Zero is not written.
    pub offset: VarInt,
    /// How many bytes of data follow.
    pub len: usize,
    /// Whether the stream ends after the data.
    pub fin: bool,
    /// Whether the length is written. Without it the data reaches to the end of the packet.
    pub explicit_len: bool,
}

impl StreamHeader {
    /// The bytes that [`StreamHeader::encode`] writes: without the data.
    pub fn encoded_len(&self) -> usize {
        let offset_len = if self.has_offset() { self.offset.size() } else { 0 };
        let length_len = if self.explicit_len { self.length().size() } else { 0 };
        1 + self.id.as_varint().size() + offset_len + length_len
    }

    /// Writes the header. The caller writes the data.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        let mut first = FrameType::STREAM.0 as u8;
        first |= if self.has_offset() { OFFSET_BIT } else { 0 };
        first |= if self.explicit_len { LENGTH_BIT } else { 0 };
        first |= if self.fin { FIN_BIT } else { 0 };
        writer.put_u8(first);
        writer.put_varint(self.id.as_varint());
        if self.has_offset() {
            writer.put_varint(self.offset);
        }
        if self.explicit_len {
            writer.put_varint(self.length());
        }
    }

    fn has_offset(&self) -> bool {
        self.offset > VarInt::ZERO
    }

    fn length(&self) -> VarInt {
        VarInt::saturating(self.len as u64)
    }
}

#[cfg(test)]
mod tests;
