//! The tuples of a path: the one in use, those that are being tried, and the one to return to.

use std::collections::VecDeque;
use std::net::SocketAddr;

use fulmar_base::Instant;
use fulmar_wire::{ConnectionId, Side};

use super::amplification::AntiAmplification;
use super::{Path, Tuple, TupleId};
use crate::config::TransportConfig;
use crate::datagram::FourTuple;
use crate::events::EndpointEventInner;
use crate::space::NumberSpace;

/// How many tuples a path has beside the one in use; when full, the oldest makes room, but never the one to
/// return to. What an attacker with many addresses can reach is that the peer has to probe again.
const OFF_PATH_MAX: usize = 3;

/// What becomes of the tuple that was in use when another takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MigrationCause {
    /// It is kept if it has proven itself, to return to it. Nobody is expected at another one.
    Moved,
    /// It has failed. The peer may still be there, if only the way to it is interrupted: it keeps its connection
    /// ID for the peer's next packet, so that a long interruption does not use up all IDs.
    Failed,
}

type Events = VecDeque<EndpointEventInner>;

/// The tuples of a path, borrowed apart from its packet number space.
pub(crate) struct Tuples<'p> {
    /// The one in use.
    pub(crate) used: &'p mut Tuple,
    pub(crate) off_path: &'p mut [Tuple],
}

impl Tuples<'_> {
    /// The tuple with this ID, if it is still there.
    #[inline]
    pub(crate) fn get(&mut self, id: TupleId) -> Option<&mut Tuple> {
        if self.used.id == id {
            return Some(self.used);
        }
        self.off_path.iter_mut().find(|tuple| tuple.id == id)
    }
}

impl Path {
    /// The tuple with this name, if it is still there.
    pub(crate) fn tuple_mut(&mut self, id: TupleId) -> Option<&mut Tuple> {
        if self.tuple.id == id {
            return Some(&mut self.tuple);
        }
        self.off_path.iter_mut().find(|tuple| tuple.id == id)
    }

    /// The packet number space and the tuples.
    #[inline]
    pub(crate) fn split(&mut self) -> (&mut NumberSpace, Tuples<'_>) {
        (&mut self.space, Tuples { used: &mut self.tuple, off_path: &mut self.off_path })
    }

    /// All tuples, the one in use first.
    pub(crate) fn tuples_mut(&mut self) -> impl Iterator<Item = &mut Tuple> {
        std::iter::once(&mut self.tuple).chain(&mut self.off_path)
    }

    /// Whether one of the tuples has this address of the peer.
    pub(crate) fn leads_to(&self, remote: SocketAddr) -> bool {
        self.tuple.addrs.remote == remote || self.off_path.iter().any(|tuple| tuple.addrs.remote == remote)
    }

    /// The tuples but the one in use.
    pub(crate) fn off_path(&self) -> &[Tuple] {
        &self.off_path
    }

    pub(crate) fn off_path_mut(&mut self) -> &mut [Tuple] {
        &mut self.off_path
    }

    /// Whether a datagram has taken the tuple in use. Where its address of this end was left to the kernel, every
    /// address fits it but those that have a tuple of their own.
    #[inline]
    pub(crate) fn is_taken_by(&self, arrived: &FourTuple) -> bool {
        let used = &self.tuple.addrs;
        used.is_taken_by(arrived) && (used == arrived || self.off_path.iter().all(|t| t.addrs != *arrived))
    }

    /// Where the tuple that a datagram has taken is among those off the path.
    pub(crate) fn off_path_at(&self, arrived: &FourTuple) -> Option<usize> {
        let exact = self.off_path.iter().position(|tuple| tuple.addrs == *arrived);
        exact.or_else(|| self.off_path.iter().position(|tuple| tuple.addrs.is_taken_by(arrived)))
    }

    /// The sequence number of an ID of the peer for a tuple from which it sends to `peer_dst`. One that was never
    /// used, unless the peer sends to the same ID from elsewhere too: then a NAT has moved it, and it goes on
    /// sharing the ID that it has (RFC 9000 §9.5).
    ///
    /// `None` if the peer has taken another ID and has given none for it. The oldest tuple that was only tried is
    /// given up then, so that the peer replaces its ID.
    pub(crate) fn remote_cid_for(&mut self, peer_dst: ConnectionId, events: &mut Events) -> Option<u64> {
        let shared = self.tuples_mut().find(|tuple| tuple.peer_dst == Some(peer_dst)).map(|t| t.remote_cid);
        let sequence = shared.or_else(|| self.remote_cids.take_spare());
        if sequence.is_none() {
            self.forget_oldest_tried(self.off_path.len(), events);
        }
        sequence
    }

    /// Gives up the oldest tuple that was only tried if no ID is left for the next address of the peer. The last of
    /// those off the path is the newest, and stays.
    pub(crate) fn keep_a_spare_cid(&mut self, events: &mut Events) {
        if !self.remote_cids.has_spare() {
            self.forget_oldest_tried(self.off_path.len().saturating_sub(1), events);
        }
    }

    /// Removes the oldest of the first `among` of those off the path, but not the one to return to.
    fn forget_oldest_tried(&mut self, among: usize, events: &mut Events) {
        let tried = self.off_path[..among].iter().position(|tuple| Some(tuple.id) != self.fallback);
        if let Some(index) = tried {
            self.forget_off_path(index, events);
        }
    }

