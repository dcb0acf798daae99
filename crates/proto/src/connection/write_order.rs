//! The list of writers in the order of their priority: what goes into a packet first.
//!
//! A new kind of frame is a line here.

use fulmar_base::Instant;
use fulmar_wire::Frame;

use super::Connection;
use crate::ids::SpaceId;
use crate::packet::{FrameWriter, SentFrame};

/// The exponent of the delays in our ACK frames: the default, as our transport parameters say nothing else.
const ACK_DELAY_EXPONENT: u8 = 3;

/// What a packet may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowance {
    /// Acknowledgements only: they are not subject to congestion control.
    AcksOnly,
    /// A PING alone, with the acknowledgements that there are.
    Reminder,
    /// What concerns the tuple itself, and acknowledgements: for a tuple that may send no more than that.
    PathOnly,
    /// Everything.
    Everything,
    /// Everything, and at least a PING.
    Probe,
}

impl Connection {
    /// Whether a space has something that congestion control must allow.
    pub(super) fn wants_to_send(&self, space: SpaceId) -> bool {
        match space {
            SpaceId::Data(_) => {
                self.handshake.wants_to_send_done()
                    || self.path.tuple.wants_to_send()
                    || self.address_tokens.wants_to_send()
                    || self.handshake.wants_to_send(space.level())
                    || self.path.remote_cids.wants_to_send()
                    || self.path.local_cids.wants_to_send()
                    || self.wants_to_tell_address()
                    || self.streams.wants_to_send()
                    || self.datagrams.wants_to_send()
            }
            _ => self.handshake.wants_to_send(space.level()),
        }
    }

    /// Writes the frames of a packet.
    pub(super) fn write_frames(
        &mut self,
        now: Instant,
        space: SpaceId,
        allowance: Allowance,
        out: &mut FrameWriter<'_>,
    ) {
        if space.is_data() && matches!(allowance, Allowance::Everything | Allowance::Probe) {
            // A peer that has used up all IDs can answer a challenge from elsewhere only under a new one.
            self.path.local_cids.write(out);
        }
        if space.is_data() && allowance != Allowance::AcksOnly {
            // First of all: nothing else gets through before the tuple has proven itself.
            self.path.tuple.write(now, &mut self.path.rng, out);
        }
        self.write_ack(now, space, allowance, out);
        if matches!(allowance, Allowance::AcksOnly | Allowance::PathOnly) {
            return;
        }
        let reminds = allowance == Allowance::Reminder && space.is_data();
        let must_ask = reminds || (allowance == Allowance::Probe && self.probes.is_due(space));
        match space {
            SpaceId::Data(_) => {
                if must_ask && self.ack_frequency.as_ref().is_some_and(|extension| extension.may_request()) {
                    // Whatever the probe says, its acknowledgement is waited for.
                    out.write_untracked(&Frame::ImmediateAck);
                }
                if !reminds {
                    self.write_data_frames(now, out);
                }
            }
            _ => self.handshake.write(space.level(), out),
        }
        // A probe is also to show where this end is.
        let is_asking = out.is_ack_eliciting() && (out.moves_path() || !must_ask);
        if (must_ask || self.ping_is_useful(space, out)) && !is_asking {
            out.write(&Frame::Ping, SentFrame::Ping);
        }
    }

    /// An acknowledgement that is due, or one that can ride along.
    fn write_ack(&mut self, now: Instant, space: SpaceId, allowance: Allowance, out: &mut FrameWriter<'_>) {
        let rides_along = allowance != Allowance::AcksOnly;
        let path = self.path.id;
        let room = out.space();
        let is_stamped = space.is_data() && !self.sends_early_data();
        let Some(space) = self.space_mut(space) else { return };
        if (space.needs_ack(now) || (rides_along && space.has_ack_news()))
            && space.write_ack(now, path, ACK_DELAY_EXPONENT, out)
        {
            self.stats.acks_sent += 1;
            if let Some(extension) = self.timestamps.as_ref().filter(|_| is_stamped) {
                extension.write(now, ACK_DELAY_EXPONENT, out);
            }
            self.stats.ack_bytes += (room - out.space()) as u64;
        }
    }

    /// RFC 9000 §13.2.4: a peer that never has to acknowledge anything never lets us forget ranges.
    fn ping_is_useful(&self, space: SpaceId, out: &FrameWriter<'_>) -> bool {
        !out.is_empty() && self.space(space).is_some_and(|s| s.wants_ping())
    }

    /// Whether the peer is to be told its address on the tuple in use. Before the end of the handshake there is more
    /// important work for the little credit of an address.
    fn wants_to_tell_address(&self) -> bool {
        self.handshake.is_complete()
            && self
                .address_discovery
                .as_ref()
                .is_some_and(|extension| extension.wants_to_send(&self.path.tuple.observation))
    }

    fn write_data_frames(&mut self, now: Instant, out: &mut FrameWriter<'_>) {
        let room = self.datagram_room();
        // Short frames that end a state of waiting come first; streams last, as they fill whatever is left.
        self.handshake.write_done(out);
        self.handshake.write(SpaceId::DATA.level(), out);
        self.address_tokens.write(out);
        self.path.remote_cids.write(out);
        let sent = self.path.space.next_number();
        if let Some(extension) = self.ack_frequency.as_mut().filter(|extension| extension.wants_to_send(sent))
            && (self.streams.wants_to_send() || self.datagrams.wants_to_send())
        {
            extension.write(out);
        }
        if self.wants_to_tell_address()
            && let Some(extension) = &mut self.address_discovery
        {
            let tuple = &mut self.path.tuple;
            extension.write(&mut tuple.observation, tuple.addrs.remote, out);
        }
        self.streams.write_control(out);
        self.datagrams.write(now, out, room);
        self.streams.write_data(out);
    }
}
