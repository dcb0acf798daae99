//! A datagram on its way through the simulated network.

use std::net::SocketAddr;

/// The ECN codepoint of the IP header (RFC 3168 §5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not use ECN.
    #[default]
    NotEct = 0b00,
    /// ECN-capable, ECT(1): the sender reacts as L4S asks (RFC 9331).
    Ect1 = 0b01,
    /// ECN-capable, ECT(0).
    Ect0 = 0b10,
    /// A queue on the way marked congestion.
    Ce = 0b11,
}

impl Ecn {
    /// The codepoint in the two low bits of `bits`; the others are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            0b11 => Self::Ce,
            _ => Self::NotEct,
        }
    }

    /// Whether the sender understands marks, so that a queue may mark instead of drop.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    /// The two bits as they stand in the IP header.
    pub const fn bits(self) -> u8 {
        self as u8
    }
}

/// One UDP datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Where the datagram claims to come from. A node may send from an address that it does not own.
    pub source: SocketAddr,
    /// Where the datagram goes.
    pub destination: SocketAddr,
    /// The ECN codepoint, which a queue on the way may change to [`Ecn::Ce`].
    pub ecn: Ecn,
    /// The UDP payload.
    pub payload: Vec<u8>,
    /// The position of the packet among those sent into the same pipe, from 0; copies share it.
    pub(crate) index: u64,
    /// The size of a packet of cross traffic, which has no payload; 0 for all others.
    pub(crate) filler: u32,
    /// Whether the pipe that it is in has made it of another packet.
    pub(crate) is_copy: bool,
    /// How many nodes have forwarded it.
    pub(crate) hops: u8,
}

impl Packet {
    /// A datagram that is not under way yet.
    pub const fn new(source: SocketAddr, destination: SocketAddr, ecn: Ecn, payload: Vec<u8>) -> Self {
        Self { source, destination, ecn, payload, index: 0, filler: 0, is_copy: false, hops: 0 }
    }

    /// The number of payload bytes, which is what rates and limits count.
    pub const fn size(&self) -> u64 {
        self.payload.len() as u64 + self.filler as u64
    }
}
