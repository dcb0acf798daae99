//! Which version of QUIC a connection speaks (RFC 9000 §6, RFC 9368, RFC 9369).
//!
//! Versions 1 and 2 are compatible: a client's first flight of one can be read as one of the other. So a server may go
//! over to the version that the client likes best, in the middle of the handshake and without another round trip.

use std::ops::Range;
use std::sync::Arc;

use fulmar_base::{Instant, Rng};
use fulmar_wire::{
    FrameType, ProtectedPacket, Side, TransportErrorCode, TransportParameters, Version, VersionInformation,
    negotiated_versions,
};
use rustls::pki_types::ServerName;

use crate::cids::random_cid;
use crate::connection::Connection;
use crate::connection::parameters::circumstances;
use crate::crypto::{AeadBackend, Session, TlsError};
use crate::error::TransportError;
use crate::events::ConnectionError;
use crate::ids::reserved_version;
use crate::log::{BarePacket, LogEvent};
use crate::sessions::TicketClock;

/// The versions between which a connection can change without another round trip (RFC 9369 §4).
const COMPATIBLE: [Version; 2] = [Version::V1, Version::V2];

/// What both ends say of versions in their transport parameters: the one in use, and all that this end knows, the best
/// first. A reserved one among them keeps the peer's mind open (RFC 9368 §6).
pub(in crate::connection) fn information(
    chosen: Version,
    known: &[Version],
    rng: &mut Rng,
) -> VersionInformation {
    let mut available = known.to_vec();
    let place = rng.below(available.len() as u64 + 1) as usize;
    available.insert(place, reserved_version(rng));
    VersionInformation { chosen, available }
}

/// The versions of a connection.
#[derive(Debug)]
pub(in crate::connection) struct Versions {
    /// The one that is spoken.
    pub(in crate::connection) current: Version,
    /// That of the client's first packets.
    pub(in crate::connection) original: Version,
    /// All that this end knows, the best first.
    pub(in crate::connection) known: Vec<Version>,
    /// What a client began with.
    client: Option<Box<ClientVersions>>,
    /// What a client begins anew with, until it has heard of the server.
    first_flight: Option<Box<FirstFlight>>,
}

impl Versions {
    pub(in crate::connection) fn new(version: Version, known: Vec<Version>) -> Self {
        Self { current: version, original: version, known, client: None, first_flight: None }
    }

    pub(in crate::connection) fn set_client(&mut self, client: ClientVersions, first_flight: FirstFlight) {
        self.client = Some(Box::new(client));
        self.first_flight = Some(Box::new(first_flight));
    }

    /// The peer was heard of, and is not talked to in another version any more.
    pub(in crate::connection) fn keep(&mut self) {
        self.first_flight = None;
    }

    /// Whether a packet may be of this version that comes before it is known which one is spoken.
    pub(in crate::connection) fn accepts(&self, version: Version) -> bool {
        version == self.current || self.client.as_ref().is_some_and(|client| client.accepts(version))
    }

    /// Whether what the peer says of versions in its transport parameters fits its packets.
    pub(in crate::connection) fn check(
        &self,
        information: Option<&VersionInformation>,
    ) -> Result<(), TransportError> {
        match &self.client {
            Some(client) => client.check(self.current, information),
            None => check_client(self.original, information),
        }
    }
}

/// What a client began with.
#[derive(Debug)]
pub(in crate::connection) struct ClientVersions {
    /// All that it knows, the best first.
    known: Vec<Version>,
    /// That of its first packets, after a Version Negotiation packet those of its second attempt.
    original: Version,
    /// That of the first attempt, if a Version Negotiation packet ended it.
    given_up: Option<Version>,
}

impl ClientVersions {
    pub(in crate::connection) fn new(known: Vec<Version>, original: Version) -> Self {
        Self { known, original, given_up: None }
    }

    /// The version to try instead, when the server says that it speaks `offered` (RFC 9368 §2.1). There is one such
    /// attempt.
    pub(in crate::connection) fn choose_again(&self, offered: &[Version]) -> Option<Version> {
        self.best_of(offered).filter(|_| self.given_up.is_none())
    }

    fn best_of(&self, offered: &[Version]) -> Option<Version> {
        self.known.iter().find(|version| offered.contains(version)).copied()
    }

    /// The first attempt was given up for another one.
    pub(in crate::connection) fn on_second_attempt(&mut self, version: Version) {
        self.given_up = Some(self.original);
        self.original = version;
    }

