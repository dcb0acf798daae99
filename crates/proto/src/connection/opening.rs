//! A packet is opened: which keys it needs, header protection, AEAD (RFC 9001 §5).

use bytes::{Buf, Bytes, BytesMut};
use fulmar_wire::{PathId, ProtectedKind, ProtectedPacket, packet_number, sample, unprotect_header};

use super::handshake::{PacketKeys, is_zero_rtt};
use crate::crypto::OpenError;
use crate::error::TransportError;
use crate::ids::SpaceId;
use crate::log::PacketDropReason;

/// A packet whose header protection is off.
struct Unprotected {
    number: u64,
    header_len: usize,
    key_phase: bool,
    spin: bool,
    reserved_bits_are_zero: bool,
}

/// A packet that was opened.
pub(super) struct OpenedPacket {
    pub(super) number: u64,
    pub(super) payload: Bytes,
    /// The generation of the keys (1-RTT only).
    pub(super) generation: u64,
    /// The spin bit (1-RTT only).
    pub(super) spin: bool,
}

/// Why a packet is discarded, or not taken now. That is no error: anyone can send anything.
pub(super) enum Discard {
    Silently(PacketDropReason),
    /// It waits for its keys.
    Kept,
    /// The bytes were not authentic.
    Unauthenticated,
    Close(TransportError),
}

const NO_KEYS: Discard = Discard::Silently(PacketDropReason::NoKeys);
const UNREADABLE: Discard = Discard::Silently(PacketDropReason::Unreadable);

/// Opens a packet of a space in which `largest` is the largest number received. The bytes become its payload.
#[inline]
pub(super) fn open(
    keys: &mut PacketKeys,
    space: SpaceId,
    largest: Option<u64>,
    packet: &ProtectedPacket,
    bytes: &mut BytesMut,
) -> Result<OpenedPacket, Discard> {
    let header = unprotect(keys, space, largest, packet, bytes)?;
    let Unprotected { number, header_len, key_phase, spin, .. } = header;
    let (len, generation) = match space {
        SpaceId::Data(_) if is_zero_rtt(packet) => {
            let keys = keys.zero_rtt().ok_or(NO_KEYS)?;
            let opened = keys.packet.open(PathId::ZERO, number, bytes, header_len);
            (opened.map_err(|_| Discard::Unauthenticated)?, 0)
        }
        SpaceId::Data(path) => {
            let keys = keys.one_rtt_mut().ok_or(NO_KEYS)?;
            let opened =
                keys.open(path, number, key_phase, bytes, header_len).map_err(|error| match error {
                    OpenError::Discard => Discard::Unauthenticated,
                    OpenError::Close(error) => Discard::Close(error),
                })?;
            (opened.len, opened.generation)
        }
        _ => {
            let keys = keys.of_handshake(space, packet.version).ok_or(NO_KEYS)?;
            let opened = keys.remote.packet.open(PathId::ZERO, number, bytes, header_len);
            (opened.map_err(|_| Discard::Unauthenticated)?, 0)
        }
    };
    // RFC 9000 §17.2, §17.3.1: only an authentic packet can be blamed on the peer.
    if !header.reserved_bits_are_zero {
        return Err(Discard::Close(TransportError::protocol_violation("reserved bits of a header are set")));
    }
    bytes.advance(header_len);
    bytes.truncate(len);
    let payload = std::mem::take(bytes).freeze();
    Ok(OpenedPacket { number, payload, generation, spin })
}

fn unprotect(
    keys: &mut PacketKeys,
    space: SpaceId,
    largest: Option<u64>,
    packet: &ProtectedPacket,
    bytes: &mut BytesMut,
) -> Result<Unprotected, Discard> {
    let (ProtectedKind::Initial { pn_offset, .. }
    | ProtectedKind::ZeroRtt { pn_offset }
    | ProtectedKind::Handshake { pn_offset }
    | ProtectedKind::OneRtt { pn_offset }) = packet.kind
    else {
        return Err(UNREADABLE);
    };
    let sample = sample(bytes, pn_offset).ok_or(UNREADABLE)?;
    let mask = match space {
        SpaceId::Data(_) if is_zero_rtt(packet) => keys.zero_rtt().map(|keys| keys.header.mask(sample)),
        SpaceId::Data(_) => keys.one_rtt_mut().map(|keys| keys.remote_header().mask(sample)),
        _ => keys.of_handshake(space, packet.version).map(|keys| keys.remote.header.mask(sample)),
    };
    let bits = unprotect_header(bytes, pn_offset, mask.ok_or(NO_KEYS)?).map_err(|_| UNREADABLE)?;
    Ok(Unprotected {
        number: packet_number::decode(largest, bits.truncated_pn, bits.pn_len),
        header_len: pn_offset + bits.pn_len,
        key_phase: bits.key_phase(),
        spin: bits.spin(),
        reserved_bits_are_zero: bits.reserved_bits_are_zero(),
    })
}
