//! What belongs to the handshake: TLS, keys, the packet number spaces of Initial and Handshake packets, the version,
//! early data, and packets that wait for their keys.
//!
//! It must not know paths or streams. RFC 9001 §4, RFC 9000 §7.

mod asked_repeats;
pub(super) mod crypto_stream;
mod crypto_streams;
pub(super) mod early_data;
mod initial_keys;
mod keys;
mod peer_parameters;
mod reminders;
mod repeated_flights;
mod spaces;
mod tls;
mod undecryptable;
pub(super) mod versions;

use fulmar_base::Instant;
use fulmar_wire::{
    ConnectionId, Crypto, PacketKind, ProtectedKind, ProtectedPacket, Side, TransportParameters, Version,
};

pub use self::early_data::EarlyData;
pub(super) use self::keys::PacketKeys;
pub(super) use self::peer_parameters::PeerParameters;
pub(super) use self::spaces::HandshakeSpaces;
pub(super) use self::tls::{Progress, TlsHandshake};
pub(super) use self::undecryptable::Undecryptable;

use self::asked_repeats::AskedRepeats;
use self::early_data::RememberedLimits;
use self::initial_keys::InitialKeys;
use self::reminders::Reminders;
use self::versions::Versions;
use super::ConnectionSetup;
use super::opening::Discard;
use crate::crypto::{KeyUpdatePolicy, Level, Session};
use crate::datagram::Ecn;
use crate::error::TransportError;
use crate::ids::SpaceId;
use crate::log::PacketDropReason;

/// What is needed only until the handshake is complete.
#[derive(Debug)]
pub(super) struct Underway {
    begun: Instant,
    /// What follows a server's flight.
    pub(super) reminders: Reminders,
    repeats: AskedRepeats,
}

/// The handshake of a connection, and what lives as long as it.
#[derive(Debug)]
pub(super) struct HandshakeState {
    side: Side,
    pub(super) tls: TlsHandshake,
    pub(super) keys: PacketKeys,
    pub(super) spaces: HandshakeSpaces,
    pub(super) versions: Versions,
    /// What became of the early data.
    pub(super) early_data: EarlyData,
    /// The limits that the server had when the session began that a client resumes.
    pub(super) remembered: Option<Box<RememberedLimits>>,
    pub(super) undecryptable: Undecryptable,
    pub(super) underway: Option<Box<Underway>>,
    /// Whether the client has repeated the end of its handshake before a timeout.
    end_repeated: bool,
    /// Whether a Handshake packet of this end was acknowledged.
    acked: bool,
}

impl HandshakeState {
    /// Begins with Initial keys derived from the client's first destination ID.
    pub(super) fn new(
        setup: &mut ConnectionSetup,
        session: Session,
        original_dcid: ConnectionId,
        spaces: HandshakeSpaces,
    ) -> Self {
        let ConnectionSetup { side, version, local_cid, aead, now, .. } = *setup;
        let cids = (local_cid, original_dcid);
        let initial = match setup.client_initial.take() {
            Some(client) => InitialKeys::of_server(version, aead, original_dcid, *client),
            None => InitialKeys::new(side, version, aead, original_dcid),
        };
        Self {
            side,
            tls: TlsHandshake::new(session, side, cids, now, setup.transport.handshake_timeout),
            keys: PacketKeys::new(initial),
            spaces,
            versions: Versions::new(version, setup.endpoint.versions.clone()),
            early_data: EarlyData::Unused,
            remembered: None,
            undecryptable: Undecryptable::default(),
            underway: Some(Box::new(Underway {
                begun: now,
                reminders: Reminders::default(),
                repeats: AskedRepeats::new(now),
            })),
            end_repeated: false,
            acked: false,
        }
    }

    /// Lets TLS write what it has to say, and takes new keys.
    pub(super) fn drive(&mut self) -> Progress {
        self.tls.drive(&mut self.keys)
    }

    /// Takes handshake bytes of a level and moves on as far as they reach.
    pub(super) fn on_crypto(
        &mut self,
        level: Level,
        crypto: &Crypto<'_>,
    ) -> Result<Progress, TransportError> {
        let progress = self.tls.on_crypto(level, crypto, &mut self.keys);
        // A server has chosen the version before TLS refuses something: what it says of that is sealed with the keys of it.
        self.versions.current = self.keys.version();
        progress
    }

