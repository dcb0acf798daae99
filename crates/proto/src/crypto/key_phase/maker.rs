//! The packet keys of one generation after the other, from the secrets of TLS (RFC 9001 §5.1, §6.1).

use fulmar_wire::Side;

use crate::crypto::aead::{AeadBackend, CipherSuite};
use crate::crypto::hkdf::Secret;
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
        PhaseKeys { local: self.make_local(), remote: self.make_remote() }
    }

    /// The key of the newest generation to seal with.
    pub(super) fn make_local(&self) -> PacketKey {
        self.expand(self.secrets.local_remote(self.side).0)
    }

    /// Goes on to the next generation, and makes the key to open with.
    pub(super) fn make_next_remote(&mut self) -> PacketKey {
        self.secrets = self.secrets.next(self.version.update_label);
        self.make_remote()
    }

    fn make_remote(&self) -> PacketKey {
        self.expand(self.secrets.local_remote(self.side).1)
    }

    fn expand(&self, secret: &Secret) -> PacketKey {
        PacketKey::new(self.suite, secret, self.version, self.backend)
    }
}

/// The packet keys of one generation.
#[derive(Debug)]
pub(super) struct PhaseKeys {
    pub(super) local: PacketKey,
    pub(super) remote: PacketKey,
}
