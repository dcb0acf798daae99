//! Packet headers: what can be read before protection is removed, and how headers are written
//! (RFC 9000 §17, RFC 9001 §5.4, RFC 8999, RFC 9369 §3.2).

use std::ops::Range;

use crate::{CID_LEN_MAX, ConnectionId, PacketKind, Reader, Truncated, VarInt, Version, Writer};

const LONG_FORM: u8 = 0x80;
/// The fixed bit of RFC 9000 §17, of which RFC 9287 makes any value.
const QUIC_BIT: u8 = 0x40;
const SPIN_BIT: u8 = 0x20;
const KEY_PHASE_BIT: u8 = 0x04;
const LONG_RESERVED_BITS: u8 = 0x0c;
const SHORT_RESERVED_BITS: u8 = 0x18;

/// A Retry packet ends with an integrity tag of this many bytes (RFC 9000 §17.2.5).
pub const RETRY_TAG_LEN: usize = 16;

/// What can be read of a packet before header protection is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedPacket {
    /// What kind of packet it is, and where its parts are.
    pub kind: ProtectedKind,
    /// The version, of packets with a long header.
    pub version: Option<Version>,
    /// The destination connection ID.
    pub dst: ConnectionId,
    /// The source connection ID; empty in short headers, which have none.
    pub src: ConnectionId,
    /// How many bytes of the datagram the packet takes.
    pub len: usize,
    /// Whether the QUIC bit is set. It must be where its receiver has not announced to take any value
    /// (RFC 9000 §17.2, §17.3.1, RFC 9287 §3); a Version Negotiation packet has none.
    pub quic_bit: bool,
}

/// The kinds of packets, with offsets from the packet's first byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProtectedKind {
    /// An Initial packet.
    Initial {
        /// The token, which may be empty.
        token: Range<usize>,
        /// Where the packet number begins.
        pn_offset: usize,
    },
    /// A 0-RTT packet.
    ZeroRtt {
        /// Where the packet number begins.
        pn_offset: usize,
    },
    /// A Handshake packet.
    Handshake {
        /// Where the packet number begins.
        pn_offset: usize,
    },
    /// A packet with a short header.
    OneRtt {
        /// Where the packet number begins.
        pn_offset: usize,
    },
    /// A Retry packet.
    Retry {
        /// The token.
        token: Range<usize>,
        /// The integrity tag.
        tag: [u8; RETRY_TAG_LEN],
    },
    /// A Version Negotiation packet.
    VersionNegotiation {
        /// The versions, four bytes each.
        versions: Range<usize>,
    },
}

/// Where the connection IDs of a packet of an unknown version are (RFC 8999 §5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvariantCids {
    /// The version that is not supported.
    pub version: Version,
    dst: Range<usize>,
    src: Range<usize>,
}

impl InvariantCids {
    /// The destination connection ID, of up to 255 bytes; `packet` is what was read.
    pub fn dst<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        packet.get(self.dst.clone()).unwrap_or(&[])
    }

    /// The source connection ID, of up to 255 bytes; `packet` is what was read.
    pub fn src<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        packet.get(self.src.clone()).unwrap_or(&[])
    }
}

/// Why bytes are no packet that this implementation knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The packet ends in the middle of its header, or before its length.
    #[error("the packet is truncated")]
    Truncated,
    /// A connection ID has more than 20 bytes.
    #[error("a connection ID is too long")]
    CidTooLong,
    /// The version is not known.
    #[error("version {} is not supported", .0.version)]
    UnsupportedVersion(InvariantCids),
}

impl From<Truncated> for HeaderError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

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

/// Reads the packet at the start of `bytes`. Destination connection IDs in short headers have `cid_len` bytes.
///
/// # Errors
/// If the bytes are no packet, or one of an unknown version.
pub fn read_packet(bytes: &[u8], cid_len: usize) -> Result<ProtectedPacket, HeaderError> {
    let mut reader = Reader::new(bytes);
    let first = reader.u8()?;
    if first & LONG_FORM != 0 {
        return read_long(first, reader);
    }
    let quic_bit = first & QUIC_BIT != 0;
    let dst = ConnectionId::new(reader.bytes(cid_len)?).ok_or(HeaderError::CidTooLong)?;
    let kind = ProtectedKind::OneRtt { pn_offset: reader.position() };
    Ok(ProtectedPacket { kind, version: None, dst, src: ConnectionId::EMPTY, len: bytes.len(), quic_bit })
}

