//! Connection attempts that wait to be accepted.

use bytes::BytesMut;
use fulmar_base::{HashKey, KeyedMap};
use fulmar_wire::{
    CloseCode, ConnectionClose, ConnectionId, Dialect, Frame, FrameType, PacketKind, PathId, ProtectedPacket,
    Side, TransportErrorCode, Version,
};
use slab::Slab;

use super::DropReason;
use crate::config::{EndpointConfig, MTU_MIN};
use crate::crypto::{AeadBackend, Keys};
use crate::datagram::{Datagram, Ecn, FourTuple, Transmit, TransmitBatch};
use crate::packet::{HeaderFields, OpenPacket, Sealer};

/// Somebody wants to connect. It must be given back to its endpoint, by `accept`, `refuse` or `ignore`,
/// because it holds one of a limited number of places.
#[derive(Debug)]
pub struct Incoming {
    place: usize,
    pub(super) addrs: FourTuple,
    pub(super) version: Version,
    /// The connection ID that the client made up for the server.
    pub(super) dst: ConnectionId,
    /// The client's own connection ID.
    pub(super) src: ConnectionId,
}

impl Incoming {
    /// Where the attempt comes from, as far as it can be believed: the address is not validated.
    pub fn addrs(&self) -> FourTuple {
        self.addrs
    }

    /// Writes an Initial packet that closes with CONNECTION_REFUSED (RFC 9000 §5.2.2).
    pub(super) fn write_refusal(
        &self,
        local_cid: ConnectionId,
        aead: AeadBackend,
        reply: &mut TransmitBatch,
    ) -> Transmit {
        let keys = Keys::initial(self.version, &self.dst, Side::Server, aead);
        let buffer = reply.room();
        let limit = usize::from(MTU_MIN);
        let header = HeaderFields::Long {
            kind: PacketKind::Initial,
            version: self.version,
            dst: self.src,
            src: local_cid,
            token: &[],
        };
        let close = Frame::ConnectionClose(ConnectionClose {
            code: CloseCode::Transport {
                code: TransportErrorCode::CONNECTION_REFUSED,
                frame: FrameType::PADDING,
            },
            reason: &[],
        });
        let mut len = 0;
        if let Some(mut packet) = OpenPacket::begin(buffer, 0, limit, &header, (PathId::ZERO, 0), None) {
            let mut frames = packet.frames(buffer, limit, Dialect::SinglePath);
            frames.write_untracked(&close);
            let payload = frames.finish();
            packet.end_payload(buffer, &payload);
            len = packet.seal(buffer, Sealer::Early(&keys.local));
        }
        reply.set_len(len);
        Transmit { addrs: self.addrs, ecn: Ecn::NotEct, len, segment_size: None }
    }
}

/// What was received of one attempt.
#[derive(Debug)]
struct Waiting {
    dst: ConnectionId,
    datagrams: Vec<Datagram>,
    bytes: usize,
}

/// The attempts that wait. The number of attempts and the bytes of each are limited by [`EndpointConfig`];
/// what comes beyond is dropped, and the client repeats it.
#[derive(Debug)]
pub(super) struct WaitingRoom {
    places: Slab<Waiting>,
    by_cid: KeyedMap<ConnectionId, usize>,
    places_max: usize,
    bytes_max: usize,
}

impl WaitingRoom {
    pub(super) fn new(config: &EndpointConfig, key: HashKey) -> Self {
        Self {
            places: Slab::new(),
            by_cid: KeyedMap::new(key),
            places_max: config.max_incoming,
            bytes_max: config.max_incoming_bytes,
        }
    }

    pub(super) fn knows(&self, dst: &ConnectionId) -> bool {
        self.by_cid.contains_key(dst)
    }

    /// Takes in a new attempt, if there is a place.
    pub(super) fn admit(
        &mut self,
        packet: ProtectedPacket,
        version: Version,
        datagram: Datagram,
    ) -> Option<Incoming> {
        if self.places.len() >= self.places_max {
            return None;
        }
        let addrs = datagram.addrs;
        let bytes = datagram.payload.len();
        let place =
            self.places.insert(Waiting { dst: packet.dst, datagrams: vec![unpinned(datagram)], bytes });
        self.by_cid.insert(packet.dst, place);
        Some(Incoming { place, addrs, version, dst: packet.dst, src: packet.src })
    }

    /// Keeps another datagram of an attempt that waits.
    pub(super) fn keep(&mut self, dst: &ConnectionId, datagram: Datagram) -> DropReason {
        // RFC 9000 §14.1. It also bounds the number of datagrams that are kept.
        if datagram.payload.len() < usize::from(MTU_MIN) {
            return DropReason::TooShort;
        }
        let waiting = self.by_cid.get(dst).and_then(|&place| self.places.get_mut(place));
        match waiting {
            Some(waiting) if waiting.bytes + datagram.payload.len() <= self.bytes_max => {
                waiting.bytes += datagram.payload.len();
                waiting.datagrams.push(unpinned(datagram));
                DropReason::Buffered
            }
            _ => DropReason::Overloaded,
        }
    }

    /// Lets an attempt go and returns its datagrams.
    pub(super) fn leave(&mut self, incoming: &Incoming) -> Vec<Datagram> {
        let Some(waiting) = self.places.try_remove(incoming.place) else {
            return Vec::new();
        };
        self.by_cid.remove(&waiting.dst);
        waiting.datagrams
    }
}

/// The datagram in memory of its own: it may wait for long, and be a slice of a much larger receive buffer.
fn unpinned(datagram: Datagram) -> Datagram {
    Datagram { payload: BytesMut::from(&datagram.payload[..]), ..datagram }
}
