//! Which version the handshake is of (RFC 9368 §2.3).

use fulmar_wire::{ConnectionId, TransportErrorCode, Version};

use super::super::crypto_stream::CryptoStream;
use super::super::crypto_streams::CryptoStreams;
use super::super::keys::PacketKeys;
use super::super::versions::ServerVersions;
use super::TlsHandshake;
use crate::crypto::{Level, Peeked, Session, TlsError, peek_client_hello};
use crate::error::TransportError;

/// The alert of a message that lacks what must be in it (RFC 8446 §6).
const MISSING_EXTENSION: u8 = 109;

impl TlsHandshake {
    /// A server looks at the whole first message of its client before TLS does, to choose the version (RFC 9368 §2.3). Returns
    /// whether that is done.
    pub(super) fn negotiate(&mut self, keys: &mut PacketKeys) -> Result<bool, TransportError> {
        let Some(negotiation) = &self.negotiation else { return Ok(true) };
        let version =
            match peek_client_hello(self.crypto.get(Level::Initial).map_or(&[], CryptoStream::in_order)) {
                Peeked::Incomplete => return Ok(false),
                Peeked::Parameters(parameters) => negotiation.choose(parameters),
                Peeked::WithoutParameters => {
                    // RFC 9001 §8.2: missing_extension. TLS would take those of the drafts, under their old number.
                    let reason = "the client sends no transport parameters";
                    return Err(TransportError::new(TransportErrorCode::crypto(MISSING_EXTENSION), reason));
                }
                Peeked::Nonsense => keys.version(),
            };
        let negotiation = self.negotiation.take().filter(|_| version != keys.version());
        let Some(mut negotiation) = negotiation else { return Ok(true) };
        let internal =
            |error: TlsError| TransportError::new(TransportErrorCode::INTERNAL_ERROR, error.to_string());
        self.session = negotiation.session(version).map_err(internal)?;
        self.switch_version(version, keys);
        Ok(true)
    }

    /// The version will be chosen when the client's parameters are known.
    pub(in crate::connection) fn set_negotiation(&mut self, negotiation: ServerVersions) {
        self.negotiation = Some(Box::new(negotiation));
    }

    /// Goes over to another version. A server still opens what comes in the first one.
    pub(in crate::connection) fn switch_version(&mut self, version: Version, keys: &mut PacketKeys) {
        keys.switch_version(version);
        self.session.set_version(version);
    }

    /// The client begins anew, after a Version Negotiation packet.
    pub(in crate::connection) fn restart(
        &mut self,
        session: Session,
        version: Version,
        dcid: ConnectionId,
        keys: &mut PacketKeys,
    ) {
        self.session = session;
        self.crypto = CryptoStreams::default();
        keys.restart(version, dcid);
        keys.discard_zero_rtt();
        self.cids.original_dcid = dcid;
        // RFC 9369 §5: the token is of another version.
        self.token.clear();
    }
}
