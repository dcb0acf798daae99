//! The handshake: TLS, the keys of each encryption level, the peer's transport parameters (RFC 9001 §4).

use std::time::Duration;

use fulmar_base::{Instant, Timer};
use fulmar_wire::{ConnectionId, Crypto, Frame, Side, TransportErrorCode, TransportParameters, Version};

use super::crypto_stream::CryptoStream;
use super::initial_keys::InitialKeys;
use super::spaces::SpaceId;
use super::versions::ServerVersions;
use crate::crypto::{
    AeadBackend, DirectionKeys, KeyEvent, KeyUpdatePolicy, Keys, Level, OneRttKeys, Peeked, Session,
    TlsError, peek_client_hello,
};
use crate::error::TransportError;
use crate::log::ACK_DELAY_EXPONENT;
use crate::packet::{FrameWriter, SentFrame};
use crate::reliable::Once;

/// The alert of a message that lacks what must be in it (RFC 8446 §6).
const MISSING_EXTENSION: u8 = 109;

/// What a step of the handshake has brought.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    /// The peer's transport parameters can be read.
    pub(super) parameters: bool,
    /// TLS is complete.
    pub(super) complete: bool,
    /// Another version was negotiated.
    pub(super) version: Option<Version>,
}

/// Whether a server has chosen a version.
enum Negotiated {
    /// Not before the first message of the client is complete.
    Later,
    /// It has; `Some` if that is another one than the client began with.
    Version(Option<Version>),
}

/// The connection IDs that transport parameters must repeat (RFC 9000 §7.3).
#[derive(Debug)]
pub(super) struct HandshakeCids {
    /// The first destination ID of the client.
    pub(super) original_dcid: ConnectionId,
    /// The source ID of the peer's first packet.
    pub(super) peer_scid: Option<ConnectionId>,
    /// The source ID of the Retry packet that the client followed.
    pub(super) retry_scid: Option<ConnectionId>,
}

/// The handshake of one connection.
#[derive(Debug)]
pub(super) struct Handshake {
    side: Side,
    session: Session,
    /// One for each [`Level`].
    streams: [CryptoStream; 3],
    initial: InitialKeys,
    /// The keys of 0-RTT packets, with which a client seals and a server opens.
    early: Option<DirectionKeys>,
    early_checked: bool,
    /// On a server, until it has seen the whole ClientHello.
    negotiation: Option<ServerVersions>,
    handshake: Option<Keys>,
    one_rtt: Option<OneRttKeys>,
    pub(super) cids: HandshakeCids,
    /// The token in Initial packets: of an earlier connection, or that of a Retry.
    token: Vec<u8>,
    peer_parameters: Option<TransportParameters>,
    complete: bool,
    confirmed: bool,
    /// HANDSHAKE_DONE.
    done: Once<()>,
    deadline: Timer,
    started: Instant,
    duration: Option<Duration>,
}

impl Handshake {
    /// Starts with Initial keys derived from the client's first destination ID.
    pub(super) fn new(
        session: Session,
        (side, version, aead): (Side, Version, AeadBackend),
        original_dcid: ConnectionId,
        now: Instant,
        timeout: Duration,
    ) -> Self {
        let mut deadline = Timer::new();
        deadline.set(now + timeout);
        Self {
            side,
            session,
            streams: Default::default(),
            initial: InitialKeys::new(side, version, aead, original_dcid),
            early: None,
            early_checked: false,
            negotiation: None,
            handshake: None,
            one_rtt: None,
            cids: HandshakeCids { original_dcid, peer_scid: None, retry_scid: None },
            token: Vec::new(),
            peer_parameters: None,
            complete: false,
            confirmed: false,
            done: Once::Idle,
            deadline,
            started: now,
            duration: None,
        }
    }

