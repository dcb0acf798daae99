//! Frames: their types, and their headers in pieces (RFC 9114 §7).

use bytes::Bytes;

use crate::varint;

pub(crate) const DATA: u64 = 0x00;
pub(crate) const HEADERS: u64 = 0x01;
pub(crate) const CANCEL_PUSH: u64 = 0x03;
pub(crate) const SETTINGS: u64 = 0x04;
pub(crate) const PUSH_PROMISE: u64 = 0x05;
pub(crate) const GOAWAY: u64 = 0x07;
/// RFC 9412 §2.
pub(crate) const ORIGIN: u64 = 0x0c;
pub(crate) const MAX_PUSH_ID: u64 = 0x0d;
/// RFC 9218 §7.2, of a request and of a push.
pub(crate) const PRIORITY_UPDATE: u64 = 0xf_0700;
pub(crate) const PRIORITY_UPDATE_PUSH: u64 = 0xf_0701;

/// The types of unidirectional streams (RFC 9114 §6.2, RFC 9204 §4.2).
pub(crate) mod stream_type {
    pub(crate) const CONTROL: u64 = 0x00;
    pub(crate) const PUSH: u64 = 0x01;
    pub(crate) const ENCODER: u64 = 0x02;
    pub(crate) const DECODER: u64 = 0x03;
}

/// Whether HTTP/2 has a frame of this type that must not come by HTTP/3 (RFC 9114 §7.2.8).
pub(crate) const fn is_of_http2(ty: u64) -> bool {
    matches!(ty, 0x02 | 0x06 | 0x08 | 0x09)
}

/// The `n`th of the numbers that mean nothing, and are sent so that peers keep ignoring what they do not know (RFC 9114 §7.2.8).
pub(crate) const fn reserved(n: u64) -> u64 {
    0x1f * (n % ((varint::MAX - 0x21) / 0x1f)) + 0x21
}

/// Whether a number of a setting, frame or stream type is one of those that mean nothing.
pub(crate) const fn is_reserved(number: u64) -> bool {
    number >= 0x21 && (number - 0x21).is_multiple_of(0x1f)
}

/// Appends the header of a frame.
pub(crate) fn write_header(ty: u64, len: u64, out: &mut Vec<u8>) {
    varint::write(ty, out);
    varint::write(len, out);
}

/// Appends a frame.
pub(crate) fn write(ty: u64, payload: &[u8], out: &mut Vec<u8>) {
    write_header(ty, payload.len() as u64, out);
    out.extend_from_slice(payload);
}

/// Reads the header of a frame that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct HeaderReader {
    integer: varint::Reader,
    ty: Option<u64>,
}

impl HeaderReader {
    /// Takes what belongs to the header off the front, and returns its type and length once it is whole. As long as it is not,
    /// everything is taken.
    pub(crate) fn read(&mut self, input: &mut Bytes) -> Option<(u64, u64)> {
        let ty = match self.ty {
            Some(ty) => ty,
            None => *self.ty.insert(self.integer.read(input)?),
        };
        let len = self.integer.read(input)?;
        self.ty = None;
        Some((ty, len))
    }

    /// Whether a part of a header has come.
    pub(crate) fn is_inside(&self) -> bool {
        self.ty.is_some() || self.integer.is_inside()
    }
}
