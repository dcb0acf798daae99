//! The list of writers in the order of their priority: what goes into a packet of application data first.
//!
//! A new kind of frame is a row here. A row says which bit is raised when the writer may have something to say, whether
//! it has, and how it says it; so that asking and writing cannot disagree.

use fulmar_base::Instant;
use fulmar_wire::Frame;

use super::address_tokens::AddressTokens;
use super::extensions::Extensions;
use super::handshake::HandshakeState;
use super::stats::Counters;
use crate::crypto::Level;
use crate::datagrams::Datagrams;
use crate::ids::SpaceId;
use crate::log::ACK_DELAY_EXPONENT;
use crate::packet::{FrameWriter, SentFrame};
use crate::path::{Path, Paths, Pending};
use crate::space::NumberSpace;
use crate::streams::Streams;

/// What a packet may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowance {
    /// Acknowledgements only: they are not subject to congestion control.
    AcksOnly,
    /// A PING alone, with the acknowledgements that there are.
    Ping,
    /// What concerns the tuple itself, and acknowledgements: for a tuple that may send no more than that.
    PathOnly,
    /// Everything.
    Everything,
    /// Everything, and at least a PING.
    Probe,
}

/// The owners of the frames that a packet on a path may carry, borrowed once.
pub(super) struct Writers<'c> {
    pub(super) handshake: &'c mut HandshakeState,
    pub(super) paths: &'c mut Paths,
    /// Which of them it is.
    pub(super) index: usize,
    pub(super) tokens: &'c mut AddressTokens,
    pub(super) extensions: &'c mut Extensions,
    pub(super) streams: &'c mut Streams,
    pub(super) datagrams: &'c mut Datagrams,
    pub(super) stats: &'c mut Counters,
}

/// A row of the list.
struct Writer {
    bit: Pending,
    /// Whether there is something that congestion control must allow.
    wants: fn(&Writers<'_>) -> bool,
    write: fn(&mut Writers<'_>, Instant, &mut FrameWriter<'_>),
}

/// What comes before the acknowledgement. A peer that has used up all connection IDs can answer a challenge from
/// elsewhere only under a new one; and nothing else gets through before the tuple has proven itself.
const BEFORE_ACK: [Writer; 2] = [
    Writer {
        bit: Pending::LOCAL_CIDS,
        wants: |c| c.path().local_cids.wants_to_send(),
        write: |c, _, out| c.path_mut().local_cids.write(out),
    },
    Writer {
        bit: Pending::TUPLE,
        wants: |c| c.path().tuple.wants_to_send(),
        write: |c, now, out| {
            let path = c.path_mut();
            path.tuple.write(now, &mut path.rng, out);
        },
    },
];

/// What comes after it. Short frames that end a state of waiting come first; unreliable datagrams and streams last, as
/// they fill whatever is left; which of these is first, their levels say. So what forward erasure correction protects is the tail of the payload.
const AFTER_ACK: [Writer; 14] = [
    Writer {
        bit: Pending::HANDSHAKE,
        wants: |c| c.handshake.tls.wants_to_send_done(),
        write: |c, _, out| c.handshake.tls.write_done(out),
    },
    Writer {
        bit: Pending::HANDSHAKE,
        wants: |c| c.handshake.tls.crypto.wants_to_send(Level::OneRtt),
        write: |c, _, out| c.handshake.tls.crypto.write(Level::OneRtt, out),
    },
    Writer {
        bit: Pending::TOKENS,
        wants: |c| c.tokens.wants_to_send(),
        write: |c, _, out| c.tokens.write(out),
    },
    Writer {
        bit: Pending::REMOTE_CIDS,
        wants: |c| c.path().remote_cids.wants_to_send(),
        write: |c, _, out| c.path_mut().remote_cids.write(out),
    },
    Writer {
        bit: Pending::MULTIPATH,
        wants: |c| c.paths.wants_to_manage(),
        write: |c, _, out| {
            if let Some(multipath) = c.paths.managed() {
                multipath.write(out);
            }
        },
    },
    // It goes with data, and is no reason for a packet.
    Writer { bit: Pending::DATA, wants: |_| false, write: |c, _, out| c.write_ack_frequency(out) },
    Writer {
        bit: Pending::ADDRESS,
        wants: |c| c.wants_to_report_address(),
        write: |c, _, out| c.write_observed_address(out),
    },
    Writer {
        bit: Pending::FEC,
        wants: |c| c.extensions.fec.as_ref().is_some_and(|fec| fec.wants_to_send(c.path().id)),
        write: |c, _, out| {
            if let Some(fec) = &mut c.extensions.fec {
                fec.write_reports(out);
            }
        },
    },
    // From here on, frames are protected.
    Writer { bit: Pending::DATA, wants: |_| false, write: |c, _, out| c.begin_symbol(out) },
    Writer { bit: Pending::STREAMS, wants: |_| false, write: |c, _, out| c.streams.write_control(out) },
    Writer { bit: Pending::STREAMS, wants: |_| false, write: |c, _, out| c.write_leading_streams(out) },
    Writer {
        bit: Pending::DATAGRAMS,
        wants: |c| c.datagrams.wants_to_send() || c.paths.copies_datagrams_to(c.path().id),
        write: |c, now, out| c.write_datagrams(now, out),
    },
    Writer { bit: Pending::STREAMS, wants: |_| false, write: |c, _, out| c.switch_symbol(out) },
    Writer {
        bit: Pending::STREAMS,
        wants: |c| c.streams.wants_to_send(),
        write: |c, _, out| c.streams.write_data(out),
    },
];

impl Writers<'_> {
    #[inline]
    pub(super) fn path(&self) -> &Path {
        self.paths.at(self.index)
    }

