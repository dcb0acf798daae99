//! Datagrams out: what may be sent, packet by packet, into one train (RFC 9000 §12.2, §13, §14).

use fulmar_base::Instant;

use super::Connection;
use super::build::{DatagramOut, SEGMENT_SLACK};
use super::lifecycle::State;
use super::slot::{Blocked, Slot};
use crate::config::MTU_MIN;
use crate::datagram::{Ecn, Transmit, TransmitBatch};
use crate::ids::SpaceId;

/// Datagrams in one train at most, so that one connection does not keep the others waiting and the clock of
/// the pacer stays honest.
const TRAIN_DATAGRAMS_MAX: usize = 64;

/// Without words for the application, a packet that closes has fewer bytes.
const CLOSE_CREDIT: u64 = 60;

/// Datagrams of one size that leave together. Only the last may be shorter.
struct Train {
    len: usize,
    count: usize,
    count_max: usize,
    /// The size, which the first decides.
    segment: Option<usize>,
}

impl Train {
    fn new(count_max: usize) -> Self {
        Self { len: 0, count: 0, count_max, segment: None }
    }

    /// Adds a datagram of `len` bytes that might have had `size`. Returns whether another one may follow: a train that
    /// begins with a short datagram ends with it, as the others would have to be as short.
    fn add(&mut self, len: usize, size: usize) -> bool {
        self.len += len;
        self.count += 1;
        len + SEGMENT_SLACK >= size && len >= *self.segment.get_or_insert(len)
    }
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
        if let Some(extension) = &mut self.address_discovery {
            extension.refill(now);
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
        let ecn = tuple.ecn.codepoint(tuple.congestion.controller().ecn_codepoint());
        let mut train = Train::new(batch.max_segments().min(TRAIN_DATAGRAMS_MAX));
        let blocked = self.fill_train(now, ecn, &mut train, batch.room());
        let tuple = &mut self.path.tuple;
        let resumes = blocked.is_some_and(|blocked| {
            tuple.congestion.end_round(now, blocked == Blocked::NothingToSend, &tuple.rtt)
        });
        self.note_figures(now, blocked);
        if train.count == 0 {
            // The window has grown in between, which happens once in the life of a tuple.
            return if resumes { self.poll_transmit(now, batch) } else { None };
        }
        self.path.tuple.ecn.on_sent(ecn, train.count as u64);
        batch.set_len(train.len);
        let segment_size = train.segment.filter(|_| train.count > 1);
        Some(Transmit { addrs: self.path.tuple.addrs, ecn, len: train.len, segment_size })
    }

    /// Builds datagrams as long as they may leave and fit the train. Returns why no more may leave, if that has ended it.
    fn fill_train(
        &mut self,
        now: Instant,
        ecn: Ecn,
        train: &mut Train,
        buffer: &mut [u8],
    ) -> Option<Blocked> {
        while train.count < train.count_max {
            let slot = match self.next_slot(now) {
                Ok(slot) => slot,
                Err(blocked) => return Some(blocked),
            };
            let is_probe = matches!(slot, Slot::MtuProbe(_));
            // Datagrams that prove the size of the path are not cut to that of a train.
            if train.count > 0 && (is_probe || self.path.tuple.wants_to_send()) {
                return None;
            }
            let size = self.datagram_size(now, slot).min(train.segment.unwrap_or(usize::MAX));
            let room = buffer.get_mut(train.len..train.len + size)?;
            let datagram = self.build_datagram(now, slot, ecn, room);
            if datagram.len == 0 {
                return Some(Blocked::NothingToSend);
            }
            self.on_datagram_sent(now, &datagram);
            if !train.add(datagram.len, size) || is_probe {
                return None;
            }
        }
        None
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

    fn on_datagram_sent(&mut self, now: Instant, datagram: &DatagramOut) {
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += datagram.len as u64;
        self.stats.cwnd_max = self.stats.cwnd_max.max(self.path.tuple.congestion.controller().window());
        self.path.tuple.credit.on_sent(datagram.len as u64);
        if datagram.has_handshake_packet && self.side.is_client() {
            // RFC 9001 §4.9.1: a client discards its Initial keys when it first sends a Handshake packet.
            self.discard_space(now, SpaceId::Initial);
        }
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
