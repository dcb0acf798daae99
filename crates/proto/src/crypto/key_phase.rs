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
mod update;

use self::maker::{Expanded, KeyMaker};
use self::per_path::PerPath;
pub use self::update::KeyUpdatePolicy;

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

    /// The path is gone: nothing is sealed or opened on it any more.
    pub(crate) fn forget_path(&mut self, path: PathId) {
        self.sending.first_sent.remove(path);
        self.receiving.seen.remove(path);
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