    #[inline]
    pub(super) fn path_mut(&mut self) -> &mut Path {
        self.paths.at_mut(self.index)
    }

    /// Whether there is application data, or what goes with it, that congestion control must allow. Only those are
    /// asked that were told of; the bits of those that have nothing are cleared.
    pub(super) fn want_to_send(&mut self) -> bool {
        let due = self.path().due();
        if due.is_empty() {
            debug_assert!(self.unasked_are_silent());
            return false;
        }
        let has_streams = due.has(Pending::STREAMS) && self.streams.wants_to_send();
        if has_streams && due == Pending::STREAMS {
            // Bulk data, and nothing else.
            return true;
        }
        let mut still = if has_streams { Pending::STREAMS } else { Pending::NONE };
        let others = due.without(Pending::STREAMS);
        if !others.is_empty() {
            for writer in BEFORE_ACK.iter().chain(&AFTER_ACK) {
                if others.has(writer.bit) && (writer.wants)(self) {
                    still = still.with(writer.bit);
                }
            }
        }
        let any = !still.is_empty();
        if self.streams.is_repeating() {
            // That ends with the next packet, also if there is nothing left to be repeated.
            still.raise(Pending::STREAMS);
        }
        // What may not be sent here now may be later.
        let path = self.path_mut();
        path.pending = still.with(path.pending.without(path.allowed));
        debug_assert!(self.unasked_are_silent());
        any
    }

    /// Whether no writer has something to say whose bit was not raised: then a bit is missing somewhere.
    fn unasked_are_silent(&self) -> bool {
        let mut writers = BEFORE_ACK.iter().chain(&AFTER_ACK);
        writers.all(|writer| self.path().pending.has(writer.bit) || !(writer.wants)(self))
    }

