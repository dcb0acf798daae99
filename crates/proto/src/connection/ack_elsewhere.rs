//! Acknowledgements of one path on another (RFC 10069 §3.3): each goes over the path of its packets, and a copy over one that is much
//! quicker, so that a slow path learns of losses and grows in shorter rounds.
//!
//! What arrives on a path that is gone is acknowledged on any other one (RFC 10069 §3.4).
//!
//! The copy is not instead of the first: an end that only acknowledges cannot tell that a path has died.
//!
//! Only paths have it that were opened beside others, from their first packet on. Where the way back changed amid a flight, the first
//! copy would say in one what the acknowledgements under way say one by one: packet trains show the rate of a path by their spacing;
//! and round trips that shrink by the difference of the ways back would hide a queue as long as that from slow start. Where it changes
//! later, since a path has become slower or is gone, controllers see round trips as if it had not.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::PathId;

use super::reinjection::works;
use super::write_order::Writers;
use crate::log::ACK_DELAY_EXPONENT;
use crate::packet::FrameWriter;
use crate::path::{Multipath, Path, Paths};
use crate::space::RttSample;

/// How long an acknowledgement is on its way back over a path where no queue stands, by a guess: half of the smallest round trip.
/// Where the peer's acknowledgements come over a quicker path, the way back takes as long as the way there.
fn way_back(path: &Path, multipath: Option<&Multipath>) -> Duration {
    let half = path.tuple.rtt.min() / 2;
    multipath.and_then(|multipath| multipath.to_peer(path.id)).map_or(half, |to_peer| to_peer.min().max(half))
}

/// Where a copy of this path's acknowledgements arrives much sooner: in half of the time at most, and by more than they may wait for
/// each other. A queue on the quicker way is not looked at: whoever only acknowledges cannot tell one on the way out from one where the
/// answers come from, which is there in each transfer.
fn quicker_way_back(paths: &Paths, id: PathId) -> Option<PathId> {
    let path = paths.get(id).filter(|path| path.tuple.rtt.has_sample())?;
    let worth = path.space.ack_policy().max_ack_delay;
    let others = paths.iter().filter(|other| other.id != id && works(other) && other.tuple.rtt.has_sample());
    let way_back = |path| way_back(path, paths.multipath.as_deref());
    let quickest = others.min_by_key(|other| (way_back(other), other.id))?;
    let (own, other) = (way_back(path), way_back(quickest));
    (own >= other * 2 && own - other > worth).then_some(quickest.id)
}

/// An acknowledgement of path `id` has come over path `over`, with this sample: what is left of it without the way back is the way
/// to the peer.
pub(super) fn note_way_back(
    now: Instant,
    paths: &mut Paths,
    [id, over]: [PathId; 2],
    sample: &RttSample,
    max_ack_delay: Option<Duration>,
) {
    let multipath = paths.multipath.as_deref();
    let (Some(path), Some(way)) = (paths.get(id), paths.get(over)) else { return };
    let way_back = way_back(way, multipath);
    let (is_used, is_first) = (path.tuple.id == sample.tuple, path.tuple.rtt.first_sample() == Some(now));
    let Some(multipath) = paths.multipath.as_mut().filter(|_| is_used) else { return };
    if is_first {
        multipath.forget_ways(id);
    }
    if let Some(to_peer) = multipath.on_way_back(now, [id, over], sample.rtt, sample.ack_delay) {
        let (to, waited) = (sample.rtt.saturating_sub(way_back), sample.ack_delay);
        match to_peer.has_sample() {
            true => to_peer.update(now, to, waited, max_ack_delay),
            // The first sample of a connection is taken as it is, since nothing says what may be taken off. Here the round trips do.
            false => {
                let waited = max_ack_delay.map_or(waited, |max| waited.min(max));
                to_peer.update(now, to.saturating_sub(waited), Duration::ZERO, max_ack_delay);
            }
        }
    }
}

/// Whether a copy waits for this path, or what came on one that is gone is to be acknowledged on it.
pub(super) fn has_copies_for(paths: &Paths, now: Instant, id: PathId) -> bool {
    let Some(multipath) = &paths.multipath else { return false };
    multipath.has_ack_copies_for(id) || multipath.abandoned.needs_ack(now) && id == paths.most_reliable().id
}

impl Writers<'_> {
    /// An acknowledgement was written on its own path.
    pub(super) fn copy_ack_elsewhere(&mut self) {
        if self.paths.is_single() {
            return;
        }
        let id = self.path().id;
        let quicker = quicker_way_back(self.paths, id).filter(|_| self.path().space.began_beside_others());
        if let Some(multipath) = &mut self.paths.multipath {
            multipath.set_ack_copy(id, quicker);
        }
    }

    /// Writes what [`has_copies_for`] found. A copy that finds no room is on its way over its own path; an acknowledgement for a path
    /// that is gone stays due.
    pub(super) fn write_ack_copies(&mut self, now: Instant, out: &mut FrameWriter<'_>) {
        let id = self.path().id;
        if !has_copies_for(self.paths, now, id) {
            return;
        }
        let Some(multipath) = &mut self.paths.multipath else { return };
        let room = out.space();
        self.stats.acks_sent += multipath.abandoned.write_acks(now, ACK_DELAY_EXPONENT, out);
        self.stats.ack_bytes += (room - out.space()) as u64;
        for copied in multipath.take_ack_copies_for(id) {
            let Some(path) = self.paths.get_mut(copied) else { continue };
            let room = out.space();
            if path.space.write_ack_copy(now, copied, ACK_DELAY_EXPONENT, out) {
                self.stats.acks_sent += 1;
                self.stats.ack_bytes += (room - out.space()) as u64;
            }
        }
    }
}
