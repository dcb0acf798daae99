//! The probe timeout: when an acknowledgement is overdue, what is sent then, and signs that tell earlier
//! (RFC 9002 §6.2).

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::PathId;

use super::Connection;
use super::delivery::Owners;
use super::extensions::Extensions;
use super::handshake::HandshakeState;
use super::recovery::{Recovery, peer_max_ack_delay, pto_base, space_and_tuples};
use super::reinjection::has_other_that_works;
use crate::config::TransportConfig;
use crate::ids::SpaceId;
use crate::log::LogEvent;
use crate::path::{Path, Pending};
use crate::rtt::TimerStyle;

/// How many probe packets a probe timeout asks for (RFC 9002 §6.2.4).
const PROBES: u8 = 2;

/// The part of a round trip by which an acknowledgement may be late before a probe asks for it, and before
/// datagrams become small.
const STALL_PATIENCE: u32 = 4;
const LATE_PATIENCE: u32 = 16;

/// After so many probe timeouts in a row a path is silent, and what lies on it is repeated on others: one alone may come from jitter.
const SILENT_PTOS: u32 = 2;

/// What the probe timeouts of a path depend on.
struct PtoContext<'c> {
    path: &'c Path,
    handshake: &'c HandshakeState,
    extensions: &'c Extensions,
    config: &'c TransportConfig,
    /// How long a silence may last: the idle timeout, or that of the handshake.
    patience: Option<Duration>,
}

impl PtoContext<'_> {
    fn base(&self) -> Duration {
        pto_base(self.path, self.handshake, self.extensions)
    }

    /// How long to wait for an acknowledgement in a space.
    fn delay(&self, space: SpaceId) -> Duration {
        let plain = match space {
            SpaceId::Data(_) => self.base(),
            // RFC 9002 §6.2.1: packets of the handshake are acknowledged without delay.
            _ => self.path.tuple.rtt.pto_base(),
        };
        self.path.pto.backoff.delay(plain, self.patience)
    }

    /// When something should have been acknowledged, and in which space a probe is due then.
    fn deadline(&self) -> Option<(Instant, SpaceId)> {
        // RFC 9002 §6.2.2.1: a server that may not send waits for the client.
        if !self.path.tuple.may_send_datagram() {
            return None;
        }
        let of_handshake = self.handshake.spaces.iter().filter(|_| self.is_first());
        let of_handshake =
            of_handshake.filter_map(|(id, numbers)| Some((numbers.pto_deadline(self.delay(id))?, id)));
        let of_data = self.data_deadline().map(|at| (at, SpaceId::Data(self.path.id)));
        let due = of_handshake.chain(of_data).map(|(at, id)| (at.max(self.path.pto.started), id)).min();
        due.or_else(|| self.anti_deadlock_deadline())
    }

    /// Whether Initial and Handshake packets take this path.
    fn is_first(&self) -> bool {
        self.path.id == PathId::ZERO
    }

    fn data_deadline(&self) -> Option<Instant> {
        // RFC 9002 §6.2.1: application data is probed when the handshake is confirmed.
        if !self.handshake.is_confirmed() {
            return None;
        }
        let pto = &self.path.pto;
        let deadline = self.path.space.pto_deadline(self.delay(SpaceId::Data(self.path.id)))?;
        let ping = pto.backoff.next_ping(pto.started, self.base());
        Some(ping.unwrap_or_else(|| self.stall_deadline().map_or(deadline, |stalled| stalled.min(deadline))))
    }

    /// When the acknowledgements of a steady flow have ceased.
    ///
    /// RFC 9002 §6.2.1 starts the probe timeout anew with every packet that is sent. A sender with a full window
    /// that keeps sending while the last acknowledgements trickle in so learns of a break a round trip late. The
    /// oldest packet tells earlier: all before it were acknowledged, so its own acknowledgement is the next one,
    /// and is expected a round trip after it was sent, as long as the latest one. The flow may become slower
    /// meanwhile, and an acknowledgement may be lost: for that there is a quarter of a round trip.
    fn stall_deadline(&self) -> Option<Instant> {
        Some(self.next_ack_expected()? + self.path.tuple.rtt.smoothed() / STALL_PATIENCE)
    }

    /// When the oldest packet of application data should be acknowledged, if acknowledgements go on as they came
    /// in the last round trip; `None` if nothing can be said.
    fn next_ack_expected(&self) -> Option<Instant> {
        let rtt = &self.path.tuple.rtt;
        if self.config.timers == TimerStyle::Classic || self.path.pto.backoff.count() > 0 || !rtt.has_sample()
        {
            return None;
        }
        // The steps between samples show the delays of acknowledgements as well, if there were any.
        let uneven = rtt.jitter().max(peer_max_ack_delay(self.handshake, self.extensions));
        Some(self.path.space.oldest_unacked()? + rtt.latest().max(rtt.smoothed()) + uneven)
    }

    /// When a probe is due although nothing is in flight that could be probed.
    fn anti_deadlock_deadline(&self) -> Option<(Instant, SpaceId)> {
        if !self.is_first() {
            return None;
        }
        let handshake = self.handshake;
        // Bytes of the handshake may wait for room in a window that is full of application data, which is not
        // acknowledged before the handshake is complete.
        let is_starved =
            |space: &SpaceId| handshake.can_send(*space) && handshake.tls.crypto.wants_to_send(space.level());
        let space = match SpaceId::OF_HANDSHAKE.into_iter().find(is_starved) {
            Some(space) => space,
            None if handshake.peer_validated_address() => return None,
            // RFC 9002 §6.2.2.1: a client keeps sending while its server may be waiting for leave to send.
            None if handshake.keys.handshake().is_some() => SpaceId::Handshake,
            None => SpaceId::Initial,
        };
        Some((self.path.pto.started + self.delay(space), space))
    }

    /// Whether a space of the handshake takes part in the probes of the handshake, which share a datagram.
    fn shares_probes(&self, id: SpaceId) -> bool {
        self.is_first()
            && self.handshake.spaces.get(id).is_some_and(|space| space.has_ack_eliciting_in_flight())
    }
}