    /// Whether a server may go over to `version`.
    pub(in crate::connection) fn accepts(&self, version: Version) -> bool {
        version == self.original
            || (COMPATIBLE.contains(&self.original)
                && COMPATIBLE.contains(&version)
                && self.known.contains(&version))
    }

    /// Whether nobody has tampered with the negotiation that led to `version` (RFC 9368 §4).
    pub(in crate::connection) fn check(
        &self,
        version: Version,
        information: Option<&VersionInformation>,
    ) -> Result<(), TransportError> {
        let assumed;
        let information = match information {
            Some(information) => information,
            // RFC 9368 §8: a server of version 1 need not know of all this.
            None if version == self.original && (self.given_up.is_none() || version == Version::V1) => {
                assumed = VersionInformation { chosen: version, available: vec![version] };
                &assumed
            }
            None => return Err(error("the server does not confirm the version that was negotiated")),
        };
        if information.chosen != version {
            return Err(error("the server believes to speak another version"));
        }
        if self.given_up.is_some() && self.best_of(&information.available) != Some(self.original) {
            return Err(error("the server knows a better version than its Version Negotiation packet said"));
        }
        Ok(())
    }
}

/// What a server needs to change the version when it has seen the client's parameters.
pub(in crate::connection) struct ServerVersions {
    pub(in crate::connection) tls: Arc<rustls::ServerConfig>,
    /// What this end would say with the version that the client began with.
    pub(in crate::connection) parameters: TransportParameters,
    pub(in crate::connection) known: Vec<Version>,
    pub(in crate::connection) original: Version,
    pub(in crate::connection) aead: AeadBackend,
    pub(in crate::connection) rng: Rng,
}

impl ServerVersions {
    /// The version that this client, whose encoded parameters these are, likes best of those that both know.
    pub(in crate::connection) fn choose(&self, parameters: &[u8]) -> Version {
        // What is wrong with them is found out later.
        let information =
            TransportParameters::read(Side::Client, parameters).ok().and_then(|p| p.version_information);
        let usable = |version: &&Version| self.known.contains(version) && COMPATIBLE.contains(version);
        match information.filter(|_| COMPATIBLE.contains(&self.original)) {
            Some(information) => information.available.iter().find(usable).copied().unwrap_or(self.original),
            None => self.original,
        }
    }

    /// TLS that speaks of `version`.
    pub(in crate::connection) fn session(&mut self, version: Version) -> Result<Session, TlsError> {
        self.parameters.version_information = Some(information(version, &self.known, &mut self.rng));
        let circumstances = circumstances(self.original, version, &self.parameters);
        let bytes = self.parameters.write(Side::Server, Some(&mut self.rng));
        let mut session = Session::server(&self.tls, version, bytes, circumstances, self.aead)?;
        session.set_original_version(self.original);
        Ok(session)
    }
}

impl std::fmt::Debug for ServerVersions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerVersions").field("original", &self.original).finish_non_exhaustive()
    }
}

/// A client's version in its parameters must be that of its packets (RFC 9368 §4).
fn check_client(original: Version, information: Option<&VersionInformation>) -> Result<(), TransportError> {
    match information {
        Some(information) if information.chosen != original => {
            Err(error("the client believes to have begun with another version"))
        }
        _ => Ok(()),
    }
}

/// What a client needs to begin anew with another version.
pub(in crate::connection) struct FirstFlight {
    pub(in crate::connection) tls: rustls::ClientConfig,
    pub(in crate::connection) name: ServerName<'static>,
    pub(in crate::connection) parameters: TransportParameters,
    pub(in crate::connection) aead: AeadBackend,
}

impl FirstFlight {
    /// TLS that begins with `version`.
    pub(in crate::connection) fn session(
        &mut self,
        version: Version,
        known: &[Version],
        rng: &mut Rng,
    ) -> Result<Session, TlsError> {
        self.parameters.version_information = Some(information(version, known, rng));
        let bytes = self.parameters.write(Side::Client, Some(rng));
        let clock = Arc::new(TicketClock::new(self.tls.time_provider.clone()));
        let mut tls = self.tls.clone();
        tls.time_provider = clock.clone();
        let session = Session::client(&tls, version, self.name.clone(), bytes, self.aead)?;
        clock.on_client_hello();
        Ok(session)
    }
}

