//! The connection IDs that this end issued (RFC 9000 §5.1).

use std::collections::VecDeque;
use std::sync::Arc;

use fulmar_base::Rng;
use fulmar_wire::{ConnectionId, Frame, NewConnectionId, PathId, TransportErrorCode, VarInt};

use crate::config::EndpointConfig;
use crate::error::TransportError;
use crate::events::EndpointEventInner;
use crate::packed::{packed, packed_around, packed_names};
use crate::packet::{FrameWriter, SentFrame};

/// How many connection IDs a peer gets at a time, if it wants as many.
const LOCAL_CIDS_MAX: u64 = 4;

/// How many IDs that were never used a peer is given when it may have none left: one for the address that it sends to
/// now, if its own is to be retired, and one for the next.
const FRESH_IDS: u64 = 2;

/// Where the announcement of a connection ID stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Announcement {
    /// A NEW_CONNECTION_ID frame has to be sent.
    Pending,
    /// It is on its way.
    InFlight,
    /// The peer knows the ID.
    Known,
}

packed_names!(Announcement { Pending, InFlight, Known });

#[derive(Debug)]
struct Issued {
    sequence: u64,
    cid: ConnectionId,
    announcement: Announcement,
}

packed!(Issued { sequence, cid, announcement });

/// The connection IDs under which the peer may send to a path.
///
/// Bounded by twice [`LOCAL_CIDS_MAX`]: a new ID is issued only for one that was retired, or that the peer is told to
/// retire, and it is told so again only when it has done so.
#[derive(Debug)]
pub(crate) struct LocalCids {
    path: PathId,
    issued: VecDeque<Issued>,
    next_sequence: u64,
    /// How many IDs the peer wants to know at a time.
    limit: u64,
    /// The peer is told to retire IDs below this sequence number.
    retire_prior_to: u64,
    /// How many of the others the peer may have in use, or may have used and not yet retired: one, and one for each
    /// address of this end that it has met since.
    taken: u64,
    config: Arc<EndpointConfig>,
    rng: Rng,
}

packed_around!(LocalCids {
    path,
    issued,
    next_sequence,
    limit,
    retire_prior_to,
    taken,
    rng,
} around { config: Arc<EndpointConfig> });

impl LocalCids {
    /// Starts with the ID of the handshake, which has sequence number 0.
    pub(crate) fn new(path: PathId, first: ConnectionId, config: Arc<EndpointConfig>, rng: Rng) -> Self {
        let issued = VecDeque::from([Issued { sequence: 0, cid: first, announcement: Announcement::Known }]);
        Self { path, issued, next_sequence: 1, limit: 1, retire_prior_to: 0, taken: 1, config, rng }
    }

    /// Those of a path beyond the first: the peer learns of all of them by frames (RFC 10069 §3.2).
    pub(crate) fn of_unused(path: PathId, config: Arc<EndpointConfig>, rng: Rng) -> Self {
        let issued = VecDeque::new();
        Self { path, issued, next_sequence: 0, limit: 0, retire_prior_to: 0, taken: 1, config, rng }
    }

    pub(crate) fn config(&self) -> &Arc<EndpointConfig> {
        &self.config
    }

    /// The sequence number of the next ID.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// The path is gone, and with it its IDs.
    pub(crate) fn forget(&self, events: &mut VecDeque<EndpointEventInner>) {
        events.extend(self.issued.iter().map(|issued| EndpointEventInner::CidRetired(issued.cid)));
    }

    /// The ID that a server has given for its preferred address has sequence number 1, and the peer knows it from
    /// the transport parameters (RFC 9000 §5.1.1). To be called before others are issued.
    pub(crate) fn add_preferred(&mut self, cid: ConnectionId) {
        self.issued.push_back(Issued {
            sequence: self.next_sequence,
            cid,
            announcement: Announcement::Known,
        });
        self.next_sequence += 1;
    }

    pub(crate) fn rest(&mut self) {
        self.issued.shrink_to_fit();
        self.rng.rest();
    }

    /// The length of all IDs.
    pub(crate) fn cid_len(&self) -> usize {
        self.config.cid_generator.cid_len()
    }

    /// Issues IDs up to the peer's `active_connection_id_limit` and our own limit.
    pub(crate) fn set_peer_limit(&mut self, limit: u64, events: &mut VecDeque<EndpointEventInner>) {
        // RFC 9000 §5.1.1: who uses no connection IDs issues none.
        self.limit = if self.cid_len() == 0 { 1 } else { limit.min(LOCAL_CIDS_MAX) };
        self.replenish(events);
    }

    /// IDs that the peer knows or will know, and need not retire.
    fn held(&self) -> u64 {
        self.issued.iter().filter(|issued| issued.sequence >= self.retire_prior_to).count() as u64
    }