    /// Adds a tuple that packets to the peer's connection ID `remote_cid` will take.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        addrs: FourTuple,
        amplification: AntiAmplification,
        remote_cid: u64,
        config: &TransportConfig,
        events: &mut Events,
    ) -> &mut Tuple {
        self.make_room(events);
        let id = self.next_id();
        let mut tuple = Tuple::new(id, addrs, amplification, config, now, &mut self.rng);
        tuple.remote_cid = remote_cid;
        tuple.mtud.on_peer_limit(self.mtu_limit);
        tuple.on_mtu_changed(now);
        let index = self.off_path.len();
        self.off_path.push(tuple);
        &mut self.off_path[index]
    }

    fn make_room(&mut self, events: &mut Events) {
        if self.off_path.len() >= OFF_PATH_MAX {
            self.forget_oldest_tried(self.off_path.len(), events);
        }
    }

    /// Removes a tuple. Its connection ID is retired, unless another tuple uses it too.
    pub(crate) fn forget_off_path(&mut self, index: usize, events: &mut Events) {
        let gone = self.off_path.remove(index);
        self.fallback = self.fallback.filter(|id| *id != gone.id);
        if gone.validation.is_some() && !gone.validated {
            self.given_up.get_or_insert_default().0.push(gone.addrs);
        }
        self.release_cid(gone.remote_cid, events);
    }

    /// The addresses of the tuples that were removed before they had answered.
    pub(crate) fn take_given_up(&mut self) -> Vec<FourTuple> {
        self.given_up.take().map(|given_up| given_up.0).unwrap_or_default()
    }

    /// Removes the tuples of which nothing is expected any more, now that the one in use has proven itself.
    pub(crate) fn forget_idle_off_path(&mut self, events: &mut Events) {
        self.fallback = None;
        while let Some(index) =
            self.off_path.iter().position(|t| t.validation.is_none() && !t.wants_to_send())
        {
            self.forget_off_path(index, events);
        }
    }

    fn release_cid(&mut self, sequence: u64, events: &mut Events) {
        if self.off_path.iter().all(|tuple| tuple.remote_cid != sequence) {
            // The active one is never retired here.
            self.remote_cids.retire(sequence, events);
        }
    }

    /// Removes the tuples whose connection ID the peer has taken back, or that the tuple in use needs now.
    pub(crate) fn on_cids_changed(&mut self, events: &mut Events) {
        if self.tuple.remote_cid == self.remote_cids.active_sequence() {
            self.drop_orphans(events);
            return;
        }
        let shared = self.tuple.remote_cid;
        self.tuple.remote_cid = self.remote_cids.active_sequence();
        // A tuple that differs by what a NAT did goes on sharing the ID (RFC 9000 §9.5).
        for tuple in self.off_path.iter_mut().filter(|tuple| tuple.remote_cid == shared) {
            tuple.remote_cid = self.tuple.remote_cid;
        }
        self.drop_orphans(events);
    }

    /// Another ID is taken for a tuple as long as one is left for the next address of the peer.
    fn drop_orphans(&mut self, events: &mut Events) {
        let mut index = 0;
        while let Some(tuple) = self.off_path.get_mut(index) {
            if self.remote_cids.get(tuple.remote_cid).is_some() {
                index += 1;
                continue;
            }
            match self.remote_cids.take_spare_but_one() {
                Some(spare) => tuple.remote_cid = spare,
                None => self.forget_off_path(index, events),
            }
        }
    }

    /// Makes one of those off the path the tuple in use.
    pub(crate) fn switch_to(
        &mut self,
        now: Instant,
        index: usize,
        side: Side,
        cause: MigrationCause,
        events: &mut Events,
    ) {
        self.window_max = self.window_max();
        let mut new = self.off_path.remove(index);
        if new.is_same_network(&self.tuple, side) {
            let names = [self.next_id(), self.next_id()];
            let was_fallback = self.fallback == Some(new.id);
            new.exchange_measurements(&mut self.tuple, names);
            if was_fallback {
                self.fallback = Some(new.id);
            }
        }
        if self.fallback == Some(new.id) {
            self.fallback = None;
        }
        let old = std::mem::replace(&mut self.tuple, new);
        self.remote_cids.set_active(self.tuple.remote_cid);
        self.switched = Some(now);
        // Where the socket was replaced, there is no way back.
        let is_another = old.addrs != self.tuple.addrs;
        if is_another && (old.validated || cause == MigrationCause::Failed) {
            self.make_room(events);
            self.fallback = old.validated.then_some(old.id).or(self.fallback);
            self.off_path.push(old);
        } else {
            self.release_cid(old.remote_cid, events);
        }
    }

    /// Where the tuple to return to is among those off the path.
    pub(crate) fn fallback_index(&self) -> Option<usize> {
        let fallback = self.fallback?;
        self.off_path.iter().position(|tuple| tuple.id == fallback)
    }

    fn next_id(&mut self) -> TupleId {
        self.last_id += 1;
        TupleId(self.last_id)
    }
}

#[cfg(test)]
mod tests;
