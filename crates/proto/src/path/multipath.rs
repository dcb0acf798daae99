//! Several paths (RFC 10069): which path IDs there are, their connection IDs until they are used, what was abandoned.
//!
//! An ID is unused, open or gone, in this order, and never returns (RFC 10069 §3.4). Of an open one the connection IDs
//! belong to its [`Path`](super::Path); those of an unused one are here.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use fulmar_base::{RangeSet, Rng};
use fulmar_wire::{
    ConnectionId, Dialect, Frame, MaxPathId, NewConnectionId, PathCidsBlocked, PathId, PathsBlocked, VarInt,
};

use self::abandoned::AbandonedPaths;
pub(crate) use self::abandoned::Draining;
use self::entry::Entry;
use super::datagram_copies::DatagramCopies;
use super::{LeftPaths, LocalCids, RemoteCids};
use crate::config::EndpointConfig;
use crate::coupling::Coupling;
use crate::error::TransportError;
use crate::events::EndpointEventInner;
use crate::packet::{FrameWriter, SentFrame};
use crate::reliable::Latest;
use crate::scheduler::Scheduler;

mod abandoned;
mod entry;
mod use_of_paths;
mod ways;

/// How many connection IDs the peer gets for each path beyond the first: one to use and one to move to.
const CIDS_PER_PATH: u64 = 2;

type Events = VecDeque<EndpointEventInner>;

/// What the extension is made from, when the peer's parameters have come.
pub(crate) struct MultipathSetup {
    /// How many paths this end has at a time.
    pub(crate) paths_max: u32,
    pub(crate) scheduler: Box<dyn Scheduler>,
    pub(crate) coupling: Option<Box<dyn Coupling>>,
    /// The largest path ID that the peer takes.
    pub(crate) peer_max: PathId,
    /// Where the peer was in the handshake.
    pub(crate) handshake_remote: SocketAddr,
    /// How many connection IDs of this end the peer keeps for a path.
    pub(crate) peer_cids_max: u64,
    /// How many of the peer's this end keeps.
    pub(crate) remote_cids_max: u64,
    pub(crate) config: Arc<EndpointConfig>,
    pub(crate) rng: Rng,
}

/// The connection IDs of a path.
#[derive(Debug)]
pub(crate) struct PathCids {
    pub(crate) local: LocalCids,
    pub(crate) remote: RemoteCids,
}

/// The state of the extension.
///
/// Bounded: `paths_max` entries; of those that are gone [`AbandonedPaths`] says. The ranges of `gone` are separated by entries.
#[derive(Debug)]
pub(crate) struct Multipath {
    setup: MultipathSetup,
    /// Where the peer was in the handshake.
    pub(crate) handshake_remote: SocketAddr,
    /// How frames of 1-RTT packets name the path. Frames of all other packets are on path 0, and never name it.
    pub(crate) dialect: Dialect,
    entries: Vec<Entry>,
    gone: RangeSet,
    /// The largest path ID that the peer was told that it may use.
    local_max: Latest<u32>,
    paths_blocked: Latest<u32>,
    cids_blocked: Latest<(PathId, u64)>,
    /// What is still to be done about those that are gone.
    pub(crate) abandoned: AbandonedPaths,
    /// What was known of paths that are gone.
    pub(crate) left: LeftPaths,
    /// Copies of unreliable datagrams that wait for their paths.
    pub(crate) copies: DatagramCopies,
    /// The path for whose spare capacity the stream data is meant that is sent once more, while nothing else is to be sent.
    pub(crate) repeats_on: Option<PathId>,
}

impl std::fmt::Debug for MultipathSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MultipathSetup").field("paths_max", &self.paths_max).finish_non_exhaustive()
    }
}

/// The largest path ID that an end with so many paths announces first.
pub(crate) fn initial_max(paths_max: u32) -> PathId {
    PathId(paths_max.saturating_sub(1))
}

/// Why no path can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPath {
    /// All path IDs are used.
    Limit,
    /// The peer has given no connection ID for the next one.
    NoCid,
}

