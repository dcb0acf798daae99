//! Packet headers: what can be read before protection is removed, and how headers are written
//! (RFC 9000 §17, RFC 9001 §5.4, RFC 8999, RFC 9369 §3.2).

mod protection;
mod read;
mod write;

pub use self::protection::{UnprotectedBits, protect_header, sample, unprotect_header};
pub use self::read::{
    HeaderError, InvariantCids, ProtectedKind, ProtectedPacket, negotiated_versions, read_packet,
};
pub use self::write::{
    LONG_LENGTH_MAX, LongHeader, LongHeaderOffsets, ShortHeader, clear_quic_bit, patch_length, write_retry,
    write_version_negotiation,
};

use crate::Version;

const LONG_FORM: u8 = 0x80;
/// The fixed bit of RFC 9000 §17, of which RFC 9287 makes any value.
const QUIC_BIT: u8 = 0x40;
const SPIN_BIT: u8 = 0x20;
const KEY_PHASE_BIT: u8 = 0x04;
const LONG_RESERVED_BITS: u8 = 0x0c;
const SHORT_RESERVED_BITS: u8 = 0x18;

/// A Retry packet ends with an integrity tag of this many bytes (RFC 9000 §17.2.5).
pub const RETRY_TAG_LEN: usize = 16;

/// The long packet types, in the order of version 1.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LongType {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
}

impl LongType {
    const ALL: [Self; 4] = [Self::Initial, Self::ZeroRtt, Self::Handshake, Self::Retry];

    /// Version 2 shifts the numbers by one (RFC 9369 §3.2).
    fn from_bits(version: Version, bits: u8) -> Self {
        let shift = u8::from(version == Version::V2);
        Self::ALL[usize::from((bits.wrapping_sub(shift)) & 3)]
    }

    fn bits(self, version: Version) -> u8 {
        (self as u8 + u8::from(version == Version::V2)) & 3
    }
}

#[cfg(test)]
mod tests;
