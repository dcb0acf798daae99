//! What becomes of the connection when its handshake moves on.

use fulmar_base::Instant;
use fulmar_wire::Version;

use super::Connection;
use super::handshake::Progress;
use crate::error::TransportError;
use crate::events::{EndpointEventInner, Event};
use crate::ids::SpaceId;
use crate::log::{ConnectionState, LogEvent};
use crate::path::Pending;

impl Connection {
    /// The handshake has moved on.
    pub(super) fn on_handshake_progress(
        &mut self,
        now: Instant,
        progress: Progress,
    ) -> Result<(), TransportError> {
        self.telemetry.record_keys(now, &self.handshake);
        if progress.parameters {
            self.on_peer_parameters(now)?;
        }
        if progress.complete {
            self.handshake.on_complete(now, self.config.key_update);
            self.lifecycle.move_to_established();
            self.paths.on_complete();
            self.telemetry.record_established(now, &self.handshake);
            self.telemetry.record(now, LogEvent::State(ConnectionState::Established));
            let pto = self.probe_timeout();
            self.liveness.idle.on_established(now, pto);
            self.outbox.push(Event::Connected);
            if self.side.is_server() {
                let host = self.paths.primary().tuple.addrs.remote.ip();
                self.address_tokens.begin(now, &mut self.rng, self.handshake.versions.current, host);
                self.on_handshake_confirmed(now);
            }
        }
        self.paths.raise(Pending::ALL);
        Ok(())
    }

    pub(super) fn on_handshake_confirmed(&mut self, now: Instant) {
        self.telemetry.record(now, LogEvent::State(ConnectionState::Confirmed));
        self.on_address_validated();
        for space in SpaceId::OF_HANDSHAKE {
            self.recovery(now).discard_space(space);
        }
        self.paths.raise(Pending::ALL);
        self.outbox.push(Event::HandshakeConfirmed);
        self.try_preferred_address(now);
    }

    /// The peer has proven that it receives what is sent to its address.
    pub(super) fn on_address_validated(&mut self) {
        let amplification = &mut self.paths.primary_mut().tuple.amplification;
        if !amplification.is_validated() {
            amplification.validate();
            self.outbox.push_endpoint(EndpointEventInner::AddressValidated);
        }
    }

    /// The server has gone over to another version than that of the client's first packets.
    pub(super) fn on_version_of_server(&mut self, now: Instant, version: Version) {
        self.telemetry.record(now, LogEvent::VersionChosen(Some(version)));
        if let Some(sessions) = &self.sessions {
            sessions.set_version(version);
        }
    }
}
