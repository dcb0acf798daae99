//! Reading a header, as far as header protection lets it be read.

use std::ops::Range;

use super::{LONG_FORM, LongType, QUIC_BIT, RETRY_TAG_LEN};
use crate::{CID_LEN_MAX, ConnectionId, Reader, Truncated, Version};

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

/// The versions in a Version Negotiation packet.
pub fn negotiated_versions(bytes: &[u8]) -> impl Iterator<Item = Version> {
    bytes.as_chunks().0.iter().map(|chunk| Version(u32::from_be_bytes(*chunk)))
}
