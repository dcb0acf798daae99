//! The TLS handshake: its bytes at each encryption level, the keys and transport parameters that it brings (RFC 9001 §4).

mod version;

use std::time::Duration;

use fulmar_base::{Instant, Timer};
use fulmar_wire::{ConnectionId, Crypto, Frame, Side, TransportErrorCode, TransportParameters};

use super::crypto_streams::CryptoStreams;
use super::keys::PacketKeys;
use super::peer_parameters::PeerParameters;
use super::versions::ServerVersions;
use crate::crypto::{KeyEvent, Level, Session};
use crate::error::TransportError;
use crate::ids::SpaceId;
use crate::log::ACK_DELAY_EXPONENT;
use crate::packet::{FrameWriter, SentFrame};
use crate::reliable::Once;

/// The alert of a message that has no place where it is (RFC 8446 §6).
const UNEXPECTED_MESSAGE: u8 = 10;

/// The header of a KeyUpdate message (RFC 8446 §4.6.3).
const KEY_UPDATE: [u8; 4] = [24, 0, 0, 1];

/// What a step of the handshake has brought.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::connection) struct Progress {
    /// The peer's transport parameters can be read.
    pub(in crate::connection) parameters: bool,
    /// TLS is complete.
    pub(in crate::connection) complete: bool,
}

/// The connection IDs that transport parameters must repeat (RFC 9000 §7.3).
#[derive(Debug)]
pub(in crate::connection) struct HandshakeCids {
    /// The source connection ID of this end's long headers.
    pub(in crate::connection) local: ConnectionId,
    /// The first destination ID of the client.
    pub(in crate::connection) original_dcid: ConnectionId,
    /// The source ID of the peer's first packet.
    pub(in crate::connection) peer_scid: Option<ConnectionId>,
    /// The source ID of the Retry packet that the client followed.
    pub(in crate::connection) retry_scid: Option<ConnectionId>,
}

/// The TLS handshake of one connection.
#[derive(Debug)]
pub(in crate::connection) struct TlsHandshake {
    side: Side,
    session: Session,
    pub(in crate::connection) crypto: CryptoStreams,
    /// Whether a server has asked TLS for the keys of early data.
    zero_rtt_checked: bool,
    /// On a server, until it has seen the whole ClientHello.
    negotiation: Option<Box<ServerVersions>>,
    pub(in crate::connection) cids: HandshakeCids,
    /// The token in Initial packets: of an earlier connection, or that of a Retry.
    token: Vec<u8>,
    peer_parameters: Option<PeerParameters>,
    complete: bool,
    confirmed: bool,
    /// HANDSHAKE_DONE.
    done: Once<()>,
    deadline: Timer,
    duration: Option<Duration>,
}

impl TlsHandshake {
    pub(in crate::connection) fn new(
        session: Session,
        side: Side,
        (local, original_dcid): (ConnectionId, ConnectionId),
        now: Instant,
        timeout: Duration,
    ) -> Self {
        let mut deadline = Timer::new();
        deadline.set(now + timeout);
        Self {
            side,
            session,
            crypto: CryptoStreams::default(),
            zero_rtt_checked: false,
            negotiation: None,
            cids: HandshakeCids { local, original_dcid, peer_scid: None, retry_scid: None },
            token: Vec::new(),
            peer_parameters: None,
            complete: false,
            confirmed: false,
            done: Once::Idle,
            deadline,
            duration: None,
        }
    }

    /// Gives back the memory that nothing needs while the connection rests.
    pub(in crate::connection) fn rest(&mut self) {
        self.crypto.rest();
    }

    /// Lets TLS write what it has to say, and takes new keys.
    pub(in crate::connection) fn drive(&mut self, packet_keys: &mut PacketKeys) -> Progress {
        let mut bytes = Vec::new();
        loop {
            let level = self.session.write_level();
            bytes.clear();
            let event = self.session.write_handshake(&mut bytes);
            if !bytes.is_empty() {
                self.crypto.get_mut(level).send(&bytes);
            }
            match event {
                Some(KeyEvent::Handshake(keys)) => packet_keys.set_handshake(keys),
                Some(KeyEvent::OneRtt(keys)) => packet_keys.set_one_rtt(*keys),
                None if bytes.is_empty() => break,
                None => {}
            }
        }
        if self.side.is_server() && packet_keys.handshake().is_some() && !self.zero_rtt_checked {
            self.zero_rtt_checked = true;
            packet_keys.set_zero_rtt(self.session.early_keys());
        }
        Progress {
            // A client that resumes a session is shown the parameters of that session until the server's own
            // have come, so it waits for the end of the handshake.
            parameters: self.peer_parameters.is_none()
                && (self.side.is_server() || !self.session.is_handshaking())
                && self.session.transport_parameters().is_some(),
            complete: !self.complete && !self.session.is_handshaking(),
        }
    }

