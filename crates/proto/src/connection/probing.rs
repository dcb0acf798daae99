//! The probe timeout: when an acknowledgement is overdue, what is sent then, and signs that tell earlier
//! (RFC 9002 §6.2).

use std::time::Duration;

use fulmar_base::Instant;

use super::Connection;
use super::delivery::Fate;
use crate::ids::SpaceId;
use crate::log::LogEvent;
use crate::rtt::TimerStyle;

/// How many probe packets a probe timeout asks for (RFC 9002 §6.2.4).
const PROBES: u8 = 2;

/// The part of a round trip by which an acknowledgement may be late before a probe asks for it, and before
/// datagrams become small.
const STALL_PATIENCE: u32 = 4;
const LATE_PATIENCE: u32 = 16;

/// After so many probe timeouts in a row, the next packet that arrives is taken for the return of the path.
const RETURN_PTOS: u32 = 2;

/// The packets whose contents a probe repeats.
const PROBE_PACKETS: usize = 2;

/// After so many probe timeouts in a row, ECN marks are suspected of being the reason (RFC 9000 §13.4.2).
const ECN_PATIENCE_PTOS: u32 = 2;

impl Connection {
    /// The probe timeout without backoff (RFC 9002 §6.2.1).
    pub(super) fn pto_base(&self) -> Duration {
        self.path.tuple.rtt.pto_base() + self.peer_max_ack_delay()
    }

    /// The longest delay of acknowledgements that the peer promised, or was asked for.
    pub(super) fn peer_max_ack_delay(&self) -> Duration {
        let announced = || self.handshake.peer_parameters().map(|p| p.max_ack_delay);
        let asked = self.ack_frequency.as_ref().and_then(|extension| extension.peer_max_ack_delay());
        asked.or_else(announced).unwrap_or(Duration::from_millis(25))
    }

    /// How long to wait for an acknowledgement in a space.
    fn pto_delay(&self, space: SpaceId) -> Duration {
        let plain = match space {
            SpaceId::Data(_) => self.pto_base(),
            // RFC 9002 §6.2.1: packets of the handshake are acknowledged without delay.
            _ => self.path.tuple.rtt.pto_base(),
        };
        let patience = match self.handshake.is_complete() {
            true => self.idle.timeout(),
            false => Some(self.config.handshake_timeout),
        };
        self.pto.delay(plain, patience)
    }

    /// When something should have been acknowledged, and in which space a probe is due then.
    pub(super) fn pto_deadline(&self) -> Option<(Instant, SpaceId)> {
        // RFC 9002 §6.2.2.1: a server that may not send waits for the client.
        if !self.has_credit() {
            return None;
        }
        let due = SpaceId::ALL
            .into_iter()
            .filter_map(|id| Some((self.space_pto_deadline(id)?.max(self.pto_base_time), id)))
            .min();
        due.or_else(|| self.anti_deadlock_deadline())
    }

