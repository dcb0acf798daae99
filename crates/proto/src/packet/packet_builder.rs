//! One packet: header, payload, protection, in place at the end of a datagram.

use fulmar_wire::{
    ConnectionId, Dialect, LONG_LENGTH_MAX, LongHeader, PacketKind, PathId, ShortHeader, Version, Writer,
    clear_quic_bit, packet_number, patch_length, protect_header, sample,
};

use super::FrameWriter;
use super::frame_writer::Payload;
use crate::crypto::{DirectionKeys, OneRttKeys, TAG_LEN};

/// Header protection samples 16 bytes that start 4 bytes after the packet number's first byte
/// (RFC 9001 §5.4.2); the tag supplies 16 of the bytes that must follow the packet number.
const PACKET_NUMBER_AND_PAYLOAD_MIN: usize = 4;

/// The fewest bytes of a packet number in the 1-RTT space. The length of RFC 9000 §17.1 allows for what the peer has
/// not acknowledged, not for packets that are sent later and arrive earlier: one byte would have a packet that 128
/// others overtake read as another one, which fails authentication; with two it takes 32,768.
const ONE_RTT_NUMBER_LEN_MIN: usize = 2;

/// The header fields of a packet.
pub(crate) enum HeaderFields<'a> {
    Long {
        kind: PacketKind,
        version: Version,
        dst: ConnectionId,
        src: ConnectionId,
        token: &'a [u8],
    },
    Short {
        dst: ConnectionId,
        spin: bool,
        key_phase: bool,
        /// Whether as much of the packet number is written as there is room for.
        whole_number: bool,
    },
}

/// The keys that a packet is sealed with.
pub(crate) enum Sealer<'a> {
    /// Initial, Handshake and 0-RTT keys, which never change.
    Fixed(&'a DirectionKeys),
    /// 1-RTT keys, which count what they seal.
    OneRtt(&'a mut OneRttKeys),
}

impl Sealer<'_> {
    fn seal(&mut self, path: PathId, number: u64, packet: &mut [u8], header_len: usize) {
        match self {
            Self::Fixed(keys) => keys.packet.seal(path, number, packet, header_len),
            Self::OneRtt(keys) => keys.seal(path, number, packet, header_len),
        }
    }

    fn mask(&mut self, sample: &[u8; 16]) -> [u8; 5] {
        match self {
            Self::Fixed(keys) => keys.header.mask(sample),
            Self::OneRtt(keys) => keys.local_header().mask(sample),
        }
    }
}

/// A packet whose header is written and whose payload is being, or has been, written.
///
/// The packet stays open until the next packet of the datagram begins or the datagram ends, because only then
/// is it known how much padding the last packet needs.
#[derive(Debug)]
pub(crate) struct OpenPacket {
    path: PathId,
    number: u64,
    start: usize,
    number_at: usize,
    number_len: usize,
    length_at: Option<usize>,
    /// Where it must end, tag included.
    limit: usize,
    payload_at: usize,
    payload_len: usize,
}

