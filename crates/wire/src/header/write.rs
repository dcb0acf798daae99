//! Writing headers, and the packets that are nothing but a header.

use super::{KEY_PHASE_BIT, LONG_FORM, LongType, QUIC_BIT, SPIN_BIT};
use crate::{ConnectionId, PacketKind, VarInt, Version, Writer};

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

/// The most bytes from the packet number to the end of a packet with a long header whose length is written in two bytes.
pub const LONG_LENGTH_MAX: usize = 0x3fff;

/// Fills in the length of a long header: the bytes from the packet number to the end of the packet, at most
/// [`LONG_LENGTH_MAX`].
pub fn patch_length(buffer: &mut [u8], length_at: usize, length: usize) {
    debug_assert!(length <= LONG_LENGTH_MAX, "a length of {length} bytes takes more than two");
    let length = 0x4000 | (length as u16 & LONG_LENGTH_MAX as u16);
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
    for byte in (0..pn_len).rev() {
        w.put_u8((number >> (8 * byte)) as u8);
    }
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
