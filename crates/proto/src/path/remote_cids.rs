//! The connection IDs that the peer issued (RFC 9000 §5.1).

use std::collections::VecDeque;

use fulmar_base::RangeSet;
use fulmar_wire::{
    ConnectionId, Frame, NewConnectionId, PathId, ResetToken, RetireConnectionId, TransportErrorCode, VarInt,
};

use crate::error::TransportError;
use crate::events::EndpointEventInner;
use crate::packed::packed;
use crate::packet::{FrameWriter, SentFrame};

/// How many retirements may wait to be acknowledged before the peer is taken for hostile: it keeps retiring
/// IDs and withholds the acknowledgements (CVE-2024-22189).
const RETIREMENTS_MAX: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Remote {
    sequence: u64,
    cid: ConnectionId,
    reset_token: Option<ResetToken>,
    /// Whether a tuple sends to it. No two tuples share one unless the peer does so too (RFC 9000 §9.5).
    used: bool,
}

packed!(Remote { sequence, cid, reset_token, used });

/// The connection IDs under which a path's packets are sent.
///
/// `ids` is never empty, holds at most `max`, and has the active one.
#[derive(Debug)]
pub(crate) struct RemoteCids {
    path: PathId,
    /// How many are kept: our `active_connection_id_limit`, see `TransportConfig::connection_ids`.
    max: u64,
    /// In the order of their sequence numbers.
    ids: VecDeque<Remote>,
    /// The ID that the tuple in use sends to, and its sequence number.
    active: (u64, ConnectionId),
    /// IDs below this sequence number are retired, also those not yet seen.
    retire_prior_to: u64,
    /// Sequence numbers that were seen, so that a repeated frame is recognised after its ID was retired.
    seen: RangeSet,
    /// Retirements that have to be sent.
    retire_pending: VecDeque<u64>,
    /// Retirements that are on their way.
    retire_in_flight: VecDeque<u64>,
}

packed!(RemoteCids { path, max, ids, active, retire_prior_to, seen, retire_pending, retire_in_flight });

impl RemoteCids {
    /// Starts with the ID of the handshake, which has sequence number 0.
    pub(crate) fn new(path: PathId, first: ConnectionId, max: u64) -> Self {
        let mut seen = RangeSet::new();
        seen.insert_one(0);
        Self {
            path,
            max,
            ids: VecDeque::from([Remote { sequence: 0, cid: first, reset_token: None, used: true }]),
            active: (0, first),
            retire_prior_to: 0,
            seen,
            retire_pending: VecDeque::new(),
            retire_in_flight: VecDeque::new(),
        }
    }

    pub(crate) fn rest(&mut self) {
        self.ids.shrink_to_fit();
        self.seen.shrink();
        self.retire_pending.shrink_to_fit();
        self.retire_in_flight.shrink_to_fit();
    }

    /// Starts with the first ID that has come for a path beyond the first. None is in use before [`RemoteCids::begin`].
    pub(crate) fn of_unused(
        frame: &NewConnectionId,
        max: u64,
        events: &mut VecDeque<EndpointEventInner>,
    ) -> Self {
        let sequence = frame.sequence.get();
        let mut cids = Self::new(frame.path, frame.cid, max);
        cids.seen = RangeSet::new();
        cids.seen.insert_one(sequence);
        cids.ids.clear();
        cids.active.0 = sequence;
        let reset_token = Some(frame.reset_token);
        cids.insert(Remote { sequence, cid: frame.cid, reset_token, used: false }, events);
        cids
    }

    /// The path is opened, with the oldest ID.
    pub(crate) fn begin(&mut self) {
        if let Some(first) = self.ids.front().map(|id| id.sequence) {
            self.set_active(first);
        }
    }

    /// The path is gone: all IDs count as retired (RFC 10069 §3.4).
    pub(crate) fn forget(&self, events: &mut VecDeque<EndpointEventInner>) {
        let tokens = self.ids.iter().filter_map(|id| id.reset_token);
        events.extend(tokens.map(EndpointEventInner::ResetTokenForgotten));
    }

    /// The ID to send to.
    pub(crate) fn active(&self) -> ConnectionId {
        self.active.1
    }

    /// Its sequence number.
    pub(crate) fn active_sequence(&self) -> u64 {
        self.active.0
    }

    /// The ID with this sequence number, if it is not retired.
    pub(crate) fn get(&self, sequence: u64) -> Option<ConnectionId> {
        self.ids.iter().find(|id| id.sequence == sequence).map(|id| id.cid)
    }