    /// This end will send from another address, for which the peer needs an ID that was never used. If it may have
    /// none left, because what it says of the used ones goes to addresses where this end is no more, it gets new
    /// ones for the oldest (RFC 9000 §5.1.1, §5.1.2).
    ///
    /// Returns false if the peer has not yet retired those that it was told to: it could not follow.
    pub(crate) fn prepare_move(&mut self, events: &mut VecDeque<EndpointEventInner>) -> bool {
        if self.cid_len() == 0 {
            return true;
        }
        if self.held() <= self.taken {
            if self.held() < self.issued.len() as u64 {
                // RFC 9000 §5.1.2: not before the peer has obeyed.
                return false;
            }
            self.replace_oldest(FRESH_IDS.min(self.limit), events);
        }
        self.taken += 1;
        true
    }

    /// The peer is to retire the `count` oldest IDs, and gets as many others. The address that it sends to now takes
    /// one of them if its own is among the oldest.
    fn replace_oldest(&mut self, count: u64, events: &mut VecDeque<EndpointEventInner>) {
        let mut sequences: Vec<u64> = self.issued.iter().map(|issued| issued.sequence).collect();
        sequences.sort_unstable();
        let kept = sequences.get(count as usize).copied();
        self.retire_prior_to = kept.unwrap_or(self.next_sequence);
        self.taken = self.taken.saturating_sub(count) + 1;
        self.replenish(events);
    }

    /// Announcements may be on their way from an address that this end has left, or to one that the peer has left.
    /// They are made again at once: whoever moves next needs the IDs.
    pub(crate) fn repeat_announcements(&mut self) {
        for issued in self.issued.iter_mut().filter(|i| i.announcement == Announcement::InFlight) {
            issued.announcement = Announcement::Pending;
        }
    }

    fn replenish(&mut self, events: &mut VecDeque<EndpointEventInner>) {
        while self.held() < self.limit {
            let cid = self.config.cid_generator.generate(&mut self.rng);
            let sequence = self.next_sequence;
            self.next_sequence += 1;
            self.issued.push_back(Issued { sequence, cid, announcement: Announcement::Pending });
            events.push_back(EndpointEventInner::CidIssued(self.path, cid));
        }
    }

    /// The peer will not use an ID any more. `used` is the ID that the packet with the frame was sent to.
    pub(crate) fn on_retire(
        &mut self,
        sequence: u64,
        used: &ConnectionId,
        events: &mut VecDeque<EndpointEventInner>,
    ) -> Result<(), TransportError> {
        if sequence >= self.next_sequence || self.cid_len() == 0 {
            // RFC 9000 §19.16.
            return Err(TransportError::new(
                TransportErrorCode::PROTOCOL_VIOLATION,
                "a connection ID was retired that was never issued",
            ));
        }
        let Some(index) = self.issued.iter().position(|i| i.sequence == sequence) else {
            return Ok(());
        };
        if self.issued[index].cid == *used {
            return Err(TransportError::new(
                TransportErrorCode::PROTOCOL_VIOLATION,
                "a connection ID was retired by a packet that used it",
            ));
        }
        if let Some(retired) = self.issued.remove(index) {
            events.push_back(EndpointEventInner::CidRetired(retired.cid));
            if retired.sequence >= self.retire_prior_to {
                self.taken = self.taken.saturating_sub(1).max(1);
            }
        }
        self.replenish(events);
        Ok(())
    }

    /// Whether the peer may send to this ID.
    pub(crate) fn is_issued(&self, cid: &ConnectionId) -> bool {
        self.issued.iter().any(|issued| issued.cid == *cid)
    }

    /// Whether an announcement is waiting.
    pub(crate) fn wants_to_send(&self) -> bool {
        self.issued.iter().any(|i| i.announcement == Announcement::Pending)
    }

    /// Writes the announcements that are waiting.
    pub(crate) fn write(&mut self, out: &mut FrameWriter<'_>) {
        for issued in self.issued.iter_mut().filter(|i| i.announcement == Announcement::Pending) {
            let frame = Frame::NewConnectionId(NewConnectionId {
                path: self.path,
                sequence: VarInt::try_from(issued.sequence).unwrap_or(VarInt::MAX),
                // RFC 9000 §19.15: an ID that was to be retired and is announced late is retired at once.
                retire_prior_to: VarInt::try_from(self.retire_prior_to.min(issued.sequence))
                    .unwrap_or(VarInt::MAX),
                cid: issued.cid,
                reset_token: self.config.reset_token(&issued.cid),
            });
            let token = SentFrame::NewConnectionId { path: self.path, sequence: issued.sequence };
            if !out.write(&frame, token) {
                return;
            }
            issued.announcement = Announcement::InFlight;
        }
    }

    /// The peer has an announcement.
    pub(crate) fn on_acked(&mut self, sequence: u64) {
        self.set_announcement(sequence, Announcement::Known);
    }

    /// An announcement was lost: it will be repeated, if the ID is still in use.
    pub(crate) fn on_lost(&mut self, sequence: u64) {
        self.set_announcement(sequence, Announcement::Pending);
    }

    fn set_announcement(&mut self, sequence: u64, announcement: Announcement) {
        let issued = self.issued.iter_mut().find(|i| i.sequence == sequence);
        if let Some(issued) = issued.filter(|i| i.announcement != Announcement::Known) {
            issued.announcement = announcement;
        }
    }
}

#[cfg(test)]
mod tests;
