//! The packet keys of one generation after the other, from the secrets of TLS (RFC 9001 §5.1, §6.1).

use fulmar_wire::Side;

use crate::crypto::aead::{AeadBackend, CipherSuite};
use crate::crypto::keys::SecretPair;
use crate::crypto::packet_key::PacketKey;
use crate::crypto::version::VersionConstants;

/// Makes the keys of one generation after the other.
#[derive(Debug)]
pub(super) struct KeyMaker {
    pub(super) suite: CipherSuite,
    pub(super) version: &'static VersionConstants,
    pub(super) side: Side,
    pub(super) backend: AeadBackend,
    /// The secrets of the newest generation that keys were made of.
    pub(super) secrets: SecretPair,
}

impl KeyMaker {
    pub(super) fn make(&self) -> PhaseKeys {
        let (local, remote) = self.secrets.local_remote(self.side);
        let key = |secret| PacketKey::new(self.suite, secret, self.version, self.backend);
        PhaseKeys { local: key(local), remote: key(remote) }
    }

    pub(super) fn make_next(&mut self) -> PhaseKeys {
        self.secrets = self.secrets.next(self.version.update_label);
        self.make()
    }
}

/// The packet keys of one generation.
#[derive(Debug)]
pub(super) struct PhaseKeys {
    pub(super) local: PacketKey,
    pub(super) remote: PacketKey,
}