    /// Takes an ID that was never used, for another tuple. A peer without connection IDs has but one, which is
    /// used everywhere (RFC 9000 §5.1).
    pub(crate) fn take_spare(&mut self) -> Option<u64> {
        if self.active().is_empty() {
            return Some(self.active.0);
        }
        let spare = self.ids.iter_mut().find(|id| !id.used)?;
        spare.used = true;
        Some(spare.sequence)
    }

    /// As [`RemoteCids::take_spare`], but leaves the last one.
    pub(crate) fn take_spare_but_one(&mut self) -> Option<u64> {
        let spares = self.ids.iter().filter(|id| !id.used).count();
        if spares > 1 || self.active().is_empty() { self.take_spare() } else { None }
    }

    /// Whether there is an ID for another tuple.
    pub(crate) fn has_spare(&self) -> bool {
        self.active().is_empty() || self.ids.iter().any(|id| !id.used)
    }

    /// Sends to this ID, which was taken, from now on. Without effect if it is retired.
    pub(crate) fn set_active(&mut self, sequence: u64) {
        if let Some(id) = self.ids.iter_mut().find(|id| id.sequence == sequence) {
            id.used = true;
            self.active = (sequence, id.cid);
        }
    }

    /// Gives an ID up that no tuple uses any more. The active one stays.
    pub(crate) fn retire(&mut self, sequence: u64, events: &mut VecDeque<EndpointEventInner>) {
        let index = self.ids.iter().position(|id| id.sequence == sequence && sequence != self.active.0);
        if let Some(id) = index.and_then(|index| self.ids.remove(index)) {
            self.report_retired(&id, events);
        }
    }

    fn report_retired(&mut self, id: &Remote, events: &mut VecDeque<EndpointEventInner>) {
        self.retire_pending.push_back(id.sequence);
        if let Some(token) = id.reset_token {
            events.push_back(EndpointEventInner::ResetTokenForgotten(token));
        }
    }

    /// Replaces the ID of the handshake, when the server chose another one (RFC 9000 §7.2) or in a Retry.
    pub(crate) fn replace_handshake_cid(&mut self, cid: ConnectionId) {
        if let Some(first) = self.ids.iter_mut().find(|id| id.sequence == 0) {
            first.cid = cid;
            if self.active.0 == 0 {
                self.active.1 = cid;
            }
        }
    }

    /// The token of the handshake's ID, from the server's transport parameters.
    pub(crate) fn set_handshake_token(
        &mut self,
        token: ResetToken,
        events: &mut VecDeque<EndpointEventInner>,
    ) {
        if let Some(first) = self.ids.iter_mut().find(|id| id.sequence == 0) {
            first.reset_token = Some(token);
            events.push_back(EndpointEventInner::ResetTokenLearned(token));
        }
    }

    /// Whether the peer has issued this ID, and it is not retired.
    pub(crate) fn holds(&self, cid: &ConnectionId) -> bool {
        self.ids.iter().any(|id| id.cid == *cid)
    }

    /// Whether `token` belongs to one of the IDs in use.
    pub(crate) fn is_reset_token(&self, token: &ResetToken) -> bool {
        // Every token is compared, so that the time tells nothing about which one matched. RFC 9000 §10.3.1: the
        // tokens of IDs that were never used do not count.
        self.ids
            .iter()
            .fold(false, |found, id| found | (id.used & id.reset_token.is_some_and(|t| t == *token)))
    }

    /// The peer issued an ID (RFC 9000 §19.15).
    pub(crate) fn on_new_connection_id(
        &mut self,
        frame: &NewConnectionId,
        events: &mut VecDeque<EndpointEventInner>,
    ) -> Result<(), TransportError> {
        if self.active().is_empty() {
            return Err(TransportError::protocol_violation(
                "a connection ID for a path without connection IDs",
            ));
        }
        let new = Remote {
            sequence: frame.sequence.get(),
            cid: frame.cid,
            reset_token: Some(frame.reset_token),
            used: false,
        };
        self.check_consistent(&new)?;
        if self.seen.insert_one(new.sequence) {
            if new.sequence < self.retire_prior_to {
                // RFC 9000 §19.15: it arrived late and is retired at once.
                self.retire_pending.push_back(new.sequence);
            } else {
                self.insert(new, events);
            }
        }
        self.retire_below(frame.retire_prior_to.get(), events)?;
        if self.ids.len() as u64 > self.max
            || self.retire_pending.len() + self.retire_in_flight.len() > RETIREMENTS_MAX
            || self.seen.len() > RETIREMENTS_MAX
        {
            return Err(TransportError::new(
                TransportErrorCode::CONNECTION_ID_LIMIT_ERROR,
                "more connection IDs than this end allows",
            ));
        }
        Ok(())
    }

