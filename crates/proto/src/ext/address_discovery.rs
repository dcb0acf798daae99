//! Address discovery (draft-ietf-quic-address-discovery-00), in both roles: each end can report to the other from which
//! address its packets come. Behind a NAT an end does not know that by itself.
//!
//! A report is about a tuple, is kept there, and leaves on that tuple only. On the tuple in use it is sent like other frames,
//! until it is acknowledged. On a tuple that is being validated it goes beside the challenges. Reports are rate-limited:
//! an attacker who replays packets from forged addresses could cause any number of them.

use std::net::SocketAddr;
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{Frame, ObservedAddress, PathId, VarInt};

use crate::error::TransportError;
use crate::packed::{packed, packed_names};
use crate::packet::{FrameWriter, SentFrame};

/// The most reports that can be made in a row.
const BURST: u32 = 8;

/// After that, one in this time.
const INTERVAL: Duration = Duration::from_secs(1);

/// The extension in a connection of which one end has announced it.
#[derive(Debug)]
pub(crate) struct AddressDiscovery {
    /// Whether this end reports, and the peer wants reports.
    provides: bool,
    /// Whether this end wants reports.
    receives: bool,
    next_sequence: u64,
    /// How many reports can be made now.
    allowance: u32,
    refilled: Instant,
}

/// The report about a tuple, and the one of the peer about the same.
#[derive(Debug, Default)]
pub(crate) struct Observation {
    state: State,
    /// The sequence number of the report.
    sequence: Option<u64>,
    /// The newest report of the peer: its sequence number and the address.
    received: Option<(u64, SocketAddr)>,
}

packed!(Observation { state, sequence, received });

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// To be reported, if the peer wants it.
    #[default]
    Due,
    Sent,
    Acked,
}

packed_names!(State { Due, Sent, Acked });

impl Observation {
    /// The address of this end, as the peer sees it.
    pub(crate) fn observed(&self) -> Option<SocketAddr> {
        self.received.map(|(_, address)| address)
    }

    /// A packet with the report of this sequence number was acknowledged, or lost.
    pub(crate) fn on_delivery(&mut self, sequence: u64, acked: bool) {
        if self.sequence == Some(sequence) && self.state != State::Acked {
            self.state = if acked { State::Acked } else { State::Due };
        }
    }
}

impl AddressDiscovery {
    /// The extension as the two ends have announced it; `None` if neither end reports.
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

    // As the end that reports.

    /// Time has passed: more reports can be made.
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

    /// Whether a report about the tuple in use waits.
    pub(crate) fn wants_to_send(&self, observation: &Observation) -> bool {
        self.provides && observation.state == State::Due && self.may_report(observation)
    }

    fn may_report(&self, observation: &Observation) -> bool {
        observation.sequence.is_some() || self.allowance > 0
    }

    /// Writes the report about the tuple in use, whose peer is at `remote`.
    pub(crate) fn write(
        &mut self,
        (path, remote): (PathId, SocketAddr),
        observation: &mut Observation,
        out: &mut FrameWriter<'_>,
    ) {
        if !self.wants_to_send(observation) {
            return;
        }
        let sequence = self.sequence_of(observation);
        let frame = Frame::ObservedAddress(ObservedAddress::new(VarInt::saturating(sequence), remote));
        if out.write(&frame, SentFrame::ObservedAddress { path, sequence }) {
            observation.state = State::Sent;
        }
    }

    /// Writes the report about a tuple that is being validated, beside a challenge. Its loss is not noticed. Once the tuple
    /// is in use, the report is sent again.
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

    /// The sequence number of the report about a tuple. It stays the same, as the addresses of a tuple do.
    fn sequence_of(&mut self, observation: &mut Observation) -> u64 {
        *observation.sequence.get_or_insert_with(|| {
            self.allowance = self.allowance.saturating_sub(1);
            self.next_sequence += 1;
            self.next_sequence - 1
        })
    }

    // As the end that receives reports.

    /// The peer reports what it sees on a tuple. Returns the address if it is a new one.
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

/// Draft §4.1: no report without a request.
pub(crate) fn unrequested_address() -> TransportError {
    TransportError::protocol_violation("an observed address that nobody has asked for")
}

#[cfg(test)]
mod tests;