    /// Lets TLS write what it has to say, and takes new keys.
    pub(super) fn drive(&mut self) -> Progress {
        let mut bytes = Vec::new();
        loop {
            let level = self.session.write_level();
            bytes.clear();
            let event = self.session.write_handshake(&mut bytes);
            self.streams[level as usize].send(&bytes);
            match event {
                Some(KeyEvent::Handshake(keys)) => self.handshake = Some(*keys),
                Some(KeyEvent::OneRtt(keys)) => self.one_rtt = Some(*keys),
                None if bytes.is_empty() => break,
                None => {}
            }
        }
        if self.side.is_server() && self.handshake.is_some() && !self.early_checked {
            self.early_checked = true;
            self.early = self.session.early_keys();
        }
        Progress {
            version: None,
            // A client that resumes a session is shown the parameters of that session until the server's own
            // have come, so it waits for the end of the handshake.
            parameters: self.peer_parameters.is_none()
                && (self.side.is_server() || !self.session.is_handshaking())
                && self.session.transport_parameters().is_some(),
            complete: !self.complete && !self.session.is_handshaking(),
        }
    }

    /// Takes handshake bytes of a level and moves on as far as they reach.
    pub(super) fn on_crypto(&mut self, level: Level, frame: &Crypto<'_>) -> Result<Progress, TransportError> {
        self.streams[level as usize].on_frame(frame)?;
        let version = match self.negotiate()? {
            Negotiated::Later => return Ok(Progress::default()),
            Negotiated::Version(version) => version,
        };
        // Bytes of a level that TLS has left have nothing new in them, or are a violation that TLS tells.
        while level <= self.session.read_level() {
            let Some(bytes) = self.streams[level as usize].take_in_order() else { break };
            self.session.read_handshake(level, &bytes)?;
        }
        let progress = Progress { version, ..self.drive() };
        self.check_level_is_finished(level)?;
        Ok(progress)
    }

    /// How many 1-RTT handshake bytes of the peer TLS has taken.
    #[cfg(test)]
    pub(super) fn crypto_read(&self) -> u64 {
        self.streams[Level::OneRtt as usize].read()
    }

    /// A server looks at the whole first message of its client before TLS does, to choose the version (RFC 9368 §2.3).
    fn negotiate(&mut self) -> Result<Negotiated, TransportError> {
        let Some(negotiation) = &self.negotiation else { return Ok(Negotiated::Version(None)) };
        let version = match peek_client_hello(self.streams[Level::Initial as usize].in_order()) {
            Peeked::Incomplete => return Ok(Negotiated::Later),
            Peeked::Parameters(parameters) => negotiation.choose(parameters),
            Peeked::WithoutParameters => {
                // RFC 9001 §8.2: missing_extension. TLS would take those of the drafts, under their old number.
                let reason = "the client sends no transport parameters";
                return Err(TransportError::new(TransportErrorCode::crypto(MISSING_EXTENSION), reason));
            }
            Peeked::Nonsense => self.initial.version(),
        };
        let negotiation = self.negotiation.take().filter(|_| version != self.initial.version());
        let Some(mut negotiation) = negotiation else { return Ok(Negotiated::Version(None)) };
        let internal =
            |error: TlsError| TransportError::new(TransportErrorCode::INTERNAL_ERROR, error.to_string());
        self.session = negotiation.session(version).map_err(internal)?;
        self.switch_version(version);
        Ok(Negotiated::Version(Some(version)))
    }

    /// The version will be chosen when the client's parameters are known.
    pub(super) fn set_negotiation(&mut self, negotiation: ServerVersions) {
        self.negotiation = Some(negotiation);
    }

    /// Goes over to another version. A server still opens what comes in the first one.
    pub(super) fn switch_version(&mut self, version: Version) {
        self.initial.switch_version(version);
        self.session.set_version(version);
    }

    /// Makes Initial keys for a version that the server may have gone over to.
    pub(super) fn expect_version(&mut self, version: Version) {
        self.initial.expect_version(version);
    }

