//! The 1-RTT keys: key update and the limits of the AEAD (RFC 9001 §6).
//!
//! A *generation* counts the key phases of the connection from zero; its lowest bit is the Key Phase bit of
//! the header. All paths share one generation, and each has packet numbers of its own, so what was sent and
//! received in the current generation is noted per path.
//!
//! Opening a packet takes exactly one attempt, whichever key it is for, and makes no keys for it: those of the next
//! generation are made beforehand by [`OneRttKeys::maintain`]. So timing does not tell an attacker the Key
//! Phase bit of a packet that it forged (RFC 9001 §6.3, §9.5).
//!
//! Expanded keys are large. While a connection rests, only the secrets are kept ([`OneRttKeys::rest`]). The first packet
//! after that, sent or received, has all keys made anew, whatever its header says.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{PathId, Side, TransportErrorCode, Version};

use super::aead::{AeadBackend, CipherSuite};
use super::header_key::HeaderKey;
use super::keys::SecretPair;
use super::packet_key::{DecryptError, PacketKey};
use super::version::VersionConstants;
use crate::TransportError;

mod maker;
mod per_path;

use self::maker::{Expanded, KeyMaker, PhaseKeys};
use self::per_path::PerPath;

/// Packets that are kept back from the confidentiality limit, so that an endpoint that cannot update its keys
/// can still say why it closes. No more than these may be sealed between two calls of
/// [`OneRttKeys::maintain`].
pub(crate) const CLOSE_RESERVE_PACKETS: u64 = 1 << 10;

/// How long keys are kept for stragglers, and how long a new update waits after the last one was confirmed,
/// in probe timeouts (RFC 9001 §6.5).
const RETENTION_PTOS: u32 = 3;

/// The keys of the 1-RTT level, over all key phases.
#[derive(Debug)]
pub(crate) struct OneRttKeys {
    maker: KeyMaker,
    generation: u64,
    /// What seals and opens packets; nothing while the connection rests.
    expanded: Option<Box<Expanded>>,
    previous: Option<Box<PreviousKey>>,
    sending: Sending,
    receiving: Receiving,
    policy: KeyUpdatePolicy,
}

/// When keys are updated although nobody asks for it. Half of what the AEAD allows is a bound in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyUpdatePolicy {
    /// After so many packets sent with the same keys.
    pub packets: Option<u64>,
    /// After so many bytes sent with the same keys, headers included.
    pub bytes: Option<u64>,
}

/// What a packet turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opened {
    /// The length of the payload, which starts behind the header.
    pub(crate) len: usize,
    /// The generation of the keys that the peer sealed it with; to be handed to [`OneRttKeys::on_ack`] with
    /// the acknowledgements that the packet carries.
    pub(crate) generation: u64,
}

/// Why a packet was not opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// It is not authentic and is to be discarded.
    Discard,
    /// The connection is to be closed.
    Close(TransportError),
}

impl From<TransportError> for OpenError {
    fn from(error: TransportError) -> Self {
        Self::Close(error)
    }
}

impl OneRttKeys {
    /// The keys of generation zero, and those of the next, from the secrets of TLS.
    pub(super) fn from_secrets(
        suite: CipherSuite,
        secrets: SecretPair,
        version: Version,
        side: Side,
        backend: AeadBackend,
    ) -> Self {
        let version = VersionConstants::of(version);
        let (maker, expanded) = KeyMaker::new(suite, secrets, version, side, backend);
        Self {
            expanded: Some(Box::new(expanded)),
            maker,
            generation: 0,
            previous: None,
            sending: Sending::default(),
            receiving: Receiving::default(),
            policy: KeyUpdatePolicy::default(),
        }
    }

    /// Nothing is sent or received for a while: gives up what can be made anew of the secrets.
    pub(crate) fn rest(&mut self) {
        // After an update that is still new, stragglers may need the old key, and the next one is not made yet.
        if self.previous.is_none() && self.expanded.as_ref().is_some_and(|keys| keys.next.is_some()) {
            self.expanded = None;
        }
    }

    #[inline]
    fn expanded(&mut self) -> &mut Expanded {
        expanded(&mut self.expanded, &self.maker)
    }

    /// The suite that the keys are for.
    pub(crate) fn suite(&self) -> CipherSuite {
        self.maker.suite
    }

    /// The header protection of packets that this endpoint sends.
    pub(crate) fn local_header(&mut self) -> &HeaderKey {
        &self.expanded().local_header
    }

    /// The header protection of packets that the peer sends.
    pub(crate) fn remote_header(&mut self) -> &HeaderKey {
        &self.expanded().remote_header
    }

    /// The Key Phase bit for the header of the next packet to be sealed.
    pub(crate) fn key_phase(&self) -> bool {
        self.generation & 1 == 1
    }

    /// How often the keys were updated.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

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

    /// Seals a packet as [`PacketKey::seal`] does and counts it.
    #[inline]
    pub(crate) fn seal(&mut self, path: PathId, packet_number: u64, packet: &mut [u8], header_len: usize) {
        debug_assert!(
            self.sending.sealed < self.suite().confidentiality_limit(),
            "`maintain` was not called in time"
        );
        self.expanded().current.local.seal(path, packet_number, packet, header_len);
        self.sending.sealed += 1;
        self.sending.sealed_bytes += packet.len() as u64;
        self.sending.first_sent.get_or_insert(path, packet_number);
    }

