//! The packet number spaces of the handshake, which are discarded with their keys (RFC 9001 §4.9).

use crate::ids::SpaceId;
use crate::space::NumberSpace;

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