    /// The client begins anew, after a Version Negotiation packet.
    pub(super) fn restart(&mut self, session: Session, version: Version, dcid: ConnectionId) {
        self.session = session;
        self.streams = Default::default();
        self.initial.restart(version, dcid);
        self.early = None;
        self.cids.original_dcid = dcid;
        // RFC 9369 §5: the token is of another version.
        self.token.clear();
    }

    /// On a client that resumes and wants to send early data: takes its keys, and returns the parameters that the
    /// server had when the session began.
    pub(super) fn take_early_keys(&mut self) -> Option<TransportParameters> {
        let keys = self.session.early_keys()?;
        let remembered = TransportParameters::read(!self.side, self.session.transport_parameters()?).ok()?;
        self.early = Some(keys);
        Some(remembered)
    }

    pub(super) fn early_keys(&self) -> Option<&DirectionKeys> {
        self.early.as_ref()
    }

    /// RFC 9001 §4.9.3.
    pub(super) fn discard_early(&mut self) {
        self.early = None;
    }

    /// RFC 9001 §4.1.3: bytes must not be left over at a level when TLS moves to the next.
    fn check_level_is_finished(&self, level: Level) -> Result<(), TransportError> {
        if level < self.session.read_level() && self.streams[level as usize].has_unread() {
            return Err(TransportError::protocol_violation("handshake data beyond a change of keys"));
        }
        Ok(())
    }

    /// Reads the peer's transport parameters and checks the connection IDs in them (RFC 9000 §7.3).
    pub(super) fn read_parameters(&mut self) -> Result<&TransportParameters, TransportError> {
        let illegal =
            |reason: String| TransportError::new(TransportErrorCode::TRANSPORT_PARAMETER_ERROR, reason);
        let bytes = self.session.transport_parameters().unwrap_or_default();
        let parameters = TransportParameters::read(!self.side, bytes).map_err(|e| illegal(e.to_string()))?;
        if parameters.initial_scid.is_none() || parameters.initial_scid != self.cids.peer_scid {
            return Err(illegal("initial_source_connection_id does not match the packets".to_owned()));
        }
        if self.side.is_client() {
            if parameters.original_dcid != Some(self.cids.original_dcid) {
                return Err(illegal("original_destination_connection_id does not match".to_owned()));
            }
            if parameters.retry_scid != self.cids.retry_scid {
                return Err(illegal("retry_source_connection_id does not match".to_owned()));
            }
        }
        Ok(self.peer_parameters.insert(parameters))
    }

    /// TLS is complete; for a server that confirms the handshake (RFC 9001 §4.1.2).
    pub(super) fn on_complete(&mut self, now: Instant) {
        self.complete = true;
        self.duration = Some(now - self.started);
        self.deadline.cancel();
        if self.side.is_server() {
            self.done.request(());
            self.confirm();
        }
    }

    /// Both ends know that the handshake is complete.
    pub(super) fn confirm(&mut self) {
        self.confirmed = true;
        if let Some(keys) = &mut self.one_rtt {
            keys.on_handshake_confirmed();
        }
    }

    /// A Retry came: the token goes into Initial packets, whose keys derive from its source ID
    /// (RFC 9000 §17.2.5.2).
    pub(super) fn on_retry(&mut self, scid: ConnectionId, token: &[u8]) {
        self.cids.retry_scid = Some(scid);
        self.token = token.to_vec();
        self.initial.restart(self.initial.version(), scid);
        self.streams[Level::Initial as usize].resend_unacked();
    }

    /// Initial packets carry a token of an earlier connection.
    pub(super) fn set_token(&mut self, token: Vec<u8>) {
        self.token = token;
    }