    /// The peer has acknowledged Initial or Handshake packets.
    pub(super) fn on_flight_acked(&mut self, space: SpaceId) {
        // RFC 9002 §6.2.2.1: the server has seen a Handshake packet, and so validated the address.
        self.acked |= space == SpaceId::Handshake;
        if let Some(underway) = &mut self.underway {
            underway.reminders.stop();
        }
    }

    /// TLS is complete.
    pub(super) fn on_complete(&mut self, now: Instant, policy: KeyUpdatePolicy) {
        if let Some(underway) = self.underway.take() {
            self.tls.on_complete(now - underway.begun, &mut self.keys);
        }
        if let Some(keys) = self.keys.one_rtt_mut() {
            keys.set_update_policy(policy);
        }
    }

    /// Gives back the memory that nothing needs while the connection rests.
    pub(super) fn rest(&mut self) {
        self.tls.rest();
        if let Some(keys) = self.keys.one_rtt_mut() {
            keys.rest();
        }
    }

    /// Whether TLS is complete (RFC 9001 §4.1.1).
    pub(super) fn is_complete(&self) -> bool {
        self.tls.is_complete()
    }

    /// Whether both ends know that it is (RFC 9001 §4.1.2).
    pub(super) fn is_confirmed(&self) -> bool {
        self.tls.is_confirmed()
    }

    pub(super) fn session(&self) -> &Session {
        self.tls.session()
    }

    /// The peer's transport parameters, once they are known.
    pub(super) fn peer_parameters(&self) -> Option<&PeerParameters> {
        self.tls.peer_parameters()
    }

    /// The same, all of them: they are read anew.
    pub(super) fn all_peer_parameters(&self) -> Option<TransportParameters> {
        self.peer_parameters()?.all()
    }

    /// Whether the peer is known to have validated this end's address, so that it can answer
    /// (RFC 9002 §6.2.2.1).
    pub(super) fn peer_validated_address(&self) -> bool {
        self.side.is_server() || self.is_confirmed() || self.acked
    }

    /// Whether packets of application data are 0-RTT packets now.
    pub(super) fn sends_zero_rtt(&self) -> bool {
        self.early_data == EarlyData::Offered
            && self.keys.zero_rtt().is_some()
            && self.keys.one_rtt().is_none()
    }

    /// Whether there are keys to send packets of a space.
    pub(super) fn can_send(&self, space: SpaceId) -> bool {
        match space {
            SpaceId::Initial => self.keys.initial().is_some(),
            SpaceId::Handshake => self.keys.handshake().is_some(),
            SpaceId::Data(_) => {
                (self.keys.one_rtt().is_some() && self.peer_parameters().is_some()) || self.sends_zero_rtt()
            }
        }
    }

    /// Whether packets of the space can be opened now.
    pub(super) fn can_open(&self, space: SpaceId, packet: &ProtectedPacket) -> bool {
        match space {
            SpaceId::Initial => self.keys.initial_of(packet.version).is_some(),
            SpaceId::Handshake => self.keys.handshake().is_some(),
            SpaceId::Data(_) if is_zero_rtt(packet) => self.keys.zero_rtt().is_some(),
            // RFC 9001 §5.7: 1-RTT packets wait until the handshake is complete.
            SpaceId::Data(_) => self.keys.one_rtt().is_some() && self.is_complete(),
        }
    }

    /// Keeps a packet that cannot be opened, if its keys are still to come and there is room. Those of early data come
    /// with those of the handshake.
    pub(super) fn keep_for_later(
        &mut self,
        now: Instant,
        space: SpaceId,
        packet: &ProtectedPacket,
        bytes: &[u8],
        ecn: Ecn,
    ) -> Discard {
        let level = if is_zero_rtt(packet) { Level::Handshake } else { space.level() };
        let waits = !self.keys.were_there(level, self.is_complete());
        if !waits || !self.undecryptable.keep(level, packet.clone(), bytes, ecn) {
            return Discard::Silently(PacketDropReason::NoKeys);
        }
        self.on_packet_without_keys(now, level);
        Discard::Kept
    }

    /// The level up to which packets that waited can be opened now.
    pub(super) fn opened_level(&self) -> Option<Level> {
        match (self.is_complete(), self.keys.handshake().is_some()) {
            (true, _) => Some(Level::OneRtt),
            (false, true) => Some(Level::Handshake),
            (false, false) => None,
        }
    }

