//! Connection attempts that wait to be accepted.

use std::mem;

use bytes::BytesMut;
use fulmar_base::{HashKey, KeyedMap};
use fulmar_wire::{
    CloseCode, ConnectionClose, ConnectionId, Dialect, Frame, FrameType, PacketKind, PathId, Side,
    TransportErrorCode, Version,
};
use slab::Slab;

use super::DropReason;
use super::early::EarlyDatagrams;
use super::shared::HalfOpen;
use crate::config::{EndpointConfig, MTU_MIN};
use crate::crypto::{AeadBackend, DirectionKeys, Keys};
use crate::datagram::{Datagram, Ecn, FourTuple, Transmit, TransmitBatch};
use crate::packet::{HeaderFields, OpenPacket, Sealer};
use crate::streams::ReceiveCredit;

/// Somebody wants to connect. It must be given back to its endpoint, by `accept`, `refuse`, `retry` or `ignore`,
/// because it holds one of a limited number of places.
#[derive(Debug)]
pub struct Incoming {
    place: usize,
    pub(super) first: FirstPacket,
    /// What the client has proven of its address.
    pub(super) proof: AddressProof,
}

/// What is known of a client from the header of its first packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstPacket {
    pub(super) addrs: FourTuple,
    pub(super) version: Version,
    /// Where it was sent: made up by the client, or chosen by a Retry.
    pub(super) dst: ConnectionId,
    /// The client's own connection ID.
    pub(super) src: ConnectionId,
}

/// What a client has proven of its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressProof {
    /// Nothing.
    Missing,
    /// It has followed a Retry. Its very first packet went to this connection ID.
    Retried { original_dcid: ConnectionId },
    /// It has shown a token of an earlier connection, which made use of receive windows of this size.
    Known { window_hint: ReceiveCredit },
}

impl Incoming {
    /// Where the attempt comes from. Whether that can be believed tells [`Incoming::is_validated`].
    pub fn addrs(&self) -> FourTuple {
        self.first.addrs
    }

    /// The version that the client has chosen.
    pub fn version(&self) -> Version {
        self.first.version
    }

    /// Whether the client has proven that it receives what is sent to its address (RFC 9000 §8.1).
    pub fn is_validated(&self) -> bool {
        self.proof != AddressProof::Missing
    }

    /// Whether the client can be asked to prove its address: it follows one Retry (RFC 9000 §17.2.5.2).
    pub fn may_retry(&self) -> bool {
        !matches!(self.proof, AddressProof::Retried { .. })
    }
}

impl FirstPacket {
    /// Writes an Initial packet that closes with `code` (RFC 9000 §5.2.2, §8.1.2).
    pub(super) fn write_close(
        &self,
        code: TransportErrorCode,
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
            code: CloseCode::Transport { code, frame: FrameType::PADDING },
            reason: &[],
        });
        let mut len = 0;
        if let Some(mut packet) = OpenPacket::begin(buffer, 0, limit, &header, (PathId::ZERO, 0), None) {
            let mut frames = packet.frames(buffer, Dialect::SinglePath);
            frames.write_untracked(&close);
            let payload = frames.finish();
            packet.end_payload(buffer, &payload);
            // As long as the datagram that it answers is at least, so that a client that ignores small ones hears of it.
            packet.pad_until(buffer, limit);
            len = packet.seal(buffer, Sealer::Fixed(&keys.local));
        }
        reply.set_len(len);
        Transmit { addrs: self.addrs, ecn: Ecn::NotEct, len, segment_size: None }
    }
}

/// What a datagram that waits counts for at least, in bytes.
const SMALL_DATAGRAM_COST: usize = 128;

/// What was received of one attempt.
#[derive(Debug)]
struct Waiting {
    dst: ConnectionId,
    /// The keys of the client's Initial packets, until the connection has them.
    keys: Option<Box<DirectionKeys>>,
    datagrams: Vec<Datagram>,
    bytes: usize,
    /// If the address is not validated.
    half_open: Option<HalfOpen>,
}

/// The attempts that wait. The number of attempts and the bytes of each are limited by [`EndpointConfig`];
/// what comes beyond is dropped, and the client repeats it.
#[derive(Debug)]
pub(super) struct WaitingRoom {
    places: Slab<Waiting>,
    by_cid: KeyedMap<ConnectionId, usize>,
    places_max: usize,
    bytes_max: usize,
    early: EarlyDatagrams,
}

