//! The keys of a connection, by encryption level (RFC 9001 §4.1.4).

use fulmar_wire::{ConnectionId, Version};

use super::initial_keys::InitialKeys;
use crate::crypto::{DirectionKeys, Keys, Level, OneRttKeys};
use crate::ids::SpaceId;
use crate::packet::Sealer;

/// The keys that there are now. Those that are soon discarded take no room afterwards.
#[derive(Debug)]
pub(in crate::connection) struct PacketKeys {
    initial: InitialKeys,
    /// Those of 0-RTT packets, with which a client seals and a server opens.
    zero_rtt: Option<Box<DirectionKeys>>,
    handshake: Option<Box<Keys>>,
    one_rtt: Option<OneRttKeys>,
}

impl PacketKeys {
    pub(super) fn new(initial: InitialKeys) -> Self {
        Self { initial, zero_rtt: None, handshake: None, one_rtt: None }
    }

    /// The keys of Initial packets in the version in use, until they are discarded.
    pub(in crate::connection) fn initial(&self) -> Option<&Keys> {
        self.initial.current()
    }

    /// The keys of Initial packets of a version.
    pub(in crate::connection) fn initial_of(&self, version: Option<Version>) -> Option<&Keys> {
        self.initial.of(version)
    }

    pub(in crate::connection) fn zero_rtt(&self) -> Option<&DirectionKeys> {
        self.zero_rtt.as_deref()
    }

    pub(in crate::connection) fn handshake(&self) -> Option<&Keys> {
        self.handshake.as_deref()
    }

    pub(in crate::connection) fn one_rtt(&self) -> Option<&OneRttKeys> {
        self.one_rtt.as_ref()
    }

    pub(in crate::connection) fn one_rtt_mut(&mut self) -> Option<&mut OneRttKeys> {
        self.one_rtt.as_mut()
    }

    /// How often the 1-RTT keys were updated.
    pub(in crate::connection) fn generation(&self) -> u64 {
        self.one_rtt.as_ref().map_or(0, OneRttKeys::generation)
    }

    /// The keys of Initial or Handshake packets.
    pub(in crate::connection) fn of_handshake(
        &self,
        space: SpaceId,
        version: Option<Version>,
    ) -> Option<&Keys> {
        match space {
            SpaceId::Initial => self.initial_of(version),
            _ => self.handshake(),
        }
    }

    /// The keys that packets of a space are sealed with; application data in 0-RTT packets if `zero_rtt`.
    #[inline]
    pub(in crate::connection) fn sealer(&mut self, space: SpaceId, zero_rtt: bool) -> Option<Sealer<'_>> {
        match space {
            SpaceId::Initial => self.initial().map(|keys| Sealer::Fixed(&keys.local)),
            SpaceId::Handshake => self.handshake().map(|keys| Sealer::Fixed(&keys.local)),
            SpaceId::Data(_) if zero_rtt => self.zero_rtt().map(Sealer::Fixed),
            SpaceId::Data(_) => self.one_rtt_mut().map(Sealer::OneRtt),
        }
    }

    /// Whether packets of a level could be opened once, so that one for it waits in vain if they cannot now.
    pub(in crate::connection) fn were_there(&self, level: Level, complete: bool) -> bool {
        match level {
            Level::Initial => true,
            Level::Handshake => self.handshake.is_some() || complete,
            Level::OneRtt => false,
        }
    }

    /// The version of the Initial keys in use.
    pub(super) fn version(&self) -> Version {
        self.initial.version()
    }

    /// Goes over to another version. A server still opens what comes in the first one.
    pub(super) fn switch_version(&mut self, version: Version) {
        self.initial.switch_version(version);
    }

    /// Makes Initial keys for a version that the server may have gone over to.
    pub(super) fn expect_version(&mut self, version: Version) {
        self.initial.expect_version(version);
    }

    /// The handshake begins anew: a Retry or another version has made the keys void.
    pub(super) fn restart(&mut self, version: Version, dcid: ConnectionId) {
        self.initial.restart(version, dcid);
    }

    pub(super) fn set_zero_rtt(&mut self, keys: Option<DirectionKeys>) {
        self.zero_rtt = keys.map(Box::new);
    }

    pub(super) fn set_handshake(&mut self, keys: Box<Keys>) {
        self.handshake = Some(keys);
    }

    pub(super) fn set_one_rtt(&mut self, keys: OneRttKeys) {
        self.one_rtt = Some(keys);
    }

    /// RFC 9001 §4.9.3.
    pub(in crate::connection) fn discard_zero_rtt(&mut self) {
        self.zero_rtt = None;
    }

    /// Discards the keys of a space of the handshake; returns whether there were any (RFC 9001 §4.9).
    pub(super) fn discard(&mut self, space: SpaceId) -> bool {
        match space {
            SpaceId::Initial => self.initial.discard(),
            SpaceId::Handshake => self.handshake.take().is_some(),
            SpaceId::Data(_) => false,
        }
    }

    /// Discards those of a handshake. The last ones stay if it is complete: they tell how often they were changed.
    pub(super) fn let_go(&mut self, complete: bool) {
        self.initial.discard();
        self.zero_rtt = None;
        self.handshake = None;
        if !complete {
            self.one_rtt = None;
        }
    }
}