    /// Writes the frames of a packet.
    pub(super) fn write_frames(
        &mut self,
        now: Instant,
        space: SpaceId,
        allowance: Allowance,
        out: &mut FrameWriter<'_>,
    ) {
        if space.is_data() {
            self.write_before_ack(now, allowance, out);
        }
        if self.wants_ack(now, space, allowance) {
            self.write_ack(now, space, out);
        }
        if space.is_data() {
            self.write_ack_copies(now, out);
        }
        if matches!(allowance, Allowance::AcksOnly | Allowance::PathOnly) {
            return;
        }
        let ping_only = allowance == Allowance::Ping && space.is_data();
        let probes = allowance == Allowance::Probe && self.space(space).is_some_and(|s| s.probes.is_due());
        let must_ask = ping_only || probes;
        if !space.is_data() {
            self.handshake.tls.crypto.write(space.level(), out);
        } else {
            if must_ask
                && self.extensions.ack_frequency.as_ref().is_some_and(|extension| extension.may_request())
            {
                // Whatever the probe says, its acknowledgement is waited for.
                out.write_untracked(&Frame::ImmediateAck);
            }
            if !ping_only {
                self.write_after_ack(now, out);
            }
        }
        // A probe is also to show where this end is. What is protected by forward erasure correction always does, so that
        // a PING never stands behind it.
        let is_asking = out.is_ack_eliciting() && (out.is_non_probing() || !must_ask);
        if (must_ask || self.ping_is_useful(space, out)) && !is_asking {
            out.write(&Frame::Ping, SentFrame::Ping);
        }
    }

    /// Writes what concerns one of the tuples that are not in use.
    pub(super) fn write_off_path(&mut self, now: Instant, tuple: usize, out: &mut FrameWriter<'_>) {
        let path = self.paths.at_mut(self.index);
        let mut rng = path.rng.fork();
        let tuple = &mut path.off_path_mut()[tuple];
        tuple.write(now, &mut rng, out);
        if let Some(extension) = self.extensions.address_discovery.as_mut().filter(|_| !out.is_empty()) {
            extension.write_off_path(&mut tuple.observation, tuple.addrs.remote, out);
        }
    }

    fn write_before_ack(&mut self, now: Instant, allowance: Allowance, out: &mut FrameWriter<'_>) {
        let pending = self.path().due();
        let [local_cids, tuple] = &BEFORE_ACK;
        let is_full = matches!(allowance, Allowance::Everything | Allowance::Probe);
        if pending.has(local_cids.bit) && is_full {
            (local_cids.write)(self, now, out);
        }
        if pending.has(tuple.bit) && allowance != Allowance::AcksOnly {
            (tuple.write)(self, now, out);
        }
        // A repair symbol is as long as the longest of its source symbols, and needs a packet to itself.
        let (id, room) = (self.path().id, self.path().datagram_room());
        if pending.has(Pending::FEC)
            && is_full
            && let Some(sender) = self.extensions.fec_sender()
            && sender.has_repairs_for(id)
        {
            // While they waited for window or pacer, something may have come that is worth more, such as a retransmission.
            let has_data = pending.has(Pending::STREAMS) && self.streams.has_data_to_send()
                || pending.has(Pending::DATAGRAMS) && self.datagrams.wants_to_send();
            if has_data {
                sender.yield_to_data(now);
            }
            sender.write(now, room, out);
        }
    }

    fn write_after_ack(&mut self, now: Instant, out: &mut FrameWriter<'_>) {
        let pending = self.path().due();
        if pending == Pending::STREAMS {
            // Bulk data, and nothing else.
            self.write_ack_frequency(out);
            self.begin_symbol(out);
            self.streams.write_control(out);
            self.switch_symbol(out);
            self.streams.write_data(out);
            return self.end_symbol(now, out);
        }
        for writer in &AFTER_ACK {
            if pending.has(writer.bit) {
                (writer.write)(self, now, out);
            }
        }
        self.end_symbol(now, out);
    }

