//! Packets as somebody makes and reads them who knows the keys: those of Initial packets, which everybody knows, or those of a
//! connection of one's own.

use std::ops::Range;

use fulmar_wire::{
    CloseCode, ConnectionClose, ConnectionId, Crypto, Dialect, Frame, LongHeader, PacketKind, ProtectedKind,
    ShortHeader, TransportErrorCode, VarInt, Version, Writer, frames, patch_length, read_packet,
};

use crate::interop::PacketKeys;

/// The least that a client's first datagram has (RFC 9000 §14.1).
pub(super) const INITIAL_BYTES: usize = 1200;
const VERSION: Version = Version::V1;
const NUMBER_LEN: usize = 4;
const TAG_LEN: usize = 16;
/// The extension of a ClientHello and of a ServerHello that tells of a resumed session (RFC 8446 §4.2.11).
const PRE_SHARED_KEY: u16 = 41;

/// What a client says first, to be said again under any connection ID and with any token.
#[derive(Clone)]
pub(super) struct Hello {
    src: ConnectionId,
    /// The token that the client shows by itself.
    pub(super) token: Vec<u8>,
    /// The ClientHello.
    pub(super) message: Vec<u8>,
}

impl Hello {
    /// Reads the first flight of a client.
    pub(super) fn of(flight: &[Vec<u8>]) -> Option<Self> {
        let first = read_packet(flight.first()?, 0).ok()?;
        let [keys, _] = PacketKeys::initial(first.version?, first.dst.as_bytes());
        let mut hello = Self { src: first.src, token: Vec::new(), message: Vec::new() };
        for datagram in flight {
            let Ok(packet) = read_packet(datagram, 0) else { continue };
            let ProtectedKind::Initial { token, pn_offset } = packet.kind else { continue };
            hello.token = datagram[token].to_vec();
            let payload = keys.open_packet(&datagram[..packet.len], pn_offset)?.payload;
            for frame in frames(&payload, Dialect::SinglePath) {
                let Ok(Frame::Crypto(crypto)) = frame else { continue };
                let (start, end) =
                    (crypto.offset.get() as usize, crypto.offset.get() as usize + crypto.data.len());
                hello.message.resize(hello.message.len().max(end), 0);
                hello.message[start..end].copy_from_slice(crypto.data);
            }
        }
        Some(hello)
    }

    /// Where the ticket of an earlier session is in the message.
    pub(super) fn ticket(&self) -> Option<Range<usize>> {
        let body = self.extension(PRE_SHARED_KEY)?;
        let len = usize::from(u16::from_be_bytes(*self.message.get(body.start + 2..)?.first_chunk()?));
        let start = body.start + 4;
        self.message.get(start..start + len).map(|_| start..start + len)
    }

    fn extension(&self, wanted: u16) -> Option<Range<usize>> {
        extension(&self.message, wanted)
    }

    /// The datagram of an Initial packet with this hello.
    pub(super) fn datagram(&self, dst: &[u8], token: &[u8]) -> Vec<u8> {
        self.initial(dst, token, 0, &crypto(0, &self.message), INITIAL_BYTES)
    }

    /// An Initial packet of this client with any frames, padded to so many bytes.
    pub(super) fn initial(
        &self,
        dst: &[u8],
        token: &[u8],
        number: u64,
        frames: &[u8],
        len: usize,
    ) -> Vec<u8> {
        let dst_id = ConnectionId::new(dst).expect("connection IDs of 8 bytes");
        let header =
            LongHeader { kind: PacketKind::Initial, version: VERSION, dst: dst_id, src: self.src, token };
        let header_len = header.encoded_len(NUMBER_LEN);
        let mut payload = frames.to_vec();
        payload.resize(payload.len().max(len.saturating_sub(header_len + TAG_LEN)), 0);
        let mut bytes = vec![0; header_len];
        let offsets = header.write(&mut Writer::new(&mut bytes), number, NUMBER_LEN);
        patch_length(&mut bytes, offsets.length_at, NUMBER_LEN + payload.len() + TAG_LEN);
        let [keys, _] = PacketKeys::initial(VERSION, dst);
        keys.seal(bytes, offsets.pn_offset, number, &payload).expect("the packet is long enough")
    }

