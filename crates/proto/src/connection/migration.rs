//! Which tuple a path uses: the peer moves, addresses prove themselves or fail (RFC 9000 §8.2, §9).
//!
//! The tuples themselves are kept by [`Path`]; here it is decided what becomes of them.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{PathId, TransportErrorCode, VarInt};

use super::Connection;
use super::delivery::Fate;
use super::dispatch::FrameContext;
use super::off_path_arrival::OffPathArrival;
use super::outbox::Outbox;
use super::recovery::Recovery;
use super::telemetry::Telemetry;
use crate::datagram::FourTuple;
use crate::error::TransportError;
use crate::events::PathEvent;
use crate::ids::SpaceId;
use crate::log::MigrationState;
use crate::path::{AntiAmplification, MigrationCause, Path, Pending, Tuple};
use crate::rtt::Rtt;

/// Round-trip times are not assumed to be shorter, because timers are not finer.
const RTT_GUESS_MIN: Duration = Duration::from_millis(1);

impl Connection {
    /// Adds a tuple to a path; returns where it is among those off the path.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        id: PathId,
        addrs: FourTuple,
        amplification: AntiAmplification,
        remote_cid: u64,
    ) -> Option<usize> {
        let Self { paths, config, outbox, .. } = self;
        let path = paths.get_mut(id)?;
        path.admit(now, addrs, amplification, remote_cid, config, &mut outbox.endpoint_events);
        tell_of_given_up(now, path, outbox, &mut self.telemetry);
        Some(path.off_path().len() - 1)
    }

    /// The tuple that a packet to `dst` came over, which is added if it is new; `None` if there is no connection
    /// ID to answer it with (RFC 9000 §9.5).
    fn tuple_of(&mut self, cx: &FrameContext<'_>, arrival: &OffPathArrival) -> Option<usize> {
        let id = cx.space.path();
        let events = &mut self.outbox.endpoint_events;
        let path = self.paths.get_mut(id)?;
        if let Some(index) = path.off_path().iter().position(|tuple| tuple.addrs == arrival.addrs()) {
            return Some(index);
        }
        // Connection IDs may be retired for it.
        path.pending.raise(Pending::ALL);
        let remote_cid = path.remote_cid_for(cx.dst, events);
        tell_of_given_up(cx.now, path, &mut self.outbox, &mut self.telemetry);
        let (remote_cid, tuple) = (remote_cid?, &path.tuple);
        // Where only this end's address is another one, the peer's has proven itself already.
        let known = tuple.validated && tuple.addrs.remote == arrival.addrs().remote;
        let mut amplification = AntiAmplification::new(known || self.side.is_client());
        amplification.on_received(arrival.received());
        let index = self.admit(cx.now, id, arrival.addrs(), amplification, remote_cid)?;
        let path = self.paths.get_mut(id)?;
        path.off_path_mut()[index].peer_dst = Some(cx.dst);
        path.keep_a_spare_cid(&mut self.outbox.endpoint_events);
        tell_of_given_up(cx.now, path, &mut self.outbox, &mut self.telemetry);
        Some(path.off_path().len() - 1)
    }

    /// A challenge is answered where it came from (RFC 9000 §8.2.2).
    pub(super) fn on_path_challenge(&mut self, cx: &FrameContext<'_>, data: [u8; 8]) {
        if cx.late {
            return;
        }
        let id = cx.space.path();
        let Some(arrival) = cx.off_path else {
            if let Some(path) = self.paths.get_mut(id) {
                path.tuple.responses.on_challenge(data);
            }
            return;
        };
        if let Some(index) = self.tuple_of(cx, arrival)
            && let Some(path) = self.paths.get_mut(id)
        {
            path.off_path_mut()[index].responses.on_challenge(data);
            self.challenge_back(cx.now, id, index);
        }
    }

    /// A server asks a client that tries a path whether it receives there: it must at the address that it prefers
    /// itself (RFC 9000 §9.6.2), and anywhere else it can send more once the client moves. The question goes with the
    /// answer.
    fn challenge_back(&mut self, now: Instant, id: PathId, index: usize) {
        let Some(path) = self.paths.get(id) else { return };
        let tuple = &path.off_path()[index];
        if self.side.is_server() && !tuple.validated && tuple.validation.is_none() {
            self.probe(now, id, index);
        }
    }

    /// The newest packet of the peer came from elsewhere, and is no mere probe: the peer has moved, or was moved
    /// (RFC 9000 §9.3).
    pub(super) fn on_peer_moved(&mut self, cx: &FrameContext<'_>, arrival: &OffPathArrival) {
        if self.side.is_client() {
            return;
        }
        let id = cx.space.path();
        // Without a connection ID for it the new address cannot be used. The peer's next packet asks again.
        let Some(index) = self.tuple_of(cx, arrival) else { return };
        let Some(path) = self.paths.get_mut(id) else { return };
        path.off_path_mut()[index].peer_dst = Some(cx.dst);
        self.switch_to(cx.now, id, index, MigrationCause::Moved);
        if self.paths.get(id).is_some_and(|path| !path.tuple.validated) {
            // What may be sent before the address has proven itself is little. The peer waits for what was lost on the way to
            // its old address, and can use nothing behind that.
            self.recovery(cx.now).repeat_oldest(SpaceId::Data(id));
        }
    }

    /// An answer to a challenge came, over whatever tuple (RFC 9000 §8.2.3).
    pub(super) fn on_path_response(
        &mut self,
        now: Instant,
        id: PathId,
        data: [u8; 8],
    ) -> Result<(), TransportError> {
        let Some(path) = self.paths.get_mut(id) else { return Ok(()) };
        let answered = path.tuples_mut().find_map(|tuple| {
            let answer = tuple.validation.as_ref()?.on_response(now, data)?;
            Some((tuple, answer))
        });
        let Some((tuple, answer)) = answered else {
            // RFC 9000 §19.18. An answer may also be late.
            return match path.has_challenged {
                true => Ok(()),
                false => {
                    Err(TransportError::protocol_violation("an answer to a challenge that was never sent"))
                }
            };
        };
        let first = !tuple.validated;
        tuple.validated = true;
        tuple.amplification.validate();
        tuple.validation = None;
        if first && !tuple.rtt.has_sample() {
            // RFC 9002 §6.2.2: the time to the answer may replace the guess.
            tuple.rtt = Rtt::new(answer.rtt.max(RTT_GUESS_MIN), self.config.timers);
            tuple.on_mtu_changed(now);
        }
        let (tuple, addrs) = (tuple.id, tuple.addrs);
        if !answer.full {
            // RFC 9000 §8.2.3: the address is proven, the size of its datagrams is not.
            let validation = path.validation_of(now, &path.tuple, &self.config);
            if let Some(tuple) = path.tuple_mut(tuple) {
                tuple.validation = Some(validation);
            }
        }
        if first {
            self.on_tuple_validated(now, id, addrs);
        }
        Ok(())
    }

    fn on_tuple_validated(&mut self, now: Instant, id: PathId, addrs: FourTuple) {
        let Some(path) = self.paths.get_mut(id) else { return };
        self.telemetry.stats.paths_validated += 1;
        path.failures = 0;
        path.is_unproven = false;
        self.outbox.push_path(PathEvent::Validated { path: id, addrs });
        if addrs == path.tuple.addrs {
            self.telemetry.record_migration(now, MigrationState::MigrationComplete, &addrs);
            self.renew_address_token(now, id);
            if let Some(path) = self.paths.get_mut(id) {
                path.forget_idle_off_path(&mut self.outbox.endpoint_events);
            }
            self.recovery(now).repeat_what_left_elsewhere(id);
            return;
        }
        self.telemetry.record_migration(now, MigrationState::ProbingSuccessful, &addrs);
        let index = path.off_path().iter().position(|tuple| tuple.addrs == addrs);
        if let Some(index) = index.filter(|_| path.preferred == Some(addrs.remote)) {
            path.preferred = None;
            self.switch_to(now, id, index, MigrationCause::Moved);
        }
    }

    /// Goes over to another tuple of a path.
    pub(super) fn switch_to(&mut self, now: Instant, id: PathId, index: usize, cause: MigrationCause) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let events = &mut self.outbox.endpoint_events;
        let from = path.tuple.addrs;
        let known = path.tuple.rtt.clone();
        path.switch_to(now, index, self.side, cause, events);
        tell_of_given_up(now, path, &mut self.outbox, &mut self.telemetry);
        path.repeat_cid_frames();
        let Tuple { addrs: to, validated, .. } = path.tuple;
        if cause == MigrationCause::Moved {
            self.telemetry.record_migration(now, MigrationState::MigrationStarted, &to);
            if validated {
                self.telemetry.record_migration(now, MigrationState::MigrationComplete, &to);
            }
        }
        if !validated && path.tuple.validation.is_none() {
            path.tuple.validation = Some(path.new_validation(now, &known, &path.tuple, &self.config));
        }
        if let Some(index) = path.fallback_index().filter(|_| self.side.is_server()) {
            // RFC 9000 §9.3.3: if somebody else has sent the peer's packet on, the peer is still where it was, and
            // its answer brings the connection back.
            let validation = path.new_validation(now, &known, &path.off_path()[index], &self.config);
            path.off_path_mut()[index].validation = Some(validation);
        }
        path.has_challenged = true;
        path.pto.restart(now);
        path.pacing.cancel();
        path.pending.raise(Pending::ALL);
        if self.side.is_client() {
            // The server follows a packet that is more than a probe.
            path.space.probes.demand_one();
        }
        if validated && cause == MigrationCause::Moved {
            path.forget_idle_off_path(&mut self.outbox.endpoint_events);
            self.renew_address_token(now, id);
        }
        self.liveness.idle.on_pto_changed();
        self.telemetry.stats.migrations += 1;
        self.outbox.push_path(PathEvent::Moved { path: id, from, to });
    }

    /// Asks whether a tuple beside the one in use carries packets, whatever it has proven before.
    pub(super) fn probe(&mut self, now: Instant, id: PathId, index: usize) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let validation = path.validation_of(now, &path.off_path()[index], &self.config);
        path.has_challenged = true;
        let tuple = &mut path.off_path_mut()[index];
        tuple.validation = Some(validation);
        tuple.validated = false;
        let addrs = tuple.addrs;
        self.telemetry.record_migration(now, MigrationState::ProbingStarted, &addrs);
    }

    /// Challenges are repeated, or have failed.
    pub(super) fn on_validation_timeout(&mut self, now: Instant, id: PathId) {
        let is_failed = |tuple: &mut Tuple| tuple.validation.as_mut().is_some_and(|v| v.on_timeout(now));
        let has_others = !self.paths.is_single();
        let Some(path) = self.paths.get_mut(id) else { return };
        let mut index = 0;
        while let Some(tuple) = path.off_path_mut().get_mut(index) {
            if !is_failed(tuple) {
                index += 1;
                continue;
            }
            tuple.validation = None;
            let (addrs, was_used) = (tuple.addrs, tuple.validated);
            match path.fallback_index() == Some(index) {
                true => index += 1,
                false => path.forget_off_path(index, &mut self.outbox.endpoint_events),
            }
            // That the peer has left an address is no failure.
            if !was_used {
                self.telemetry.record_migration(now, MigrationState::ProbingAbandoned, &addrs);
                self.telemetry.stats.paths_failed += 1;
                self.outbox.push_path(PathEvent::Failed { path: id, addrs });
            }
        }
        let tuple = &mut path.tuple;
        if !is_failed(tuple) {
            return;
        }
        tuple.validation = None;
        // An address that has proven itself stays, even if not every challenge came through.
        if tuple.validated {
            return;
        }
        let addrs = tuple.addrs;
        path.failures = path.failures.saturating_add(1);
        self.telemetry.stats.paths_failed += 1;
        self.outbox.push_path(PathEvent::Failed { path: id, addrs });
        match path.fallback_index() {
            Some(index) => {
                self.telemetry.record_migration(now, MigrationState::MigrationAbandoned, &addrs);
                self.switch_to(now, id, index, MigrationCause::Failed);
            }
            None if path.is_unproven && has_others => {
                self.drop_path(
                    now,
                    id,
                    VarInt::saturating(TransportErrorCode::PATH_UNSTABLE_OR_POOR.0),
                    false,
                );
            }
            // Where else should the peer be? It is asked on, ever more patiently.
            None => path.tuple.validation = Some(path.validation_of(now, &path.tuple, &self.config)),
        }
    }

    /// The client has moved, and has proven its address. Its tokens are for the one that it had (RFC 9000 §9.3).
    fn renew_address_token(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let host = path.tuple.addrs.remote.ip();
        self.address_tokens.on_moved(now, &mut self.rng, self.handshake.versions.current, host);
        path.pending.raise(Pending::TOKENS);
    }

    /// A client that makes use of much more flow control credit than its tokens tell of gets another one, while it is
    /// where it has proven to be.
    pub(super) fn grow_address_token(&mut self, now: Instant) {
        let tuple = &self.paths.primary().tuple;
        if !tuple.validated || !self.address_tokens.can_grow() {
            return;
        }
        let credit = self.streams.credit_in_use();
        if self.address_tokens.is_outgrown_by(&credit) {
            let (host, version) = (tuple.addrs.remote.ip(), self.handshake.versions.current);
            self.address_tokens.outgrow(now, &mut self.rng, version, host, credit);
        }
    }
}

/// Tells of the tuples of a path that were given up while they were asked.
pub(super) fn tell_of_given_up(
    now: Instant,
    path: &mut Path,
    outbox: &mut Outbox,
    telemetry: &mut Telemetry,
) {
    for addrs in path.take_given_up() {
        telemetry.record_migration(now, MigrationState::ProbingAbandoned, &addrs);
        telemetry.stats.paths_failed += 1;
        outbox.push_path(PathEvent::Failed { path: path.id, addrs });
    }
}

impl Recovery<'_> {
    /// What left over another tuple and is not acknowledged by now was probably lost with it. It is repeated
    /// without waiting for the timers, and without taking it for congestion.
    fn repeat_what_left_elsewhere(&mut self, id: PathId) {
        let Some(path) = self.owners.paths.get_mut(id) else { return };
        let mut frames = Vec::new();
        for packet in path.space.take_for_move(path.tuple.id) {
            frames.extend(packet.frames.iter().cloned());
        }
        self.owners.deliver(SpaceId::Data(id), &frames, Fate::Probed);
    }
}