impl Multipath {
    pub(crate) fn new(setup: MultipathSetup, events: &mut Events) -> Self {
        let local_max = initial_max(setup.paths_max).0;
        let mut new = Self {
            handshake_remote: setup.handshake_remote,
            setup,
            dialect: Dialect::SinglePath,
            entries: vec![Entry::new(PathId::ZERO)],
            gone: RangeSet::new(),
            abandoned: AbandonedPaths::default(),
            local_max: Latest::new(local_max),
            paths_blocked: Latest::new(0),
            cids_blocked: Latest::new((PathId::ZERO, 0)),
            left: LeftPaths::default(),
            copies: DatagramCopies::default(),
            repeats_on: None,
        };
        new.entries[0].is_open = true;
        for id in 1..=local_max {
            new.entries.push(Entry::new(PathId(id)));
        }
        new.issue(events);
        new
    }

    /// Gives the peer connection IDs for all paths that both ends allow (RFC 10069 §3.2.1).
    fn issue(&mut self, events: &mut Events) {
        let setup = &mut self.setup;
        let max = setup.peer_max;
        for entry in self.entries.iter_mut().filter(|e| !e.is_open && e.local.is_none() && e.id <= max) {
            let mut cids = LocalCids::of_unused(entry.id, setup.config.clone(), setup.rng.fork());
            cids.set_peer_limit(setup.peer_cids_max.min(CIDS_PER_PATH), events);
            entry.local = Some(cids);
        }
    }

