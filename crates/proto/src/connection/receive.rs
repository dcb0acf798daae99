//! A datagram in: split, open each packet, and hand the frames on (RFC 9000 §12.2, RFC 9001 §5.5).

use std::net::SocketAddr;

use bytes::BytesMut;
use fulmar_base::Instant;
use fulmar_wire::{ConnectionId, PathId, ProtectedKind, ProtectedPacket, ResetToken, read_packet};

use super::Connection;
use super::dispatch::{FrameContext, Origin};
use super::handshake::{is_zero_rtt, kind_of};
use super::lifecycle::State;
use super::off_path_arrival::OffPathArrival;
use super::opening::{Discard, OpenedPacket, open};
use super::recovery::pto_base;
use super::telemetry::kind_for_log;
use crate::config::MTU_MIN;
use crate::crypto::trailing_token;
use crate::datagram::{Datagram, Ecn};
use crate::events::ConnectionError;
use crate::ids::SpaceId;
use crate::log::{BarePacket, LogEvent, PacketDropReason};
use crate::path::{AntiAmplification, Path};
use crate::rtt::TimerStyle;

/// After so many probe timeouts in a row, the next packet that arrives is taken for the return of the path.
const RETURN_PTOS: u32 = 2;

/// How a packet came.
#[derive(Debug, Clone, Copy)]
struct Arrival<'a> {
    ecn: Ecn,
    /// From where, if it has not taken the tuple in use.
    off_path: Option<&'a OffPathArrival>,
    /// Whether it has waited for its keys.
    waited: bool,
    /// Whether it arrived at a socket that this end sends from no more.
    late: bool,
}

const UNWANTED: Discard = Discard::Silently(PacketDropReason::Unwanted);

