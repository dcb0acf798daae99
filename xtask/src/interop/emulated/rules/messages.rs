//! The TLS messages of a handshake, put together from CRYPTO frames (RFC 8446 §4).

use std::collections::BTreeMap;

use fulmar_wire::{Frame, PacketKind, Reader, Side, TransportParameters, Truncated};

use crate::interop::trace::{QuicPacket, contiguous};

const CLIENT_HELLO: u8 = 1;
const ENCRYPTED_EXTENSIONS: u8 = 8;
const CERTIFICATE: u8 = 11;
/// The extension with the transport parameters (RFC 9001 §8.2).
const TRANSPORT_PARAMETERS: u16 = 0x39;
/// The extension with the protocol of the application (RFC 7301 §3.1).
const ALPN: u16 = 16;

/// The handshake data of one connection.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    /// The client's, at the Initial level.
    hello: Pieces,
    /// The server's, at the Handshake level.
    flight: Pieces,
}

type Pieces = BTreeMap<u64, Vec<u8>>;

/// The handshakes of all connections, in the order in which they began.
pub(super) fn handshakes_of(packets: &[QuicPacket]) -> Vec<Handshake> {
    let mut handshakes: BTreeMap<usize, Handshake> = BTreeMap::new();
    for packet in packets {
        let Some(connection) = packet.connection else { continue };
        let handshake = handshakes.entry(connection).or_default();
        let pieces = if packet.is(Side::Client, PacketKind::Initial) {
            &mut handshake.hello
        } else if packet.is(Side::Server, PacketKind::Handshake) {
            &mut handshake.flight
        } else {
            continue;
        };
        for frame in packet.frames() {
            if let Frame::Crypto(crypto) = frame {
                let piece = pieces.entry(crypto.offset.get()).or_default();
                // Of pieces that begin at one place, the longest has all that the others have.
                if crypto.data.len() > piece.len() {
                    *piece = crypto.data.to_vec();
                }
            }
        }
    }
    handshakes.into_values().collect()
}

impl Handshake {
    /// The cipher suites that the client offers.
    pub(super) fn offered_suites(&self) -> Option<Vec<u16>> {
        let body = message(&self.hello, CLIENT_HELLO)?;
        read_suites(&body).ok()
    }

    /// The protocol of the application that the server has chosen.
    pub(super) fn protocol(&self) -> Option<String> {
        let body = message(&self.flight, ENCRYPTED_EXTENSIONS)?;
        let list = read_extension(&body, ALPN).ok()??;
        // The length of the list, the length of its one name, and the name.
        String::from_utf8(list.get(3..)?.to_vec()).ok()
    }

    /// What the server tells of itself.
    pub(super) fn server_parameters(&self) -> Option<TransportParameters> {
        let body = message(&self.flight, ENCRYPTED_EXTENSIONS)?;
        let parameters = read_extension(&body, TRANSPORT_PARAMETERS).ok()??;
        TransportParameters::read(Side::Server, &parameters).ok()
    }

    /// Whether the server shows a certificate.
    pub(super) fn has_certificate(&self) -> bool {
        message(&self.flight, CERTIFICATE).is_some()
    }

    /// How many bytes of the server's flight were seen.
    pub(super) fn server_bytes(&self) -> usize {
        contiguous(&self.flight, usize::MAX).len()
    }
}

/// The body of the first message of a type, if it is complete.
fn message(pieces: &Pieces, wanted: u8) -> Option<Vec<u8>> {
    let bytes = contiguous(pieces, usize::MAX);
    let mut reader = Reader::new(&bytes);
    loop {
        let kind = reader.u8().ok()?;
        let len = u32::from(reader.u8().ok()?) << 16 | u32::from(reader.u16().ok()?);
        let body = reader.bytes(len as usize).ok()?;
        if kind == wanted {
            return Some(body.to_vec());
        }
    }
}

/// Behind version, random bytes and session ID.
fn read_suites(hello: &[u8]) -> Result<Vec<u16>, Truncated> {
    let mut reader = Reader::new(hello);
    reader.bytes(2 + 32)?;
    let session = reader.u8()?;
    reader.bytes(usize::from(session))?;
    let len = reader.u16()?;
    let suites = reader.bytes(usize::from(len))?;
    Ok(suites.chunks_exact(2).map(|suite| u16::from_be_bytes([suite[0], suite[1]])).collect())
}

fn read_extension(body: &[u8], wanted: u16) -> Result<Option<Vec<u8>>, Truncated> {
    let mut reader = Reader::new(body);
    reader.u16()?;
    while !reader.is_empty() {
        let id = reader.u16()?;
        let len = reader.u16()?;
        let data = reader.bytes(usize::from(len))?;
        if id == wanted {
            return Ok(Some(data.to_vec()));
        }
    }
    Ok(None)
}