    pub(super) fn fill_with_datagrams(&mut self, now: Instant, out: &mut FrameWriter<'_>) {
        let (id, room) = (self.path().id, self.path().datagram_room());
        let others = self.paths.that_repeat_datagrams(id);
        let Some(multipath) = &mut self.paths.multipath else {
            return self.datagrams.write(now, out, room, |_, _| {});
        };
        let copies = &mut multipath.copies;
        copies.write(now, id, out, room);
        let before = self.datagrams.sent();
        self.datagrams.write(now, out, room, |data, deadline| copies.add(data, deadline, &others));
        if !others.is_empty() && self.datagrams.sent() > before {
            self.paths.raise(Pending::DATAGRAMS);
        }
    }

    /// Whether an acknowledgement is due, or can ride along. With a question it does also if it was said before and may be lost
    /// (RFC 9000 §13.2.1): after a silence a peer knows by it what has arrived, and need not wait for its own timeout. Not with each
    /// probe: a peer that takes the time for that of a round trip (RFC 9002 §5.3) would probe later and later.
    fn wants_ack(&self, now: Instant, space: SpaceId, allowance: Allowance) -> bool {
        let rides_along = allowance != Allowance::AcksOnly;
        self.space(space).is_some_and(|numbers| {
            let is_asked = || allowance == Allowance::Ping && space.is_data() && numbers.ack_is_unconfirmed();
            numbers.needs_ack(now) || rides_along && (numbers.has_ack_news() || is_asked())
        })
    }

    /// Writes an acknowledgement of what was received, if anything was.
    pub(super) fn write_ack(&mut self, now: Instant, space: SpaceId, out: &mut FrameWriter<'_>) {
        let room = out.space();
        let is_stamped = space.is_data() && !self.handshake.sends_zero_rtt();
        let path = self.path().id;
        let numbers = match space {
            SpaceId::Data(_) => Some(&mut self.paths.at_mut(self.index).space),
            _ => self.handshake.spaces.get_mut(space),
        };
        if numbers.is_some_and(|numbers| numbers.write_ack(now, path, ACK_DELAY_EXPONENT, out)) {
            self.stats.acks_sent += 1;
            if let Some(extension) = self.extensions.timestamps.as_ref().filter(|_| is_stamped) {
                extension.write(now, ACK_DELAY_EXPONENT, out);
            }
            self.stats.ack_bytes += (room - out.space()) as u64;
            if space.is_data() {
                self.copy_ack_elsewhere();
            }
        }
    }

    /// RFC 9000 §13.2.4: a peer that never has to acknowledge anything never lets us forget ranges.
    fn ping_is_useful(&self, space: SpaceId, out: &FrameWriter<'_>) -> bool {
        !out.is_empty() && self.space(space).is_some_and(NumberSpace::wants_ping)
    }

    fn space(&self, space: SpaceId) -> Option<&NumberSpace> {
        match space {
            SpaceId::Data(_) => Some(&self.path().space),
            _ => self.handshake.spaces.get(space),
        }
    }

    #[inline]
    fn write_ack_frequency(&mut self, out: &mut FrameWriter<'_>) {
        let sent = self.path().space.next_number();
        let extension = self.extensions.ack_frequency.as_mut();
        if let Some(extension) = extension.filter(|extension| extension.wants_to_send(sent))
            && (self.streams.wants_to_send() || self.datagrams.wants_to_send())
        {
            extension.write(out);
        }
    }

    /// Whether the peer is to be told its address on the tuple in use. Before the end of the handshake there is more
    /// important work for the little that may be sent to an address.
    fn wants_to_report_address(&self) -> bool {
        let extension = self.extensions.address_discovery.as_ref();
        self.handshake.is_complete()
            && extension.is_some_and(|extension| extension.wants_to_send(&self.path().tuple.observation))
    }

    fn write_observed_address(&mut self, out: &mut FrameWriter<'_>) {
        if self.wants_to_report_address()
            && let Some(extension) = &mut self.extensions.address_discovery
        {
            let Path { id, tuple, .. } = self.paths.at_mut(self.index);
            extension.write((*id, tuple.addrs.remote), &mut tuple.observation, out);
        }
    }
}
