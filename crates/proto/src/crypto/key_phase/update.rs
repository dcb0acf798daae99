//! When keys are updated, and when old ones are discarded (RFC 9001 §6.1, §6.5, §6.6).

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::PathId;

use super::maker::PhaseKeys;
use super::{OneRttKeys, PreviousKey, aead_limit, expanded, key_update_error};
use crate::TransportError;

/// Packets that are kept back from the confidentiality limit, so that an endpoint that cannot update its keys
/// can still say why it closes. No more than these may be sealed between two calls of
/// [`OneRttKeys::maintain`].
pub(crate) const CLOSE_RESERVE_PACKETS: u64 = 1 << 10;

/// How long keys are kept for stragglers, and how long a new update waits after the last one was confirmed,
/// in probe timeouts (RFC 9001 §6.5).
const RETENTION_PTOS: u32 = 3;

/// When keys are updated although nobody asks for it. Half of what the AEAD allows is a bound in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyUpdatePolicy {
    /// After so many packets sent with the same keys.
    pub packets: Option<u64>,
    /// After so many bytes sent with the same keys, headers included.
    pub bytes: Option<u64>,
}

impl OneRttKeys {
    /// Whether the keys were updated, and the peer has not acknowledged a packet under the new ones.
    pub(crate) fn is_update_unconfirmed(&self) -> bool {
        self.generation > 0 && self.sending.update_allowed_at.is_none()
    }

    /// Makes the next [`OneRttKeys::maintain`] that may do so initiate an update.
    pub(crate) fn demand_update(&mut self) {
        self.sending.update_demanded = true;
    }

    /// Changes when updates are initiated unasked.
    pub(crate) fn set_update_policy(&mut self, policy: KeyUpdatePolicy) {
        self.policy = policy;
    }

    /// Takes an acknowledgement of sent packets: `largest_acked` on `path`, in a packet of
    /// `generation` ([`Opened::generation`](super::Opened::generation)). `pto` is the longest probe timeout of the paths in use.
    ///
    /// # Errors
    /// KEY_UPDATE_ERROR if the peer acknowledges packets under newer keys than those it sends with.
    pub(crate) fn on_ack(
        &mut self,
        path: PathId,
        largest_acked: u64,
        generation: u64,
        now: Instant,
        pto: Duration,
    ) -> Result<(), TransportError> {
        if self.sending.first_sent.get(path).is_none_or(|first| largest_acked < *first) {
            return Ok(());
        }
        if generation < self.generation {
            // RFC 9001 §6.2.
            return Err(key_update_error("an update was acknowledged under old keys"));
        }
        // RFC 9001 §6.1, §6.5: this confirms the last update; the peer still keeps the keys before it, and
        // cannot tell those from the ones after it.
        self.sending.update_allowed_at.get_or_insert(now + pto * RETENTION_PTOS);
        Ok(())
    }

    /// Allows this endpoint to initiate key updates (RFC 9001 §6.1).
    pub(crate) fn on_handshake_confirmed(&mut self) {
        self.sending.handshake_confirmed = true;
    }

    /// Does what is due outside of the processing of packets: makes the next keys, discards old ones, initiates
    /// an update before the AEAD's limit. To be called before packets are built, and at
    /// [`OneRttKeys::next_timeout`]. `pto` is the longest probe timeout of the paths in use.
    ///
    /// # Errors
    /// AEAD_LIMIT_REACHED if the limit is near and no update is possible; the connection is to be closed.
    pub(crate) fn maintain(&mut self, now: Instant, pto: Duration) -> Result<(), TransportError> {
        self.discard_previous(now, pto);
        self.prepare_next();
        let limit = self.suite().confidentiality_limit();
        if self.wants_update() && self.may_update(now) {
            self.advance();
            self.prepare_next();
        }
        if self.sending.sealed >= limit - CLOSE_RESERVE_PACKETS {
            // RFC 9001 §6.6.
            return Err(aead_limit("no key update was possible"));
        }
        Ok(())
    }

    /// Whether there are old keys, for the discarding of which [`OneRttKeys::maintain`] needs the probe timeout.
    pub(crate) fn has_previous(&self) -> bool {
        self.previous.is_some()
    }

    /// When [`OneRttKeys::maintain`] has old keys to discard.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.previous.as_ref()?.discard_at
    }

    /// RFC 9001 §6.5: old keys are kept for no more than three times the PTO after a packet with the new ones.
    fn discard_previous(&mut self, now: Instant, pto: Duration) {
        let Some(previous) = &mut self.previous else { return };
        if previous.discard_at.is_none() && !self.receiving.seen.is_empty() {
            previous.discard_at = Some(now + pto * RETENTION_PTOS);
        }
        if previous.discard_at.is_some_and(|at| at <= now) {
            self.previous = None;
        }
    }

    fn prepare_next(&mut self) {
        if let Some(expanded) = &mut self.expanded
            && expanded.next.is_none()
        {
            expanded.next = Some(self.maker.make_next_remote());
        }
    }

    fn wants_update(&self) -> bool {
        let KeyUpdatePolicy { packets, bytes } = self.policy;
        let packets = packets.unwrap_or(u64::MAX).min(self.suite().confidentiality_limit() / 2);
        self.sending.update_demanded
            || self.sending.sealed >= packets
            || bytes.is_some_and(|bytes| self.sending.sealed_bytes >= bytes)
    }

    fn may_update(&self, now: Instant) -> bool {
        let sending = &self.sending;
        sending.handshake_confirmed
            && (self.generation == 0 || sending.update_allowed_at.is_some_and(|at| at <= now))
    }

    /// Moves to the next generation in both directions, on whoever's initiative. Without prepared keys nothing
    /// happens.
    pub(super) fn advance(&mut self) {
        let expanded = expanded(&mut self.expanded, &self.maker);
        let Some(remote) = expanded.next.take() else { return };
        self.maker.advance();
        let next = PhaseKeys { local: self.maker.make_local(), remote };
        let old = std::mem::replace(&mut expanded.current, next);
        self.previous = Some(Box::new(PreviousKey { key: old.remote, discard_at: None }));
        self.generation += 1;
        self.receiving.seen.clear();
        self.sending.sealed = 0;
        self.sending.sealed_bytes = 0;
        self.sending.update_demanded = false;
        self.sending.first_sent.clear();
        self.sending.update_allowed_at = None;
    }
}