impl std::fmt::Debug for FirstFlight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FirstFlight").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Connection {
    /// RFC 9000 §6.2: a client tries another version, or gives up if the server knows none that it does.
    pub(in crate::connection) fn on_version_negotiation(
        &mut self,
        now: Instant,
        packet: &ProtectedPacket,
        bytes: &[u8],
        versions: Range<usize>,
    ) {
        let cids = &self.handshake.tls.cids;
        let early = self.side.is_client() && cids.peer_scid.is_none() && cids.retry_scid.is_none();
        // RFC 8999 §6: the server repeats the connection ID that the client made up.
        let offered: Vec<Version> = negotiated_versions(&bytes[versions]).collect();
        if !early || packet.src != cids.original_dcid || offered.contains(&self.handshake.versions.current) {
            return;
        }
        let another =
            self.handshake.versions.client.as_ref().and_then(|versions| versions.choose_again(&offered));
        let packet = BarePacket::VersionNegotiation;
        self.telemetry.record(now, LogEvent::BareReceived { packet, size: bytes.len() as u16 });
        self.telemetry.record_refused_version(now, &offered, another);
        if another.is_none_or(|version| self.begin_anew(now, version).is_none()) {
            self.drain(now, ConnectionError::VersionMismatch);
        }
    }

    /// Begins the handshake anew with another version (RFC 9368 §2.1).
    pub(in crate::connection) fn begin_anew(&mut self, now: Instant, version: Version) -> Option<()> {
        let Versions { known, client, first_flight, .. } = &mut self.handshake.versions;
        let (client, first_flight) = client.as_mut().zip(first_flight.as_mut())?;
        if let Some(sessions) = &self.sessions {
            sessions.set_version(version);
        }
        let session = first_flight.session(version, known, &mut self.rng).ok()?;
        client.on_second_attempt(version);
        self.give_up_early_data(now);
        let dcid = random_cid(&mut self.rng);
        let handshake = &mut self.handshake;
        handshake.versions.current = version;
        handshake.versions.original = version;
        handshake.tls.restart(session, version, dcid, &mut handshake.keys);
        handshake.undecryptable.clear();
        self.paths.primary_mut().remote_cids.replace_handshake_cid(dcid);
        self.forget_first_flight(now);
        self.handshake.drive();
        Some(())
    }
}

fn error(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::VERSION_NEGOTIATION_ERROR, reason).with_frame(FrameType::CRYPTO)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: Version = Version(0xface_b00c);

    fn information(chosen: Version, available: &[Version]) -> VersionInformation {
        VersionInformation { chosen, available: available.to_vec() }
    }

    #[test]
    fn a_forged_version_negotiation_packet_is_found_out() {
        let known = vec![Version::V2, Version::V1];
        let mut client = ClientVersions::new(known, Version::V2);
        assert_eq!(client.choose_again(&[UNKNOWN]), None);
        assert_eq!(client.choose_again(&[UNKNOWN, Version::V1]), Some(Version::V1));
        client.on_second_attempt(Version::V1);
        assert_eq!(client.choose_again(&[Version::V2]), None, "there is one more attempt, not two");
        let check =
            |available: &[Version]| client.check(Version::V1, Some(&information(Version::V1, available)));
        assert!(check(&[Version::V1, UNKNOWN]).is_ok());
        let forged = check(&[Version::V1, Version::V2]).unwrap_err();
        assert_eq!(forged.code, TransportErrorCode::VERSION_NEGOTIATION_ERROR);
        assert!(client.check(Version::V1, None).is_ok(), "a server that knows of version 1 alone");
    }

    #[test]
    fn a_server_that_changes_the_version_must_say_so() {
        let client = ClientVersions::new(vec![Version::V2, Version::V1], Version::V1);
        assert!(client.accepts(Version::V2) && client.accepts(Version::V1) && !client.accepts(UNKNOWN));
        assert!(client.check(Version::V2, Some(&information(Version::V2, &[Version::V2]))).is_ok());
        assert!(client.check(Version::V2, Some(&information(Version::V1, &[Version::V2]))).is_err());
        assert!(client.check(Version::V2, None).is_err());
        assert!(client.check(Version::V1, None).is_ok());
        let other = ClientVersions::new(vec![Version::V1], Version::V1);
        assert!(!other.accepts(Version::V2), "the client does not know it");
    }

    #[test]
    fn a_client_that_contradicts_its_packets_is_refused() {
        let information = information(Version::V2, &[Version::V2]);
        assert!(check_client(Version::V1, Some(&information)).is_err());
        assert!(check_client(Version::V2, Some(&information)).is_ok());
        assert!(check_client(Version::V1, None).is_ok());
    }
}
