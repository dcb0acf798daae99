//! A packet is opened: which keys it needs, header protection, AEAD (RFC 9001 §5).

use bytes::{Bytes, BytesMut};
use fulmar_wire::{
    PacketKind, PathId, ProtectedKind, ProtectedPacket, Version, packet_number, sample, unprotect_header,
};

use super::Connection;
use crate::crypto::{Level, OpenError};
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

/// Why a packet is dropped, or not taken now. That is no error: anyone can send anything.
pub(super) enum Drop {
    Silently(PacketDropReason),
    /// It waits for its keys.
    Kept,
    /// The bytes were not authentic.
    Unauthenticated,
    Close(TransportError),
}

const NO_KEYS: Drop = Drop::Silently(PacketDropReason::NoKeys);
const UNREADABLE: Drop = Drop::Silently(PacketDropReason::Unreadable);

/// Whether a packet carries early data.
pub(super) fn is_early(packet: &ProtectedPacket) -> bool {
    matches!(packet.kind, ProtectedKind::ZeroRtt { .. })
}

pub(super) fn kind_of(packet: &ProtectedPacket) -> PacketKind {
    match packet.kind {
        ProtectedKind::Initial { .. } => PacketKind::Initial,
        ProtectedKind::ZeroRtt { .. } => PacketKind::ZeroRtt,
        ProtectedKind::Handshake { .. } => PacketKind::Handshake,
        _ => PacketKind::OneRtt,
    }
}

impl Connection {
    /// Whether packets of the space can be opened now.
    pub(super) fn can_open(&self, space: SpaceId, packet: &ProtectedPacket) -> bool {
        match space {
            SpaceId::Initial => self.handshake.initial_keys_of(packet.version).is_some(),
            SpaceId::Handshake => self.handshake.handshake_keys().is_some(),
            SpaceId::Data(_) if is_early(packet) => self.handshake.early_keys().is_some(),
            // RFC 9001 §5.7: 1-RTT packets wait until the handshake is complete.
            SpaceId::Data(_) => self.handshake.one_rtt_keys().is_some() && self.handshake.is_complete(),
        }
    }

    /// Whether the keys of a level were there, so that a packet for them waits in vain.
    pub(super) fn has_had_keys(&self, level: Level) -> bool {
        level != Level::OneRtt && self.handshake.has_reached(level)
    }

    pub(super) fn open(
        &mut self,
        space: SpaceId,
        packet: &ProtectedPacket,
        bytes: &mut BytesMut,
    ) -> Result<OpenedPacket, Drop> {
        let header = self.unprotect(space, packet, bytes)?;
        let Unprotected { number, header_len, key_phase, spin, .. } = header;
        let (len, generation) = match space {
            SpaceId::Data(_) if is_early(packet) => {
                let keys = self.handshake.early_keys().ok_or(NO_KEYS)?;
                let opened = keys.packet.open(PathId::ZERO, number, bytes, header_len);
                (opened.map_err(|_| Drop::Unauthenticated)?, 0)
            }
            SpaceId::Data(path) => {
                let keys = self.handshake.one_rtt_keys_mut().ok_or(NO_KEYS)?;
                let opened =
                    keys.open(path, number, key_phase, bytes, header_len).map_err(|error| match error {
                        OpenError::Discard => Drop::Unauthenticated,
                        OpenError::Close(error) => Drop::Close(error),
                    })?;
                (opened.len, opened.generation)
            }
            _ => {
                let keys = self.handshake_level_keys(space, packet.version).ok_or(NO_KEYS)?;
                let opened = keys.remote.packet.open(PathId::ZERO, number, bytes, header_len);
                (opened.map_err(|_| Drop::Unauthenticated)?, 0)
            }
        };
        // RFC 9000 §17.2, §17.3.1: only an authentic packet can be blamed on the peer.
        if !header.reserved_bits_are_zero {
            return Err(Drop::Close(TransportError::protocol_violation("reserved bits of a header are set")));
        }
        let mut payload = bytes.split_off(header_len);
        payload.truncate(len);
        Ok(OpenedPacket { number, payload: payload.freeze(), generation, spin })
    }

    fn unprotect(
        &self,
        space: SpaceId,
        packet: &ProtectedPacket,
        bytes: &mut BytesMut,
    ) -> Result<Unprotected, Drop> {
        let (ProtectedKind::Initial { pn_offset, .. }
        | ProtectedKind::ZeroRtt { pn_offset }
        | ProtectedKind::Handshake { pn_offset }
        | ProtectedKind::OneRtt { pn_offset }) = packet.kind
        else {
            return Err(UNREADABLE);
        };
        let sample = sample(bytes, pn_offset).ok_or(UNREADABLE)?;
        let mask = match space {
            SpaceId::Data(_) if is_early(packet) => {
                self.handshake.early_keys().map(|keys| keys.header.mask(sample))
            }
            SpaceId::Data(_) => self.handshake.one_rtt_keys().map(|keys| keys.remote_header().mask(sample)),
            _ => self.handshake_level_keys(space, packet.version).map(|keys| keys.remote.header.mask(sample)),
        };
        let bits = unprotect_header(bytes, pn_offset, mask.ok_or(NO_KEYS)?).map_err(|_| UNREADABLE)?;
        let largest = self.space(space).and_then(|s| s.largest_received());
        Ok(Unprotected {
            number: packet_number::decode(largest, bits.truncated_pn, bits.pn_len),
            header_len: pn_offset + bits.pn_len,
            key_phase: bits.key_phase(),
            spin: bits.spin(),
            reserved_bits_are_zero: bits.reserved_bits_are_zero(),
        })
    }

    fn handshake_level_keys(&self, space: SpaceId, version: Option<Version>) -> Option<&crate::crypto::Keys> {
        match space {
            SpaceId::Initial => self.handshake.initial_keys_of(version),
            _ => self.handshake.handshake_keys(),
        }
    }
}
