//! What must be true when all connections of a run are gone.

use fulmar_proto::{ConnectionError, Side, VarInt};

use super::plan::Planned;
use super::{CLOSE_CODE, CLOSE_REASON, Simulation};
use crate::lab::Close;
use crate::{Application, Session, checkers};

impl Simulation {
    /// What must be true when all connections are gone.
    pub(super) fn check_end(&self) -> Result<(), String> {
        for planned in &self.planned {
            let Some(client) = planned.session else { continue };
            self.check_connection(planned, client).map_err(|what| format!("{what} (connection {client})"))?;
        }
        for (number, session) in self.server().sessions().iter().enumerate() {
            let Some(key) = session.application().key() else { continue };
            let same = |session: &&Session| session.application().key() == Some(key);
            let counts =
                [self.client(), self.server()].map(|host| host.sessions().iter().filter(same).count());
            // The client may have gone on with another attempt.
            if counts == [0, 1] && self.client().sessions().iter().any(|session| session.has_rival(key)) {
                continue;
            }
            if counts != [1, 1] {
                return Err(format!("{counts:?} connections at client and server are connection {number}"));
            }
        }
        Ok(())
    }

    fn check_connection(&self, planned: &Planned, client: usize) -> Result<(), String> {
        let client_session = &self.client().sessions()[client];
        let server_session = self.peer_of(client).map(|server| &self.server().sessions()[server]);
        let (side, complete) = match planned.connecting.close {
            Close::WhenDone(side) => (side, true),
            Close::After(side, _) | Close::AtLatest(side, _) => (side, false),
            Close::Never => return Ok(()),
        };
        let Some(server_session) = server_session else {
            let excused = !complete || self.was_forged(client_session);
            return if excused { Ok(()) } else { Err(lost_as(client_session, "not connected")) };
        };
        let (a, b) = (client_session.application(), server_session.application());
        let (closer, other) = if side.is_client() { (a, b) } else { (b, a) };
        checkers::agreement(a, b, complete)?;
        check_close(closer, other)
    }

    /// Whether a connection died of a packet that the link has changed. Version Negotiation is the one packet that
    /// is not protected and ends a connection: a client cannot tell whether the versions in it were changed
    /// (RFC 9000 §6.2, §21.12). On a real network, a checksum drops what was changed by accident.
    fn was_forged(&self, client: &Session) -> bool {
        let changed = [Side::Client, Side::Server].map(|side| self.link_stats(side).packets_corrupted);
        changed.iter().any(|&count| count > 0)
            && client.application().lost() == Some(&ConnectionError::VersionMismatch)
    }
}

/// One side closed, and the other one heard of it in one of the ways in which that can happen.
fn check_close(closer: &Application, other: &Application) -> Result<(), String> {
    if closer.lost() != Some(&ConnectionError::LocallyClosed) {
        return Err(format!("the side that had to close ended otherwise: {:?}", closer.lost()));
    }
    match other.lost() {
        Some(ConnectionError::ApplicationClosed { code, reason })
            if *code == VarInt::from_u32(CLOSE_CODE) && reason.as_ref() == CLOSE_REASON =>
        {
            Ok(())
        }
        // Before the handshake is confirmed, code and words are hidden (RFC 9000 §10.2.3).
        Some(ConnectionError::ConnectionClosed { code, .. })
            if *code == fulmar_proto::TransportErrorCode::APPLICATION_ERROR && !other.is_confirmed() =>
        {
            Ok(())
        }
        // The frame may be lost: then silence or a stateless reset tells.
        Some(ConnectionError::TimedOut | ConnectionError::Reset) => Ok(()),
        Some(ConnectionError::HandshakeTimedOut) if !other.is_confirmed() => Ok(()),
        lost => Err(format!("the connection was closed, and the other side saw {lost:?}")),
    }
}

fn lost_as(session: &Session, what: &str) -> String {
    match session.application().lost() {
        Some(reason) => format!("{what}: {reason}"),
        None => what.to_owned(),
    }
}
