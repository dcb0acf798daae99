//! Datagrams out: what may be sent, packet by packet, into one train (RFC 9000 §12.2, §13, §14).

use fulmar_base::Instant;
use fulmar_wire::{PacketKind, Side};

use super::Connection;
use super::lifecycle::State;
use super::spaces::SpaceId;
use super::write_order::Allowance;
use crate::config::MTU_MIN;
use crate::congestion::DeliverySnapshot;
use crate::datagram::{Ecn, Transmit, TransmitBatch};
use crate::log::LogEvent;
use crate::packet::{HeaderFields, OpenPacket, Payload, Sealer, SentFrame, SentFrames, SentPacket};
use crate::path::Tuple;

/// Datagrams in one train at most, so that one connection does not keep the others waiting and the clock of
/// the pacer stays honest.
const TRAIN_DATAGRAMS_MAX: usize = 64;

/// After so many probe timeouts in a row, datagrams have the size that every path carries.
const NARROW_PTOS: u32 = 2;

/// Larger datagrams are searched for while so many full ones are in flight.
const PROBE_FLIGHT: u64 = 2;

/// The room in a full datagram that may be too small for one more frame.
const SEGMENT_SLACK: usize = 64;

/// The bytes of a packet with a challenge at most, without its connection ID: the first byte, the packet number,
/// the frame and the tag.
const CHALLENGE_LEN: u64 = 1 + 4 + 9 + 16;

/// Room for an acknowledgement beside a challenge.
const ACK_ROOM: u64 = 12;

/// Without words for the application, a packet that closes has fewer bytes.
const CLOSE_CREDIT: u64 = 60;

/// What the next datagram is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
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

/// A packet whose frames are written but which is not sealed.
struct PendingPacket {
    space: SpaceId,
    packet: OpenPacket,
    payload: Payload,
}

/// What became of a datagram.
#[derive(Default)]
struct DatagramOut {
    len: usize,
    has_handshake_packet: bool,
}

impl Connection {
    /// Writes the next train of datagrams into `batch`, if there is anything to send. To be called until it
    /// returns `None`, after every other call.
    pub fn poll_transmit(&mut self, now: Instant, batch: &mut TransmitBatch) -> Option<Transmit> {
        match self.lifecycle.state() {
            State::Handshaking | State::Established => {}
            State::Closing => return self.transmit_close(now, batch),
            State::Draining | State::Drained => return None,
        }
        if let Err(error) = self.maintain_keys(now) {
            self.close_on_error(now, error);
            return self.transmit_close(now, batch);
        }
        if self.resumes_after_long_silence(now) && self.path.remote_cids.rotate(&mut self.endpoint_events) {
            self.path.on_cids_changed(&mut self.endpoint_events);
            self.stats.cid_changes += 1;
        }
        if let Some(transmit) = self.transmit_elsewhere(now, batch) {
            return Some(transmit);
        }
        let tuple = &self.path.tuple;
        let ecn = tuple.ecn.codepoint(tuple.flow.controller().ecn_codepoint());
        let segments_max = batch.max_segments().min(TRAIN_DATAGRAMS_MAX);
        let buffer = batch.room();
        let (mut len, mut segment, mut count) = (0, None, 0);
        let blocked = loop {
            if count == segments_max {
                break None;
            }
            let slot = match self.next_slot(now) {
                Ok(slot) => slot,
                Err(blocked) => break Some(blocked),
            };
            // Datagrams that prove the size of the path are not cut to that of a train.
            if count > 0 && (matches!(slot, Slot::MtuProbe(_)) || self.path.tuple.wants_to_send()) {
                break None;
            }
            let size = self.datagram_size(now, slot).min(segment.unwrap_or(usize::MAX));
            if len + size > buffer.len() {
                break None;
            }
            let datagram = self.build_datagram(now, slot, ecn, &mut buffer[len..len + size]);
            if datagram.len == 0 {
                break Some(Blocked::NothingToSend);
            }
            self.on_datagram_sent(now, &datagram);
            len += datagram.len;
            count += 1;
            // A train has datagrams of one size; only the last may be shorter. One that begins with a short
            // datagram ends with it: the others would have to be as short.
            let is_full =
                datagram.len + SEGMENT_SLACK >= size && datagram.len >= *segment.get_or_insert(datagram.len);
            if !is_full || matches!(slot, Slot::MtuProbe(_)) {
                break None;
            }
        };
        let tuple = &mut self.path.tuple;
        let resumes = blocked
            .is_some_and(|blocked| tuple.flow.end_round(now, blocked == Blocked::NothingToSend, &tuple.rtt));
        self.note_figures(now, blocked);
        if count == 0 {
            // The window has grown in between, which happens once in the life of a tuple.
            return if resumes { self.poll_transmit(now, batch) } else { None };
        }
        self.path.tuple.ecn.on_sent(ecn, count as u64);
        batch.set_len(len);
        let segment_size = segment.filter(|_| count > 1);
        Some(Transmit { addrs: self.path.tuple.addrs, ecn, len, segment_size })
    }

