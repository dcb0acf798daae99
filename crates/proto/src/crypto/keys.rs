//! The keys of one encryption level.

use fulmar_wire::{ConnectionId, Side, Version};

use super::aead::{AeadBackend, CipherSuite};
use super::header_key::HeaderKey;
use super::hkdf::{Expander, Secret};
use super::packet_key::PacketKey;
use super::version::VersionConstants;

/// The keys that protect the packets one side sends.
#[derive(Debug)]
pub(crate) struct DirectionKeys {
    /// Seals or opens the packet.
    pub(crate) packet: PacketKey,
    /// Masks the header.
    pub(crate) header: HeaderKey,
}

impl DirectionKeys {
    /// One half of [`Keys::initial`]: the keys with which `sender` protects its Initial packets.
    pub(crate) fn initial(version: Version, dcid: &ConnectionId, sender: Side, backend: AeadBackend) -> Self {
        let version = VersionConstants::of(version);
        let secret = Secret::initial(version, dcid);
        Self::from_initial(&secret.expander(), version, sender, backend)
    }

    fn from_initial(
        secret: &Expander,
        version: &VersionConstants,
        sender: Side,
        backend: AeadBackend,
    ) -> Self {
        let label = if sender.is_client() { "client in" } else { "server in" };
        Self::new(CipherSuite::Aes128Gcm, &secret.next(label), version, backend)
    }

    pub(super) fn new(
        suite: CipherSuite,
        secret: &Secret,
        version: &VersionConstants,
        backend: AeadBackend,
    ) -> Self {
        let secret = secret.expander();
        Self {
            packet: PacketKey::new(suite, &secret, version, backend),
            header: HeaderKey::new(suite, &secret, version),
        }
    }
}

/// The keys of both directions at the Initial or the Handshake level.
#[derive(Debug)]
pub(crate) struct Keys {
    /// For packets that this endpoint sends.
    pub(crate) local: DirectionKeys,
    /// For packets that the peer sends.
    pub(crate) remote: DirectionKeys,
}

impl Keys {
    /// Initial keys: everyone on the path who sees `dcid`, the destination of the client's first Initial
    /// packet (or of the first after a Retry), can derive them (RFC 9001 §5.2).
    pub(crate) fn initial(version: Version, dcid: &ConnectionId, side: Side, backend: AeadBackend) -> Self {
        let version = VersionConstants::of(version);
        let secret = Secret::initial(version, dcid).expander();
        Self {
            local: DirectionKeys::from_initial(&secret, version, side, backend),
            remote: DirectionKeys::from_initial(&secret, version, !side, backend),
        }
    }

    /// The Initial keys of a server that has made those of its client already, to look at the first packet.
    pub(crate) fn initial_of_server(
        version: Version,
        dcid: &ConnectionId,
        client: DirectionKeys,
        backend: AeadBackend,
    ) -> Self {
        Self { local: DirectionKeys::initial(version, dcid, Side::Server, backend), remote: client }
    }

    /// Handshake keys, from the secrets of TLS.
    pub(super) fn from_secrets(
        suite: CipherSuite,
        secrets: &SecretPair,
        version: Version,
        side: Side,
        backend: AeadBackend,
    ) -> Self {
        Self::expand(suite, secrets, VersionConstants::of(version), side, backend)
    }

    fn expand(
        suite: CipherSuite,
        secrets: &SecretPair,
        version: &VersionConstants,
        side: Side,
        backend: AeadBackend,
    ) -> Self {
        let (local, remote) = secrets.local_remote(side);
        Self {
            local: DirectionKeys::new(suite, local, version, backend),
            remote: DirectionKeys::new(suite, remote, version, backend),
        }
    }
}

/// The traffic secrets of one level.
#[derive(Debug)]
pub(super) struct SecretPair {
    pub(super) client: Secret,
    pub(super) server: Secret,
}

impl SecretPair {
    /// The secret that `side` sends with, then the one it receives with.
    pub(super) fn local_remote(&self, side: Side) -> (&Secret, &Secret) {
        match side {
            Side::Client => (&self.client, &self.server),
            Side::Server => (&self.server, &self.client),
        }
    }

    /// The secrets of the following key phase (RFC 9001 §6.1).
    pub(super) fn next(&self, label: &str) -> Self {
        Self { client: self.client.next(label), server: self.server.next(label) }
    }
}
