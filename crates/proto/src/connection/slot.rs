//! What the next datagram may be used for, and how large it may be: anti-amplification limit, probes, congestion
//! window, pacer (RFC 9000 §8.1, §14; RFC 9002 §7).

use super::ack_elsewhere::has_copies_for;
use super::probing;
use super::spare_capacity;
use super::transmit::Sender;
use super::write_order::Allowance;
use crate::config::MTU_MIN;
use crate::datagram::Ecn;
use crate::ext::FecSender;
use crate::ids::SpaceId;
use crate::path::{Path, Pending, Tuple};

/// After so many probe timeouts in a row, datagrams have the size that every path carries.
const NARROW_PTOS: u32 = 2;

/// Larger datagrams are searched for while so many full ones are in flight.
const PROBE_FLIGHT: u64 = 2;

/// The bytes of a packet with a challenge at most, without its connection ID: the first byte, the packet number,
/// the frame and the tag.
const CHALLENGE_LEN: u64 = 1 + 4 + 9 + 16;

/// Room for an acknowledgement beside a challenge.
const ACK_ROOM: u64 = 12;

/// What the next datagram is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Packets(Allowance),
    /// All that is left to send, in a datagram of so many bytes, as the window has no room for a full one.
    End(u16),
    /// A probe for a larger datagram, of this size.
    MtuProbe(u16),
    /// A Handshake packet of padding, which tells a client that a flight was sent.
    Reminder,
    /// The end of the connection.
    Close,
}

/// How a datagram of a path is built. Its size is that of the buffer it is written to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) slot: Slot,
    /// Which of the tuples beside the one in use it goes over; `None`: the one in use.
    pub(super) off_path: Option<usize>,
    pub(super) ecn: Ecn,
}

/// Why no more datagrams are sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocked {
    /// There is nothing to send.
    NothingToSend,
    /// The congestion window is full.
    Window,
    /// The pacer wants to be asked later.
    Pacer,
    /// The peer's address is not validated, and the anti-amplification limit is reached.
    AmplificationLimit,
}

