//! Address discovery (draft-ietf-quic-address-discovery-00), in both roles: each end can tell the other from which address
//! its packets come, which behind a NAT it does not know by itself.
//!
//! What was told belongs to a tuple, and is kept there. What is told of a tuple leaves on it alone: on the tuple in use like
//! other frames, repeated until it is acknowledged; on one that is being tried beside the challenges. Observations
//! are rate-limited, since who replays packets from forged addresses makes new ones.

use std::net::SocketAddr;
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{Frame, ObservedAddress, VarInt};

use crate::error::TransportError;
use crate::packet::{FrameWriter, SentFrame};

/// So many observations can be made in a row.
const BURST: u32 = 8;

/// After that, one in this time.
const INTERVAL: Duration = Duration::from_secs(1);

/// The extension in a connection of which one end has announced it.
#[derive(Debug)]
pub(crate) struct AddressDiscovery {
    /// Whether this end tells, and the peer wants to be told.
    provides: bool,
    /// Whether this end has asked to be told.
    receives: bool,
    next_sequence: u64,
    /// How many observations can be made now.
    allowance: u32,
    refilled: Instant,
}

/// What is told of a tuple, and by the peer about it.
#[derive(Debug, Default)]
pub(crate) struct Observation {
    state: State,
    /// The number that it is told under.
    sequence: Option<u64>,
    /// The newest that the peer has told: its number and the address.
    received: Option<(u64, SocketAddr)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// The peer has to be told, if it wants to be.
    #[default]
    Due,
    Sent,
    Acked,
}

impl Observation {
    /// The address of this end, as the peer sees it.
    pub(crate) fn observed(&self) -> Option<SocketAddr> {
        self.received.map(|(_, address)| address)
    }

    /// A packet with the observation of this number was acknowledged, or lost.
    pub(crate) fn on_delivery(&mut self, sequence: u64, acked: bool) {
        if self.sequence == Some(sequence) && self.state != State::Acked {
            self.state = if acked { State::Acked } else { State::Due };
        }
    }
}

impl AddressDiscovery {
    /// The extension as the two ends have announced it; `None` if nobody tells and nobody is told.
    pub(crate) fn new(
        now: Instant,
        local: Option<fulmar_wire::AddressDiscovery>,
        peer: Option<fulmar_wire::AddressDiscovery>,
    ) -> Option<Self> {
        let local = local?;
        Some(Self {
            provides: local.provides() && peer.is_some_and(fulmar_wire::AddressDiscovery::receives),
            receives: local.receives(),
            next_sequence: 0,
            allowance: BURST,
            refilled: now,
        })
    }

    // As the end that tells.

    /// Time has passed: more observations can be made.
    pub(crate) fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_since(self.refilled);
        let earned = u32::try_from(elapsed.as_nanos() / INTERVAL.as_nanos()).unwrap_or(u32::MAX);
        if self.allowance.saturating_add(earned) >= BURST {
            (self.allowance, self.refilled) = (BURST, now);
        } else {
            self.allowance += earned;
            self.refilled += INTERVAL * earned;
        }
    }

    /// Whether the tuple in use has something to tell.
    pub(crate) fn wants_to_send(&self, observation: &Observation) -> bool {
        self.provides && observation.state == State::Due && self.may_report(observation)
    }

    fn may_report(&self, observation: &Observation) -> bool {
        observation.sequence.is_some() || self.allowance > 0
    }

    /// Writes the observation of the tuple in use, whose peer is at `remote`.
    pub(crate) fn write(
        &mut self,
        observation: &mut Observation,
        remote: SocketAddr,
        out: &mut FrameWriter<'_>,
    ) {
        if !self.wants_to_send(observation) {
            return;
        }
        let sequence = self.sequence_of(observation);
        let frame = Frame::ObservedAddress(ObservedAddress::new(VarInt::saturating(sequence), remote));
        if out.write(&frame, SentFrame::ObservedAddress { sequence }) {
            observation.state = State::Sent;
        }
    }

    /// Writes the observation of a tuple that is being tried, beside a challenge. Nobody hears whether it arrives:
    /// once the tuple is in use, it is told again.
    pub(crate) fn write_off_path(
        &mut self,
        observation: &mut Observation,
        remote: SocketAddr,
        out: &mut FrameWriter<'_>,
    ) {
        if self.provides && self.may_report(observation) {
            let sequence = VarInt::saturating(self.sequence_of(observation));
            out.write_untracked(&Frame::ObservedAddress(ObservedAddress::new(sequence, remote)));
        }
    }

    /// The number of the observation of a tuple, which does not change: its addresses do not, either.
    fn sequence_of(&mut self, observation: &mut Observation) -> u64 {
        *observation.sequence.get_or_insert_with(|| {
            self.allowance = self.allowance.saturating_sub(1);
            self.next_sequence += 1;
            self.next_sequence - 1
        })
    }

    // As the end that is told.

    /// The peer tells what it sees on a tuple. Returns the address if that is news.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if this end has not asked for it.
    pub(crate) fn on_frame(
        &self,
        frame: &ObservedAddress,
        observation: &mut Observation,
    ) -> Result<Option<SocketAddr>, TransportError> {
        if !self.receives {
            return Err(unrequested_address());
        }
        let (sequence, address) = (frame.sequence.get(), frame.address());
        let known = observation.received;
        if known.is_some_and(|(newest, _)| sequence <= newest) {
            return Ok(None);
        }
        observation.received = Some((sequence, address));
        Ok(Some(address).filter(|address| known.is_none_or(|(_, known)| known != *address)))
    }
}

/// Draft §4.1: nobody tells an address to who has not asked.
pub(crate) fn unrequested_address() -> TransportError {
    TransportError::protocol_violation("an observed address that nobody has asked for")
}

#[cfg(test)]
mod tests;