/// Whether the acknowledgements of a steady flow are late, or probes have asked for them. The path may have
/// become narrower: until they come, datagrams have the size that every path carries. Those bring the news within a
/// round trip, where large ones would be lost, and cost a few headers if there is no news.
pub(super) fn is_ack_late(
    now: Instant,
    path: &Path,
    handshake: &HandshakeState,
    extensions: &Extensions,
    config: &TransportConfig,
) -> bool {
    let cx = PtoContext { path, handshake, extensions, config, patience: None };
    let late = |at: Instant| at + path.tuple.rtt.smoothed() / LATE_PATIENCE <= now;
    let probed = config.timers == TimerStyle::OncePerRtt && path.pto.backoff.count() > 0;
    handshake.is_confirmed() && (probed || cx.next_ack_expected().is_some_and(late))
}

impl Connection {
    fn pto_context<'c>(&'c self, path: &'c Path) -> PtoContext<'c> {
        let patience = match self.handshake.is_complete() {
            true => self.liveness.idle.timeout(),
            false => Some(self.config.handshake_timeout),
        };
        let Self { handshake, extensions, config, .. } = self;
        PtoContext { path, handshake, extensions, config, patience }
    }

    /// When something should have been acknowledged, on which path, and in which space a probe is due then.
    pub(super) fn pto_deadline(&self) -> Option<(Instant, PathId, SpaceId)> {
        let deadlines = self.paths.iter().filter_map(|path| {
            let (at, space) = self.pto_context(path).deadline()?;
            Some((at, path.id, space))
        });
        deadlines.min_by_key(|(at, path, _)| (*at, *path))
    }

