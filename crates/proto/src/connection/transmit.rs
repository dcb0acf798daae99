//! Datagrams out: what may be sent, packet by packet, into one batch (RFC 9000 §12.2, §13, §14).

use std::time::Duration;

use fulmar_base::{Instant, Rng};
use fulmar_wire::{Dialect, PacketKind, PathId, Side};

use super::Connection;
use super::close::Close;
use super::datagram_builder::{DatagramOut, SEGMENT_SLACK};
use super::discarding::discard_space;
use super::lifecycle::State;
use super::liveness::Liveness;
use super::migration::tell_of_given_up;
use super::slot::{Blocked, Plan, Slot};
use super::write_order::Writers;
use crate::config::{MTU_MIN, TransportConfig};
use crate::crypto::OneRttKeys;
use crate::datagram::{Ecn, Transmit, TransmitBatch};
use crate::ids::SpaceId;
use crate::log::ConnectionLog;
use crate::path::{Pending, Tuple};

/// Datagrams in one batch at most, so that one connection does not keep the others waiting and the clock of
/// the pacer stays honest.
const BATCH_DATAGRAMS_MAX: usize = 64;
/// Datagrams in a batch in which streams end, about a third of what the kernel segments at a time. Whoever waits for those streams
/// goes on while the next batch is made: of answers to many requests in one long batch, the last would hold up the first, and both
/// ends would work in turn (100 requests of 1 KB at a time: 0.78 of the processor busy with batches of 64, 0.98 with these).
const BATCH_ENDS_MAX: usize = 16;

/// Without words for the application, a packet that closes has fewer bytes.
const CLOSE_BYTES: u64 = 60;

/// What sends over one path: the owners of frames, and what a packet is made of, borrowed once for a batch.
pub(super) struct Sender<'c> {
    pub(super) now: Instant,
    pub(super) side: Side,
    pub(super) config: &'c TransportConfig,
    pub(super) rng: &'c mut Rng,
    pub(super) parts: Writers<'c>,
    pub(super) liveness: &'c mut Liveness,
    pub(super) log: Option<&'c mut ConnectionLog>,
    pub(super) close: Option<&'c Close>,
    /// Whether Initial and Handshake packets take this path, too.
    pub(super) is_primary: bool,
    /// How frames of 1-RTT packets are written.
    pub(super) dialect: Dialect,
    /// Whether there are keys for application data. That does not change within a batch.
    pub(super) can_send_data: bool,
    /// Whether acknowledgements are late; found out once in a batch, when it is first asked.
    pub(super) is_ack_late: Option<bool>,
}

/// Datagrams of one size that leave together. Only the last may be shorter.
struct Segments {
    len: usize,
    count: usize,
    count_max: usize,
    /// The size, which the first decides.
    size: Option<usize>,
}

impl Segments {
    fn new(count_max: usize) -> Self {
        Self { len: 0, count: 0, count_max, size: None }
    }

    /// Adds a datagram of `len` bytes that might have had `size`. Returns whether another one may follow: a batch that
    /// begins with a short datagram ends with it, as the others would have to be as short; unless `fits` says that the
    /// next would have no use for more room.
    fn add(&mut self, len: usize, size: usize, fits: bool) -> bool {
        self.len += len;
        self.count += 1;
        (fits || len + SEGMENT_SLACK >= size) && len >= *self.size.get_or_insert(len)
    }
}

impl Connection {
    /// Writes the next batch of datagrams into `batch`, if there is anything to send. To be called until it
    /// returns `None`, after every other call.
    pub fn poll_transmit(&mut self, now: Instant, batch: &mut TransmitBatch) -> Option<Transmit> {
        match self.lifecycle.state() {
            State::Handshaking | State::Established => {}
            State::Closing => return self.transmit_close(now, batch),
            State::Draining | State::Drained => return None,
        }
        if let Some(extension) = &mut self.extensions.address_discovery {
            extension.refill(now);
            self.paths.raise(Pending::ADDRESS);
        }
        if let Err(error) = self.maintain_keys(now) {
            self.close_on_error(now, error);
            return self.transmit_close(now, batch);
        }
        match self.paths.multipath {
            None => self.transmit_on(now, self.paths.primary().id, u64::MAX, batch),
            Some(_) => self.transmit_on_one(now, batch),
        }
    }

