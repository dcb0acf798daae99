//! How paths are to be used: what both ends say of them, what they cost, and which way their acknowledgements take.

use std::time::Duration;

use fulmar_wire::{PathId, PathStatus};
use smallvec::SmallVec;

use super::Multipath;
use crate::error::TransportError;

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

    /// The packets of a path were acknowledged on another one, whose way back takes so long; `None`: on the path itself.
    pub(crate) fn set_way_back(&mut self, id: PathId, way_back: Option<Duration>) {
        if let Some(entry) = self.entry(id) {
            entry.way_back = way_back;
        }
    }

    /// How long the acknowledgements of a path are under way, if they come on another one.
    pub(crate) fn way_back(&self, id: PathId) -> Option<Duration> {
        self.entries.iter().find(|entry| entry.id == id)?.way_back
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