impl WaitingRoom {
    pub(super) fn new(config: &EndpointConfig, key: HashKey) -> Self {
        Self {
            places: Slab::new(),
            by_cid: KeyedMap::new(key),
            places_max: config.max_incoming,
            bytes_max: config.max_incoming_bytes,
            early: EarlyDatagrams::new(config.max_incoming_bytes, key),
        }
    }

    /// Whether there is no place for another attempt.
    pub(super) fn is_full(&self) -> bool {
        self.places.len() >= self.places_max
    }

    pub(super) fn knows(&self, dst: &ConnectionId) -> bool {
        self.by_cid.contains_key(dst)
    }

    /// Takes in a new attempt; the caller has seen that there is a place.
    pub(super) fn admit(
        &mut self,
        (first, keys): (FirstPacket, DirectionKeys),
        proof: AddressProof,
        datagram: Datagram,
        half_open: Option<HalfOpen>,
    ) -> Incoming {
        let mut datagrams = vec![unpinned(datagram)];
        datagrams.extend(self.early.take(&first.dst));
        let bytes = datagrams.iter().map(|datagram| datagram.payload.len()).sum();
        let keys = Some(Box::new(keys));
        let place = self.places.insert(Waiting { dst: first.dst, keys, datagrams, bytes, half_open });
        self.by_cid.insert(first.dst, place);
        Incoming { place, first, proof }
    }

    /// Keeps a datagram of 0-RTT packets, which may come before the attempt that they belong to.
    pub(super) fn keep_early(&mut self, dst: ConnectionId, datagram: Datagram) -> DropReason {
        if self.knows(&dst) {
            return self.keep_any(&dst, datagram);
        }
        match self.early.keep(dst, unpinned(datagram)) {
            true => DropReason::Buffered,
            false => DropReason::Overloaded,
        }
    }

    /// Keeps another datagram of an attempt that waits.
    pub(super) fn keep(&mut self, dst: &ConnectionId, datagram: Datagram) -> DropReason {
        // RFC 9000 §14.1. It also bounds the number of datagrams that are kept.
        if datagram.payload.len() < usize::from(MTU_MIN) {
            return DropReason::TooShort;
        }
        self.keep_any(dst, datagram)
    }

    fn keep_any(&mut self, dst: &ConnectionId, datagram: Datagram) -> DropReason {
        // A small one is not free either.
        let cost = datagram.payload.len().max(SMALL_DATAGRAM_COST);
        let waiting = self.by_cid.get(dst).and_then(|&place| self.places.get_mut(place));
        match waiting {
            Some(waiting) if waiting.bytes + cost <= self.bytes_max => {
                waiting.bytes += cost;
                waiting.datagrams.push(unpinned(datagram));
                DropReason::Buffered
            }
            _ => DropReason::Overloaded,
        }
    }

    /// Takes the keys of the client's Initial packets.
    pub(super) fn take_keys(&mut self, incoming: &Incoming) -> Option<Box<DirectionKeys>> {
        self.places.get_mut(incoming.place)?.keys.take()
    }

    /// Takes the datagrams of an attempt that is being accepted. It keeps its place, and room for as many bytes again, until
    /// it leaves.
    pub(super) fn take(&mut self, incoming: &Incoming) -> Vec<Datagram> {
        let Some(waiting) = self.places.get_mut(incoming.place) else { return Vec::new() };
        waiting.bytes = 0;
        mem::take(&mut waiting.datagrams)
    }

    /// Takes those that have come since. They still count: there is an end to them however long accepting takes.
    pub(super) fn take_more(&mut self, incoming: &Incoming) -> Vec<Datagram> {
        let waiting = self.places.get_mut(incoming.place);
        waiting.map(|waiting| mem::take(&mut waiting.datagrams)).unwrap_or_default()
    }

    /// Lets an attempt go, and forgets its datagrams. Returns that it is half open, if it is.
    pub(super) fn leave(&mut self, incoming: &Incoming) -> Option<HalfOpen> {
        let waiting = self.places.try_remove(incoming.place)?;
        self.by_cid.remove(&waiting.dst);
        waiting.half_open
    }
}

/// The datagram in memory of its own: it may wait for long, and be a slice of a much larger receive buffer.
fn unpinned(datagram: Datagram) -> Datagram {
    Datagram { payload: BytesMut::from(&datagram.payload[..]), ..datagram }
}