    /// Takes handshake bytes of a level and moves on as far as they reach. The keys may be of another version then, whether the
    /// bytes are refused or not.
    pub(in crate::connection) fn on_crypto(
        &mut self,
        level: Level,
        frame: &Crypto<'_>,
        keys: &mut PacketKeys,
    ) -> Result<Progress, TransportError> {
        if self.side.is_server() && self.complete && level == Level::OneRtt && !frame.data.is_empty() {
            // No byte can be a part of anything that is taken, so none is kept (RFC 9000 §7.5).
            self.crypto.get_mut(level).refuse_gap(frame)?;
            return Err(self.session.refuse_message());
        }
        self.crypto.get_mut(level).on_frame(frame)?;
        if !self.negotiate(keys)? {
            return Ok(Progress::default());
        }
        let is_excused = self.is_excused(level, keys);
        // Bytes of a level that TLS has left have nothing new in them, or are a violation that TLS tells.
        while level <= self.session.read_level() {
            // One message after the other: the level may change with each, and TLS takes nothing that goes on behind that.
            let Some(message) = self.crypto.get_mut(level).take_message() else { break };
            let said_at = if is_excused { self.session.read_level() } else { level };
            self.refuse_key_update(said_at, &message)?;
            self.session.read_handshake(said_at, &message)?;
            self.drive(keys);
        }
        let progress = self.drive(keys);
        if !is_excused {
            self.check_level_is_finished(level)?;
        }
        Ok(progress)
    }

    /// Whether a peer may say at this level what belongs to the next one.
    ///
    /// Nobody may (RFC 9001 §4.1.3). But servers with one of the common TLS libraries put everything that they say into
    /// Initial packets if they take early data, as the library tells them late that the level has changed. Nothing is lost by
    /// taking it, as Finished proves the whole handshake, wherever its messages came.
    fn is_excused(&self, level: Level, keys: &PacketKeys) -> bool {
        self.side.is_client() && level == Level::Initial && keys.zero_rtt().is_some()
    }

    /// On a client that resumes and wants to send early data: takes its keys, and returns the parameters that the
    /// server had when the session began.
    pub(in crate::connection) fn take_zero_rtt_keys(
        &mut self,
        packet_keys: &mut PacketKeys,
    ) -> Option<TransportParameters> {
        let keys = self.session.early_keys()?;
        let remembered = TransportParameters::read(!self.side, self.session.transport_parameters()?).ok()?;
        packet_keys.set_zero_rtt(Some(keys));
        Some(remembered)
    }

    /// RFC 9001 §4.1.3: bytes must not be left over at a level when TLS moves to the next.
    fn check_level_is_finished(&self, level: Level) -> Result<(), TransportError> {
        let Some(stream) = self.crypto.get(level) else { return Ok(()) };
        if level < self.session.read_level() && stream.has_unread() {
            // That it is a message is a guess, for something before it is missing.
            self.refuse_key_update(level, stream.first_unread())?;
            return Err(TransportError::protocol_violation("handshake data beyond a change of keys"));
        }
        Ok(())
    }

    /// RFC 9001 §6: of what comes at a level that TLS has left, a KeyUpdate message has an error code of its own.
    fn refuse_key_update(&self, level: Level, bytes: &[u8]) -> Result<(), TransportError> {
        if level < self.session.read_level() && bytes.starts_with(&KEY_UPDATE) {
            let code = TransportErrorCode::crypto(UNEXPECTED_MESSAGE);
            return Err(TransportError::new(code, "a KeyUpdate message of TLS"));
        }
        Ok(())
    }

