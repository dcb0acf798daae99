//! What lies on a path that is slow or silent is said again on another one.
//!
//! Frames are not bound to the path that they have left on, and their owners know how to say them again. Each packet is
//! repeated once at most, so that no more than a window of a path is sent twice.

use fulmar_wire::PathId;

use super::delivery::{Fate, Owners};
use super::path_choice::delay;
use super::recovery::Recovery;
use super::transmit::Sender;
use crate::ids::SpaceId;
use crate::packet::SentFrame;
use crate::path::{Path, Paths};

/// Whether a path may be expected to carry what another one has not: it has proven itself, and answers.
pub(super) fn works(path: &Path) -> bool {
    path.tuple.validated && path.pto.backoff.count() == 0
}

/// Whether there is a path beside this one that works.
pub(super) fn has_other_that_works(paths: &Paths, id: PathId) -> bool {
    paths.iter().any(|path| path.id != id && works(path))
}

impl Recovery<'_> {
    /// A path has fallen silent while others work: all that is under way on it is said again at once, and whichever copy arrives
    /// first counts. The path goes on being probed.
    pub(super) fn repeat_elsewhere(&mut self, id: PathId) {
        let Some(path) = self.owners.paths.get_mut(id) else { return };
        let frames: Vec<SentFrame> =
            path.space.take_for_probe().flat_map(|packet| packet.frames.iter().cloned()).collect();
        self.owners.deliver(SpaceId::Data(id), &frames, Fate::Probed);
    }
}

/// Queues frames that are under way on a path once more, for the path that sends: that they arrive sooner, or at all, holds for it alone.
pub(super) fn repeat_here(sender: &mut Sender<'_>, under_way_on: PathId, frames: &[SentFrame]) {
    let here = sender.parts.path().id;
    Owners::of(&mut sender.parts).deliver(SpaceId::Data(under_way_on), frames, Fate::Probed);
    if let Some(multipath) = &mut sender.parts.paths.multipath {
        multipath.repeats_on = Some(here);
    }
}

/// Queues what is under way on other paths, if a copy from here arrives before an acknowledgement could tell that it was of no
/// use: on slower paths almost all of it, also for what they lose. What should have been acknowledged by now is late, and no
/// acknowledgement is to be waited for: where a queue has filled meanwhile, the path is slower than it was known to be. That counts only for
/// what left before something that this path has had acknowledged, as all paths may have fallen silent. It is a writer of spare
/// capacity, and asked when nothing else may be sent: at the end of a transfer, and where the head of a stream is missing and flow
/// control or the buffer lets nothing more follow. What the window has room for is the budget.
pub(super) fn repeat_what_is_slow(sender: &mut Sender<'_>) {
    if sender.parts.paths.is_single() {
        return;
    }
    let (now, here) = (sender.now, sender.parts.path());
    let (id, room) = (here.id, here.tuple.congestion.window_left());
    if !works(here) {
        return;
    }
    let multipath = sender.parts.paths.multipath.as_deref();
    let arrival = now + delay(here, multipath) + here.tuple.rtt.variance();
    let answered_here = here.tuple.congestion.newest_acked();
    let mut frames = Vec::new();
    let mut last = None;
    while let Some(other) = sender.parts.paths.next_id(last) {
        last = Some(other);
        let Some(path) = sender.parts.paths.get_mut(other).filter(|_| other != id) else { continue };
        let rtt = &path.tuple.rtt;
        let (answered, overdue) = (rtt.smoothed().max(rtt.latest()), rtt.pto_base());
        let is_slow = |sent| sent + answered > arrival || sent + overdue <= now && sent < answered_here;
        path.space.take_slow(room, is_slow, &mut frames);
        if !frames.is_empty() {
            return repeat_here(sender, other, &frames);
        }
    }
}