    /// RFC 9000 §19.15: the same sequence number must mean the same ID, and the same ID the same number.
    fn check_consistent(&self, new: &Remote) -> Result<(), TransportError> {
        let contradicts = |known: &&Remote| {
            (known.sequence == new.sequence) != (known.cid == new.cid)
                || (known.sequence == new.sequence
                    && known.reset_token.is_some_and(|t| Some(t) != new.reset_token))
        };
        if self.ids.iter().any(|known| contradicts(&known)) {
            return Err(TransportError::protocol_violation("a connection ID contradicts an earlier one"));
        }
        Ok(())
    }

    fn insert(&mut self, new: Remote, events: &mut VecDeque<EndpointEventInner>) {
        if let Some(token) = new.reset_token {
            events.push_back(EndpointEventInner::ResetTokenLearned(token));
        }
        let at = self.ids.partition_point(|id| id.sequence < new.sequence);
        self.ids.insert(at, new);
    }

    fn retire_below(
        &mut self,
        bound: u64,
        events: &mut VecDeque<EndpointEventInner>,
    ) -> Result<(), TransportError> {
        self.retire_prior_to = self.retire_prior_to.max(bound);
        while let Some(id) = self.ids.front().copied().filter(|id| id.sequence < self.retire_prior_to) {
            if self.ids.len() == 1 {
                return Err(TransportError::protocol_violation("all connection IDs were retired"));
            }
            self.ids.pop_front();
            self.report_retired(&id, events);
        }
        if self.get(self.active.0).is_none() {
            // The tuple in use must have one; it takes that of another tuple if none is spare.
            let next = self.take_spare().or_else(|| self.ids.front().map(|id| id.sequence));
            self.set_active(next.unwrap_or_default());
        }
        Ok(())
    }

    /// Goes over to the next ID, so that what was sent under the old one cannot be linked to what follows
    /// (RFC 9000 §5.1.2, §9.5). Returns false if the peer issued no other, or too many retirements are under way.
    pub(crate) fn rotate(&mut self, events: &mut VecDeque<EndpointEventInner>) -> bool {
        let old = self.active.0;
        if self.has_many_retirements() || self.active().is_empty() {
            return false;
        }
        let Some(next) = self.take_spare() else { return false };
        self.set_active(next);
        self.retire(old, events);
        true
    }

    /// Whether the peer leaves so many retirements without an acknowledgement that none should be added.
    pub(crate) fn has_many_retirements(&self) -> bool {
        self.retire_pending.len() + self.retire_in_flight.len() >= RETIREMENTS_MAX
    }

    /// Whether a retirement is waiting.
    pub(crate) fn wants_to_send(&self) -> bool {
        !self.retire_pending.is_empty()
    }

    /// Writes the retirements that are waiting.
    pub(crate) fn write(&mut self, out: &mut FrameWriter<'_>) {
        while let Some(&sequence) = self.retire_pending.front() {
            let frame = Frame::RetireConnectionId(RetireConnectionId {
                path: self.path,
                sequence: VarInt::try_from(sequence).unwrap_or(VarInt::MAX),
            });
            if !out.write(&frame, SentFrame::RetireConnectionId { path: self.path, sequence }) {
                return;
            }
            self.retire_pending.pop_front();
            self.retire_in_flight.push_back(sequence);
        }
    }

    /// What was said may have gone where the peer is no more: it is said again at once, as the peer gives no other
    /// IDs before it knows.
    pub(crate) fn repeat_retirements(&mut self) {
        self.retire_pending.extend(self.retire_in_flight.drain(..));
    }

    /// The peer knows of a retirement.
    pub(crate) fn on_acked(&mut self, sequence: u64) {
        self.retire_in_flight.retain(|&s| s != sequence);
        self.retire_pending.retain(|&s| s != sequence);
    }

    /// A retirement was lost and has to be repeated.
    pub(crate) fn on_lost(&mut self, sequence: u64) {
        if let Some(index) = self.retire_in_flight.iter().position(|&s| s == sequence) {
            self.retire_in_flight.remove(index);
            self.retire_pending.push_back(sequence);
        }
    }
}

#[cfg(test)]
mod tests;
