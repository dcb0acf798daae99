//! The keys of one generation after the other, from the secrets of TLS (RFC 9001 §5.1, §6.1).

use fulmar_wire::Side;

use crate::crypto::aead::{AeadBackend, CipherSuite};
use crate::crypto::header_key::{HeaderKey, HeaderKeyBytes};
use crate::crypto::hkdf::Expander;
use crate::crypto::keys::SecretPair;
use crate::crypto::packet_key::PacketKey;
use crate::crypto::version::VersionConstants;

/// Makes the keys of one generation after the other.
#[derive(Debug)]
pub(super) struct KeyMaker {
    pub(super) suite: CipherSuite,
    version: &'static VersionConstants,
    side: Side,
    backend: AeadBackend,
    /// The secrets of the generation in use.
    secrets: SecretPair,
    /// The keys of header protection, to send and to receive: an update leaves them alone.
    headers: [HeaderKeyBytes; 2],
}

impl KeyMaker {
    /// Begins with generation zero, of which it gives the keys, too.
    pub(super) fn new(
        suite: CipherSuite,
        secrets: SecretPair,
        version: &'static VersionConstants,
        side: Side,
        backend: AeadBackend,
    ) -> (Self, Expanded) {
        let expanders = expanders(&secrets, side);
        let headers = expanders.each_ref().map(|secret| HeaderKeyBytes::new(suite, secret, version));
        let maker = Self { suite, version, side, backend, secrets, headers };
        let expanded = maker.expand_with(&expanders);
        (maker, expanded)
    }

    /// All that is needed to seal and to open packets.
    pub(super) fn expand(&self) -> Expanded {
        self.expand_with(&expanders(&self.secrets, self.side))
    }

    fn expand_with(&self, [local, remote]: &[Expander; 2]) -> Expanded {
        let [local_header, remote_header] = self.headers.each_ref().map(|bytes| bytes.expand(self.suite));
        Expanded {
            local_header,
            remote_header,
            current: PhaseKeys { local: self.packet_key(local), remote: self.packet_key(remote) },
            next: Some(self.next_packet_key(remote)),
        }
    }

    /// Goes on to the next generation.
    pub(super) fn advance(&mut self) {
        self.secrets = self.secrets.next(self.version.update_label);
    }

    /// The key to seal with.
    pub(super) fn make_local(&self) -> PacketKey {
        self.packet_key(&self.secrets.local_remote(self.side).0.expander())
    }

    /// The key of the generation after this to open with.
    pub(super) fn make_next_remote(&self) -> PacketKey {
        self.next_packet_key(&self.secrets.local_remote(self.side).1.expander())
    }

    fn next_packet_key(&self, secret: &Expander) -> PacketKey {
        self.packet_key(&secret.next(self.version.update_label).expander())
    }

    fn packet_key(&self, secret: &Expander) -> PacketKey {
        PacketKey::new(self.suite, secret, self.version, self.backend)
    }
}

/// The secrets to send and to receive with.
fn expanders(secrets: &SecretPair, side: Side) -> [Expander; 2] {
    let (local, remote) = secrets.local_remote(side);
    [local.expander(), remote.expander()]
}

/// What seals and opens packets, ready for use: one to two kilobytes, and what the library keeps beside them.
#[derive(Debug)]
pub(super) struct Expanded {
    pub(super) local_header: HeaderKey,
    pub(super) remote_header: HeaderKey,
    pub(super) current: PhaseKeys,
    /// The peer's next key. It is at hand so that opening a packet takes as long in either phase (RFC 9001 §6.3); the key to
    /// seal with is made when it is needed, which most connections never come to. Missing only between an update and the
    /// next `maintain`.
    pub(super) next: Option<PacketKey>,
}

/// The packet keys of one generation.
#[derive(Debug)]
pub(super) struct PhaseKeys {
    pub(super) local: PacketKey,
    pub(super) remote: PacketKey,
}
