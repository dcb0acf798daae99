//! What is remembered of a packet that was sent.

use fulmar_base::Instant;
use fulmar_wire::{Dir, FecRecovered, PathId, StreamId};
use smallvec::SmallVec;

use crate::congestion::{DeliverySnapshot, PacketInFlight};
use crate::datagram::Ecn;
use crate::ids::TupleId;

/// The token of a frame that was written and whose owner wants to hear of its fate.
///
/// `connection/delivery.rs` hands each token back to its owner, once, when the packet is acknowledged or
/// declared lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SentFrame {
    /// An ACK of packets on a path, the largest of which was `largest`.
    Ack {
        path: PathId,
        largest: u64,
    },
    /// Handshake bytes of the packet's own space.
    Crypto {
        offset: u64,
        len: u32,
    },
    /// Stream bytes, and the end of the stream if `fin`.
    Stream {
        id: StreamId,
        offset: u64,
        len: u32,
        fin: bool,
    },
    ResetStream(StreamId),
    /// A reset that leaves the first bytes of the stream.
    ResetStreamAt {
        id: StreamId,
        reliable_size: u64,
    },
    StopSending(StreamId),
    MaxData,
    MaxStreamData(StreamId),
    MaxStreams(Dir),
    DataBlocked,
    StreamDataBlocked(StreamId),
    StreamsBlocked(Dir),
    NewConnectionId {
        path: PathId,
        sequence: u64,
    },
    RetireConnectionId {
        path: PathId,
        sequence: u64,
    },
    /// The end of a path.
    PathAbandon(PathId),
    PathStatus(PathId),
    MaxPathId,
    HandshakeDone,
    /// A token for later connections, by its place among those of the connection.
    NewToken {
        number: u64,
    },
    /// A request of the ACK frequency extension.
    AckFrequency {
        sequence: u64,
    },
    /// An observation of address discovery.
    ObservedAddress {
        path: PathId,
        sequence: u64,
    },
    /// A repair symbol over so many source symbols from the first on.
    FecRepair {
        first: u64,
        count: u16,
    },
    /// A report of recovered source symbols.
    FecRecovered(FecRecovered),
    Ping,
}

/// Names a source symbol of forward erasure correction within a connection, by the low bits of its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SymbolId(pub(crate) u32);

/// The tokens of one packet; two fit without an allocation, and most packets carry one or two.
pub(crate) type SentFrames = SmallVec<[SentFrame; 2]>;

/// What is remembered of a packet until it is acknowledged or declared lost.
#[derive(Debug, Clone)]
pub(crate) struct SentPacket {
    /// When it was handed to the socket.
    pub(crate) time_sent: Instant,
    /// Bytes on the wire, header and tag included, UDP and IP headers not.
    pub(crate) size: u16,
    /// The tuple that it left on: its bytes in flight return there, also after a migration.
    pub(crate) tuple: TupleId,
    /// Whether the peer must acknowledge it (RFC 9000 §13.2.1).
    pub(crate) ack_eliciting: bool,
    /// Whether it counts in bytes in flight (RFC 9002 §2).
    pub(crate) in_flight: bool,
    /// Whether it probed for a larger datagram size: its loss says nothing about congestion (RFC 9000 §14.4).
    pub(crate) mtu_probe: bool,
    /// Whether a probe repeats its frames: then their loss is the probe's to report, and reporting it here as
    /// well would put another copy in flight beside the probe's.
    pub(crate) repeated: bool,
    /// How many copies of stream data that was lost before are in flight with this one, the newest; zero where it holds none.
    pub(crate) resends: u8,
    /// Whether it holds stream data of which there is another copy in flight: it is not copied again.
    pub(crate) copies: bool,
    /// The symbol that its protected frames are part of, which may make them again after its loss.
    pub(crate) symbol: Option<SymbolId>,
    /// The ECN mark that it left with.
    pub(crate) ecn: Ecn,
    /// The state of delivery when it was sent, from `congestion::CongestionState::on_sent`.
    pub(crate) delivered: DeliverySnapshot,
    /// The tokens of its frames.
    pub(crate) frames: SentFrames,
}

impl SentPacket {
    /// What congestion control needs to know of it.
    pub(crate) fn for_congestion(&self) -> PacketInFlight {
        PacketInFlight {
            bytes: u64::from(self.size),
            sent_time: self.time_sent,
            snapshot: self.delivered,
            mtu_probe: self.mtu_probe,
        }
    }

    /// A packet of 1,200 bytes that has to be acknowledged, with no frames to speak of.
    #[cfg(test)]
    pub(crate) fn sent_at(time_sent: Instant) -> Self {
        Self {
            time_sent,
            size: 1_200,
            tuple: TupleId(0),
            ack_eliciting: true,
            in_flight: true,
            mtu_probe: false,
            repeated: false,
            resends: 0,
            copies: false,
            symbol: None,
            ecn: Ecn::NotEct,
            delivered: DeliverySnapshot::NONE,
            frames: SentFrames::new(),
        }
    }
}