    fn entry(&mut self, id: PathId) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.id == id)
    }

    /// Whether a path ID that the peer names is not gone.
    ///
    /// # Errors
    /// It is larger than this end allows (RFC 10069 §4).
    pub(crate) fn admits(&self, id: PathId) -> Result<bool, TransportError> {
        if id.0 > self.local_max.get() {
            return Err(TransportError::protocol_violation("a path ID above the limit"));
        }
        Ok(!self.gone.contains(id.0.into()))
    }

    /// The unused path to which packets to this connection ID belong.
    pub(crate) fn unused_of(&self, dst: &ConnectionId) -> Option<PathId> {
        let is_of = |entry: &&Entry| entry.local.as_ref().is_some_and(|cids| cids.is_issued(dst));
        self.entries.iter().find(is_of).map(|entry| entry.id)
    }

    pub(crate) fn local_cids(&mut self, id: PathId) -> Option<&mut LocalCids> {
        self.entry(id)?.local.as_mut()
    }

    pub(crate) fn remote_cids(&mut self, id: PathId) -> Option<&mut RemoteCids> {
        self.entry(id)?.remote.as_mut()
    }

    /// The peer issued a connection ID for a path that is not open.
    pub(crate) fn on_new_connection_id(
        &mut self,
        frame: &NewConnectionId,
        events: &mut Events,
    ) -> Result<(), TransportError> {
        let max = self.setup.remote_cids_max;
        let Some(entry) = self.entry(frame.path).filter(|entry| !entry.is_open) else { return Ok(()) };
        let cids = entry.remote.get_or_insert_with(|| RemoteCids::of_unused(frame, max, events));
        cids.on_new_connection_id(frame, events)
    }

    /// Whether the peer has issued this connection ID for another path that is not open.
    pub(crate) fn is_of_other_path(&self, cid: &ConnectionId, id: PathId) -> bool {
        let others = self.entries.iter().filter(|entry| entry.id != id);
        others.filter_map(|entry| entry.remote.as_ref()).any(|cids| cids.holds(cid))
    }

    /// The next path that can be opened. If there is none, the peer is told why.
    pub(crate) fn next_unused(&mut self) -> Result<PathId, NoPath> {
        let mut unused = self.entries.iter().filter(|e| !e.is_open && e.local.is_some());
        match unused.find(|entry| entry.remote.is_some()) {
            Some(entry) => return Ok(entry.id),
            None => {
                let lacking = self.entries.iter().find(|e| !e.is_open && e.local.is_some());
                if let Some(id) = lacking.map(|entry| entry.id) {
                    self.cids_blocked.set((id, 0));
                    return Err(NoPath::NoCid);
                }
            }
        }
        if self.setup.peer_max.0 <= self.local_max.get() {
            self.paths_blocked.set(self.setup.peer_max.0);
        }
        Err(NoPath::Limit)
    }

    /// Takes the connection IDs of a path that is being opened; `None` if one of the ends has none.
    pub(crate) fn open(&mut self, id: PathId) -> Option<PathCids> {
        let entry = self.entry(id).filter(|e| !e.is_open && e.local.is_some() && e.remote.is_some())?;
        let (local, mut remote) = (entry.local.take()?, entry.remote.take()?);
        entry.is_open = true;
        remote.begin();
        Some(PathCids { local, remote })
    }

    /// A path is gone. Another ID takes its place. Returns the path of which nothing is waited for any more, if that is one.
    pub(crate) fn abandon(
        &mut self,
        id: PathId,
        code: VarInt,
        draining: Option<Draining>,
        events: &mut Events,
    ) -> Option<PathId> {
        let index = self.entries.iter().position(|entry| entry.id == id)?;
        let entry = self.entries.remove(index);
        if let Some(remote) = &entry.remote {
            remote.forget(events);
        }
        if let Some(local) = &entry.local {
            local.forget(events);
        }
        self.gone.insert_one(id.0.into());
        self.copies.forget(id);
        self.entries.iter_mut().for_each(|entry| entry.ways.forget(id));
        let over = self.abandoned.add(id, code, draining, events);
        if let Some(next) = self.local_max.get().checked_add(1) {
            self.local_max.set(next);
            self.entries.push(Entry::new(PathId(next)));
        }
        self.issue(events);
        over
    }

    /// The peer allows larger path IDs.
    pub(crate) fn on_max_path_id(
        &mut self,
        frame: &MaxPathId,
        initial: PathId,
        events: &mut Events,
    ) -> Result<(), TransportError> {
        if frame.max < initial {
            return Err(TransportError::protocol_violation("a largest path ID below the first one"));
        }
        if frame.max > self.setup.peer_max {
            self.setup.peer_max = frame.max;
            self.paths_blocked.cancel();
            self.issue(events);
        }
        Ok(())
    }

    /// The peer has no connection ID for a path, whose next one will have the number `next`.
    pub(crate) fn on_cids_blocked(
        &self,
        frame: &PathCidsBlocked,
        next: Option<u64>,
    ) -> Result<(), TransportError> {
        let known = self.admits(frame.path)?;
        if known && frame.next_sequence.get() > next.unwrap_or(0) {
            return Err(TransportError::protocol_violation(
                "a connection ID was missed that was never issued",
            ));
        }
        Ok(())
    }

    /// Which path carries data.
    pub(crate) fn scheduler(&mut self) -> &mut dyn Scheduler {
        &mut *self.setup.scheduler
    }

    /// Whether the windows of the paths grow together.
    pub(crate) fn is_coupled(&self) -> bool {
        self.setup.coupling.is_some()
    }

    /// How they do.
    pub(crate) fn coupling(&mut self) -> Option<&mut dyn Coupling> {
        Some(&mut **self.setup.coupling.as_mut()?)
    }

    /// Whether unreliable datagrams leave on every path.
    pub(crate) fn repeats_datagrams(&self) -> bool {
        self.setup.scheduler.repeats_datagrams()
    }

    pub(crate) fn wants_to_send(&self) -> bool {
        self.local_max.is_pending()
            || self.paths_blocked.is_pending()
            || self.cids_blocked.is_pending()
            || self.abandoned.wants_to_send()
            || self.entries.iter().any(Entry::wants_to_send)
    }

    pub(crate) fn write(&mut self, out: &mut FrameWriter<'_>) {
        if !self.abandoned.write(out) {
            return;
        }
        if let Some(max) = self.local_max.pending() {
            let frame = Frame::MaxPathId(MaxPathId { max: PathId(max) });
            if !out.write(&frame, SentFrame::MaxPathId) {
                return;
            }
            self.local_max.on_written();
        }
        // They are hints, and not repeated.
        if let Some(max) = self.paths_blocked.pending()
            && out.write_untracked(&Frame::PathsBlocked(PathsBlocked { max: PathId(max) }))
        {
            self.paths_blocked.on_written();
        }
        if let Some((path, next)) = self.cids_blocked.pending()
            && out.write_untracked(&Frame::PathCidsBlocked(PathCidsBlocked {
                path,
                next_sequence: VarInt::saturating(next),
            }))
        {
            self.cids_blocked.on_written();
        }
        for entry in &mut self.entries {
            entry.write(out);
        }
    }

    /// A frame was acknowledged, or has to be repeated.
    pub(crate) fn on_delivery(&mut self, token: &SentFrame, acked: bool) {
        match token {
            SentFrame::PathAbandon(id) => self.abandoned.on_delivery(*id, acked),
            SentFrame::MaxPathId if !acked => self.local_max.on_lost(),
            SentFrame::PathStatus(id) if !acked => {
                if let Some(entry) = self.entry(*id) {
                    entry.said.on_lost();
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
