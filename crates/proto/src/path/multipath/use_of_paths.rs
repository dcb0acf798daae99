//! How paths are to be used: what both ends say of them, what they cost, and which way their acknowledgements take.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{PathId, PathStatus};
use smallvec::SmallVec;

use super::Multipath;
use super::ways::Ways;
use crate::error::TransportError;
use crate::rtt::Rtt;

impl Multipath {
    /// The peer says whether a path should be used. Returns whether that is news.
    pub(crate) fn on_status(&mut self, frame: &PathStatus) -> Result<bool, TransportError> {
        if !self.admits(frame.path)? {
            return Ok(false);
        }
        let new = (frame.sequence.get(), frame.available);
        let Some(entry) = self.entry(frame.path) else { return Ok(false) };
        let before = entry.heard;
        if before.is_some_and(|(sequence, _)| sequence >= new.0) {
            return Ok(false);
        }
        entry.heard = Some(new);
        Ok(before.is_none_or(|(_, available)| available) != new.1)
    }

    /// Tells the peer whether it should use a path.
    pub(crate) fn set_status(&mut self, id: PathId, available: bool) {
        if let Some(entry) = self.entry(id) {
            let (sequence, before) = entry.said.get();
            if before != available || entry.said.is_idle() {
                entry.said.set((sequence + 1, available));
            }
        }
    }

    pub(crate) fn set_cost(&mut self, id: PathId, cost: u32) {
        if let Some(entry) = self.entry(id) {
            entry.cost = cost;
        }
    }

    /// A packet of path `id` was acknowledged over path `over` after this time, of which the peer had waited a part. Returns how long
    /// its packets are on their way to the peer, which is to be told, if that is kept: as soon as an acknowledgement came elsewhere.
    pub(crate) fn on_way_back(
        &mut self,
        now: Instant,
        [id, over]: [PathId; 2],
        rtt: Duration,
        waited: Duration,
    ) -> Option<&mut Rtt> {
        let entry = self.entry(id)?;
        entry.ways.on_sample(now, over, rtt, waited);
        if over != id && entry.to_peer.is_none() {
            entry.to_peer = Some(Rtt::default());
        }
        entry.to_peer.as_mut()
    }

    /// Whether a path is gone.
    pub(crate) fn has_lost_paths(&self) -> bool {
        !self.gone.is_empty()
    }

    /// Nothing that was known of the ways of a path counts any more: it leads elsewhere.
    pub(crate) fn forget_ways(&mut self, id: PathId) {
        if let Some(entry) = self.entry(id) {
            (entry.to_peer, entry.ways) = (None, Ways::default());
        }
    }

    /// The last sample of a path's round trip as it would have been by the shortest way back; `None` if none came elsewhere.
    pub(crate) fn steady_rtt(&self, id: PathId) -> Option<Duration> {
        self.entries.iter().find(|entry| entry.id == id)?.ways.steady()
    }

    /// How long the packets of a path are on their way to the peer; `None` if no other one has brought an acknowledgement of them.
    pub(crate) fn to_peer(&self, id: PathId) -> Option<&Rtt> {
        self.entries.iter().find(|entry| entry.id == id)?.to_peer.as_ref()
    }

    /// An acknowledgement of a path was written; `over` is where a copy is to go, if any.
    pub(crate) fn set_ack_copy(&mut self, id: PathId, over: Option<PathId>) {
        if let Some(entry) = self.entry(id) {
            entry.ack_copy = over;
        }
    }

    /// Whether copies of acknowledgements wait for a path.
    pub(crate) fn has_ack_copies_for(&self, id: PathId) -> bool {
        self.entries.iter().any(|entry| entry.ack_copy == Some(id))
    }

    /// The paths whose acknowledgements are to be copied to this one now.
    pub(crate) fn take_ack_copies_for(&mut self, id: PathId) -> SmallVec<[PathId; 8]> {
        let waiting = self.entries.iter_mut().filter(|entry| entry.ack_copy == Some(id));
        waiting
            .map(|entry| {
                entry.ack_copy = None;
                entry.id
            })
            .collect()
    }

    /// What it costs to use a path.
    pub(crate) fn cost(&self, id: PathId) -> u32 {
        self.entries.iter().find(|entry| entry.id == id).map_or(1, |entry| entry.cost)
    }

    /// Whether this end, and the peer, want a path to be used like others.
    pub(crate) fn status(&self, id: PathId) -> (bool, bool) {
        let entry = self.entries.iter().find(|entry| entry.id == id);
        entry.map_or((true, true), |e| (e.said.get().1, e.heard.is_none_or(|(_, available)| available)))
    }
}