    pub(super) fn token(&self) -> &[u8] {
        &self.token
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// The peer's transport parameters, or the defaults before they are known.
    pub(super) fn peer_parameters(&self) -> Option<&TransportParameters> {
        self.peer_parameters.as_ref()
    }

    /// The exponent that the peer scales the delays in its ACK frames with.
    pub(super) fn peer_ack_delay_exponent(&self, space: SpaceId) -> u8 {
        // RFC 9000 §18.2: before the parameters are known, the default holds.
        let peer = self.peer_parameters().filter(|_| space.is_data());
        peer.map_or(ACK_DELAY_EXPONENT, |parameters| parameters.ack_delay_exponent)
    }

    /// Whether TLS is complete (RFC 9001 §4.1.1).
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether both ends know that it is (RFC 9001 §4.1.2).
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// How long the handshake took on this end.
    pub(super) fn duration(&self) -> Option<Duration> {
        self.duration
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline.deadline()
    }

    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        self.deadline.take_expired(now)
    }

    /// When keys are updated unasked.
    pub(super) fn set_key_update(&mut self, policy: KeyUpdatePolicy) {
        if let Some(keys) = &mut self.one_rtt {
            keys.set_update_policy(policy);
        }
    }

    pub(super) fn stop(&mut self) {
        self.deadline.cancel();
    }

    // Keys.

    pub(super) fn initial_keys(&self) -> Option<&Keys> {
        self.initial.current()
    }

    /// The Initial keys for packets of a version.
    pub(super) fn initial_keys_of(&self, version: Option<Version>) -> Option<&Keys> {
        self.initial.of(version)
    }

    pub(super) fn handshake_keys(&self) -> Option<&Keys> {
        self.handshake.as_ref()
    }

    pub(super) fn one_rtt_keys(&self) -> Option<&OneRttKeys> {
        self.one_rtt.as_ref()
    }

    pub(super) fn one_rtt_keys_mut(&mut self) -> Option<&mut OneRttKeys> {
        self.one_rtt.as_mut()
    }

    /// Whether keys of the level exist, or existed and were discarded.
    pub(super) fn has_reached(&self, level: Level) -> bool {
        match level {
            Level::Initial => true,
            Level::Handshake => self.handshake.is_some() || self.complete,
            Level::OneRtt => self.one_rtt.is_some(),
        }
    }

    /// Discards the Initial keys; returns whether there were any.
    pub(super) fn discard_initial(&mut self) -> bool {
        self.initial.discard()
    }

    /// Discards the Handshake keys; returns whether there were any.
    pub(super) fn discard_handshake(&mut self) -> bool {
        self.handshake.take().is_some()
    }

    // Frames.

    /// Whether there are handshake bytes to send at a level.
    pub(super) fn wants_to_send(&self, level: Level) -> bool {
        self.streams[level as usize].wants_to_send()
    }

    /// Writes handshake bytes of a level.
    pub(super) fn write(&mut self, level: Level, out: &mut FrameWriter<'_>) {
        self.streams[level as usize].write(out);
    }

    pub(super) fn on_crypto_acked(&mut self, level: Level, offset: u64, len: u32) {
        self.streams[level as usize].on_acked(offset, len);
    }

    /// Whether something of a level has left that the peer has not acknowledged.
    pub(super) fn has_sent_unacked(&self, level: Level) -> bool {
        self.streams[level as usize].has_sent_unacked()
    }

    /// What has left and the peer has not acknowledged is sent again; returns whether there is anything.
    pub(super) fn repeat(&mut self, level: Level) -> bool {
        let stream = &mut self.streams[level as usize];
        stream.resend_unacked();
        stream.has_sent_unacked()
    }

    pub(super) fn on_crypto_lost(&mut self, level: Level, offset: u64, len: u32) {
        self.streams[level as usize].on_lost(offset, len);
    }

    /// Whether HANDSHAKE_DONE has to be sent (RFC 9000 §19.20).
    pub(super) fn wants_to_send_done(&self) -> bool {
        self.done.pending().is_some()
    }

    pub(super) fn write_done(&mut self, out: &mut FrameWriter<'_>) {
        if self.wants_to_send_done() && out.write(&Frame::HandshakeDone, SentFrame::HandshakeDone) {
            self.done.on_written();
        }
    }

    pub(super) fn on_done_acked(&mut self) {
        self.done.on_acked();
    }

    pub(super) fn on_done_lost(&mut self) {
        self.done.on_lost();
    }
}
