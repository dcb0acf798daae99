//! The ids that several modules share: of packet number spaces, of tuples, and reserved versions.

use std::fmt;

use fulmar_base::Rng;
use fulmar_wire::{PacketKind, PathId, Version};

use crate::crypto::Level;
use crate::packed::packed;

/// Names a packet number space (RFC 9000 §12.3). Each path has one of its own for application data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpaceId {
    /// Of Initial packets.
    Initial,
    /// Of Handshake packets.
    Handshake,
    /// Of 0-RTT and 1-RTT packets on a path.
    Data(PathId),
}

impl SpaceId {
    /// Those of the handshake, in the order in which they send.
    pub(crate) const OF_HANDSHAKE: [Self; 2] = [Self::Initial, Self::Handshake];

    pub(crate) fn level(self) -> Level {
        match self {
            Self::Initial => Level::Initial,
            Self::Handshake => Level::Handshake,
            Self::Data(_) => Level::OneRtt,
        }
    }

    pub(crate) fn packet_kind(self) -> PacketKind {
        match self {
            Self::Initial => PacketKind::Initial,
            Self::Handshake => PacketKind::Handshake,
            Self::Data(_) => PacketKind::OneRtt,
        }
    }

    /// The path that packets of the space take: Initial and Handshake packets take path 0.
    pub fn path(self) -> PathId {
        match self {
            Self::Initial | Self::Handshake => PathId::ZERO,
            Self::Data(path) => path,
        }
    }

    pub(crate) fn is_data(self) -> bool {
        matches!(self, Self::Data(_))
    }
}

impl fmt::Display for SpaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Initial => f.write_str("Initial"),
            Self::Handshake => f.write_str("Handshake"),
            Self::Data(path) => write!(f, "Data({})", path.0),
        }
    }
}

/// Names a tuple (a 4-tuple in use) within a connection. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TupleId(pub(crate) u32);

packed!(TupleId);

/// A version that nobody will ever speak (RFC 9000 §15).
pub(crate) fn reserved_version(rng: &mut Rng) -> Version {
    Version(0x0a0a_0a0a | (rng.u64() as u32 & 0xf0f0_f0f0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_have_the_names_of_their_packets_and_the_number_of_their_path() {
        let names = [SpaceId::Initial, SpaceId::Handshake, SpaceId::Data(PathId(3))].map(|id| id.to_string());
        assert_eq!(names, ["Initial", "Handshake", "Data(3)"]);
    }
}