    /// Writes the next batch for one path: about so many bytes at most, and one datagram at least.
    pub(super) fn transmit_on(
        &mut self,
        now: Instant,
        path: PathId,
        bytes_max: u64,
        batch: &mut TransmitBatch,
    ) -> Option<Transmit> {
        self.rotate_cid(now, path);
        let mut sender = self.sender(now, path)?;
        if let Some(transmit) = sender.send_off_path(batch) {
            return Some(transmit);
        }
        let (transmit, blocked) = sender.send_batch(bytes_max, batch);
        // The window may have grown in between, which happens once in the life of a tuple.
        let resumes = blocked.is_some_and(|blocked| sender.end_round(blocked));
        self.log_figures(now, path, blocked);
        match transmit {
            None if resumes => self.transmit_on(now, path, bytes_max, batch),
            transmit => transmit,
        }
    }

    /// Borrows what sends over a path.
    pub(super) fn sender(&mut self, now: Instant, path: PathId) -> Option<Sender<'_>> {
        let is_primary = self.paths.primary().id == path;
        let dialect = self.paths.dialect_of(PacketKind::OneRtt);
        let can_send_data = self.handshake.can_send(SpaceId::Data(path));
        Some(Sender {
            now,
            side: self.side,
            config: &self.config,
            rng: &mut self.rng,
            parts: Writers {
                handshake: &mut self.handshake,
                index: self.paths.index_of(path)?,
                paths: &mut self.paths,
                tokens: &mut self.address_tokens,
                extensions: &mut self.extensions,
                streams: &mut self.streams,
                datagrams: &mut self.datagrams,
                stats: &mut self.telemetry.stats,
            },
            liveness: &mut self.liveness,
            log: self.telemetry.log.as_deref_mut(),
            close: self.lifecycle.close(),
            is_primary,
            dialect,
            can_send_data,
            is_ack_late: None,
        })
    }

    /// The next keys are made, old ones discarded, an update is started before the limit of the AEAD.
    fn maintain_keys(&mut self, now: Instant) -> Result<(), crate::TransportError> {
        let has_old_keys = self.handshake.keys.one_rtt().is_some_and(OneRttKeys::has_previous);
        let pto = if has_old_keys { self.probe_timeout_max() } else { Duration::ZERO };
        self.handshake.keys.one_rtt_mut().map_or(Ok(()), |keys| keys.maintain(now, pto))
    }

    /// A client that has something to say again after a long silence goes over to another connection ID: an observer
    /// shall not tell by it that it is still the same one (RFC 9000 §9.5). A PING that keeps the connection alive
    /// resumes nothing.
    fn rotate_cid(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.paths.get(id) else { return };
        let resumes = self.side.is_client()
            && self.liveness.idle.is_long_silent(now, path.tuple.rtt.min())
            && self.handshake.is_confirmed()
            && !path.space.has_ack_eliciting_in_flight()
            && self.sender(now, id).is_some_and(|mut sender| sender.wants_any());
        let Some(path) = self.paths.get_mut(id).filter(|_| resumes) else { return };
        if path.remote_cids.rotate(&mut self.outbox.endpoint_events) {
            path.on_cids_changed(&mut self.outbox.endpoint_events);
            tell_of_given_up(now, path, &mut self.outbox, &mut self.telemetry);
            path.pending.raise(Pending::ALL);
            self.telemetry.stats.cid_changes += 1;
        }
    }

    /// Sends CONNECTION_CLOSE in every space that has keys, because it is not known which of them the peer has
    /// (RFC 9000 §10.2.3).
    fn transmit_close(&mut self, now: Instant, batch: &mut TransmitBatch) -> Option<Transmit> {
        let pending = self.lifecycle.close().is_some_and(Close::is_pending);
        let least = if self.handshake.is_confirmed() { CLOSE_BYTES } else { u64::from(MTU_MIN) };
        // Who still sends something is told where it was sent.
        let asked_over = self.lifecycle.close().and_then(Close::asked_over);
        let path = asked_over.and_then(|id| self.paths.get(id)).unwrap_or(self.paths.most_reliable());
        if !pending || path.tuple.amplification.available() < least {
            return None;
        }
        let addrs = path.tuple.addrs;
        let len = self.sender(now, path.id)?.send_close(batch);
        batch.set_len(len);
        self.lifecycle.on_close_sent(batch.bytes());
        if len == 0 {
            return None;
        }
        Some(Transmit { addrs, ecn: Ecn::NotEct, len, segment_size: None })
    }
}

