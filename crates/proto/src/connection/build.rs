//! One datagram: a packet of each space that has something to say, written, sealed and recorded (RFC 9000 §12.2, §14.1).

use fulmar_base::Instant;
use fulmar_wire::{PacketKind, Side};

use super::Connection;
use super::slot::Slot;
use super::write_order::Allowance;
use crate::config::MTU_MIN;
use crate::congestion::DeliverySnapshot;
use crate::datagram::Ecn;
use crate::ids::SpaceId;
use crate::log::LogEvent;
use crate::packet::{HeaderFields, OpenPacket, Payload, Sealer, SentFrame, SentPacket};

/// The room in a full datagram that may be too small for one more frame.
pub(super) const SEGMENT_SLACK: usize = 64;

/// A packet whose frames are written but which is not sealed.
struct PendingPacket {
    space: SpaceId,
    packet: OpenPacket,
    payload: Payload,
}

/// What became of a datagram.
#[derive(Default)]
pub(super) struct DatagramOut {
    pub(super) len: usize,
    pub(super) has_handshake_packet: bool,
}

impl Connection {
    /// Writes one datagram: a packet of each space that has something to say.
    pub(super) fn build_datagram(
        &mut self,
        now: Instant,
        slot: Slot,
        ecn: Ecn,
        buffer: &mut [u8],
    ) -> DatagramOut {
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
            let least = match slot {
                Slot::MtuProbe(_) => buffer.len(),
                _ if pad => usize::from(MTU_MIN),
                Slot::Packets(Allowance::Probe) => self.vigil.take_question(),
                _ => 0,
            };
            let padded = least > 0 && last.packet.pad_until(buffer, least.min(buffer.len()));
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
        let header = self.header_of(space);
        let name = (self.path.id, number);
        let mut packet = OpenPacket::begin(buffer, start, limit, &header, name, largest_acked)?;
        if !self.next_quic_bit() {
            packet.clear_quic_bit(buffer);
        }
        if start > 0 {
            // The packet before is not noted yet: its size is known when it is known whether it is the last one.
            self.note(now, LogEvent::FramesEnd);
        }
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

    fn header_of(&self, space: SpaceId) -> HeaderFields<'_> {
        let dst = self.path.remote_cids.active();
        match space {
            SpaceId::Data(_) if self.sends_early_data() => HeaderFields::Long {
                kind: PacketKind::ZeroRtt,
                version: self.versions.original,
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
                version: self.versions.current,
                dst,
                src: self.local_cid,
                token: if space.packet_kind() == PacketKind::Initial { self.handshake.token() } else { &[] },
            },
        }
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
            true => tuple.congestion.on_sent(now, number, size),
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
            resends: payload.resends,
            ecn,
            delivered,
            frames: payload.frames,
        };
        self.note_sent(now, space, number, &record);
        self.record_sent(now, space, number, record);
    }

    pub(super) fn seal_only(&mut self, space: SpaceId, packet: OpenPacket, buffer: &mut [u8]) {
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

    pub(super) fn note_sent(&mut self, now: Instant, space: SpaceId, number: u64, record: &SentPacket) {
        self.note_generation(now);
        let early = space.is_data() && self.sends_early_data();
        let SentPacket { size, ack_eliciting, mtu_probe, ecn, .. } = *record;
        self.note(now, LogEvent::PacketSent { space, number, size, ack_eliciting, mtu_probe, early, ecn });
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
}