    /// Opens a packet as [`PacketKey::open`] does, with the key that its Key Phase bit and number ask for, and
    /// follows the peer's key update.
    ///
    /// # Errors
    /// [`OpenError::Close`] with KEY_UPDATE_ERROR if the peer breaks the rules of key update, with
    /// AEAD_LIMIT_REACHED if too many packets failed; [`OpenError::Discard`] for a packet that is not authentic.
    #[inline]
    pub(crate) fn open(
        &mut self,
        path: PathId,
        packet_number: u64,
        key_phase: bool,
        packet: &mut [u8],
        header_len: usize,
    ) -> Result<Opened, OpenError> {
        let has_next = self.expanded().next.is_some();
        let choice = self.choose(path, packet_number, key_phase, has_next);
        let Expanded { current, next, .. } = expanded(&mut self.expanded, &self.maker);
        let key = match choice {
            Choice::Current | Choice::Dummy => &current.remote,
            Choice::Previous => self.previous.as_ref().map_or(&current.remote, |previous| &previous.key),
            Choice::Next => next.as_ref().unwrap_or(&current.remote),
        };
        match key.open(path, packet_number, packet, header_len) {
            Ok(len) if choice != Choice::Dummy => self.opened(choice, path, packet_number, len),
            Ok(_) | Err(DecryptError) => Err(self.count_failure()),
        }
    }

    /// Which key a packet is for (RFC 9001 §6.5).
    fn choose(&self, path: PathId, packet_number: u64, key_phase: bool, has_next: bool) -> Choice {
        if key_phase == self.key_phase() {
            return Choice::Current;
        }
        // The other phase is the one before or the one after. A packet behind everything received in the
        // current phase can only be of the next.
        let is_next = match self.receiving.seen.get(path) {
            Some(seen) => packet_number > seen.highest,
            None => self.previous.is_none(),
        };
        match is_next {
            true if has_next => Choice::Next,
            false if self.previous.is_some() => Choice::Previous,
            _ => Choice::Dummy,
        }
    }

    fn opened(
        &mut self,
        choice: Choice,
        path: PathId,
        packet_number: u64,
        len: usize,
    ) -> Result<Opened, OpenError> {
        if choice == Choice::Previous {
            // RFC 9001 §6.4: old keys on a packet behind one with newer keys are an error.
            let seen = self.receiving.seen.get(path);
            if seen.is_some_and(|seen| packet_number > seen.lowest) {
                return Err(key_update_error("old keys used after newer ones").into());
            }
            return Ok(Opened { len, generation: self.generation - 1 });
        }
        if choice == Choice::Next {
            // RFC 9001 §6.2: the peer needs an acknowledgement in the current phase before it may go on to the
            // next, and there was no packet to carry one. The first update needs none (§6.1).
            if self.generation > 0 && self.sending.sealed == 0 {
                return Err(key_update_error("second update before the first was confirmed").into());
            }
            self.advance();
        }
        let seen = Seen { lowest: packet_number, highest: packet_number };
        self.receiving.seen.get_or_insert(path, seen).record(packet_number);
        Ok(Opened { len, generation: self.generation })
    }

    /// Counts a packet that failed authentication.
    fn count_failure(&mut self) -> OpenError {
        self.receiving.failed += 1;
        if self.receiving.failed > self.suite().integrity_limit() {
            // RFC 9001 §6.6.
            return aead_limit("too many packets failed authentication").into();
        }
        OpenError::Discard
    }

    /// Takes an acknowledgement of sent packets: `largest_acked` on `path`, in a packet of
    /// `generation` ([`Opened::generation`]). `pto` is the longest probe timeout of the paths in use.
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

    /// The path is gone: nothing is sealed or opened on it any more.
    pub(crate) fn forget_path(&mut self, path: PathId) {
        self.sending.first_sent.remove(path);
        self.receiving.seen.remove(path);
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
    fn advance(&mut self) {
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

/// What seals and opens packets, made if it is not there.
#[inline]
fn expanded<'k>(keys: &'k mut Option<Box<Expanded>>, maker: &KeyMaker) -> &'k mut Expanded {
    keys.get_or_insert_with(|| Box::new(maker.expand()))
}

/// The key to open a packet with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Previous,
    Current,
    Next,
    /// The right key is not at hand. Another one is tried for the time it takes, and the packet refused.
    Dummy,
}

/// The peer's key of the previous generation, for packets that the network delayed.
#[derive(Debug)]
struct PreviousKey {
    key: PacketKey,
    /// Set once a packet with the current keys was received: until then the peer may not have followed.
    discard_at: Option<Instant>,
}

/// What was sent in the current generation, and whether this endpoint may start another.
#[derive(Debug, Default)]
struct Sending {
    sealed: u64,
    sealed_bytes: u64,
    update_demanded: bool,
    first_sent: PerPath<u64>,
    handshake_confirmed: bool,
    /// Set when the peer has confirmed the current generation.
    update_allowed_at: Option<Instant>,
}

#[derive(Debug, Default)]
struct Receiving {
    /// Packets that failed authentication, in all generations.
    failed: u64,
    /// What was received in the current generation.
    seen: PerPath<Seen>,
}

/// The span of the packet numbers received in the current generation.
#[derive(Debug, Clone, Copy)]
struct Seen {
    lowest: u64,
    highest: u64,
}

impl Seen {
    fn record(&mut self, packet_number: u64) {
        self.lowest = self.lowest.min(packet_number);
        self.highest = self.highest.max(packet_number);
    }
}

fn key_update_error(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::KEY_UPDATE_ERROR, reason)
}

fn aead_limit(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::AEAD_LIMIT_REACHED, reason)
}

#[cfg(test)]
mod tests;
