//! What lies on a path that is slow or silent is said again on another one.
//!
//! Frames are not bound to the path that they have left on, and their owners know how to say them again. Each packet is
//! repeated once at most, so that no more than a window of a path is sent twice.

use std::time::Duration;

use fulmar_wire::PathId;

use super::delivery::{Fate, Owners};
use super::path_choice::delay;
use super::recovery::Recovery;
use super::spare_capacity::needs_copy;
use super::transmit::Sender;
use crate::ids::SpaceId;
use crate::packet::{SentFrame, SentPacket};
use crate::path::{Path, Paths, Tuple};
use crate::scheduler::{loss_chance, until_resent};

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

/// How long so many bytes are on the wire of a tuple, at the rate that its window and its pacer allow.
fn wire_time(tuple: &Tuple, bytes: u64) -> Duration {
    let window = tuple.congestion.controller().window() as f64;
    let rate = (window / tuple.rtt.smoothed().as_secs_f64()).min(tuple.congestion.pacing_rate() as f64);
    Duration::from_secs_f64(bytes as f64 / rate.max(1.0))
}

/// Queues what is under way on other paths, if a copy from here arrives before an acknowledgement could tell that it was of no
/// use: on slower paths almost all of it, also for what they lose. What should have been acknowledged by now is late, and no
/// acknowledgement is to be waited for: where a queue has filled meanwhile, the path is slower than it was known to be. That counts only for
/// what left before something that this path has had acknowledged, as all paths may have fallen silent. It is a writer of spare
/// capacity, and asked when nothing else may be sent: at the end of a transfer, and where the head of a stream is missing and flow
/// control or the buffer lets nothing more follow. What the window has room for is the budget, and each copy stands behind those before it.
///
/// What another path may lose is repeated, too, where a copy is there so much sooner than what would be sent again after the loss that by
/// the chance of one it saves more time than it takes on the wire: the rule for copies on one path (`spare_capacity.rs`). So does the end of a
/// transfer not wait for a narrow path that overflows, although it is a quick one.
pub(super) fn repeat_what_is_slow(sender: &mut Sender<'_>) {
    if sender.parts.paths.is_single() {
        return;
    }
    let (now, here) = (sender.now, sender.parts.path());
    let (id, room, mtu) = (here.id, here.tuple.congestion.window_left(), u64::from(here.tuple.mtu()));
    if !works(here) {
        return;
    }
    let multipath = sender.parts.paths.multipath.as_deref();
    let delay_here = delay(here, multipath);
    let (expected, varies) = (now + delay_here, here.tuple.rtt.variance());
    let (packet_time, repeats) = (wire_time(&here.tuple, mtu), sender.config.preemptive_repeat);
    let answered_here = here.tuple.congestion.newest_acked();
    let mut frames = Vec::new();
    let mut last = None;
    while let Some(other) = sender.parts.paths.next_id(last) {
        last = Some(other);
        if other == id {
            continue;
        }
        let (paths, fec) = (&mut *sender.parts.paths, sender.parts.extensions.fec_sender());
        let (fec, multipath) = (fec.as_deref(), paths.multipath.as_deref());
        let Some(delay_other) = paths.get(other).map(|path| delay(path, multipath)) else { continue };
        let Some(path) = paths.get_mut(other) else { continue };
        let rtt = &path.tuple.rtt;
        let (answered, overdue) = (rtt.smoothed().max(rtt.latest()), rtt.pto_base());
        let (delivered, lost) = path.tuple.congestion.totals();
        let chance = if repeats { loss_chance(delivered, lost) } else { 0.0 };
        let again = until_resent(answered) + delay_other.min(delay_here);
        let is_slow = |packet: &SentPacket, before: u64| {
            let (sent, arrival) =
                (packet.time_sent, expected + packet_time.mul_f64(before as f64 / mtu as f64));
            sent + answered > arrival + varies
                || sent + overdue <= now && sent < answered_here
                || (sent + again).saturating_since(arrival).mul_f64(chance) > packet_time
                    && needs_copy(packet, fec)
        };
        path.space.take_slow(room, is_slow, &mut frames);
        if !frames.is_empty() {
            return repeat_here(sender, other, &frames);
        }
    }
}
