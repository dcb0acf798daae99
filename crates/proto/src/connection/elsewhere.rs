//! Datagrams over a tuple that is not in use: challenges, and answers to the peer's (RFC 9000 §8.2).

use fulmar_base::Instant;

use super::Connection;
use super::slot::ACK_ROOM;
use crate::config::MTU_MIN;
use crate::congestion::DeliverySnapshot;
use crate::datagram::{Ecn, Transmit, TransmitBatch};
use crate::ids::SpaceId;
use crate::packet::{HeaderFields, OpenPacket, SentFrames, SentPacket};
use crate::path::Tuple;

impl Connection {
    /// Sends what concerns a tuple that is not in use over that tuple: a challenge, answers to the peer's.
    pub(super) fn transmit_elsewhere(&mut self, now: Instant, batch: &mut TransmitBatch) -> Option<Transmit> {
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
        if !self.next_quic_bit() {
            packet.clear_quic_bit(buffer);
        }
        // Taken out while the frames are written, so that their owners can be borrowed.
        let mut log = self.log.take();
        let mut frames = packet.frames(buffer, size, self.dialect).noted_in(now, log.as_deref_mut());
        let mut rng = self.path.rng.fork();
        let tuple = &mut self.path.others_mut()[index];
        tuple.write(now, &mut rng, &mut frames);
        if let Some(extension) = self.address_discovery.as_mut().filter(|_| !frames.is_empty()) {
            extension.write_off_path(&mut tuple.observation, tuple.addrs.remote, &mut frames);
        }
        let payload = (!frames.is_empty()).then(|| frames.finish());
        self.log = log;
        let payload = payload?;
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
            resends: false,
            ecn: Ecn::NotEct,
            delivered: DeliverySnapshot::NONE,
            frames: SentFrames::new(),
        };
        self.note_sent(now, SpaceId::DATA, number, &record);
        self.path.space.on_sent(number, record, &mut self.rng);
        self.stats.packets_sent += 1;
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += len as u64;
    }
}