fn read_long(first: u8, mut reader: Reader<'_>) -> Result<ProtectedPacket, HeaderError> {
    let version = Version(reader.u32()?);
    let dst = read_cid(&mut reader)?;
    let src = read_cid(&mut reader)?;
    let whole = reader.position() + reader.remaining();
    let negotiation = version == Version::NEGOTIATION;
    if !negotiation && version != Version::V1 && version != Version::V2 {
        return Err(HeaderError::UnsupportedVersion(InvariantCids { version, dst: dst.1, src: src.1 }));
    }
    let (Some(dst), Some(src)) = (dst.0, src.0) else {
        return Err(HeaderError::CidTooLong);
    };
    if negotiation {
        // RFC 8999 §6: a list without versions, or with a truncated one, must be ignored.
        if reader.remaining() == 0 || !reader.remaining().is_multiple_of(4) {
            return Err(HeaderError::Truncated);
        }
        let kind = ProtectedKind::VersionNegotiation { versions: reader.position()..whole };
        return Ok(ProtectedPacket { kind, version: Some(version), dst, src, len: whole, quic_bit: true });
    }
    let quic_bit = first & QUIC_BIT != 0;
    let (kind, len) = read_versioned(LongType::from_bits(version, first >> 4), &mut reader)?;
    Ok(ProtectedPacket { kind, version: Some(version), dst, src, len, quic_bit })
}

/// Reads the part of a long header that depends on the version; returns the length of the packet as well.
fn read_versioned(
    long_type: LongType,
    reader: &mut Reader<'_>,
) -> Result<(ProtectedKind, usize), HeaderError> {
    if long_type == LongType::Retry {
        let start = reader.position();
        let token_len = reader.remaining().checked_sub(RETRY_TAG_LEN).ok_or(HeaderError::Truncated)?;
        reader.bytes(token_len)?;
        let tag = reader.array()?;
        return Ok((ProtectedKind::Retry { token: start..start + token_len, tag }, reader.position()));
    }
    let mut token = 0..0;
    if long_type == LongType::Initial {
        let bytes = reader.length_prefixed()?;
        token = reader.position() - bytes.len()..reader.position();
    }
    let length = usize::try_from(reader.varint()?.get()).map_err(|_| HeaderError::Truncated)?;
    let pn_offset = reader.position();
    reader.bytes(length)?;
    let kind = match long_type {
        LongType::Initial => ProtectedKind::Initial { token, pn_offset },
        LongType::ZeroRtt => ProtectedKind::ZeroRtt { pn_offset },
        _ => ProtectedKind::Handshake { pn_offset },
    };
    Ok((kind, reader.position()))
}

/// Reads a connection ID; `None` if it is longer than versions 1 and 2 allow.
fn read_cid(reader: &mut Reader<'_>) -> Result<(Option<ConnectionId>, Range<usize>), Truncated> {
    let len = usize::from(reader.u8()?);
    let start = reader.position();
    let bytes = reader.bytes(len)?;
    let cid = if len <= CID_LEN_MAX { ConnectionId::new(bytes) } else { None };
    Ok((cid, start..start + len))
}

/// What removing header protection reveals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnprotectedBits {
    /// The first byte, in the clear.
    pub first_byte: u8,
    /// The packet number's low bytes.
    pub truncated_pn: u32,
    /// How many they are, 1 to 4.
    pub pn_len: usize,
}

impl UnprotectedBits {
    /// Whether the bits that must be zero are (RFC 9000 §17.2, §17.3.1).
    pub fn reserved_bits_are_zero(&self) -> bool {
        let mask = if self.first_byte & LONG_FORM != 0 { LONG_RESERVED_BITS } else { SHORT_RESERVED_BITS };
        self.first_byte & mask == 0
    }

