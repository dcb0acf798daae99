//! The keys of Initial packets, which derive from a connection ID that everybody can read (RFC 9001 §5.2).

use fulmar_wire::{ConnectionId, Side, Version};

use crate::crypto::{AeadBackend, DirectionKeys, Keys};

/// The Initial keys of one end, and those of another version that may be spoken.
#[derive(Debug)]
pub(in crate::connection) struct InitialKeys {
    side: Side,
    aead: AeadBackend,
    /// What they derive from.
    dcid: ConnectionId,
    version: Version,
    /// Until they are discarded.
    keys: Option<Box<Keys>>,
    /// Those of another version: on a client the one that the server may go over to, on a server the one that the client
    /// began with (RFC 9369 §4.1).
    other: Option<(Version, Box<Keys>)>,
}

impl InitialKeys {
    pub(in crate::connection) fn new(
        side: Side,
        version: Version,
        aead: AeadBackend,
        dcid: ConnectionId,
    ) -> Self {
        let keys = Some(Box::new(Keys::initial(version, &dcid, side, aead)));
        Self { side, aead, dcid, version, keys, other: None }
    }

    /// Those of a server that has made the keys of its client already.
    pub(in crate::connection) fn of_server(
        version: Version,
        aead: AeadBackend,
        dcid: ConnectionId,
        client: DirectionKeys,
    ) -> Self {
        let keys = Some(Box::new(Keys::initial_of_server(version, &dcid, client, aead)));
        Self { side: Side::Server, aead, dcid, version, keys, other: None }
    }

    /// The version in use.
    pub(in crate::connection) fn version(&self) -> Version {
        self.version
    }

    /// The keys of that version.
    pub(in crate::connection) fn current(&self) -> Option<&Keys> {
        self.keys.as_deref()
    }

    /// The keys for packets of a version.
    pub(in crate::connection) fn of(&self, version: Option<Version>) -> Option<&Keys> {
        let current = self.keys.as_deref()?;
        match &self.other {
            Some((other, keys)) if version == Some(*other) => Some(keys),
            _ => (version == Some(self.version)).then_some(current),
        }
    }

    /// Begins anew: the keys derive from another connection ID now.
    pub(in crate::connection) fn restart(&mut self, version: Version, dcid: ConnectionId) {
        *self = Self::new(self.side, version, self.aead, dcid);
    }

    /// Goes over to another version. A server still opens what comes in the first one.
    pub(in crate::connection) fn switch_version(&mut self, version: Version) {
        let keys = self.make(version);
        let before = std::mem::replace(&mut self.version, version);
        let keys = self.keys.as_mut().map(|current| std::mem::replace(current, keys));
        self.other = keys.filter(|_| self.side.is_server()).map(|keys| (before, keys));
    }

    /// Makes keys for a version that the server may have gone over to.
    pub(in crate::connection) fn expect_version(&mut self, version: Version) {
        if self.other.as_ref().is_none_or(|(other, _)| *other != version) {
            self.other = Some((version, self.make(version)));
        }
    }

    /// Discards them; returns whether there were any.
    pub(in crate::connection) fn discard(&mut self) -> bool {
        self.other = None;
        self.keys.take().is_some()
    }

    fn make(&self, version: Version) -> Box<Keys> {
        Box::new(Keys::initial(version, &self.dcid, self.side, self.aead))
    }
}
