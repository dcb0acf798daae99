//! What becomes of the connection when its handshake moves on.

use fulmar_base::Instant;
use fulmar_wire::Version;

use super::Connection;
use super::handshake::Progress;
use crate::error::TransportError;
use crate::events::{EndpointEventInner, Event};
use crate::ids::SpaceId;
use crate::log::{ConnectionState, LogEvent};

impl Connection {
    /// The handshake has moved on.
    pub(super) fn on_handshake_progress(
        &mut self,
        now: Instant,
        progress: Progress,
    ) -> Result<(), TransportError> {
        if let Some(version) = progress.version {
            self.on_version(now, version);
        }
        self.note_keys(now);
        if progress.parameters {
            self.on_peer_parameters(now)?;
        }
        if progress.complete {
            self.handshake.on_complete(now);
            self.handshake.set_key_update(self.config.key_update);
            self.lifecycle.move_to_established();
            self.note_established(now);
            self.note(now, LogEvent::State(ConnectionState::Established));
            self.idle.on_established(now, self.pto_base());
            self.events.push_back(Event::Connected);
            if self.side.is_server() {
                let host = self.path.tuple.addrs.remote.ip();
                self.address_tokens.begin(now, &mut self.rng, self.versions.current, host);
                self.on_handshake_confirmed(now);
            }
        }
        self.open_waiting(now);
        Ok(())
    }

    pub(super) fn on_handshake_confirmed(&mut self, now: Instant) {
        self.note(now, LogEvent::State(ConnectionState::Confirmed));
        self.on_address_validated();
        self.discard_space(now, SpaceId::Initial);
        self.discard_space(now, SpaceId::Handshake);
        self.events.push_back(Event::HandshakeConfirmed);
        self.try_preferred_address(now);
    }

    /// The peer has proven that it receives what is sent to its address.
    pub(super) fn on_address_validated(&mut self) {
        if !self.path.tuple.credit.is_validated() {
            self.path.tuple.credit.validate();
            self.endpoint_events.push_back(EndpointEventInner::AddressValidated);
        }
    }

    /// Another version than that of the first packets is spoken from now on.
    pub(super) fn on_version(&mut self, now: Instant, version: Version) {
        self.note(now, LogEvent::VersionChosen(Some(version)));
        self.versions.current = version;
        if let Some(sessions) = &self.sessions {
            sessions.set_version(version);
        }
    }
}