    /// The key phase bit of a short header.
    pub fn key_phase(&self) -> bool {
        self.first_byte & KEY_PHASE_BIT != 0
    }

    /// The spin bit of a short header.
    pub fn spin(&self) -> bool {
        self.first_byte & SPIN_BIT != 0
    }
}

/// The bytes that the header protection mask is computed from (RFC 9001 §5.4.2); `None` if the packet is too
/// short.
pub fn sample(packet: &[u8], pn_offset: usize) -> Option<&[u8; 16]> {
    packet.get(pn_offset + 4..)?.first_chunk()
}

/// The bits of the first byte that are protected.
fn protected_bits(first_byte: u8) -> u8 {
    if first_byte & LONG_FORM != 0 { 0x0f } else { 0x1f }
}

/// Removes header protection in place.
///
/// # Errors
/// If the packet ends before its packet number does.
pub fn unprotect_header(
    packet: &mut [u8],
    pn_offset: usize,
    mask: [u8; 5],
) -> Result<UnprotectedBits, Truncated> {
    let first = packet.first_mut().ok_or(Truncated)?;
    *first ^= mask[0] & protected_bits(*first);
    let first_byte = *first;
    let pn_len = usize::from(first_byte & 3) + 1;
    let number = packet.get_mut(pn_offset..pn_offset + pn_len).ok_or(Truncated)?;
    let mut truncated_pn = 0;
    for (byte, mask) in number.iter_mut().zip(&mask[1..]) {
        *byte ^= mask;
        truncated_pn = truncated_pn << 8 | u32::from(*byte);
    }
    Ok(UnprotectedBits { first_byte, truncated_pn, pn_len })
}

/// Applies header protection in place to a packet that this crate wrote.
pub fn protect_header(packet: &mut [u8], pn_offset: usize, mask: [u8; 5]) {
    let pn_len = usize::from(packet[0] & 3) + 1;
    packet[0] ^= mask[0] & protected_bits(packet[0]);
    for (byte, mask) in packet[pn_offset..pn_offset + pn_len].iter_mut().zip(&mask[1..]) {
        *byte ^= mask;
    }
}

/// Clears the QUIC bit of a packet that this crate wrote, before it is sealed (RFC 9287 §3.1).
pub fn clear_quic_bit(packet: &mut [u8]) {
    packet[0] &= !QUIC_BIT;
}

/// A long header to write.
#[derive(Debug, Clone, Copy)]
pub struct LongHeader<'a> {
    /// What kind of packet it begins; not 1-RTT.
    pub kind: PacketKind,
    /// The version.
    pub version: Version,
    /// The destination connection ID.
    pub dst: ConnectionId,
    /// The source connection ID.
    pub src: ConnectionId,
    /// The token, written in Initial packets.
    pub token: &'a [u8],
}

/// Where the fields of a long header are that are filled in later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongHeaderOffsets {
    /// The two bytes of the length, for [`patch_length`].
    pub length_at: usize,
    /// The packet number.
    pub pn_offset: usize,
}

impl LongHeader<'_> {
    /// How many bytes [`LongHeader::write`] writes, the packet number included.
    pub fn encoded_len(&self, pn_len: usize) -> usize {
        let token = match self.kind {
            PacketKind::Initial => VarInt::saturating(self.token.len() as u64).size() + self.token.len(),
            _ => 0,
        };
        1 + 4 + 1 + self.dst.len() + 1 + self.src.len() + token + 2 + pn_len
    }

    /// Writes the header with room for a length of two bytes.
    pub fn write(&self, w: &mut Writer<'_>, number: u64, pn_len: usize) -> LongHeaderOffsets {
        let long_type = match self.kind {
            PacketKind::Initial => LongType::Initial,
            PacketKind::ZeroRtt => LongType::ZeroRtt,
            PacketKind::Handshake | PacketKind::OneRtt => LongType::Handshake,
        };
        let start = w.len();
        w.put_u8(LONG_FORM | QUIC_BIT | long_type.bits(self.version) << 4 | (pn_len - 1) as u8);
        write_cids(w, self.version, self.dst.as_bytes(), self.src.as_bytes());
        if self.kind == PacketKind::Initial {
            w.put_length_prefixed(self.token);
        }
        let length_at = w.len() - start;
        w.put_u16(0);
        let pn_offset = w.len() - start;
        write_number(w, number, pn_len);
        LongHeaderOffsets { length_at, pn_offset }
    }
}