impl Sender<'_> {
    /// What the next datagram may be used for.
    pub(super) fn next_slot(&mut self) -> Result<Slot, Blocked> {
        let path = self.parts.path();
        if !path.tuple.may_send_datagram() {
            return self.path_slot().ok_or(Blocked::AmplificationLimit);
        }
        if self.is_probe_due(path) {
            return Ok(Slot::Packets(Allowance::Probe));
        }
        if path.pto.ping && self.can_send_data {
            return Ok(Slot::Packets(Allowance::Ping));
        }
        let blocked = match self.data_slot() {
            Ok(slot) => return Ok(slot),
            Err(blocked) => blocked,
        };
        if let Some(slot) = self.path_slot() {
            return Ok(slot);
        }
        if self.is_ack_due() {
            // RFC 9002 §7: an acknowledgement alone needs no room in the window; a PING that goes with it does.
            let has_room = self.tuple().congestion.window_left() >= u64::from(self.tuple().mtu());
            let allowance = match blocked {
                Blocked::NothingToSend if has_room => Allowance::Everything,
                _ => Allowance::AcksOnly,
            };
            return Ok(Slot::Packets(allowance));
        }
        if self.sends_handshake() && self.parts.handshake.take_reminder() {
            return Ok(Slot::Reminder);
        }
        Err(blocked)
    }

    fn is_probe_due(&self, path: &Path) -> bool {
        let handshake = &*self.parts.handshake;
        let is_due = |&space: &SpaceId| {
            handshake.spaces.get(space).is_some_and(|numbers| numbers.probes.is_due())
                && handshake.can_send(space)
        };
        (self.can_send_data && path.space.probes.is_due())
            || (self.sends_handshake() && SpaceId::OF_HANDSHAKE.iter().any(is_due))
    }

    fn is_ack_due(&self) -> bool {
        let handshake = &*self.parts.handshake;
        let is_due = |&space: &SpaceId| {
            handshake.can_send(space)
                && handshake.spaces.get(space).is_some_and(|numbers| numbers.needs_ack(self.now))
        };
        let path = self.parts.path();
        (self.can_send_data
            && (path.space.needs_ack(self.now) || has_copies_for(self.parts.paths, self.now, path.id)))
            || (self.sends_handshake() && SpaceId::OF_HANDSHAKE.iter().any(is_due))
    }

    /// What concerns the tuple itself waits for no window and no pacer, and needs little of the anti-amplification limit.
    fn path_slot(&self) -> Option<Slot> {
        let tuple = self.tuple();
        let possible =
            tuple.wants_to_send() && tuple.amplification.available() >= self.challenge_len() - ACK_ROOM;
        (possible && self.can_send_data).then_some(Slot::Packets(Allowance::PathOnly))
    }

    /// A datagram for a tuple that is not in use, and has something to say.
    pub(super) fn off_path_plan(&self) -> Option<Plan> {
        let least = self.challenge_len() - ACK_ROOM;
        let ready = |tuple: &Tuple| tuple.wants_to_send() && tuple.amplification.available() >= least;
        let index = self.parts.path().off_path().iter().position(ready)?;
        Some(Plan { slot: Slot::Packets(Allowance::PathOnly), off_path: Some(index), ecn: Ecn::NotEct })
    }

    /// The bytes of a packet with a challenge and an acknowledgement.
    fn challenge_len(&self) -> u64 {
        CHALLENGE_LEN + ACK_ROOM + self.parts.path().remote_cids.active().len() as u64
    }

    /// What the congestion window may be used for now. A probe for larger datagrams goes after data as long as it
    /// can, since it would delay it, and so after what spares data a round trip: it would take the last room of a first window.
    fn data_slot(&mut self) -> Result<Slot, Blocked> {
        let probe = self.mtu_probe_size();
        if let Some(size) = probe.filter(|_| self.tuple().mtud.is_impatient()) {
            return self.congestion_allows(size).map(|()| Slot::MtuProbe(size));
        }
        if !(self.wants_any() || self.carries_data() && spare_capacity::fill(self)) {
            let size = probe.ok_or(Blocked::NothingToSend)?;
            return self.congestion_allows(size).map(|()| Slot::MtuProbe(size));
        }
        let mtu = self.tuple().mtu();
        let slot = match self.congestion_allows(mtu) {
            Ok(()) => Slot::Packets(Allowance::Everything),
            Err(Blocked::Window) => self.end_slot()?,
            Err(blocked) => return Err(blocked),
        };
        if probe.is_some() {
            self.tuple_mut().mtud.on_passed_over();
        }
        Ok(slot)
    }

    /// Where the window has no room for a full datagram, the last one may leave if it fits: a transfer whose end fits the window need not
    /// wait a round trip for room that it does not use. More than the end is not cut for that.
    fn end_slot(&mut self) -> Result<Slot, Blocked> {
        let left = u16::try_from(self.tuple().congestion.window_left()).unwrap_or(u16::MAX);
        if self.rest_len().is_none_or(|rest| rest > left.into()) {
            return Err(Blocked::Window);
        }
        self.congestion_allows(left).map(|()| Slot::End(left))
    }

    /// How long a packet with all stream data that waits is at most, if that is what there is to send; what else may go with it, such as
    /// flow control, is short, and takes another packet if it has to.
    fn rest_len(&self) -> Option<u64> {
        let data = self.parts.streams.rest_len()?;
        let fec = self.parts.extensions.fec.as_ref().and_then(|fec| fec.sender.as_ref());
        let path = self.parts.path();
        if self.sends_handshake()
            || self.parts.datagrams.wants_to_send()
            || fec.is_some_and(|fec| fec.has_repairs_for(path.id))
        {
            return None;
        }
        let header = path.packet_overhead() + fec.map_or(0, FecSender::header_len_max);
        Some(header as u64 + data)
    }

    /// Whether data may take this path; always where it is the only one.
    fn carries_data(&self) -> bool {
        self.parts.path().allowed.has(Pending::STREAMS)
    }

    fn congestion_allows(&mut self, size: u16) -> Result<(), Blocked> {
        let (now, path) = (self.now, self.parts.path_mut());
        // A probe may leave when a packet of the usual size may: it is paid for afterwards.
        let paced = u64::from(size.min(path.tuple.mtu()));
        let congestion = &mut path.tuple.congestion;
        if congestion.window_left() < u64::from(size) {
            return Err(Blocked::Window);
        }
        if congestion.pacing_budget(now) < paced {
            path.pacing.set(congestion.pacing_time(now, paced));
            return Err(Blocked::Pacer);
        }
        Ok(())
    }

    /// The size of a probe for larger datagrams, if one is due and the window is ever large enough for it.
    fn mtu_probe_size(&mut self) -> Option<u16> {
        if !self.parts.handshake.is_confirmed() {
            return None;
        }
        let (now, tuple) = (self.now, self.tuple_mut());
        // RFC 9000 §8.1, §9.3: an address that was not proven gets three times what came from it, padding included.
        if !tuple.amplification.is_validated() {
            return None;
        }
        // An end that sends little gains nothing from larger datagrams, and on a narrow way back a probe would hold up
        // the acknowledgements of the peer's first flight, whose spacing is to show the capacity of the path.
        if tuple.congestion.bytes_in_flight() < PROBE_FLIGHT * u64::from(tuple.mtu()) {
            return None;
        }
        let size = tuple.mtud.poll_probe(now)?;
        (u64::from(size) <= tuple.congestion.window()).then_some(size)
    }

    /// The size of the next datagram at most.
    pub(super) fn datagram_size(&mut self, slot: Slot) -> usize {
        if let Slot::MtuProbe(size) = slot {
            return usize::from(size);
        }
        let is_ack_late = self.is_ack_late();
        let path = self.parts.path();
        let limit = usize::try_from(path.tuple.amplification.available()).unwrap_or(usize::MAX);
        // When nothing gets through, the path may have become narrower: of two probes one fits every path, and in
        // the end all packets do. The full one that arrives shows that the path is as wide as ever.
        let narrow = path.pto.backoff.count() >= NARROW_PTOS
            || match slot {
                Slot::Packets(Allowance::Probe) => path.space.probes.is_last(),
                // An unreliable datagram cannot be cut.
                _ => is_ack_late && !self.parts.datagrams.wants_to_send(),
            };
        let mtu = if narrow { MTU_MIN } else { path.tuple.mtu() };
        if slot == Slot::Packets(Allowance::PathOnly) && limit < usize::from(MTU_MIN) {
            // What is left of a small limit is for a retransmission.
            return limit.min(self.challenge_len() as usize);
        }
        let size = match slot {
            Slot::End(left) => mtu.min(left),
            _ => mtu,
        };
        usize::from(size).min(limit)
    }

    /// Packets that leave now do not make those late that left before.
    fn is_ack_late(&mut self) -> bool {
        if let Some(known) = self.is_ack_late {
            return known;
        }
        let parts = &self.parts;
        let late =
            probing::is_ack_late(self.now, parts.path(), parts.handshake, parts.extensions, self.config);
        *self.is_ack_late.insert(late)
    }
}
