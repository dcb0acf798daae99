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
    pub(crate) const DATA: Self = Self::Data(PathId::ZERO);
    pub(crate) const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::DATA];

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
pub(super) struct EarlySpaces {
    pub(super) initial: Option<NumberSpace>,
    pub(super) handshake: Option<NumberSpace>,
}

/// Probe packets that have to be sent, by space.
#[derive(Debug, Default)]
pub(super) struct Probes {
    initial: u8,
    handshake: u8,
    data: u8,
    /// A packet without data shall ask whether the path is back.
    reminder: bool,
}

impl Probes {
    fn slot(&mut self, space: SpaceId) -> &mut u8 {
        match space {
            SpaceId::Initial => &mut self.initial,
            SpaceId::Handshake => &mut self.handshake,
            SpaceId::Data(_) => &mut self.data,
        }
    }

    pub(super) fn demand(&mut self, space: SpaceId, packets: u8) {
        *self.slot(space) = packets;
    }

    /// One is enough to keep a silent connection alive.
    pub(super) fn demand_one(&mut self, space: SpaceId) {
        let slot = self.slot(space);
        *slot = (*slot).max(1);
    }

    /// A packet of application data, but without any, shall ask for an acknowledgement.
    pub(super) fn demand_reminder(&mut self) {
        self.reminder = true;
    }

    pub(super) fn is_reminder_due(&self) -> bool {
        self.reminder
    }

    pub(super) fn is_due(&self, space: SpaceId) -> bool {
        match space {
            SpaceId::Initial => self.initial > 0,
            SpaceId::Handshake => self.handshake > 0,
            SpaceId::Data(_) => self.data > 0,
        }
    }

    /// Whether one more probe of application data is the last one.
    pub(super) fn is_last(&self) -> bool {
        self.data == 1
    }

    pub(super) fn any(&self) -> bool {
        self.initial > 0 || self.handshake > 0 || self.data > 0
    }

    /// A packet that elicits an acknowledgement was sent.
    pub(super) fn on_sent(&mut self, space: SpaceId) {
        self.reminder &= !space.is_data();
        let slot = self.slot(space);
        *slot = slot.saturating_sub(1);
    }

    /// Nothing has to be probed in this space any more.
    pub(super) fn cancel(&mut self, space: SpaceId) {
        self.reminder &= !space.is_data();
        *self.slot(space) = 0;
    }
}