impl Sender<'_> {
    /// The tuple in use.
    #[inline]
    pub(super) fn tuple(&self) -> &Tuple {
        &self.parts.path().tuple
    }

    #[inline]
    pub(super) fn tuple_mut(&mut self) -> &mut Tuple {
        &mut self.parts.path_mut().tuple
    }

    /// Builds datagrams as long as they may leave and fit the batch. Returns why no more may leave, too, if that has
    /// ended it.
    fn send_batch(
        &mut self,
        bytes_max: u64,
        batch: &mut TransmitBatch,
    ) -> (Option<Transmit>, Option<Blocked>) {
        let tuple = self.tuple();
        let wanted = usize::try_from(bytes_max / u64::from(tuple.mtu())).unwrap_or(usize::MAX).max(1);
        let (addrs, ecn) = (tuple.addrs, tuple.ecn_codepoint());
        let wanted = tuple.ecn.marked_max(ecn).map_or(wanted, |marked| wanted.min(marked));
        let mut segments = Segments::new(batch.max_segments().min(BATCH_DATAGRAMS_MAX).min(wanted));
        let blocked = self.fill(ecn, &mut segments, batch.room());
        if segments.count == 0 {
            return (None, blocked);
        }
        self.tuple_mut().ecn.on_sent(ecn, segments.count as u64);
        let stats = &mut self.parts.stats;
        stats.datagrams_sent += segments.count as u64;
        stats.bytes_sent += segments.len as u64;
        batch.set_len(segments.len);
        let segment_size = segments.size.filter(|_| segments.count > 1);
        (Some(Transmit { addrs, ecn, len: segments.len, segment_size }), blocked)
    }

    fn fill(&mut self, ecn: Ecn, segments: &mut Segments, buffer: &mut [u8]) -> Option<Blocked> {
        let ends_before = self.parts.streams.ends_sent();
        while segments.count < segments.count_max {
            if segments.count >= BATCH_ENDS_MAX && self.parts.streams.ends_sent() != ends_before {
                return None;
            }
            let slot = match self.next_slot() {
                Ok(slot) => slot,
                Err(blocked) => return Some(blocked),
            };
            let is_probe = matches!(slot, Slot::MtuProbe(_));
            // Datagrams that prove the size of the path are not cut to that of a batch.
            if segments.count > 0 && (is_probe || self.tuple().wants_to_send()) {
                return None;
            }
            let room_wanted = self.datagram_size(slot);
            // Nor does one that is to fit every path leave with larger ones: whoever forwards a train as a whole, as between virtual
            // devices, drops all of it where its largest datagrams do not fit, and so does the kernel at a device that is narrower.
            if segments.size.is_some_and(|first| room_wanted < first) {
                return None;
            }
            let size = room_wanted.min(segments.size.unwrap_or(usize::MAX));
            let room = buffer.get_mut(segments.len..segments.len + size)?;
            let datagrams = &*self.parts.datagrams;
            let (first, sent) = (datagrams.next_frame_len(), datagrams.sent());
            let datagram = self.build_datagram(&Plan { slot, off_path: None, ecn }, room);
            if datagram.len == 0 {
                return Some(Blocked::NothingToSend);
            }
            self.on_datagram_sent(&datagram);
            // Unreliable datagrams are not cut: one that is no longer than the first of these leaves the same room unused.
            let datagrams = &*self.parts.datagrams;
            let fits = datagrams.sent() > sent
                && datagrams.next_frame_len().is_some_and(|next| first.is_some_and(|first| next <= first));
            if !segments.add(datagram.len, size, fits) || is_probe {
                return None;
            }
        }
        None
    }

    /// A round of sending has ended. Returns whether there is room for more after all.
    fn end_round(&mut self, blocked: Blocked) -> bool {
        let (now, tuple) = (self.now, self.tuple_mut());
        tuple.congestion.end_round(now, blocked == Blocked::NothingToSend, &tuple.rtt)
    }

    /// Sends what concerns a tuple that is not in use over that tuple: a challenge, answers to the peer's
    /// (RFC 9000 §8.2). It neither waits for an acknowledgement nor is in flight: challenges have timers of their own,
    /// and their loss tells nothing about the tuple in use (RFC 9000 §9.4).
    fn send_off_path(&mut self, batch: &mut TransmitBatch) -> Option<Transmit> {
        if self.parts.path().off_path().is_empty() {
            return None;
        }
        let plan = self.off_path_plan()?;
        let tuple = &self.parts.path().off_path()[plan.off_path?];
        let (addrs, size) = (tuple.addrs, tuple.amplification.available().min(u64::from(MTU_MIN)) as usize);
        let datagram = self.build_datagram(&plan, &mut batch.room()[..size]);
        if datagram.len == 0 {
            return None;
        }
        let len = datagram.len;
        self.parts.path_mut().off_path_mut()[plan.off_path?].amplification.on_sent(len as u64);
        self.count_datagram(len);
        batch.set_len(len);
        Some(Transmit { addrs, ecn: plan.ecn, len, segment_size: None })
    }

    /// Writes the datagram that closes the connection; returns its length.
    fn send_close(&mut self, batch: &mut TransmitBatch) -> usize {
        let size = self.datagram_size(Slot::Close);
        let plan = Plan { slot: Slot::Close, off_path: None, ecn: Ecn::NotEct };
        let datagram = self.build_datagram(&plan, &mut batch.room()[..size]);
        if datagram.len > 0 {
            self.on_datagram_sent(&datagram);
            self.count_datagram(datagram.len);
        }
        datagram.len
    }

    fn count_datagram(&mut self, len: usize) {
        self.parts.stats.datagrams_sent += 1;
        self.parts.stats.bytes_sent += len as u64;
    }

    fn on_datagram_sent(&mut self, datagram: &DatagramOut) {
        self.tuple_mut().amplification.on_sent(datagram.len as u64);
        if datagram.has_handshake_packet && self.side.is_client() {
            // RFC 9001 §4.9.1: a client discards its Initial keys when it first sends a Handshake packet.
            let (now, parts) = (self.now, &mut self.parts);
            let path = parts.paths.at_mut(parts.index);
            discard_space(now, SpaceId::Initial, parts.handshake, path, self.log.as_deref_mut());
        }
    }

    /// Whether there is anything to send that congestion control must allow.
    pub(super) fn wants_any(&mut self) -> bool {
        let handshake = &*self.parts.handshake;
        let wants =
            |&space: &SpaceId| handshake.can_send(space) && handshake.tls.crypto.wants_to_send(space.level());
        (self.sends_handshake() && SpaceId::OF_HANDSHAKE.iter().any(wants))
            || (self.can_send_data && self.parts.want_to_send())
    }

    /// Whether Initial or Handshake packets are sent here.
    #[inline]
    pub(super) fn sends_handshake(&self) -> bool {
        self.is_primary && !self.parts.handshake.spaces.are_discarded()
    }
}