    fn space_pto_deadline(&self, id: SpaceId) -> Option<Instant> {
        // RFC 9002 §6.2.1: application data is probed when the handshake is confirmed.
        if id.is_data() && !self.handshake.is_confirmed() {
            return None;
        }
        let space = self.space(id)?;
        let deadline = space.pto_deadline(self.pto_delay(id))?;
        if !id.is_data() {
            return Some(deadline);
        }
        let reminder = self.pto.next_reminder(self.pto_base_time, self.pto_base());
        let stalled = self.stall_deadline();
        Some(reminder.unwrap_or_else(|| stalled.map_or(deadline, |stalled| stalled.min(deadline))))
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

    /// Whether the acknowledgements of a steady flow are late, or probes have asked for them. The path may have
    /// become narrower: until they come, datagrams have the size that every path carries. Those bring the news within a
    /// round trip, where large ones would be lost, and cost a few headers if there is no news.
    pub(super) fn is_ack_late(&self, now: Instant) -> bool {
        let late = |at: Instant| at + self.path.tuple.rtt.smoothed() / LATE_PATIENCE <= now;
        let probed = self.config.timers == TimerStyle::OncePerRtt && self.pto.count() > 0;
        self.handshake.is_confirmed() && (probed || self.next_ack_expected().is_some_and(late))
    }

    /// When the oldest packet of application data should be acknowledged, if acknowledgements go on as they came
    /// in the last round trip; `None` if nothing can be said.
    fn next_ack_expected(&self) -> Option<Instant> {
        let rtt = &self.path.tuple.rtt;
        if self.config.timers == TimerStyle::Classic || self.pto.count() > 0 || !rtt.has_sample() {
            return None;
        }
        // The steps between samples show the delays of acknowledgements as well, if there were any.
        let uneven = rtt.jitter().max(self.peer_max_ack_delay());
        Some(self.path.space.oldest_unacked()? + rtt.latest().max(rtt.smoothed()) + uneven)
    }

    /// When a probe is due although nothing is in flight that could be probed.
    fn anti_deadlock_deadline(&self) -> Option<(Instant, SpaceId)> {
        // Bytes of the handshake may wait for room in a window that is full of application data, which is not
        // acknowledged before the handshake is complete.
        let early = [SpaceId::Initial, SpaceId::Handshake];
        let starved = early.into_iter().find(|&space| self.can_send(space) && self.wants_to_send(space));
        let space = match starved {
            Some(space) => space,
            None if self.peer_validated_address() => return None,
            // RFC 9002 §6.2.2.1: a client keeps sending while its server may be waiting for credit.
            None if self.handshake.handshake_keys().is_some() => SpaceId::Handshake,
            None => SpaceId::Initial,
        };
        Some((self.pto_base_time + self.pto_delay(space), space))
    }

    /// A probe timeout has passed (RFC 9002 §6.2.4).
    pub(super) fn on_pto(&mut self, now: Instant, space: SpaceId) {
        self.pto_base_time = now;
        if !self.pto.is_due(now) {
            return self.probes.demand_reminder();
        }
        self.stats.pto_count += 1;
        self.pto.on_timeout(now);
        self.note(now, LogEvent::ProbeTimeout { space, count: self.pto.count() });
        // In the handshake the timeouts may come from a guess that is too short, and prove no break of the path.
        let reminds = self.handshake.is_confirmed() && self.pto.reminds();
        if reminds {
            self.pto.begin_reminders(now + self.pto_delay(space));
        }
        // Without an RTT sample the timeout is a guess, and may well be too short: one probe is enough. Where
        // reminders follow, they take the place of the second one.
        let probes = if reminds || !self.path.tuple.rtt.has_sample() { 1 } else { PROBES };
        for id in SpaceId::ALL {
            if id == space || (!space.is_data() && self.shares_probes(id)) {
                self.probes.demand(id, probes);
                self.queue_probe_data(id);
            }
        }
        let ecn = &mut self.path.tuple.ecn;
        // Suspicion of marks that used to arrive ends nothing, and packets of the peer may end the silence next.
        let patience = ECN_PATIENCE_PTOS - u32::from(ecn.is_capable());
        if self.pto.count() > patience {
            ecn.on_persistent_loss();
        }
    }

    /// Whether a space takes part in the probes of the handshake, which share a datagram.
    ///
    /// A server that has the end of the handshake has no keys for its packets any more. If what it has said about that is lost, it
    /// answers the client's application data alone (RFC 9002 §6.2.4).
    fn shares_probes(&self, id: SpaceId) -> bool {
        let is_probed = !id.is_data() || (self.side.is_client() && self.handshake.is_complete());
        is_probed && self.space(id).is_some_and(|space| space.has_ack_eliciting_in_flight())
    }

    /// A packet arrives. If it breaks a silence in which probes went unanswered, the path is back, and the probe
    /// that the backoff has put off is due now.
    ///
    /// Where packets keep coming while nothing gets through the other way, the backoff holds.
    pub(super) fn note_return_of_path(&mut self, now: Instant) {
        // In the handshake the timeouts may come from a guess that is too short, and prove no silence.
        if self.config.timers == TimerStyle::OncePerRtt
            && self.handshake.is_confirmed()
            && self.pto.count() >= RETURN_PTOS
            && self.idle.since_received(now) > self.pto_base()
        {
            self.pto.on_return();
        }
    }

    /// Gives the next probe something useful to say (RFC 9002 §6.2.4): data that waits for room in the window, or what
    /// the oldest packets said.
    ///
    /// What waits is of use whatever became of the packets in flight. What they said is not, if they have arrived: a
    /// radio may only have stopped. If they are lost, the acknowledgement of the probe tells that.
    fn queue_probe_data(&mut self, space: SpaceId) {
        if space.is_data() {
            // Until the client knows that the handshake is done, it neither probes its data nor ends its handshake.
            self.handshake.on_done_lost();
            if self.streams.has_data_to_send() {
                return;
            }
        }
        self.repeat_oldest(space);
    }

    /// Lets the next probe repeat what the oldest packets of a space said.
    pub(super) fn repeat_oldest(&mut self, space: SpaceId) {
        let mut frames = Vec::new();
        if let Some(space) = self.space_mut(space) {
            let oldest = space.take_for_probe().take(PROBE_PACKETS);
            frames.extend(oldest.flat_map(|packet| packet.frames.iter().cloned()));
        }
        self.deliver(space, &frames, Fate::Probed);
    }
}