    /// What ends the attempt to `dst` that began with this hello.
    pub(super) fn goodbye(&self, dst: &[u8]) -> Vec<u8> {
        let code =
            CloseCode::Transport { code: TransportErrorCode(0), frame: fulmar_wire::FrameType::PADDING };
        let close = encode(&Frame::ConnectionClose(ConnectionClose { code, reason: b"" }));
        self.initial(dst, &[], 1, &close, INITIAL_BYTES)
    }
}

/// What a server answers to the first packet of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// Prove your address.
    Retry { dst: Vec<u8>, token: Vec<u8> },
    /// Go away.
    Closed(TransportErrorCode),
    /// The handshake goes on, with a new session or with one that is resumed.
    GoesOn { resumed: bool },
    /// Something else.
    Other,
}

impl Answer {
    /// Reads the answer to a packet to `dst`.
    pub(super) fn read(datagram: &[u8], dst: &[u8]) -> Self {
        let Ok(packet) = read_packet(datagram, 8) else { return Self::Other };
        match packet.kind {
            ProtectedKind::Retry { token, .. } => {
                Self::Retry { dst: packet.src.as_bytes().to_vec(), token: datagram[token].to_vec() }
            }
            ProtectedKind::Initial { pn_offset, .. } => {
                let [_, keys] = PacketKeys::initial(VERSION, dst);
                match keys.open_packet(&datagram[..packet.len], pn_offset) {
                    Some(opened) => Self::of_payload(&opened.payload),
                    None => Self::Other,
                }
            }
            _ => Self::Other,
        }
    }

    fn of_payload(payload: &[u8]) -> Self {
        let mut answer = Self::Other;
        for frame in frames(payload, Dialect::SinglePath).map_while(Result::ok) {
            match frame {
                Frame::ConnectionClose(ConnectionClose {
                    code: CloseCode::Transport { code, .. }, ..
                }) => {
                    return Self::Closed(code);
                }
                Frame::Crypto(crypto) if crypto.offset == VarInt::ZERO => {
                    answer = Self::GoesOn { resumed: extension(crypto.data, PRE_SHARED_KEY).is_some() };
                }
                _ => {}
            }
        }
        answer
    }
}

/// Where the body of an extension of a ClientHello or a ServerHello is (RFC 8446 §4.1.2, §4.1.3).
fn extension(message: &[u8], wanted: u16) -> Option<Range<usize>> {
    let u16_at = |at: usize| Some(usize::from(u16::from_be_bytes(*message.get(at..)?.first_chunk()?)));
    let is_client = message.first() == Some(&1);
    // The type, the length, the version and the random bytes; then the session.
    let mut at = 4 + 2 + 32;
    at += 1 + usize::from(*message.get(at)?);
    at += match is_client {
        true => {
            let suites = 2 + u16_at(at)?;
            suites + 1 + usize::from(*message.get(at + suites)?)
        }
        false => 2 + 1,
    };
    let end = at + 2 + u16_at(at)?;
    at += 2;
    while at + 4 <= end {
        let (kind, len) = (u16_at(at)?, u16_at(at + 2)?);
        at += 4;
        if kind == usize::from(wanted) {
            return Some(at..at + len);
        }
        at += len;
    }
    None
}

/// A 1-RTT packet with any payload.
pub(super) fn one_rtt(keys: &PacketKeys, dst: ConnectionId, number: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 1 + dst.len() + NUMBER_LEN];
    let header = ShortHeader { dst, spin: false, key_phase: false };
    let pn_offset = header.write(&mut Writer::new(&mut bytes), number, NUMBER_LEN);
    // With a number of four bytes, the tag alone is enough for the sample of the header protection (RFC 9001 §5.4.2).
    keys.seal(bytes, pn_offset, number, payload).expect("the packet is long enough")
}

/// A CRYPTO frame.
pub(super) fn crypto(offset: u64, data: &[u8]) -> Vec<u8> {
    encode(&Frame::Crypto(Crypto { offset: VarInt::saturating(offset), data }))
}

/// A frame as bytes.
pub(super) fn encode(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = vec![0; frame.encoded_len(Dialect::SinglePath)];
    frame.encode(Dialect::SinglePath, &mut Writer::new(&mut bytes));
    bytes
}

#[cfg(test)]
mod tests;