    /// Whether a packet with a long header has the version and the source of the handshake.
    pub(super) fn admits(&self, packet: &ProtectedPacket) -> bool {
        // RFC 9000 §17.2.2: the Initial packets of a server carry no token.
        let has_token = matches!(&packet.kind, ProtectedKind::Initial { token, .. } if !token.is_empty());
        if self.side.is_client() && has_token {
            return false;
        }
        let version_fits = match packet.kind {
            // RFC 9369 §4.1: the first packets of a client may be of another version than all others.
            ProtectedKind::Initial { .. } => {
                self.side.is_server() || packet.version.is_some_and(|of| self.versions.accepts(of))
            }
            // The others of a server's flight may overtake the one that tells its version.
            ProtectedKind::Handshake { .. } if self.keys.handshake().is_none() => {
                packet.version.is_some_and(|of| self.versions.accepts(of))
            }
            ProtectedKind::ZeroRtt { .. } => packet.version == Some(self.versions.original),
            _ => packet.version == Some(self.versions.current),
        };
        // RFC 9000 §7.2: once the peer has chosen its connection ID, packets with another are discarded.
        version_fits && self.tls.cids.peer_scid.is_none_or(|scid| scid == packet.src)
    }

    /// An authentic packet came. Returns the peer's connection ID if this is its first packet.
    #[inline]
    pub(super) fn on_authenticated(
        &mut self,
        space: SpaceId,
        packet: &ProtectedPacket,
    ) -> Option<ConnectionId> {
        // Whoever was heard of is not talked to in another version.
        self.versions.keep();
        if is_zero_rtt(packet) {
            self.early_data = EarlyData::Accepted;
        } else if space.is_data() && self.side.is_server() {
            // RFC 9001 §4.9.3: what of the early data is still to come is sent again.
            self.keys.discard_zero_rtt();
        }
        if self.tls.cids.peer_scid.is_some() {
            return None;
        }
        // RFC 9000 §7.2: the peer's choice of a connection ID is in its first packet.
        self.tls.cids.peer_scid = Some(packet.src);
        Some(packet.src)
    }

    /// The server may have gone over to another version, for which there must be keys then.
    pub(super) fn expect_other_version(&mut self, packet: &ProtectedPacket) {
        if let Some(version) = packet.version.filter(|version| *version != self.versions.current)
            && self.versions.current == self.versions.original
            && self.keys.handshake().is_none()
        {
            self.keys.expect_version(version);
        }
    }

    /// An authentic packet came. If it is of another version, the server has gone over to that one, which is returned
    /// (RFC 9369 §4.1).
    pub(super) fn follow_version(&mut self, packet: &ProtectedPacket) -> Option<Version> {
        let version = packet.version.filter(|version| *version != self.versions.current)?;
        self.tls.switch_version(version, &mut self.keys);
        self.versions.current = version;
        Some(version)
    }

    /// Discards the keys of Initial or Handshake packets; returns whether there were any.
    pub(super) fn discard_keys(&mut self, space: SpaceId) -> bool {
        let were_there = self.keys.discard(space);
        if were_there {
            self.tls.crypto.discard(space.level());
        }
        were_there
    }

    /// The connection is over.
    pub(super) fn stop(&mut self) {
        self.tls.stop();
        self.undecryptable.clear();
    }

    /// The connection is over and says nothing any more: what it is remembered for needs no more than its IDs.
    pub(super) fn let_go(&mut self) {
        self.keys.let_go(self.is_complete());
        self.tls.let_go();
        self.spaces = HandshakeSpaces { initial: None, handshake: None };
    }
}

/// Whether a packet carries early data.
pub(super) fn is_zero_rtt(packet: &ProtectedPacket) -> bool {
    matches!(packet.kind, ProtectedKind::ZeroRtt { .. })
}

/// The kind of a packet that has a number.
pub(super) fn kind_of(packet: &ProtectedPacket) -> PacketKind {
    match packet.kind {
        ProtectedKind::Initial { .. } => PacketKind::Initial,
        ProtectedKind::ZeroRtt { .. } => PacketKind::ZeroRtt,
        ProtectedKind::Handshake { .. } => PacketKind::Handshake,
        _ => PacketKind::OneRtt,
    }
}