/// Fills in the length of a long header: the bytes from the packet number to the end of the packet.
pub fn patch_length(buffer: &mut [u8], length_at: usize, length: usize) {
    let length = 0x4000 | (length as u16 & 0x3fff);
    buffer[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
}

/// A short header to write.
#[derive(Debug, Clone, Copy)]
pub struct ShortHeader {
    /// The destination connection ID.
    pub dst: ConnectionId,
    /// The spin bit (RFC 9000 §17.4).
    pub spin: bool,
    /// The key phase (RFC 9001 §6).
    pub key_phase: bool,
}

impl ShortHeader {
    /// Writes the header; returns where the packet number begins.
    pub fn write(&self, w: &mut Writer<'_>, number: u64, pn_len: usize) -> usize {
        let start = w.len();
        let spin = if self.spin { SPIN_BIT } else { 0 };
        let key_phase = if self.key_phase { KEY_PHASE_BIT } else { 0 };
        w.put_u8(QUIC_BIT | spin | key_phase | (pn_len - 1) as u8);
        w.put_bytes(self.dst.as_bytes());
        let pn_offset = w.len() - start;
        write_number(w, number, pn_len);
        pn_offset
    }
}

fn write_number(w: &mut Writer<'_>, number: u64, pn_len: usize) {
    w.put_bytes(&(number as u32).to_be_bytes()[4 - pn_len..]);
}

fn write_cids(w: &mut Writer<'_>, version: Version, dst: &[u8], src: &[u8]) {
    w.put_u32(version.0);
    w.put_u8(dst.len() as u8);
    w.put_bytes(dst);
    w.put_u8(src.len() as u8);
    w.put_bytes(src);
}

/// Writes a Version Negotiation packet (RFC 8999 §6). Connection IDs have at most 255 bytes.
pub fn write_version_negotiation(
    out: &mut Vec<u8>,
    random_byte: u8,
    dst: &[u8],
    src: &[u8],
    versions: &[Version],
) {
    let start = out.len();
    out.resize(start + 1 + 4 + 1 + dst.len() + 1 + src.len() + 4 * versions.len(), 0);
    let mut w = Writer::new(&mut out[start..]);
    // RFC 9000 §17.2.1: the fixed bit is set, so that the packet can share a port with other protocols.
    w.put_u8(LONG_FORM | QUIC_BIT | random_byte);
    write_cids(&mut w, Version::NEGOTIATION, dst, src);
    for version in versions {
        w.put_u32(version.0);
    }
}

/// The versions in a Version Negotiation packet.
pub fn negotiated_versions(bytes: &[u8]) -> impl Iterator<Item = Version> {
    bytes.as_chunks().0.iter().map(|chunk| Version(u32::from_be_bytes(*chunk)))
}

/// Writes a Retry packet without its integrity tag (RFC 9000 §17.2.5).
pub fn write_retry(
    out: &mut Vec<u8>,
    version: Version,
    random_bits: u8,
    dst: &ConnectionId,
    src: &ConnectionId,
    token: &[u8],
) {
    let start = out.len();
    out.resize(start + 1 + 4 + 1 + dst.len() + 1 + src.len() + token.len(), 0);
    let mut w = Writer::new(&mut out[start..]);
    w.put_u8(LONG_FORM | QUIC_BIT | LongType::Retry.bits(version) << 4 | random_bits & 0x0f);
    write_cids(&mut w, version, dst.as_bytes(), src.as_bytes());
    w.put_bytes(token);
}

#[cfg(test)]
mod tests;