    /// Reads the peer's transport parameters and checks the connection IDs in them (RFC 9000 §7.3).
    pub(in crate::connection) fn read_parameters(&mut self) -> Result<TransportParameters, TransportError> {
        let illegal =
            |reason: String| TransportError::new(TransportErrorCode::TRANSPORT_PARAMETER_ERROR, reason);
        let bytes = self.session.transport_parameters().unwrap_or_default();
        let parameters = TransportParameters::read(!self.side, bytes).map_err(|e| illegal(e.to_string()))?;
        let kept = PeerParameters::new(!self.side, bytes, &parameters);
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
        self.peer_parameters = Some(kept);
        Ok(parameters)
    }

    /// TLS is complete after this time; for a server that confirms the handshake (RFC 9001 §4.1.2).
    pub(in crate::connection) fn on_complete(&mut self, duration: Duration, keys: &mut PacketKeys) {
        self.complete = true;
        self.session.finish();
        self.duration = Some(duration);
        self.deadline.cancel();
        if self.side.is_server() {
            self.done.request(());
            self.confirm(keys);
        }
    }

    /// Both ends know that the handshake is complete.
    pub(in crate::connection) fn confirm(&mut self, keys: &mut PacketKeys) {
        self.confirmed = true;
        if let Some(keys) = keys.one_rtt_mut() {
            keys.on_handshake_confirmed();
        }
    }

    /// A Retry came: the token goes into Initial packets, whose keys derive from its source ID
    /// (RFC 9000 §17.2.5.2).
    pub(in crate::connection) fn on_retry(
        &mut self,
        scid: ConnectionId,
        token: &[u8],
        keys: &mut PacketKeys,
    ) {
        self.cids.retry_scid = Some(scid);
        self.token = token.to_vec();
        keys.restart(keys.version(), scid);
        self.crypto.get_mut(Level::Initial).resend_unacked();
    }

    /// Initial packets carry a token of an earlier connection.
    pub(in crate::connection) fn set_token(&mut self, token: Vec<u8>) {
        self.token = token;
    }

    pub(in crate::connection) fn token(&self) -> &[u8] {
        &self.token
    }

    pub(in crate::connection) fn session(&self) -> &Session {
        &self.session
    }

    /// The peer's transport parameters, once they are known.
    pub(in crate::connection) fn peer_parameters(&self) -> Option<&PeerParameters> {
        self.peer_parameters.as_ref()
    }

    /// The exponent that the peer scales the delays in its ACK frames with.
    pub(in crate::connection) fn peer_ack_delay_exponent(&self, space: SpaceId) -> u8 {
        // RFC 9000 §18.2: before the parameters are known, the default holds.
        let peer = self.peer_parameters().filter(|_| space.is_data());
        peer.map_or(ACK_DELAY_EXPONENT, |parameters| parameters.ack_delay_exponent)
    }

    /// Whether TLS is complete (RFC 9001 §4.1.1).
    pub(in crate::connection) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether both ends know that it is (RFC 9001 §4.1.2).
    pub(in crate::connection) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// How long the handshake took on this end.
    pub(in crate::connection) fn duration(&self) -> Option<Duration> {
        self.duration
    }

    pub(in crate::connection) fn deadline(&self) -> Option<Instant> {
        self.deadline.deadline()
    }

    pub(in crate::connection) fn on_timeout(&mut self, now: Instant) -> bool {
        self.deadline.take_expired(now)
    }

    pub(in crate::connection) fn stop(&mut self) {
        self.deadline.cancel();
    }

    /// Nothing of the handshake is sent or read any more.
    pub(in crate::connection) fn let_go(&mut self) {
        self.session.let_go();
        self.crypto = CryptoStreams::default();
        self.negotiation = None;
    }

    // Frames.

    /// Whether HANDSHAKE_DONE has to be sent (RFC 9000 §19.20).
    pub(in crate::connection) fn wants_to_send_done(&self) -> bool {
        self.done.pending().is_some()
    }

    pub(in crate::connection) fn write_done(&mut self, out: &mut FrameWriter<'_>) {
        if self.wants_to_send_done() && out.write(&Frame::HandshakeDone, SentFrame::HandshakeDone) {
            self.done.on_written();
        }
    }

    pub(in crate::connection) fn on_done_acked(&mut self) {
        self.done.on_acked();
    }

    pub(in crate::connection) fn on_done_lost(&mut self) {
        self.done.on_lost();
    }
}