    /// The next keys are made, old ones discarded, an update is started before the limit of the AEAD.
    fn maintain_keys(&mut self, now: Instant) -> Result<(), crate::TransportError> {
        let pto = self.pto_base();
        self.handshake.one_rtt_keys_mut().map_or(Ok(()), |keys| keys.maintain(now, pto))
    }

    /// Whether this is a client that has something to say again after a long silence: an observer shall not
    /// tell by the connection ID that it is still the same one (RFC 9000 §9.5). A PING that keeps the connection
    /// alive resumes nothing.
    fn resumes_after_long_silence(&self, now: Instant) -> bool {
        self.side.is_client()
            && self.idle.is_long_silent(now, self.path.tuple.rtt.min())
            && self.handshake.is_confirmed()
            && !self.path.space.has_ack_eliciting_in_flight()
            && self.wants_any()
    }

    /// What the next datagram may be used for.
    fn next_slot(&mut self, now: Instant) -> Result<Slot, Blocked> {
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
            let has_room = self.path.tuple.flow.window_left() >= u64::from(self.path.tuple.mtu());
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
    fn challenge_len(&self) -> u64 {
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
        if !wants_any {
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

    fn wants_any(&self) -> bool {
        SpaceId::ALL.into_iter().any(|id| self.can_send(id) && self.wants_to_send(id))
    }

    fn congestion_allows(&mut self, now: Instant, size: u16) -> Result<(), Blocked> {
        // A probe may leave when a packet of the usual size may: it is paid for afterwards.
        let paced = u64::from(size.min(self.path.tuple.mtu()));
        let flow = &mut self.path.tuple.flow;
        if flow.window_left() < u64::from(size) {
            return Err(Blocked::Window);
        }
        if flow.pacing_budget(now) < paced {
            let at = flow.pacing_time(now, paced);
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
        if self.path.tuple.flow.bytes_in_flight() < PROBE_FLIGHT * u64::from(self.path.tuple.mtu()) {
            return None;
        }
        let size = self.path.tuple.mtud.poll_probe(now)?;
        (u64::from(size) <= self.path.tuple.flow.controller().window()).then_some(size)
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

    fn datagram_size(&self, now: Instant, slot: Slot) -> usize {
        match slot {
            Slot::MtuProbe(size) => usize::from(size),
            Slot::Packets(_) | Slot::Close => {
                let credit = usize::try_from(self.path.tuple.credit.available()).unwrap_or(usize::MAX);
                // When nothing gets through, the path may have become narrower: of two probes one fits every
                // path, and in the end all packets do. The full one that arrives shows that the path is as wide
                // as ever.
                let second_probe = slot == Slot::Packets(Allowance::Probe) && self.probes.is_last();
                // An unreliable datagram cannot be cut.
                let late = !self.datagrams.wants_to_send() && self.is_ack_late(now);
                let narrow = second_probe || late || self.pto.count() >= NARROW_PTOS;
                let mtu = if narrow { MTU_MIN } else { self.path.tuple.mtu() };
                if slot == Slot::Packets(Allowance::PathOnly) && credit < usize::from(MTU_MIN) {
                    // What is left of a small credit is for a repetition.
                    return credit.min(self.challenge_len() as usize);
                }
                usize::from(mtu).min(credit)
            }
        }
    }

    /// Writes one datagram: a packet of each space that has something to say.
    fn build_datagram(&mut self, now: Instant, slot: Slot, ecn: Ecn, buffer: &mut [u8]) -> DatagramOut {
        let mut pending: Option<PendingPacket> = None;
        let mut out = DatagramOut::default();
        let mut pad = matches!(slot, Slot::MtuProbe(_));
        for space in SpaceId::ALL {
            if !self.can_send(space) || (space == SpaceId::Initial && self.is_past_initial(now, slot)) {
                continue;
            }
            let start = pending.as_ref().map_or(0, |p| p.packet.end());
            let Some(next) = self.build_packet(now, space, slot, buffer, start) else { continue };
            // RFC 9000 §14.1: datagrams with Initial packets that must be answered are full.
            pad |= space == SpaceId::Initial && (self.side == Side::Client || next.payload.ack_eliciting);
            // RFC 9000 §8.2.1: unless the credit does not suffice.
            pad |= next.payload.fills_datagram && buffer.len() >= usize::from(MTU_MIN);
            out.has_handshake_packet |= space == SpaceId::Handshake;
            if let Some(previous) = pending.replace(next) {
                self.seal(now, previous, slot, ecn, false, buffer);
            }
        }
        if let Some(mut last) = pending {
            let target = if matches!(slot, Slot::MtuProbe(_)) { buffer.len() } else { usize::from(MTU_MIN) };
            let padded = pad && last.packet.pad_until(buffer, target.min(buffer.len()));
            out.len = last.packet.end();
            self.seal(now, last, slot, ecn, padded, buffer);
        }
        out
    }

    /// Whether this is a client that is about to send its first Handshake packet: with it the Initial packets end on
    /// both sides (RFC 9001 §4.9.1), and an acknowledgement of one would only fill the datagram, beyond what the
    /// window may allow.
    fn is_past_initial(&self, now: Instant, slot: Slot) -> bool {
        self.side.is_client()
            && slot != Slot::Close
            && self.can_send(SpaceId::Handshake)
            && self.space(SpaceId::Handshake).is_some_and(|space| space.needs_ack(now))
    }

    /// Writes the header and the frames of a packet; `None` if there is nothing to say, or no room.
    fn build_packet(
        &mut self,
        now: Instant,
        space: SpaceId,
        slot: Slot,
        buffer: &mut [u8],
        start: usize,
    ) -> Option<PendingPacket> {
        let numbers = self.space(space)?;
        let (number, largest_acked) = (numbers.next_number(), numbers.largest_acked());
        let limit = buffer.len();
        let dst = self.path.remote_cids.active();
        let header = match space {
            SpaceId::Data(_) if self.sends_early_data() => HeaderFields::Long {
                kind: PacketKind::ZeroRtt,
                version: self.original_version,
                dst,
                src: self.local_cid,
                token: &[],
            },
            SpaceId::Data(_) => HeaderFields::Short {
                dst,
                spin: self.path.tuple.spin.bit(),
                key_phase: self.handshake.one_rtt_keys().is_some_and(|keys| keys.key_phase()),
            },
            _ => HeaderFields::Long {
                kind: space.packet_kind(),
                version: self.version,
                dst,
                src: self.local_cid,
                token: if space.packet_kind() == PacketKind::Initial { self.handshake.token() } else { &[] },
            },
        };
        let name = (self.path.id, number);
        let mut packet = OpenPacket::begin(buffer, start, limit, &header, name, largest_acked)?;
        // Taken out while the frames are written, so that their owners can be borrowed.
        let mut log = self.log.take();
        let mut frames = packet.frames(buffer, limit, self.dialect).noted_in(now, log.as_deref_mut());
        match slot {
            Slot::Packets(allowance) => self.write_frames(now, space, allowance, &mut frames),
            Slot::MtuProbe(_) if space.is_data() => {
                frames.write(&fulmar_wire::Frame::Ping, SentFrame::Ping);
            }
            Slot::MtuProbe(_) => {}
            // A handshake that is confirmed needs no more of its packets.
            Slot::Close if !space.is_data() && self.handshake.is_confirmed() => {}
            Slot::Close => {
                if let Some(close) = &self.close {
                    close.write(!space.is_data(), &mut frames);
                }
            }
        }
        let payload = (!frames.is_empty()).then(|| frames.finish());
        self.log = log;
        let payload = payload?;
        packet.end_payload(buffer, &payload);
        Some(PendingPacket { space, packet, payload })
    }

    /// Seals a packet and records it.
    fn seal(
        &mut self,
        now: Instant,
        pending: PendingPacket,
        slot: Slot,
        ecn: Ecn,
        padded: bool,
        buffer: &mut [u8],
    ) {
        let PendingPacket { space, packet, payload } = pending;
        let (number, size) = (packet.number(), packet.len() as u16);
        self.seal_only(space, packet, buffer);
        // What proves a path, while nothing else may be sent, has timers of its own: it neither takes room in the
        // window nor is waited for (RFC 9000 §9.4).
        let counts = slot != Slot::Packets(Allowance::PathOnly);
        let ack_eliciting = payload.ack_eliciting && counts;
        // RFC 9002 §2: packets that elicit an acknowledgement or contain padding are in flight.
        let in_flight = ack_eliciting || (padded && counts);
        let tuple = &mut self.path.tuple;
        let delivered = match in_flight {
            true => tuple.flow.on_sent(now, number, size),
            false => DeliverySnapshot::NONE,
        };
        if space.is_data() && !padded && usize::from(size) + SEGMENT_SLACK >= usize::from(tuple.mtu()) {
            tuple.mtud.want();
        }
        let record = SentPacket {
            time_sent: now,
            size,
            tuple: tuple.id,
            ack_eliciting,
            in_flight,
            mtu_probe: matches!(slot, Slot::MtuProbe(_)),
            repeated: false,
            ecn,
            delivered,
            frames: payload.frames,
        };
        self.note_sent(now, space, number, &record);
        self.record_sent(now, space, number, record);
    }

    fn seal_only(&mut self, space: SpaceId, packet: OpenPacket, buffer: &mut [u8]) {
        let sealer = match space {
            SpaceId::Initial => self.handshake.initial_keys().map(|keys| Sealer::Early(&keys.local)),
            SpaceId::Handshake => self.handshake.handshake_keys().map(|keys| Sealer::Early(&keys.local)),
            SpaceId::Data(_) if self.sends_early_data() => self.handshake.early_keys().map(Sealer::Early),
            SpaceId::Data(_) => self.handshake.one_rtt_keys_mut().map(Sealer::OneRtt),
        };
        if let Some(sealer) = sealer {
            packet.seal(buffer, sealer);
        }
    }

    fn note_sent(&mut self, now: Instant, space: SpaceId, number: u64, record: &SentPacket) {
        let SentPacket { size, ack_eliciting, mtu_probe, ecn, .. } = *record;
        self.note(now, LogEvent::PacketSent { space, number, size, ack_eliciting, mtu_probe, ecn });
    }

    fn record_sent(&mut self, now: Instant, space: SpaceId, number: u64, record: SentPacket) {
        self.stats.packets_sent += 1;
        if record.ack_eliciting {
            self.pto_base_time = now;
            self.probes.on_sent(space);
            let pto = self.pto_base();
            self.idle.on_ack_eliciting_sent(now, pto);
        } else {
            self.stats.ack_only_bytes += u64::from(record.size);
        }
        if record.mtu_probe {
            self.path.tuple.mtud.on_probe_sent();
        }
        // The generator is taken out for the call, so that the space can be borrowed.
        let space = match space {
            SpaceId::Initial => self.spaces.initial.as_mut(),
            SpaceId::Handshake => self.spaces.handshake.as_mut(),
            SpaceId::Data(_) => Some(&mut self.path.space),
        };
        if let Some(space) = space {
            space.on_sent(number, record, &mut self.rng);
        }
    }

    fn on_datagram_sent(&mut self, now: Instant, datagram: &DatagramOut) {
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += datagram.len as u64;
        self.stats.cwnd_max = self.stats.cwnd_max.max(self.path.tuple.flow.controller().window());
        self.path.tuple.credit.on_sent(datagram.len as u64);
        if datagram.has_handshake_packet && self.side.is_client() {
            // RFC 9001 §4.9.1: a client discards its Initial keys when it first sends a Handshake packet.
            self.discard_space(now, SpaceId::Initial);
        }
    }

    /// Sends what concerns a tuple that is not in use over that tuple: a challenge, answers to the peer's.
    fn transmit_elsewhere(&mut self, now: Instant, batch: &mut TransmitBatch) -> Option<Transmit> {
        let least = self.challenge_len() - ACK_ROOM;
        let ready = |tuple: &Tuple| tuple.wants_to_send() && tuple.credit.available() >= least;
        let index = self.path.others().iter().position(ready)?;
        let tuple = &mut self.path.others_mut()[index];
        let (addrs, spin, remote_cid) = (tuple.addrs, tuple.spin.bit(), tuple.remote_cid);
        let size = tuple.credit.available().min(u64::from(MTU_MIN)) as usize;
        let dst = self.path.remote_cids.get(remote_cid)?;
        let key_phase = self.handshake.one_rtt_keys()?.key_phase();
        let (number, largest_acked) = (self.path.space.next_number(), self.path.space.largest_acked());
        let header = HeaderFields::Short { dst, spin, key_phase };
        let buffer = &mut batch.room()[..size];
        let name = (self.path.id, number);
        let mut packet = OpenPacket::begin(buffer, 0, size, &header, name, largest_acked)?;
        let mut frames = packet.frames(buffer, size, self.dialect);
        let mut rng = self.path.rng.fork();
        self.path.others_mut()[index].write(now, &mut rng, &mut frames);
        if frames.is_empty() {
            return None;
        }
        let payload = frames.finish();
        packet.end_payload(buffer, &payload);
        if size == usize::from(MTU_MIN) {
            packet.pad_until(buffer, size);
        }
        let len = packet.end();
        self.seal_only(SpaceId::DATA, packet, buffer);
        self.record_elsewhere(now, number, index, len);
        batch.set_len(len);
        Some(Transmit { addrs, ecn: Ecn::NotEct, len, segment_size: None })
    }

    /// Records a packet over a tuple that is not in use. It neither waits for an acknowledgement nor is in flight:
    /// challenges have timers of their own, and their loss tells nothing about the tuple in use (RFC 9000 §9.4).
    fn record_elsewhere(&mut self, now: Instant, number: u64, index: usize, len: usize) {
        let tuple = &mut self.path.others_mut()[index];
        tuple.credit.on_sent(len as u64);
        let record = SentPacket {
            time_sent: now,
            size: len as u16,
            tuple: tuple.id,
            ack_eliciting: false,
            in_flight: false,
            mtu_probe: false,
            repeated: false,
            ecn: Ecn::NotEct,
            delivered: DeliverySnapshot::NONE,
            frames: SentFrames::new(),
        };
        self.path.space.on_sent(number, record, &mut self.rng);
        self.stats.packets_sent += 1;
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += len as u64;
    }

    /// Sends CONNECTION_CLOSE in every space that has keys, because it is not known which of them the peer has
    /// (RFC 9000 §10.2.3).
    fn transmit_close(&mut self, now: Instant, batch: &mut TransmitBatch) -> Option<Transmit> {
        let pending = self.close.as_ref().is_some_and(|close| close.is_pending());
        let least = if self.handshake.is_confirmed() { CLOSE_CREDIT } else { u64::from(MTU_MIN) };
        if !pending || self.path.tuple.credit.available() < least {
            return None;
        }
        let size = self.datagram_size(now, Slot::Close);
        let buffer = &mut batch.room()[..size];
        let datagram = self.build_datagram(now, Slot::Close, Ecn::NotEct, buffer);
        if let Some(close) = &mut self.close {
            close.on_sent();
        }
        if datagram.len == 0 {
            return None;
        }
        self.on_datagram_sent(now, &datagram);
        batch.set_len(datagram.len);
        let addrs = self.path.tuple.addrs;
        Some(Transmit { addrs, ecn: Ecn::NotEct, len: datagram.len, segment_size: None })
    }
}
