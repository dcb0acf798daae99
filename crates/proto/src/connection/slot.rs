//! What the next datagram may be used for, and how large it may be: credit, probes, congestion window, pacer
//! (RFC 9000 §8.1, §14; RFC 9002 §7).

use fulmar_base::Instant;

use super::Connection;
use super::write_order::Allowance;
use crate::config::MTU_MIN;
use crate::ids::SpaceId;

/// After so many probe timeouts in a row, datagrams have the size that every path carries.
const NARROW_PTOS: u32 = 2;

/// Larger datagrams are searched for while so many full ones are in flight.
const PROBE_FLIGHT: u64 = 2;

/// The bytes of a packet with a challenge at most, without its connection ID: the first byte, the packet number,
/// the frame and the tag.
const CHALLENGE_LEN: u64 = 1 + 4 + 9 + 16;

/// Room for an acknowledgement beside a challenge.
pub(super) const ACK_ROOM: u64 = 12;

/// What the next datagram is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Packets(Allowance),
    /// A probe for a larger datagram, of this size.
    MtuProbe(u16),
    /// The end of the connection.
    Close,
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
    /// The peer's address is not validated, and its credit is used up.
    Credit,
}

impl Connection {
    /// What the next datagram may be used for.
    pub(super) fn next_slot(&mut self, now: Instant) -> Result<Slot, Blocked> {
        if !self.has_credit() {
            return self.path_slot().ok_or(Blocked::Credit);
        }
        if self.probes.any() && SpaceId::ALL.into_iter().any(|s| self.probes.is_due(s) && self.can_send(s)) {
            return Ok(Slot::Packets(Allowance::Probe));
        }
        if self.probes.is_reminder_due() && self.can_send(SpaceId::DATA) {
            return Ok(Slot::Packets(Allowance::Reminder));
        }
        let blocked = match self.data_slot(now) {
            Ok(slot) => return Ok(slot),
            Err(blocked) => blocked,
        };
        if let Some(slot) = self.path_slot() {
            return Ok(slot);
        }
        let ack_due = |id: SpaceId| self.can_send(id) && self.space(id).is_some_and(|s| s.needs_ack(now));
        if SpaceId::ALL.into_iter().any(ack_due) {
            // RFC 9002 §7: an acknowledgement alone needs no room in the window; a PING that goes with it does.
            let has_room = self.path.tuple.congestion.window_left() >= u64::from(self.path.tuple.mtu());
            let allowance = match blocked {
                Blocked::NothingToSend if has_room => Allowance::Everything,
                _ => Allowance::AcksOnly,
            };
            return Ok(Slot::Packets(allowance));
        }
        Err(blocked)
    }

    /// What concerns the tuple itself waits for no window and no pacer, and needs little credit.
    fn path_slot(&self) -> Option<Slot> {
        let tuple = &self.path.tuple;
        let possible = tuple.wants_to_send() && tuple.credit.available() >= self.challenge_len() - ACK_ROOM;
        (possible && self.can_send(SpaceId::DATA)).then_some(Slot::Packets(Allowance::PathOnly))
    }

    /// The bytes of a packet with a challenge and an acknowledgement, which little credit suffices for.
    pub(super) fn challenge_len(&self) -> u64 {
        CHALLENGE_LEN + ACK_ROOM + self.path.remote_cids.active().len() as u64
    }

    /// What the congestion window may be used for now. A probe for larger datagrams goes after data as long as it
    /// can, since it would delay it.
    fn data_slot(&mut self, now: Instant) -> Result<Slot, Blocked> {
        let wants_any = self.wants_any();
        let probe = self.mtu_probe_size(now);
        if let Some(size) = probe.filter(|_| !wants_any || self.path.tuple.mtud.is_impatient()) {
            return self.congestion_allows(now, size).map(|()| Slot::MtuProbe(size));
        }
        if !wants_any && !self.repeat_preemptively() {
            return Err(Blocked::NothingToSend);
        }
        self.congestion_allows(now, self.path.tuple.mtu())?;
        if probe.is_some() {
            self.path.tuple.mtud.on_passed_over();
        }
        Ok(Slot::Packets(Allowance::Everything))
    }

    /// Whether the peer's address may be sent anything (RFC 9000 §8.1). Smaller datagrams might fit when a full
    /// one does not, but the client pads its own, so credit comes in whole datagrams.
    pub(super) fn has_credit(&self) -> bool {
        self.path.tuple.credit.available() >= u64::from(MTU_MIN)
    }

    pub(super) fn wants_any(&self) -> bool {
        SpaceId::ALL.into_iter().any(|id| self.can_send(id) && self.wants_to_send(id))
    }

    fn congestion_allows(&mut self, now: Instant, size: u16) -> Result<(), Blocked> {
        // A probe may leave when a packet of the usual size may: it is paid for afterwards.
        let paced = u64::from(size.min(self.path.tuple.mtu()));
        let congestion = &mut self.path.tuple.congestion;
        if congestion.window_left() < u64::from(size) {
            return Err(Blocked::Window);
        }
        if congestion.pacing_budget(now) < paced {
            let at = congestion.pacing_time(now, paced);
            self.pacing.set(at);
            return Err(Blocked::Pacer);
        }
        Ok(())
    }

    /// The size of a probe for larger datagrams, if one is due and the window is ever large enough for it.
    fn mtu_probe_size(&mut self, now: Instant) -> Option<u16> {
        if !self.handshake.is_confirmed() {
            return None;
        }
        // An end that sends little gains nothing from larger datagrams, and on a narrow way back a probe would hold up
        // the acknowledgements of the peer's first flight, whose spacing is to show the capacity of the path.
        if self.path.tuple.congestion.bytes_in_flight() < PROBE_FLIGHT * u64::from(self.path.tuple.mtu()) {
            return None;
        }
        let size = self.path.tuple.mtud.poll_probe(now)?;
        (u64::from(size) <= self.path.tuple.congestion.controller().window()).then_some(size)
    }

    /// Whether there are keys to send packets of a space.
    pub(super) fn can_send(&self, space: SpaceId) -> bool {
        match space {
            SpaceId::Initial => self.handshake.initial_keys().is_some(),
            SpaceId::Handshake => self.handshake.handshake_keys().is_some(),
            SpaceId::Data(_) => {
                (self.handshake.one_rtt_keys().is_some() && self.handshake.peer_parameters().is_some())
                    || self.sends_early_data()
            }
        }
    }

    pub(super) fn datagram_size(&self, now: Instant, slot: Slot) -> usize {
        match slot {
            Slot::MtuProbe(size) => usize::from(size),
            Slot::Packets(_) | Slot::Close => {
                let credit = usize::try_from(self.path.tuple.credit.available()).unwrap_or(usize::MAX);
                // When nothing gets through, the path may have become narrower: of two probes one fits every
                // path, and in the end all packets do. The full one that arrives shows that the path is as wide
                // as ever.
                let narrow = match slot {
                    Slot::Packets(Allowance::Probe) => self.probes.is_last(),
                    // An unreliable datagram cannot be cut.
                    _ => !self.datagrams.wants_to_send() && self.is_ack_late(now),
                };
                let narrow = narrow || self.pto.count() >= NARROW_PTOS;
                let mtu = if narrow { MTU_MIN } else { self.path.tuple.mtu() };
                if slot == Slot::Packets(Allowance::PathOnly) && credit < usize::from(MTU_MIN) {
                    // What is left of a small credit is for a repetition.
                    return credit.min(self.challenge_len() as usize);
                }
                usize::from(mtu).min(credit)
            }
        }
    }
}
