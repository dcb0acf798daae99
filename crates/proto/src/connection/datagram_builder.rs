//! One datagram: a packet of each space that has something to say, written, sealed and recorded (RFC 9000 §12.2, §14.1).

use fulmar_wire::{Dialect, Frame, PacketKind, Side};

use super::recovery::pto_base;
use super::slot::{Plan, Slot};
use super::transmit::Sender;
use super::write_order::Allowance;
use crate::config::MTU_MIN;
use crate::congestion::DeliverySnapshot;
use crate::ids::SpaceId;
use crate::log::LogEvent;
use crate::packet::{HeaderFields, OpenPacket, Payload, SentFrame, SentPacket};
use crate::path::Tuple;
use crate::rtt::TimerStyle;

/// The room in a full datagram that may be too small for one more frame.
pub(super) const SEGMENT_SLACK: usize = 64;

/// Early data makes the datagram of a client's Initial packet no larger than this, the largest that Ethernet carries. A server
/// that does not know the client keeps little of it ([`max_incoming_bytes`](crate::EndpointConfig::max_incoming_bytes)), and drops a
/// first datagram that is more.
const FIRST_DATAGRAM_MAX: usize = 9_000;

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

impl Sender<'_> {
    /// Writes one datagram into `buffer`, which is as long as it may become: a packet of each space that has something
    /// to say.
    pub(super) fn build_datagram(&mut self, plan: &Plan, buffer: &mut [u8]) -> DatagramOut {
        let mut pending: Option<PendingPacket> = None;
        let mut out = DatagramOut::default();
        let mut pad = matches!(plan.slot, Slot::MtuProbe(_));
        if plan.off_path.is_none() && self.sends_handshake() {
            for space in SpaceId::OF_HANDSHAKE {
                if !self.parts.handshake.can_send(space)
                    || (space == SpaceId::Initial && self.is_past_initial(plan.slot))
                {
                    continue;
                }
                let start = pending.as_ref().map_or(0, |p| p.packet.end());
                let Some(next) = self.build_packet(space, plan, buffer, start) else { continue };
                // RFC 9000 §14.1: datagrams with Initial packets that must be answered are full. So are those that close: a
                // peer that ignores small ones is to hear why.
                let must_arrive = next.payload.ack_eliciting || plan.slot == Slot::Close;
                pad |= space == SpaceId::Initial && (self.side == Side::Client || must_arrive);
                out.has_handshake_packet |= space == SpaceId::Handshake;
                if let Some(previous) = pending.replace(next) {
                    self.seal(previous, plan, false, buffer);
                }
            }
        }
        if self.can_send_data {
            let start = pending.as_ref().map_or(0, |p| p.packet.end());
            let space = SpaceId::Data(self.parts.path().id);
            if let Some(next) = self.build_packet(space, plan, buffer, start) {
                // RFC 9000 §8.2.1: unless the anti-amplification limit leaves less.
                pad |= next.payload.fills_datagram && buffer.len() >= usize::from(MTU_MIN);
                if let Some(previous) = pending.replace(next) {
                    self.seal(previous, plan, false, buffer);
                }
            }
        }
        if let Some(mut last) = pending {
            let least = match plan.slot {
                Slot::MtuProbe(_) => buffer.len(),
                Slot::Reminder => last.packet.end() + 1,
                _ if pad => usize::from(MTU_MIN),
                Slot::Packets(Allowance::Probe) => self.liveness.watchdog.take_question(),
                _ => 0,
            };
            let padded = least > 0 && last.packet.pad_until(buffer, least.min(buffer.len()));
            out.len = last.packet.end();
            self.seal(last, plan, padded, buffer);
        }
        out
    }

    /// Whether this is a client that is about to send its first Handshake packet: with it the Initial packets end on
    /// both sides (RFC 9001 §4.9.1), and an acknowledgement of one would only fill the datagram, beyond what the
    /// window may allow.
    fn is_past_initial(&self, slot: Slot) -> bool {
        let handshake = &self.parts.handshake;
        self.side.is_client()
            && slot != Slot::Close
            && handshake.can_send(SpaceId::Handshake)
            && handshake.spaces.handshake.as_ref().is_some_and(|space| space.needs_ack(self.now))
    }

    /// Writes the header and the frames of a packet; `None` if there is nothing to say, or no room.
    fn build_packet(
        &mut self,
        space: SpaceId,
        plan: &Plan,
        buffer: &mut [u8],
        start: usize,
    ) -> Option<PendingPacket> {
        let path = self.parts.path();
        let numbers = match space {
            SpaceId::Data(_) => &path.space,
            _ => self.parts.handshake.spaces.get(space)?,
        };
        let name = (path.id, numbers.next_number());
        let is_behind_initial = start > 0 && space.is_data() && self.parts.handshake.sends_zero_rtt();
        let limit = if is_behind_initial { buffer.len().min(FIRST_DATAGRAM_MAX) } else { buffer.len() };
        let header = self.header_of(space, plan)?;
        let mut packet = OpenPacket::begin(buffer, start, limit, &header, name, numbers.largest_acked())?;
        if !self.parts.extensions.next_quic_bit() {
            packet.clear_quic_bit(buffer);
        }
        if start > 0 {
            // The packet before is not logged yet: its size is known when it is known whether it is the last one.
            self.log_event(LogEvent::FramesEnd);
        }
        // Frames of other packets than those of 1-RTT never name a path.
        let has_dialect = space.is_data() && !self.parts.handshake.sends_zero_rtt();
        let dialect = if has_dialect { self.dialect } else { Dialect::SinglePath };
        let (now, log) = (self.now, self.log.as_deref_mut());
        let mut frames = packet.frames(buffer, dialect).logged_in(now, log);
        match (plan.off_path, plan.slot) {
            (Some(index), _) => self.parts.write_off_path(now, index, &mut frames),
            (None, Slot::Packets(allowance)) => self.parts.write_frames(now, space, allowance, &mut frames),
            (None, Slot::End(_)) => self.parts.write_frames(now, space, Allowance::Everything, &mut frames),
            // Only a confirmed handshake is followed by such probes: there is no other packet in the datagram.
            (None, Slot::MtuProbe(_)) => {
                frames.write(&Frame::Ping, SentFrame::Ping);
            }
            (None, Slot::Reminder) if space == SpaceId::Handshake => {
                frames.write_untracked(&Frame::Padding);
            }
            (None, Slot::Reminder) => {}
            // A handshake that is confirmed needs no more of its packets.
            (None, Slot::Close) if !space.is_data() && self.parts.handshake.is_confirmed() => {}
            (None, Slot::Close) => {
                if let Some(close) = self.close {
                    let frame = close.frame(!space.is_data());
                    // What was received is received: the peer shall not take for lost what was read to its end.
                    frames.keep_tail(frame.encoded_len(dialect));
                    self.parts.write_ack(now, space, &mut frames);
                    frames.write_tail(&frame);
                }
            }
        }
        let payload = (!frames.is_empty()).then(|| frames.finish())?;
        packet.end_payload(buffer, &payload);
        Some(PendingPacket { space, packet, payload })
    }

    fn tuple_of(&mut self, plan: &Plan) -> &mut Tuple {
        let path = self.parts.path_mut();
        match plan.off_path {
            None => &mut path.tuple,
            Some(index) => &mut path.off_path_mut()[index],
        }
    }

    /// `None` if there are no keys, or no connection ID of the peer for it.
    fn header_of(&self, space: SpaceId, plan: &Plan) -> Option<HeaderFields<'_>> {
        let (path, handshake) = (self.parts.path(), &*self.parts.handshake);
        let (tuple, dst) = match plan.off_path {
            None => (&path.tuple, path.remote_cids.active()),
            Some(index) => {
                let tuple = &path.off_path()[index];
                (tuple, path.remote_cids.get(tuple.remote_cid)?)
            }
        };
        let (versions, cids) = (&handshake.versions, &handshake.tls.cids);
        Some(match space {
            SpaceId::Data(_) if handshake.sends_zero_rtt() => HeaderFields::Long {
                kind: PacketKind::ZeroRtt,
                version: versions.original,
                dst,
                src: cids.local,
                token: &[],
            },
            SpaceId::Data(_) => {
                let keys = handshake.keys.one_rtt()?;
                // There are peers that tell the next keys from the last ones by the number as it is written, and not as it is
                // restored: where it was cut to a byte they cannot open what follows an update.
                let whole_number = keys.is_update_unconfirmed();
                HeaderFields::Short { dst, spin: tuple.spin.bit(), key_phase: keys.key_phase(), whole_number }
            }
            _ => HeaderFields::Long {
                kind: space.packet_kind(),
                version: versions.current,
                dst,
                src: cids.local,
                token: if space == SpaceId::Initial { handshake.tls.token() } else { &[] },
            },
        })
    }

    /// Seals a packet and records it.
    fn seal(&mut self, pending: PendingPacket, plan: &Plan, padded: bool, buffer: &mut [u8]) {
        let PendingPacket { space, packet, payload } = pending;
        let (now, number, size) = (self.now, packet.number(), packet.len() as u16);
        let zero_rtt = space.is_data() && self.parts.handshake.sends_zero_rtt();
        if let Some(sealer) = self.parts.handshake.keys.sealer(space, zero_rtt) {
            packet.seal(buffer, sealer);
        }
        // What proves a path, while nothing else may be sent, has timers of its own: it neither takes room in the
        // window nor is waited for (RFC 9000 §9.4).
        let counts = plan.slot != Slot::Packets(Allowance::PathOnly);
        let ack_eliciting = payload.ack_eliciting && counts;
        // RFC 9002 §2: packets that elicit an acknowledgement or contain padding are in flight.
        let in_flight = ack_eliciting || (padded && counts);
        let tuple = self.tuple_of(plan);
        let delivered = match in_flight {
            true => tuple.congestion.on_sent(now, number, size),
            false => DeliverySnapshot::NONE,
        };
        let is_full = usize::from(size) + SEGMENT_SLACK >= usize::from(tuple.mtu());
        if space.is_data() && !padded && is_full && plan.off_path.is_none() {
            tuple.mtud.want();
        }
        let mtu_probe = matches!(plan.slot, Slot::MtuProbe(_));
        let record = SentPacket {
            time_sent: now,
            size,
            tuple: tuple.id,
            ack_eliciting,
            in_flight,
            mtu_probe,
            repeated: false,
            resends: payload.resends,
            copies: payload.copies,
            symbol: payload.symbol,
            ecn: plan.ecn,
            delivered,
            frames: payload.frames,
        };
        if let Some(log) = &mut self.log {
            log.push_key_generation(now, self.parts.handshake.keys.generation());
            let ecn = plan.ecn;
            log.push(
                now,
                LogEvent::PacketSent { space, number, size, ack_eliciting, mtu_probe, early: zero_rtt, ecn },
            );
        }
        self.record_sent(space, number, record, plan);
    }

    fn record_sent(&mut self, space: SpaceId, number: u64, record: SentPacket, plan: &Plan) {
        let parts = &mut self.parts;
        let path = parts.paths.at_mut(parts.index);
        parts.stats.packets_sent += 1;
        if record.ack_eliciting {
            if space == SpaceId::Handshake
                && self.side.is_server()
                && self.config.timers == TimerStyle::OncePerRtt
                && !path.tuple.rtt.has_sample()
                && let Some(underway) = &mut parts.handshake.underway
            {
                underway.reminders.start(self.now, path.tuple.rtt.pto_base());
            }
            path.pto.started = self.now;
            path.pto.ping &= !space.is_data();
            self.liveness
                .idle
                .on_ack_eliciting_sent(self.now, || pto_base(path, parts.handshake, parts.extensions));
        } else if plan.off_path.is_none() {
            parts.stats.ack_only_bytes += u64::from(record.size);
        }
        if record.mtu_probe {
            path.tuple.mtud.on_probe_sent();
        }
        let numbers = match space {
            SpaceId::Data(_) => Some(&mut path.space),
            _ => parts.handshake.spaces.get_mut(space),
        };
        if let Some(numbers) = numbers {
            if record.ack_eliciting {
                numbers.probes.on_sent();
            }
            numbers.on_sent(number, record, self.rng);
        }
    }

    fn log_event(&mut self, event: LogEvent) {
        if let Some(log) = &mut self.log {
            log.push(self.now, event);
        }
    }
}
