//! The first packet of a client: an attempt to connect is made of it, or it is answered without remembering anything.

use fulmar_base::Instant;
use fulmar_wire::{ConnectionId, ProtectedKind, ProtectedPacket, TransportErrorCode};

use super::incoming::{AddressProof, FirstPacket};
use super::{DropReason, Endpoint, Route, Serving, stateless};
use crate::cids::random_cid;
use crate::config::RetryPolicy;
use crate::datagram::{Datagram, Ecn, Transmit, TransmitBatch};
use crate::tokens::TokenVerdict;

/// The connection ID that a client makes up for its first packets has so many bytes at least (RFC 9000 §7.2).
const CLIENTS_DCID_LEN_MIN: usize = 8;

impl Endpoint {
    /// Whether a client may send its first packets to this connection ID: it is long enough to be made up by the client, or as
    /// long as those that come with a Retry.
    pub(super) fn may_be_first_dst(&self, dst: &ConnectionId) -> bool {
        let retry_len = self.config.cid_generator.cid_len();
        dst.len() >= CLIENTS_DCID_LEN_MIN || (!dst.is_empty() && dst.len() == retry_len)
    }

    pub(super) fn handle_initial(
        &mut self,
        (now, came): (Instant, Instant),
        packet: ProtectedPacket,
        datagram: Datagram,
        reply: &mut TransmitBatch,
    ) -> Route {
        if self.waiting.knows(&packet.dst) {
            return Route::Dropped(self.waiting.keep(&packet.dst, datagram));
        }
        let (Some(server), ProtectedKind::Initial { token, .. }) = (&self.server, &packet.kind) else {
            return Route::Dropped(DropReason::NotAServer);
        };
        let Some(version) = packet.version else {
            return Route::Dropped(DropReason::Malformed);
        };
        if !self.config.supports(version) {
            return self.negotiate(&datagram, packet.dst.as_bytes(), packet.src.as_bytes(), reply);
        }
        // RFC 9000 §14.1: a client's first datagram is padded.
        let is_padded = datagram.payload.len() >= usize::from(crate::config::MTU_MIN);
        if !is_padded || !self.may_be_first_dst(&packet.dst) {
            return Route::Dropped(DropReason::TooShort);
        }
        // Nothing is kept of a datagram that was not made by a client: corruption on the way must not leave
        // a half-open connection behind.
        let aead = server.config.aead;
        let Some(keys) = stateless::open_initial(&packet, version, &datagram.payload, aead) else {
            return Route::Dropped(DropReason::Unauthenticated);
        };
        if self.waiting.is_full() || datagram.payload.len() > self.config.max_incoming_bytes {
            return Route::Dropped(DropReason::Overloaded);
        }
        let first = FirstPacket { addrs: datagram.addrs, version, dst: packet.dst, src: packet.src };
        let Some(proof) = self.proof_of(now, server, &first, &datagram.payload[token.clone()]) else {
            // RFC 9000 §8.1.2.
            return Route::Reply(self.close_statelessly(&first, TransportErrorCode::INVALID_TOKEN, reply));
        };
        // A short one is that of a Retry, or none that a client may send to.
        let has_followed = matches!(proof, AddressProof::Retried { .. });
        if packet.dst.len() < CLIENTS_DCID_LEN_MIN && !has_followed {
            return Route::Dropped(DropReason::TooShort);
        }
        if self.shared.memory.receive.is_reserved_to(2) {
            let code = TransportErrorCode::CONNECTION_REFUSED;
            return Route::Reply(self.close_statelessly(&first, code, reply));
        }
        if proof == AddressProof::Missing && self.wants_proof(now, came) {
            return self.write_retry(now, &first, reply);
        }
        let half_open = (proof == AddressProof::Missing).then(|| self.shared.open_half());
        Route::Incoming(self.waiting.admit((first, keys), proof, datagram, half_open))
    }

    /// What the token of a first packet proves; `None` if it is one of a Retry that does not hold.
    fn proof_of(
        &self,
        now: Instant,
        server: &Serving,
        first: &FirstPacket,
        token: &[u8],
    ) -> Option<AddressProof> {
        let from = (first.addrs.remote, &first.dst);
        match self.shared.token_verifier.check(&server.issuer, now, first.version, from, token) {
            TokenVerdict::Nothing => Some(AddressProof::Missing),
            TokenVerdict::Retried { original_dcid } => Some(AddressProof::Retried { original_dcid }),
            TokenVerdict::Known { window_hint } => Some(AddressProof::Known { window_hint }),
            TokenVerdict::InvalidRetry => None,
        }
    }

    /// Whether a client that has proven nothing is sent a Retry. While there are many, some wait for their turn, and have repeated what
    /// they sent. They come back with a token; what they had repeated is still there when fewer are half open, and no client waits for
    /// what would come of it.
    fn wants_proof(&mut self, now: Instant, came: Instant) -> bool {
        match self.server.as_ref().map(|server| server.config.validation.retry) {
            Some(RetryPolicy::Always) => true,
            Some(RetryPolicy::Auto { half_open }) => {
                let are_many = self.half_open() >= half_open || self.shared.memory.receive.is_reserved_to(4);
                if are_many {
                    self.wanted_proof = Some(now);
                }
                are_many || self.wanted_proof.is_some_and(|wanted| came < wanted)
            }
            Some(RetryPolicy::Never) | None => false,
        }
    }

    /// Asks a client to come back with a token, for which nothing is remembered (RFC 9000 §8.1.2).
    pub(super) fn write_retry(
        &mut self,
        now: Instant,
        first: &FirstPacket,
        reply: &mut TransmitBatch,
    ) -> Route {
        let cid = match self.unused_cid() {
            // Clients that follow must not all go to the same ID. A long header says how long it is, so it may be any other.
            cid if cid.is_empty() => random_cid(&mut self.rng),
            cid => cid,
        };
        let Some(server) = &self.server else {
            return Route::Dropped(DropReason::NotAServer);
        };
        let cids = (&first.dst, &cid);
        let (version, remote) = (first.version, first.addrs.remote);
        let token = server.issuer.retry_token(&mut self.rng, now, version, remote, cids);
        let len = stateless::write_retry(&mut self.rng, first, &cid, &token, reply);
        Route::Reply(Transmit { addrs: first.addrs, ecn: Ecn::NotEct, len, segment_size: None })
    }

    /// Closes an attempt of which nothing is remembered.
    pub(super) fn close_statelessly(
        &mut self,
        first: &FirstPacket,
        code: TransportErrorCode,
        reply: &mut TransmitBatch,
    ) -> Transmit {
        let local_cid = self.config.cid_generator.generate(&mut self.rng);
        let aead = self.server.as_ref().map(|server| server.config.aead).unwrap_or_default();
        first.write_close(code, local_cid, aead, reply)
    }
}
