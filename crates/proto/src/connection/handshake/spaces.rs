//! The packet number spaces of the handshake, which are discarded with their keys (RFC 9001 §4.9).

use std::fmt;

use fulmar_wire::{PacketKind, PathId};

use crate::crypto::Level;
use crate::space::NumberSpace;

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
    pub(crate) fn path(self) -> PathId {
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

/// The spaces of the handshake, while they last. They send over the tuple of path 0.
#[derive(Debug)]
pub(in crate::connection) struct HandshakeSpaces {
    pub(in crate::connection) initial: Option<NumberSpace>,
    pub(in crate::connection) handshake: Option<NumberSpace>,
}

impl HandshakeSpaces {
    /// The space of Initial or Handshake packets, if it is not discarded.
    pub(in crate::connection) fn get(&self, space: SpaceId) -> Option<&NumberSpace> {
        match space {
            SpaceId::Initial => self.initial.as_ref(),
            SpaceId::Handshake => self.handshake.as_ref(),
            SpaceId::Data(_) => None,
        }
    }

    pub(in crate::connection) fn get_mut(&mut self, space: SpaceId) -> Option<&mut NumberSpace> {
        match space {
            SpaceId::Initial => self.initial.as_mut(),
            SpaceId::Handshake => self.handshake.as_mut(),
            SpaceId::Data(_) => None,
        }
    }

    /// Whether the handshake is over: both were discarded.
    #[inline]
    pub(in crate::connection) fn are_discarded(&self) -> bool {
        self.initial.is_none() && self.handshake.is_none()
    }

    /// Those that there are.
    pub(in crate::connection) fn iter(&self) -> impl Iterator<Item = (SpaceId, &NumberSpace)> {
        let named = [(SpaceId::Initial, &self.initial), (SpaceId::Handshake, &self.handshake)];
        named.into_iter().filter_map(|(id, space)| Some((id, space.as_ref()?)))
    }

    pub(in crate::connection) fn discard(&mut self, space: SpaceId) {
        match space {
            SpaceId::Initial => self.initial = None,
            SpaceId::Handshake => self.handshake = None,
            SpaceId::Data(_) => {}
        }
    }
}