    /// A probe timeout has passed (RFC 9002 §6.2.4).
    pub(super) fn on_pto(&mut self, now: Instant, id: PathId, space: SpaceId) {
        let Some(path) = self.paths.get_mut(id) else { return };
        path.pto.started = now;
        if !path.pto.backoff.is_due(now) {
            path.pto.ping = true;
            return;
        }
        self.telemetry.stats.pto_count += 1;
        path.pto.backoff.on_timeout(now);
        let count = path.pto.backoff.count();
        self.telemetry.record(now, LogEvent::ProbeTimeout { space, count });
        // In the handshake the timeouts may come from a guess that is too short, and prove no break of the path.
        let sends_pings = self.handshake.is_confirmed() && path.pto.backoff.sends_pings();
        // Where PINGs follow, they take the place of the second probe. Without an RTT sample the timeout is a guess: the first
        // may well be too short, and after several of them the peer is more likely far away or gone than unlucky.
        let is_alone = match path.tuple.rtt.has_sample() {
            true => sends_pings,
            false => count == 1 || path.pto.backoff.sends_pings(),
        };
        let probes = if is_alone { 1 } else { PROBES };
        if let Some(path) = self.paths.get(id) {
            let cx = self.pto_context(path);
            let delay = cx.delay(space);
            let shared = SpaceId::OF_HANDSHAKE.map(|other| {
                (other == space || (!space.is_data() && cx.shares_probes(other))).then_some(other)
            });
            // A server that has the end of the handshake has no keys for its packets any more. If what it has said about
            // that is lost, it answers the client's application data alone (RFC 9002 §6.2.4).
            let data = SpaceId::Data(id);
            let shares_data = !space.is_data()
                && self.side.is_client()
                && self.handshake.is_complete()
                && path.space.has_ack_eliciting_in_flight();
            let data = (data == space || shares_data).then_some(data);
            if sends_pings && let Some(path) = self.paths.get_mut(id) {
                path.pto.backoff.begin_pings(now + delay);
            }
            for probed in shared.into_iter().chain([data]).flatten() {
                self.recovery(now).probe(probed, probes);
            }
            if data.is_some() && count >= SILENT_PTOS && has_other_that_works(&self.paths, id) {
                self.recovery(now).repeat_elsewhere(id);
            }
        }
        if let Some(path) = self.paths.get_mut(id) {
            path.tuple.ecn.on_timeout(now);
        }
    }
}

impl Recovery<'_> {
    /// Sends so many probes, and gives the next one something useful to say (RFC 9002 §6.2.4): data that waits for room in
    /// the window, or what the oldest packets said.
    ///
    /// What waits is of use whatever became of the packets in flight. What they said is not, if they have arrived: a
    /// radio may only have stopped. If they are lost, the acknowledgement of the probe tells that.
    pub(super) fn probe(&mut self, space: SpaceId, probes: u8) {
        let Owners { handshake, paths, streams, extensions, .. } = &mut self.owners;
        if let Some((numbers, _)) = space_and_tuples(paths, handshake, space) {
            numbers.probes.demand(probes);
        }
        if space.is_data() {
            if let Some(path) = paths.get_mut(space.path()).filter(|path| !path.tuple.validated) {
                // Whoever has moved may have to wait for an answer until the peer has a connection ID to send it to.
                path.repeat_cid_frames();
            }
            // Until the client knows that the handshake is done, it neither probes its data nor ends its handshake.
            handshake.tls.on_done_lost();
            paths.raise(Pending::HANDSHAKE);
            if streams.has_data_to_send() {
                return;
            }
        }
        // A repair symbol over all that is in flight replaces whichever packet is missing, where the oldest one is only a
        // guess. If that did not help, packets are repeated.
        if let SpaceId::Data(id) = space
            && paths.get(id).is_some_and(|path| path.pto.backoff.count() == 1)
            && let Some(sender) = extensions.fec_sender()
            && sender.probe(id, probes)
            && let Some(index) = paths.index_of(id)
        {
            sender.take_path(paths.for_repairs(index, sender.repair_len_max()));
            return paths.raise(Pending::FEC);
        }
        self.repeat_oldest(space);
    }
}