impl Connection {
    /// Takes a datagram that the endpoint found to belong to this connection.
    pub fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.receive(now, datagram, false);
    }

    /// As [`Connection::handle_datagram`], for a datagram that arrived at a socket which this end has replaced and
    /// sends from no more. What it says counts; a challenge in it cannot be answered where it came from, as it must
    /// be (RFC 9000 §8.2.2), and is left alone.
    pub fn handle_late_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.receive(now, datagram, true);
    }

    fn receive(&mut self, now: Instant, datagram: Datagram, late: bool) {
        match self.lifecycle.state() {
            State::Handshaking | State::Established => {}
            State::Closing => return self.answer_closed(&datagram),
            State::Draining | State::Drained => return,
        }
        self.take(now, datagram, late);
        self.let_go_if_over();
    }

    fn take(&mut self, now: Instant, datagram: Datagram, late: bool) {
        let len = datagram.payload.len();
        self.telemetry.stats.datagrams_received += 1;
        self.telemetry.stats.bytes_received += len as u64;
        let reset_token = trailing_token(&datagram.payload);
        let mut off_path = None;
        let id = self.paths.of_datagram(&datagram.payload);
        let is_late = id.is_none() && self.paths.is_late(&datagram.payload);
        let mut path = id.map(|id| self.paths.get_mut(id));
        if let Some(Some(path)) = &mut path
            && path.is_taken_by(&datagram.addrs)
        {
            path.tuple.amplification.on_received(len as u64);
        } else if !is_late {
            off_path = match path {
                Some(Some(path)) => OffPathArrival::of(&datagram, path, self.side, &self.handshake),
                Some(None) if self.side.is_server() => {
                    OffPathArrival::on_new_path(&datagram, self.paths.primary().tuple.addrs.remote)
                }
                // A server opens no path, and one that is gone takes no packets.
                Some(None) | None => None,
            };
            if off_path.is_none() {
                // RFC 9000 §10.3: the connection ID of a stateless reset is made up, and names none of several paths.
                match reset_token.is_some_and(|token| self.is_reset_from(datagram.addrs.remote, &token)) {
                    true => self.on_reset(now, len),
                    false => self.telemetry.record_dropped(now, PacketDropReason::Unwanted, None, len),
                }
                return;
            }
        }
        let arrival = Arrival { ecn: datagram.ecn, off_path: off_path.as_ref(), waited: false, late };
        let authenticated = self.handle_packets(now, datagram.payload, arrival);
        // RFC 9000 §10.3.1: only a datagram of which nothing could be opened can be a stateless reset.
        let is_reset = |token| self.paths.iter().any(|path| path.remote_cids.is_reset_token(&token));
        if !authenticated && reset_token.is_some_and(is_reset) {
            self.on_reset(now, len);
        }
    }

    /// Whether a token is one of those that the peer has given for the connection IDs of a path that leads to `remote`: a
    /// stateless reset from elsewhere is none (RFC 9000 §10.3.1).
    fn is_reset_from(&self, remote: SocketAddr, token: &ResetToken) -> bool {
        let mut paths = self.paths.iter().filter(|path| path.leads_to(remote));
        paths.any(|path| path.remote_cids.is_reset_token(token))
    }

    fn on_reset(&mut self, now: Instant, len: usize) {
        let (packet, size) = (BarePacket::StatelessReset, len as u16);
        self.telemetry.record(now, LogEvent::BareReceived { packet, size });
        self.drain(now, ConnectionError::Reset);
    }

    /// Takes the packets of a datagram one after the other. Returns whether one of them was authentic.
    fn handle_packets(&mut self, now: Instant, mut rest: BytesMut, arrival: Arrival<'_>) -> bool {
        let mut authenticated = false;
        let cid_len = self.paths.primary().local_cids.cid_len();
        // RFC 9000 §14.1: a server discards Initial packets in smaller datagrams.
        let is_full = rest.len() >= usize::from(MTU_MIN) || self.side.is_client();
        let mut first_dst = None;
        while !rest.is_empty() && self.lifecycle.is_open() {
            // RFC 9287 §3: any value of the QUIC bit is taken by who has said so, and by nobody else.
            let known = |packet: &ProtectedPacket| packet.quic_bit || self.config.grease_quic_bit;
            let Some(packet) = read_packet(&rest, cid_len).ok().filter(known) else {
                self.telemetry.record_dropped(now, PacketDropReason::Unreadable, None, rest.len());
                break;
            };
            let bytes =
                if packet.len == rest.len() { std::mem::take(&mut rest) } else { rest.split_to(packet.len) };
            let is_initial = matches!(packet.kind, ProtectedKind::Initial { .. });
            // RFC 9000 §12.2: the packets of a datagram go to one connection ID.
            let is_other = first_dst.is_some_and(|first| first != packet.dst);
            first_dst = first_dst.or(Some(packet.dst));
            if is_other || (is_initial && !is_full) {
                let (reason, kind) = (PacketDropReason::Unwanted, kind_for_log(&packet.kind));
                self.telemetry.record_dropped(now, reason, kind, bytes.len());
                continue;
            }
            authenticated |= self.handle_packet(now, &packet, bytes, arrival);
        }
        authenticated
    }

    /// Takes one packet. Returns whether it was authentic.
    fn handle_packet(
        &mut self,
        now: Instant,
        packet: &ProtectedPacket,
        bytes: BytesMut,
        arrival: Arrival<'_>,
    ) -> bool {
        let size = bytes.len() as u16;
        let result = match &packet.kind {
            ProtectedKind::Initial { .. } => {
                self.handle_protected(now, SpaceId::Initial, packet, bytes, arrival)
            }
            ProtectedKind::Handshake { .. } => {
                self.handle_protected(now, SpaceId::Handshake, packet, bytes, arrival)
            }
            ProtectedKind::Retry { token, .. } => self.on_retry(now, packet, &bytes, token.clone()),
            ProtectedKind::VersionNegotiation { versions } => {
                self.on_version_negotiation(now, packet, &bytes, versions.clone());
                return false;
            }
            // RFC 9001 §4.6: only clients send early data.
            ProtectedKind::ZeroRtt { .. } if self.side.is_client() => Err(UNWANTED),
            // RFC 10069 §2.3: it is of path 0, and of nobody when that is gone.
            ProtectedKind::ZeroRtt { .. } => {
                self.handle_protected(now, SpaceId::Data(PathId::ZERO), packet, bytes, arrival)
            }
            ProtectedKind::OneRtt { .. } => match self.path_of(&packet.dst) {
                Some(path) => self.handle_protected(now, SpaceId::Data(path), packet, bytes, arrival),
                None => Err(UNWANTED),
            },
        };
        let kind = || kind_for_log(&packet.kind);
        match result {
            Ok(()) => {
                // Only now, as the frames in the log belong to the packet that is recorded after them.
                if matches!(packet.kind, ProtectedKind::Initial { .. } | ProtectedKind::Handshake { .. }) {
                    self.open_waiting(now);
                }
                true
            }
            Err(Discard::Silently(reason)) => {
                self.telemetry.record_dropped(now, reason, kind(), size.into());
                false
            }
            Err(Discard::Kept) => {
                if let Some(kind) = kind() {
                    self.telemetry.record(now, LogEvent::PacketBuffered { kind, size });
                }
                false
            }
            Err(Discard::Unauthenticated) => {
                let reason = PacketDropReason::Unauthenticated;
                self.telemetry.record_dropped(now, reason, kind(), size.into());
                false
            }
            Err(Discard::Close(error)) => {
                self.close_on_error(now, error);
                true
            }
        }
    }

    /// The path to which a packet belongs. What leaves before the peer knows that its path is gone still counts.
    fn path_of(&self, dst: &ConnectionId) -> Option<PathId> {
        self.paths.of_cid(dst).or_else(|| self.paths.draining_of(dst))
    }

    /// Takes a packet that has a number: opens it, and hands its frames to their owners.
    fn handle_protected(
        &mut self,
        now: Instant,
        space: SpaceId,
        packet: &ProtectedPacket,
        mut bytes: BytesMut,
        arrival: Arrival<'_>,
    ) -> Result<(), Discard> {
        let size = bytes.len() as u16;
        let opened = self.open_packet(now, space, packet, &mut bytes, arrival.ecn)?;
        let arrival = self.follow_if_new(now, space, arrival)?;
        let zero_rtt = is_zero_rtt(packet);
        let number = opened.number;
        self.on_authenticated(now, space, packet, &opened, arrival.off_path.is_some());
        let cx = FrameContext {
            now,
            origin: Origin::Packet,
            space,
            kind: kind_of(packet),
            dst: packet.dst,
            payload: &opened.payload,
            generation: opened.generation,
            off_path: arrival.off_path,
            late: arrival.late,
        };
        let newest = self.telemetry.record_generation(now, &self.handshake);
        let old_keys = space.is_data() && !zero_rtt && opened.generation < newest;
        let result = self.handle_payload(&cx, number, arrival.ecn);
        let Arrival { ecn, waited, .. } = arrival;
        let early = zero_rtt;
        self.telemetry
            .record(now, LogEvent::PacketReceived { space, number, size, early, waited, old_keys, ecn });
        result.map_err(Discard::Close)
    }

    /// Opens a packet, if it is of this handshake and its keys are there, and is no duplicate.
    fn open_packet(
        &mut self,
        now: Instant,
        space: SpaceId,
        packet: &ProtectedPacket,
        bytes: &mut BytesMut,
        ecn: Ecn,
    ) -> Result<OpenedPacket, Discard> {
        let handshake = &mut self.handshake;
        if packet.version.is_some() && !handshake.admits(packet) {
            return Err(UNWANTED);
        }
        if self.side.is_client() && space == SpaceId::Initial {
            handshake.expect_other_version(packet);
        }
        if !handshake.can_open(space, packet) {
            return Err(handshake.keep_for_later(now, space, packet, bytes, ecn));
        }
        let numbers = match space {
            SpaceId::Data(path) => self.paths.numbers_of(path),
            _ => handshake.spaces.get(space),
        };
        let largest = numbers.and_then(|numbers| numbers.largest_received());
        let opened = open(&mut handshake.keys, space, largest, packet, bytes)?;
        // On a path that is not open yet, nothing has arrived.
        let is_duplicate = match numbers {
            Some(numbers) => numbers.is_duplicate(opened.number),
            None => !space.is_data(),
        };
        if self.side.is_client()
            && space == SpaceId::Initial
            && let Some(version) = handshake.follow_version(packet)
        {
            self.on_version_of_server(now, version);
        }
        if is_duplicate { Err(Discard::Silently(PacketDropReason::Duplicate)) } else { Ok(opened) }
    }

    /// The first packet of a path opens it, and has taken its addresses then.
    fn follow_if_new<'a>(
        &mut self,
        now: Instant,
        space: SpaceId,
        arrival: Arrival<'a>,
    ) -> Result<Arrival<'a>, Discard> {
        let SpaceId::Data(id) = space else { return Ok(arrival) };
        if self.paths.numbers_of(id).is_some() {
            return Ok(arrival);
        }
        match arrival.off_path.is_some_and(|from| self.follow_path(now, id, from)) {
            true => Ok(Arrival { off_path: None, ..arrival }),
            false => Err(UNWANTED),
        }
    }

    /// An authentic packet of the peer arrived.
    fn on_authenticated(
        &mut self,
        now: Instant,
        space: SpaceId,
        packet: &ProtectedPacket,
        opened: &OpenedPacket,
        is_off_path: bool,
    ) {
        self.telemetry.stats.packets_received += 1;
        if let Some(scid) = self.handshake.on_authenticated(space, packet) {
            self.paths.primary_mut().remote_cids.replace_handshake_cid(scid);
        }
        if space == SpaceId::Handshake && self.side.is_server() {
            // RFC 9000 §8.1, RFC 9001 §4.9.1: a Handshake packet proves the address, and ends Initial packets.
            self.on_address_validated();
            self.recovery(now).discard_space(SpaceId::Initial);
        }
        let Self { paths, handshake, extensions, liveness, .. } = self;
        let Some(path) = paths.get_mut(space.path()) else {
            return liveness.idle.on_received(now, || pto_base(paths.primary(), handshake, extensions));
        };
        // A packet that breaks a silence in which probes went unanswered shows that the path is back, and the probe that
        // the backoff has put off is due now. Where packets keep coming while nothing gets through the other way, the
        // backoff holds. In the handshake the timeouts may come from a guess that is too short, and prove no silence.
        if self.config.timers == TimerStyle::OncePerRtt
            && path.pto.backoff.count() >= RETURN_PTOS
            && handshake.is_confirmed()
            && liveness.idle.since_received(now) > pto_base(path, handshake, extensions)
        {
            path.pto.backoff.on_return();
        }
        liveness.idle.on_received(now, || pto_base(path, handshake, extensions));
        if self.side.is_client() {
            liveness.watchdog.on_received(now, path.tuple.rtt.smoothed());
        }
        // Early data goes to the ID of the handshake, and has no spin bit.
        if space.is_data() && !is_off_path && packet.version.is_none() {
            path.tuple.peer_dst = Some(packet.dst);
            if path.space.largest_received().is_none_or(|largest| largest < opened.number) {
                path.tuple.spin.on_received(opened.spin, self.side);
            }
        }
    }

    /// Opens the packets that waited for keys which have come.
    fn open_waiting(&mut self, now: Instant) {
        let Some(level) = self.handshake.opened_level() else { return };
        for waiting in self.handshake.undecryptable.take(level) {
            if !self.lifecycle.is_open() {
                return;
            }
            let arrival = Arrival { ecn: waiting.ecn, off_path: None, waited: true, late: false };
            self.handle_packet(now, &waiting.packet, waiting.bytes, arrival);
        }
    }

    /// A datagram for a connection that this end has closed.
    fn answer_closed(&mut self, datagram: &Datagram) {
        let id = self.paths.of_datagram(&datagram.payload);
        if let Some(Path { tuple, .. }) = id.and_then(|id| self.paths.get_mut(id)) {
            if !tuple.addrs.is_taken_by(&datagram.addrs) {
                if !self.handshake.is_confirmed() {
                    return;
                }
                // RFC 9000 §10.2.1: a peer that was moved is told too, and whoever else it is gets little.
                tuple.addrs = datagram.addrs;
                tuple.amplification = AntiAmplification::new(false);
            }
            tuple.amplification.on_received(datagram.payload.len() as u64);
        }
        self.lifecycle.on_datagram_while_closing(id);
    }
}