impl OpenPacket {
    /// Writes the header at `start`. Returns `None` if the packet could not hold a useful payload below
    /// `limit`, both being offsets in `buffer`. A packet with a long header ends where its length allows, if that is before.
    pub(crate) fn begin(
        buffer: &mut [u8],
        start: usize,
        limit: usize,
        header: &HeaderFields<'_>,
        (path, number): (PathId, u64),
        largest_acked: Option<u64>,
    ) -> Option<Self> {
        let number_len = match header {
            HeaderFields::Short { whole_number: true, .. } => packet_number::LEN_MAX,
            HeaderFields::Short { .. } => {
                packet_number::encoded_len(number, largest_acked).max(ONE_RTT_NUMBER_LEN_MIN)
            }
            HeaderFields::Long { .. } => packet_number::encoded_len(number, largest_acked),
        };
        let header_len = match header {
            HeaderFields::Long { kind, version, dst, src, token } => {
                let long = LongHeader { kind: *kind, version: *version, dst: *dst, src: *src, token };
                long.encoded_len(number_len)
            }
            HeaderFields::Short { dst, .. } => 1 + dst.len() + number_len,
        };
        let payload_at = start + header_len;
        if payload_at + PACKET_NUMBER_AND_PAYLOAD_MIN + TAG_LEN > limit {
            return None;
        }
        let mut writer = Writer::new(&mut buffer[start..payload_at]);
        let (length_at, number_at) = match header {
            HeaderFields::Long { kind, version, dst, src, token } => {
                let long = LongHeader { kind: *kind, version: *version, dst: *dst, src: *src, token };
                let offsets = long.write(&mut writer, number, number_len);
                (Some(start + offsets.length_at), start + offsets.pn_offset)
            }
            HeaderFields::Short { dst, spin, key_phase, .. } => {
                let short = ShortHeader { dst: *dst, spin: *spin, key_phase: *key_phase };
                (None, start + short.write(&mut writer, number, number_len))
            }
        };
        let limit = match length_at {
            Some(_) => limit.min(number_at + LONG_LENGTH_MAX),
            None => limit,
        };
        Some(Self {
            path,
            number,
            start,
            number_at,
            number_len,
            length_at,
            limit,
            payload_at,
            payload_len: 0,
        })
    }

    /// Clears the QUIC bit of the header (RFC 9287 §3.1).
    pub(crate) fn clear_quic_bit(&self, buffer: &mut [u8]) {
        clear_quic_bit(&mut buffer[self.start..]);
    }

    /// The writer of the payload; what it returns goes to [`OpenPacket::end_payload`].
    pub(crate) fn frames<'b>(&self, buffer: &'b mut [u8], dialect: Dialect) -> FrameWriter<'b> {
        FrameWriter::new(&mut buffer[self.payload_at..self.limit - TAG_LEN], dialect)
    }

    /// The payload is written. A payload that is too short to sample is padded.
    pub(crate) fn end_payload(&mut self, buffer: &mut [u8], payload: &Payload) {
        self.payload_len = payload.len;
        let min = PACKET_NUMBER_AND_PAYLOAD_MIN.saturating_sub(self.number_len);
        self.pad_payload_to(buffer, min);
    }

    /// Where the packet will end, tag included.
    pub(crate) fn end(&self) -> usize {
        self.payload_at + self.payload_len + TAG_LEN
    }

    /// The packet number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of the packet, tag included.
    pub(crate) fn len(&self) -> usize {
        self.end() - self.start
    }

    /// Pads the packet so that it ends at `end`, or where it must; returns whether that added anything.
    pub(crate) fn pad_until(&mut self, buffer: &mut [u8], end: usize) -> bool {
        let before = self.payload_len;
        self.pad_payload_to(buffer, end.min(self.limit).saturating_sub(self.payload_at + TAG_LEN));
        self.payload_len > before
    }

    fn pad_payload_to(&mut self, buffer: &mut [u8], len: usize) {
        if len > self.payload_len {
            buffer[self.payload_at + self.payload_len..self.payload_at + len].fill(0);
            self.payload_len = len;
        }
    }

    /// Encrypts the payload and protects the header. Returns where the packet ends.
    pub(crate) fn seal(self, buffer: &mut [u8], mut keys: Sealer<'_>) -> usize {
        let end = self.end();
        if let Some(length_at) = self.length_at {
            patch_length(buffer, length_at, end - self.number_at);
        }
        let packet = &mut buffer[self.start..end];
        keys.seal(self.path, self.number, packet, self.payload_at - self.start);
        let number_offset = self.number_at - self.start;
        if let Some(sample) = sample(packet, number_offset) {
            let mask = keys.mask(sample);
            protect_header(packet, number_offset, mask);
        }
        end
    }
}
